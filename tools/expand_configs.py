"""
Writes training_configs/expanded/: each config as the JSON that plain Jsonnet makes of it, with the
default variables.
"""

import json
from collections.abc import Iterable
from typing import Any

import _jsonnet

from elmo_tasks.files.shipped import TRAINING_CONFIGS

EXPANDED = TRAINING_CONFIGS / "expanded"
# They are lists of runs, not configs.
_PLANS = {"open", "paper"}
# These keys come first, in this order, and others follow alphabetically.
_ORDER = ["type", "dataset_reader", "validation_dataset_reader"]
_ORDER += ["train_data_path", "validation_data_path", "test_data_path"]
_ORDER += ["datasets_for_vocab_creation", "vocabulary"]
_ORDER += ["model", "text_field_embedder", "token_embedders", "tokens", "token_characters", "elmo"]
_ORDER += ["bilm", "data_loader", "validation_data_loader", "trainer"]
_COLUMNS = 100


def main() -> None:
    EXPANDED.mkdir(exist_ok=True)
    for name, text in expanded_configs().items():
        (EXPANDED / name).write_text(text, "utf-8")


def expanded_configs() -> dict[str, str]:
    """The names and texts of the files."""
    texts = {}
    for config in sorted(TRAINING_CONFIGS.glob("*.jsonnet")):
        if config.stem not in _PLANS:
            evaluated = json.loads(_jsonnet.evaluate_file(str(config)))
            texts[f"{config.stem}.json"] = f"{_formatted(evaluated)}\n"
    return texts


def _formatted(value: Any, indent: str = "", key: str = "") -> str:
    """A value as JSON: on one line if it fits, and otherwise with a line for each of its items."""
    is_single_value = not isinstance(value, dict | list)
    line = indent + key + json.dumps(_in_order(value), ensure_ascii=False)
    if is_single_value or (indent and len(line) < _COLUMNS):
        return line
    inner = f"{indent}  "
    if isinstance(value, list):
        items = [_formatted(item, inner) for item in value]
        return f"{indent}{key}[\n{_joined(items)}\n{indent}]"
    items = [_formatted(value[name], inner, f'"{name}": ') for name in _sorted(value)]
    return f"{indent}{key}{{\n{_joined(items)}\n{indent}}}"


def _joined(items: Iterable[str]) -> str:
    return ",\n".join(items)


def _in_order(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_order(item) for item in value]
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in _sorted(value)}
    return value


def _sorted(names: Iterable[str]) -> list[str]:
    def position(name: str) -> tuple[int, str]:
        return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)

    return sorted(names, key=position)


if __name__ == "__main__":
    main()
