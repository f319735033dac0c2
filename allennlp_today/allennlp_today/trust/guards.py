"""
What AllenNLP's own classes and functions would open, fetch or run with a harmless config. The
guards prevent it while an archive that is not trusted is loaded.
"""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any
from unittest import mock

from allennlp_today.import_hooks import Module, guard, replace, replaces
from allennlp_today.trust.config_files import json_object, overridden
from allennlp_today.trust.current_archive import is_untrusted, refuse_outside
from allennlp_today.trust.repositories import expect_language_model, expect_tokenizer

__all__ = ["UNTRUSTED_TRANSFORMER"]

UNTRUSTED_TRANSFORMER = {"trust_remote_code": False, "attn_implementation": "eager"}
"""
Options for `AutoModel.from_config`: a repository may name code, and kernels of another repository.
"""

_NO_CODE = {"trust_remote_code": False}


@guard("allennlp.common.file_utils")
def open_files_of_the_archive_only(file_utils: Module) -> None:
    """
    Symptom: an archive's config fetches a file, or unpacks one for a second time, without a filter.
    Cause: `cached_path` opens addresses and unpacks archives, such as a file `vocabulary` in the
    place of the folder. While an archive that is not trusted is loaded, it only returns paths in
    this archive.
    """

    @replaces(file_utils, "cached_path")
    def cached_path(
        original: Callable[..., str],
        url_or_filename: Any,
        *args: Any,
        **kwargs: Any,
    ) -> str:
        if is_untrusted():
            return refuse_outside(url_or_filename)
        return original(url_or_filename, *args, **kwargs)


@guard("allennlp.common.util")
def install_nothing(util: Module) -> None:
    """
    Symptom: an archive starts an installer: its tokenizer is a pipeline of spaCy that is missing.
    Cause: `get_spacy_model` downloads and installs it.
    """
    original = util.spacy_download

    def spacy_download(name: str) -> None:
        from allennlp.common.checks import ConfigurationError

        if is_untrusted():
            message = f"{name} is not installed: `python -m spacy download {name}` installs it"
            raise ConfigurationError(message)
        original(name)

    replace(util, "spacy_download", spacy_download)


@guard("allennlp.common.cached_transformers")
def run_no_code_of_transformers(cached_transformers: Module) -> None:
    """
    Symptom: a transformer with code in its repository asks in the terminal whether to run it, and
    one that names kernels, a backbone with code, or any class of transformers as its tokenizer,
    gets them. An archive with a transformer fetches its weights, and then replaces them.
    Cause: transformers asks unless `trust_remote_code` is set, and does what the files of the
    repository say. Of an archive that is not trusted, only the config and the tokenizer are
    fetched.
    """

    # Not subclasses: they would import transformers, which most programs do not use.
    original_config = cached_transformers.AutoConfig
    original_model = cached_transformers.AutoModel

    class AutoConfig:
        @staticmethod
        def from_pretrained(model_name: str, *args: Any, **options: Any) -> Any:
            if is_untrusted():
                expect_language_model(model_name)
            return original_config.from_pretrained(model_name, *args, **_NO_CODE | options)

    class AutoModel:
        @staticmethod
        def from_config(*args: Any, **options: Any) -> Any:
            defaults = UNTRUSTED_TRANSFORMER if is_untrusted() else _NO_CODE
            return original_model.from_config(*args, **defaults | options)

        @staticmethod
        def from_pretrained(*args: Any, **options: Any) -> Any:
            return original_model.from_pretrained(*args, **_NO_CODE | options)

    replace(cached_transformers, "AutoConfig", AutoConfig)
    replace(cached_transformers, "AutoModel", AutoModel)

    @replaces(cached_transformers, "get_tokenizer")
    def get_tokenizer(original: Callable[..., Any], model_name: str, **kwargs: Any) -> Any:
        if is_untrusted():
            expect_tokenizer(model_name)
            expect_language_model(model_name)
        return original(model_name, **_NO_CODE | kwargs)

    @replaces(cached_transformers, "get")
    def get(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not is_untrusted():
            return original(*args, **kwargs)
        # A different cache: the weights are random until those of the archive are loaded.
        with mock.patch.object(cached_transformers, "_model_cache", {}):
            return original(*args, **kwargs | {"load_weights": False})


@guard("allennlp.training.util")
def read_recovered_configs_as_json(util: Module) -> None:
    """
    Symptom: with `--recover`, the config of a run may read local files and the environment.
    Cause: `Params.from_file` evaluates as Jsonnet what AllenNLP has written as JSON.
    """

    class JsonParams(util.Params):
        @classmethod
        def from_file(
            cls,
            params_file: str | PathLike[str],
            params_overrides: Any = "",
            ext_vars: Any = None,
        ) -> Any:
            return cls(overridden(json_object(Path(params_file)), params_overrides, ext_vars))

    replace(util, "Params", JsonParams)
