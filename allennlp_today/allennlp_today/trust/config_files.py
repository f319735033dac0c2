"""The config in an archive, read as JSON: as Jsonnet, it could read files and the environment."""

import json
import re
import tarfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Any

from allennlp_today.files import reason_of
from allennlp_today.trust.unpacking import ForwardMember, expect_regular_file, plain_members

__all__ = ["CONFIG", "json_object", "overridden", "read_config"]

CONFIG = "config.json"
_MAX_CONFIG = 16 * 2**20


def read_config(archive: str | PathLike[str]) -> dict[str, Any]:
    """
    The config in an archive, or in the folder of a model or a run. A model that continued from a
    different archive is replaced by that archive's, which the config includes.
    """
    config = _read_config(archive)
    model = config.get("model")
    if isinstance(model, dict) and model.get("type") == "from_archive" and "model" in model:
        config["model"] = model["model"]
    return config


def _read_config(archive: str | PathLike[str]) -> dict[str, Any]:
    """
    The config as it was written. It is the first file of an archive, so the weights are not read.
    """
    from allennlp_today.config_error import FileContentError

    path = Path(archive)
    if path.is_dir():
        return json_object(path / CONFIG)
    expect_regular_file(path)
    try:
        with tarfile.open(path, tarinfo=ForwardMember) as tar:
            for member in plain_members(tar):
                if member.name == CONFIG:
                    content: Any = tar.extractfile(member)
                    return _parsed(content.read(_MAX_CONFIG + 1), path)
    except (EOFError, OSError, ValueError, tarfile.TarError, zlib.error) as error:
        if isinstance(error, FileContentError):
            raise
        raise FileContentError(f"expected a whole archive ({reason_of(error)}): {path}") from error
    raise FileContentError(f"expected {CONFIG} in an archive: {path}")


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file of AllenNLP."""
    from allennlp_today.config_error import FileContentError

    try:
        expect_regular_file(path)
    except ValueError as error:
        raise FileContentError(str(error)) from None
    with open(path, "rb") as file:
        return _parsed(file.read(_MAX_CONFIG + 1), path)


def overridden(config: dict[str, Any], overrides: Any, ext_vars: Any = None) -> dict[str, Any]:
    """A config with overrides of the user, which may be Jsonnet."""
    from allennlp.common.params import parse_overrides, with_overrides

    if isinstance(overrides, str):
        overrides = parse_overrides(overrides, ext_vars=ext_vars)
    changed: dict[str, Any] = with_overrides(config, overrides)
    return changed


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    """The JSON object in the content of a file that AllenNLP has written."""
    from allennlp_today.config_error import FileContentError

    if len(content) > _MAX_CONFIG:
        raise FileContentError(f"expected at most {_MAX_CONFIG:,} bytes of JSON: {path}")
    try:
        config = json.loads(_without_comments(content.decode()))
    except (ValueError, RecursionError) as error:
        raise FileContentError(f"expected JSON, got: {error}: {path}") from None
    if not isinstance(config, dict):
        raise FileContentError(f"expected a JSON object, got {config!r:.60}: {path}")
    return config


def _without_comments(text: str) -> str:
    """
    JSON without the comments and trailing commas that Jsonnet allows; strings are kept as they are.
    Nothing is read twice: a string or a comment without an end is matched up to the end of the
    text.
    """
    for left_out in (r"//[^\n]*|#[^\n]*|/\*(?>.*?\*/|.*)", r",(?=\s*+[}\]])"):
        pattern = rf'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|{left_out}'
        text = re.sub(pattern, lambda match: match[1] or "", text, flags=re.DOTALL)
    return text
