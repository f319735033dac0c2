"""What the files of a repository on the hub may say, if an archive names it as its transformer."""

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["expect_language_model", "expect_tokenizer"]


def expect_language_model(model_name: str) -> None:
    """
    Raises a `ConfigurationError` unless a repository has the config of one language model.

    transformers builds others with parts: those of images may have a `backbone` from another
    repository, and the config says how it is loaded, such as with its code.
    """
    from allennlp.common.checks import ConfigurationError
    from transformers.models.auto import modeling_auto

    language_models = {
        *modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        *modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        *modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    }
    config = _config_of(model_name)
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in language_models:
        raise ConfigurationError(
            f"expected the type of a language model, got {model_type!r:.100}: {model_name}"
        )
    for name, value in config.items():
        if isinstance(value, Mapping) and (name.endswith("_config") or "model_type" in value):
            raise ConfigurationError(
                f"expected one model, got a second one in {name!r}: {model_name}"
            )


def expect_tokenizer(model_name: str) -> None:
    """
    Raises a `ConfigurationError` if the class that a repository names as its tokenizer is not a
    tokenizer.
    """
    from allennlp.common.checks import ConfigurationError
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    for config in (_config_of(model_name), get_tokenizer_config(model_name)):
        name = config.get("tokenizer_class")
        if name is not None and not re.fullmatch(r"\w*Tokenizer\w*|PythonBackend", str(name)):
            raise ConfigurationError(f"expected a tokenizer, got {name!r:.100}: {model_name}")


def _config_of(model_name: str) -> dict[str, Any]:
    from transformers import PretrainedConfig

    config, _ = PretrainedConfig.get_config_dict(model_name)
    return dict(config)
