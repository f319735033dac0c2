"""How a user says that an archive is trusted: options of commands, and arguments in Python."""

import inspect
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from os import fspath
from typing import Any

from allennlp_today.import_hooks import Module, after_import, replace, replaces
from allennlp_today.trust.current_archive import trusting
from allennlp_today.trust.loader import load_archive

__all__ = ["add_trust", "has_trust_option"]

_HELP = "allow what the archive names: any class, file or address, which may run code"


def add_trust(parser: ArgumentParser) -> None:
    """Adds the option --trust."""
    parser.add_argument("--trust", action="store_true", help=_HELP)


def has_trust_option(arguments: Namespace) -> bool:
    """Whether a command has --trust or --include-package, for the archives that it is given."""
    packages = getattr(arguments, "include_package", [])
    return bool(getattr(arguments, "trust", False) or packages)


@after_import("allennlp.commands.predict", "allennlp.commands.evaluate")
def trust_an_archive(module: Module) -> None:
    """
    Symptom: `allennlp predict` and `evaluate` refuse an archive with classes or files that are not
    listed.
    Cause: it is not trusted. With `--trust` or `--include-package`, the archive of this command is.
    """
    if hasattr(module, "Predict"):
        command = module.Predict
        function_name = "_predict"
    else:
        command = module.Evaluate
        function_name = "evaluate_from_args"

    @replaces(command, "add_subparser")
    def add_subparser(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        parser = original(*args, **kwargs)
        add_trust(parser)
        return parser

    @replaces(module, function_name)
    def run(original: Callable[..., Any], args: Namespace) -> Any:
        with trusting(args.archive_file if has_trust_option(args) else False):
            return original(args)


@after_import("allennlp.predictors.predictor")
def trust_an_archive_of_a_predictor(predictor: Module) -> None:
    """
    Symptom: `Predictor.from_path` refuses an archive with classes or files that are not listed.
    Cause: it is not trusted. With `trusted=True`, it is.
    """

    @replaces(predictor.Predictor, "from_path")
    def from_path(
        original: Callable[..., Any],
        cls: Any,
        archive_path: Any,
        *args: Any,
        trusted: bool = False,
        **kwargs: Any,
    ) -> Any:
        with trusting(fspath(archive_path) if trusted else False):
            return original(cls, archive_path, *args, **kwargs)


@after_import("allennlp.commands.train")
def trust_archives_of_the_config(train: Module) -> None:
    """
    Symptom: a training with `--include-package` refuses an archive that its config names.
    Cause: it is not trusted. Now it is, because the user's config names both.
    """

    @replaces(train, "_train_worker")
    def train_worker(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        arguments = inspect.signature(original).bind(*args, **kwargs).arguments
        with trusting(bool(arguments.get("include_package"))):
            return original(*args, **kwargs)


@after_import("allennlp.common.testing.model_test_case")
def trust_archives_of_tests(model_test_case: Module) -> None:
    """
    Symptom: `ensure_model_can_train_save_and_load`, in the tests of a project, refuses the archive
    that it has written.
    Cause: it is not trusted. Now it is, because the same test has trained the model.
    """
    replace(model_test_case, "load_archive", partial(load_archive, trusted=True))
