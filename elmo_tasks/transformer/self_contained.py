"""Configs of models with a transformer that need neither its checkpoint nor a network."""

from typing import Any

from elmo_tasks.transformer.checkpoint import read_config, read_pieces

__all__ = ["write_content"]


def write_content(config: Any) -> None:
    """
    Writes into a config what its transformers are made from: below each `bilm` with `"type": "transformer"` and a
    `model_name` the `config` and the `special_pieces` of the checkpoint, and where the weights are
    (`pretrained_file`); and the `tokenizer` below each token indexer `elmo_transformer`. What already has it stays as
    it is.

    # Parameters

    config
        A config, as nested dictionaries and lists, which is changed.

    # Raises

    `ValueError`
        If a checkpoint cannot be had.
    """
    children = config.items() if isinstance(config, dict) else enumerate(config) if isinstance(config, list) else ()
    for name, child in children:
        write_content(child)
        model_name = child.get("model_name") if isinstance(child, dict) else None
        if not isinstance(model_name, str):
            continue
        if name == "bilm" and child.get("type") == "transformer" and "config" not in child:
            child["config"] = read_config(model_name)
            child["special_pieces"] = read_pieces(model_name)[1].to_dict()
            child["pretrained_file"] = model_name
        if child.get("type") == "elmo_transformer" and "tokenizer" not in child:
            child["tokenizer"] = read_pieces(model_name)[0].to_dict()
