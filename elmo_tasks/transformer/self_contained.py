"""Configs of models with a transformer that need neither its checkpoint nor a network."""

from collections.abc import Callable, Iterable, Iterator
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
        If a checkpoint cannot be had; or if the token indexers are those of other transformers than the model's, whose
        pieces would have other numbers.
    """
    networks, indexers = (
        {name.removeprefix("hf://") for name in _names(config, is_of)} for is_of in (_is_network, _is_indexer)
    )
    if networks and networks != indexers:
        shown = " and ".join(map(repr, sorted(indexers))) or "none"
        raise ValueError(
            f"the words of a transformer must come from a token indexer 'elmo_transformer' with its model_name "
            f"({' and '.join(map(repr, sorted(networks)))}), but the config has {shown}"
        )
    _write(config)


def _names(config: Any, is_of: Callable[[Any, dict[str, Any]], bool]) -> Iterator[str]:
    for name, child in _children(config):
        if isinstance(child, dict) and is_of(name, child) and isinstance(child.get("model_name"), str):
            yield child["model_name"]
        yield from _names(child, is_of)


def _is_network(name: Any, child: dict[str, Any]) -> bool:
    return name == "bilm" and child.get("type") == "transformer"


def _is_indexer(name: Any, child: dict[str, Any]) -> bool:
    return child.get("type") == "elmo_transformer"


def _children(config: Any) -> Iterable[tuple[Any, Any]]:
    return config.items() if isinstance(config, dict) else enumerate(config) if isinstance(config, list) else ()


def _write(config: Any) -> None:
    for name, child in _children(config):
        _write(child)
        model_name = child.get("model_name") if isinstance(child, dict) else None
        if not isinstance(model_name, str):
            continue
        if _is_network(name, child) and "config" not in child:
            child["config"] = read_config(model_name)
            child["special_pieces"] = read_pieces(model_name)[1].to_dict()
            child["pretrained_file"] = model_name
        if _is_indexer(name, child) and "tokenizer" not in child:
            child["tokenizer"] = read_pieces(model_name)[0].to_dict()
