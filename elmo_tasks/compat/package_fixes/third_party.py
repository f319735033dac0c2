"""
Functions of other packages that AllenNLP 2.10.1 and allennlp-models 2.10.1 use, and that have changed or gone since.
"""

import functools
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

from elmo_tasks.compat.import_hooks import Module, temporary_modules

__all__ = [
    "accept_add_special_tokens",
    "allow_penn_treebank_files",
    "do_not_download_nltk_data",
    "restore_transformers_adamw",
    "stand_in_for_pkg_resources",
]


def accept_add_special_tokens(cached_transformers: Module) -> None:
    """
    Symptom: `PretrainedTransformerTokenizer` raises `add_special_tokens conflicts with the method
    build_inputs_with_special_tokens`-like errors when it is built.

    Cause: AllenNLP passes `add_special_tokens` to `AutoTokenizer.from_pretrained`; transformers (seen with 4.48
    and 4.57) refuses keywords that are also names of the tokenizer's methods. AllenNLP passes the flag again with
    every call of `encode`, so dropping it here changes no output.
    """
    original = cached_transformers.get_tokenizer

    @functools.wraps(original)
    def get_tokenizer(model_name: str, **kwargs: Any) -> Any:
        kwargs.pop("add_special_tokens", None)
        return original(model_name, **kwargs)

    cached_transformers.get_tokenizer = get_tokenizer


def allow_penn_treebank_files(penn_tree_bank: Module) -> None:
    """
    Symptom: the reader `ptb_trees` raises `PermissionError: Security Violation [CorpusReader]`.

    Cause: nltk (seen with 3.10.4) opens only files below its own data folders; the reader passes it the folder of
    the file that the user named. That folder is added to nltk's folders when the file is read.
    """
    reader = penn_tree_bank.PennTreeBankConstituencySpanDatasetReader
    original = reader._read

    @functools.wraps(original)
    def _read(self: Any, file_path: str) -> Iterator[Any]:
        import nltk

        file_path = penn_tree_bank.cached_path(file_path)
        directory = os.path.dirname(os.path.abspath(file_path))
        if directory not in nltk.data.path:
            nltk.data.path.append(directory)
        return original(self, file_path)

    reader._read = _read


@contextmanager
def do_not_download_nltk_data() -> Iterator[None]:
    """
    Symptom: every start tries to reach the network, and prints messages about it.

    Cause: `allennlp_models.rc.tools.narrativeqa` calls `nltk.download` while it is imported. Seen with
    allennlp-models 2.10.1. Its functions raise nltk's own error, which names the missing data, when the data is
    not there.
    """
    import nltk

    with mock.patch.object(nltk, "download", lambda *args, **kwargs: False):
        yield


@contextmanager
def stand_in_for_pkg_resources() -> Iterator[None]:
    """
    Symptom: `Plugin allennlp_models could not be loaded: No module named 'pkg_resources'`, and of its 47 models
    only 31 are registered; with an older setuptools a deprecation warning on every start.

    Cause: py-rouge 1.1 imports `pkg_resources` for one function; setuptools >= 82 no longer has it. Programs that use
    py-rouge without AllenNLP are left alone.
    """
    if "allennlp" not in sys.modules:
        yield
        return
    stand_in = ModuleType("pkg_resources")
    stand_in.resource_filename = _resource_filename
    with temporary_modules({"pkg_resources": stand_in}):
        yield


def _resource_filename(package_or_module: str, resource: str) -> str:
    spec = importlib.util.find_spec(package_or_module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named '{package_or_module}'", name=package_or_module)
    return os.path.join(os.path.dirname(spec.origin), resource)


@contextmanager
def restore_transformers_adamw() -> Iterator[None]:
    """
    Symptom: `import allennlp.training` raises `module transformers has no attribute AdamW`.

    Cause: AllenNLP registers `huggingface_adamw` on top of it; transformers has removed it (seen with 4.57). The
    stand-in is torch's AdamW, which differs from the removed class where it adds epsilon and in that it cannot
    skip the correction of the bias.
    """
    import transformers

    if hasattr(transformers, "AdamW"):
        yield
        return
    with mock.patch.object(transformers, "AdamW", _adamw_class(), create=True):
        yield


def _adamw_class() -> type:
    import torch

    class AdamW(torch.optim.AdamW):
        """
        `torch.optim.AdamW` with the signature that transformers' class of that name had.
        """

        def __init__(
            self,
            params: Any,
            lr: float = 1e-3,
            betas: tuple[float, float] = (0.9, 0.999),
            eps: float = 1e-6,
            weight_decay: float = 0.0,
            correct_bias: bool = True,
        ) -> None:
            if not correct_bias:
                raise ValueError(
                    "'huggingface_adamw' with correct_bias=False needs transformers.AdamW, which the installed "
                    "transformers no longer has. Use correct_bias=True, or install a transformers that has it."
                )
            super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    return AdamW
