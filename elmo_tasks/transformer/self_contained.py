"""Configs of models with a transformer that need neither its checkpoint nor a network."""

from collections.abc import Iterable, Iterator
from pathlib import Path
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
        If a checkpoint cannot be had; or if a transformer of the model has no token indexer, so that its words would be
        pieces of another one.
    """
    indexers = [child for name, child in _nested(config) if _is_indexer(name, child)]
    networks = {_place(child["model_name"]) for name, child in _nested(config) if _is_network(name, child)}
    # A part of a config has no indexers, and one that has its tokenizer need not say whose it is.
    has_indexers = any(name == "token_indexers" for name, _ in _nested(config))
    if has_indexers and all(isinstance(child.get("model_name"), str) for child in indexers):
        known = {_place(child["model_name"]) for child in indexers}
        if missing := sorted(networks - known):
            shown = " and ".join(map(repr, sorted(known))) or "none"
            raise ValueError(
                "the words of a transformer must come from a token indexer 'elmo_transformer' with its model_name "
                f"({missing[0]!r}), but the config has {shown}"
            )
    _write(config)


def _nested(config: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    for name, child in _children(config):
        if isinstance(child, dict):
            yield name, child
        yield from _nested(child)


def _place(model_name: str) -> str:
    """A folder has several names, and so has a checkpoint on the hub."""
    folder = Path(model_name).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model_name.removeprefix("hf://")


def _is_network(name: Any, child: dict[str, Any]) -> bool:
    return name == "bilm" and child.get("type") == "transformer" and isinstance(child.get("model_name"), str)


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
