"""Checkpoints of transformers: a folder, or a name on the Hugging Face hub."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from elmo_tasks.logs import logging_from
from elmo_tasks.printable import one_line
from elmo_tasks.transformer.word_pieces import SpecialPieces, WordPieces

if TYPE_CHECKING:
    from transformers import PretrainedConfig

__all__ = ["UNTRAINED", "load_network", "make_network", "read_config", "read_pieces", "size_of"]

_HUB = "hf://"
# What says where a config comes from, and what could bring code or another number format into a network.
_DROPPED = (
    *("_name_or_path", "architectures", "transformers_version", "torch_dtype", "dtype"),
    *("auto_map", "custom_pipelines", "attn_implementation", "_attn_implementation", "quantization_config"),
)
# Parts of a network that compute nothing for single words.
_UNUSED = ("pooler",)
# Networks that, from the first batch on, compute another attention for short sentences than for long ones.
_WITH_ATTENTION_BY_LENGTH = ("big_bird", "bigbird_pegasus")
UNTRAINED = ("mask_emb",)
"""
Weights that no word ever reaches, and that are never trained: XLNet's vector of a word that is to be guessed. Training
in several processes takes a weight without a gradient for an error.
"""

_TOKENIZER = "a tokenizer.json, or files that it can be made from"
# Seconds.
_ANSWERS_WITHIN = 5.0
_PROBES = ("a", "e", "the", "1", ".")


def read_config(model_name: str) -> dict[str, Any]:
    """
    The architecture of a checkpoint, from its `config.json`.

    # Parameters

    model_name
        A folder; or a name on the Hugging Face hub, which may begin with `hf://`. A folder of the same name takes
        precedence; after `hf://` it is an error.

    # Returns

    `Dict[str, Any]`
        What differs from the defaults of its class, without what says where it comes from.

    # Raises

    `ValueError`
        If it cannot be had, is not that of a transformer, or needs code from the checkpoint.
    """
    from transformers import AutoConfig, PretrainedConfig

    with _errors_in_one_line(model_name, "config.json, that of a model of the library transformers"):
        # Without it the library takes a type whose name is anywhere in the path.
        location = _location(model_name)
        if "model_type" not in PretrainedConfig.get_config_dict(**location)[0]:
            raise ValueError("the file is not there, or has no model_type")
        return _content(AutoConfig.from_pretrained(**location, trust_remote_code=False))


def size_of(config: dict[str, Any]) -> tuple[int, int]:
    """
    The number of layers of a transformer, that of its embeddings included, and the units of each.

    # Raises

    `ValueError`
        If the config does not say them.
    """
    made = _config_of(config)
    try:
        return int(made.num_hidden_layers) + 1, int(made.hidden_size)
    except (AttributeError, TypeError) as error:
        raise ValueError(
            f"a transformer must have num_hidden_layers and hidden_size in its config, but one of type "
            f"{made.model_type!r} has not"
        ) from error


def read_pieces(model_name: str) -> tuple[WordPieces, SpecialPieces]:
    """
    The tokenizer of a checkpoint.

    # Parameters

    model_name
        See `read_config`.

    # Returns

    `Tuple[WordPieces, SpecialPieces]`
        Words to pieces, and the pieces around those of a sentence.

    # Raises

    `ValueError`
        If it cannot be had, or does not say which piece belongs to which word.
    """
    with _errors_in_one_line(model_name, _TOKENIZER):
        folder = Path(model_name).expanduser()
        files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
        state = tuple((str(path.resolve()), path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    return _read_pieces(model_name, state)


@lru_cache(maxsize=4)
def _read_pieces(model_name: str, state: tuple[tuple[str, int, int], ...]) -> tuple[WordPieces, SpecialPieces]:
    """As `read_pieces`; `state` has the files of a folder, which may be others when it is read again."""
    from transformers import AutoTokenizer

    with _errors_in_one_line(model_name, _TOKENIZER):
        tokenizer = AutoTokenizer.from_pretrained(**_location(model_name), use_fast=True, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise ValueError(
            f"the tokenizer of a transformer must say which piece belongs to which word, but that of {model_name!r}, a "
            f"{type(tokenizer).__name__}, has no offsets: use a checkpoint with a tokenizer.json"
        )
    for probe in _PROBES:
        encoding = tokenizer(probe, return_special_tokens_mask=True, return_attention_mask=False)
        is_special = encoding["special_tokens_mask"]
        if 0 in is_special:
            types = encoding.get("token_type_ids") if "token_type_ids" in tokenizer.model_input_names else None
            special = SpecialPieces.around(encoding["input_ids"], is_special, types)
            return WordPieces.of(tokenizer.backend_tokenizer, tokenizer.unk_token_id), special
    raise ValueError(f"the tokenizer of {model_name!r} must make pieces of words, but makes none of {_PROBES}")


def make_network(config: dict[str, Any]) -> torch.nn.Module:
    """
    A network with random weights; of an encoder and a decoder, the encoder alone.

    # Parameters

    config
        See `read_config`.

    # Raises

    `ValueError`
        If it is not the config of a transformer.
    """
    from transformers import AutoModel

    made = _config_of(config)
    with _errors_in_one_line(made.model_type, "a network that the library transformers can make"):
        return _encoder_of(AutoModel.from_config(made, trust_remote_code=False))[0]


def load_network(model_name: str, config: dict[str, Any]) -> torch.nn.Module:
    """
    A network with the weights of a checkpoint: from safetensors if it has them, else from files of PyTorch, which are
    read without executing what is in them.

    # Parameters

    model_name, config
        See `read_config`.

    # Raises

    `ValueError`
        If the weights cannot be had, or are not those of the config.
    """
    from transformers import AutoModel

    what = "weights (model.safetensors) that match its config.json"
    # It warns of weights that no word needs, and of how it shares them out; we look at the others.
    with _errors_in_one_line(model_name, what), logging_from(logging.ERROR, "transformers"):
        model, info = AutoModel.from_pretrained(
            **_location(model_name),
            config=_config_of(config),
            trust_remote_code=False,
            weights_only=True,
            output_loading_info=True,
        )
        network, prefix = _encoder_of(model)
        needed = {f"{prefix}{name}" for name in network.state_dict()}
        if missing := sorted(needed & set(info["missing_keys"])):
            raise ValueError(f"{len(missing)} weights are missing, {missing[0]} among them")
    return network.float()


def _location(model_name: str) -> dict[str, Any]:
    """The arguments of `from_pretrained` that name the folder, or the name on the hub."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    if model_name.startswith(_HUB):
        name = model_name.removeprefix(_HUB)
        if Path(name).is_dir():
            raise FileExistsError(
                f"there is a folder {name!r} here, which the library would read in place of the hub's: omit {_HUB} if "
                "the folder is meant, and go to another folder if it is not"
            )
    else:
        name = str(Path(model_name).expanduser())
        if Path(name).is_dir():
            return {"pretrained_model_name_or_path": name, "local_files_only": True}
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise FileNotFoundError(
            "it is neither a folder nor a name on the Hugging Face hub, like 'bert-base-cased'"
        ) from None
    return {"pretrained_model_name_or_path": name, "local_files_only": not _is_reachable(name)}


def _is_reachable(name: str) -> bool:
    """
    Whether the hub answers. The library asks for each file six times and waits 23 seconds in all, which nothing sets;
    for one that it need not ask for, it looks only among the files that were downloaded before.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        HfApi().model_info(name, timeout=_ANSWERS_WITHIN)
    except HfHubHTTPError:
        return True
    except OSError:
        return False
    return True


def _config_of(config: dict[str, Any]) -> "PretrainedConfig":
    from transformers import AutoConfig

    kept = {name: value for name, value in config.items() if name not in _DROPPED}
    model_type = kept.pop("model_type", None)
    with _errors_in_one_line(f"model_type {model_type!r}", "a config of the library transformers"):
        made = AutoConfig.for_model(model_type, **kept)
    # Of a decoder that is not asked for the next word.
    made.use_cache = False
    # Where a type has several classes the library looks for one of them.
    made.architectures = []
    if model_type in _WITH_ATTENTION_BY_LENGTH:
        made.attention_type = "original_full"
    return made


def _content(config: "PretrainedConfig") -> dict[str, Any]:
    content: dict[str, Any] = json.loads(config.to_json_string(use_diff=True))
    return {name: value for name, value in content.items() if name not in _DROPPED}


def _encoder_of(model: Any) -> tuple[torch.nn.Module, str]:
    """The part of a model that reads, and the beginning of the names of its weights."""
    network: torch.nn.Module = model
    prefix = ""
    if model.config.is_encoder_decoder:
        network = model.get_encoder()
        prefix = next(f"{name}." for name, module in model.named_modules() if module is network)
    if "input_ids" not in signature(network.forward).parameters:
        raise ValueError(f"a {type(network).__name__} reads no words")
    for name in _UNUSED:
        # Checkpoints that were trained on words alone lack it, and random weights would be another model each time.
        if isinstance(getattr(network, name, None), torch.nn.Module):
            # Some networks call it without a look at whether it is there.
            setattr(network, name, torch.nn.Identity())
    return network, prefix


@contextmanager
def _errors_in_one_line(model_name: str, what: str) -> Iterator[None]:
    try:
        yield
    # The library raises errors of any class for files that are missing, damaged or of another kind.
    except Exception as error:
        reason = one_line(str(error)) or type(error).__name__
        raise ValueError(
            f"the transformer {model_name!r} must have {what}, but: {reason:.400}. Give a folder that has it, or the "
            "name of a model on a hub that can be reached; code in a checkpoint is never run"
        ) from error
