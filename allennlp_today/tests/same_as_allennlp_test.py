"""
Tests that what allennlp_today replaces has the names, arguments and exceptions of AllenNLP's own.
"""

import inspect
import json
import sys
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path

import _jsonnet
import pytest
import torch  # noqa: F401
from allennlp import commands
from allennlp.common import Params, cached_transformers
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.common.params import with_overrides
from allennlp.common.plugins import import_plugins
from allennlp.data import Vocabulary
from allennlp.models import archival
from allennlp.training import util

import allennlp_today
from allennlp_today.import_hooks import REPLACED

ORIGINAL = ("original", Parameter.empty)
TRUSTED = ("trusted", False)
VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def named(function: object) -> list[tuple[str, object]]:
    """The names and defaults of arguments, without `*args` and `**kwargs`."""
    arguments = []
    function = getattr(function, "__func__", function)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in VARIABLE:
            arguments.append((parameter.name, parameter.default))
    return arguments


def takes_any(function: Callable[..., object]) -> bool:
    """Whether a function has `*args` and `**kwargs`."""
    parameters = inspect.signature(function).parameters.values()
    return {parameter.kind for parameter in parameters}.issuperset(VARIABLE)


class TestArguments:
    def test_they_have_the_same_names_order_and_defaults(self):
        import_plugins()
        differences = []
        functions = []
        for change in REPLACED:
            module = getattr(change.original, "__module__", None) or ""
            is_of_allennlp = module.startswith(("allennlp.", "allennlp_models."))
            if is_of_allennlp and named(change.replacement)[:1] == [ORIGINAL]:
                functions.append((change.original, change.replacement))
        for original, ours in functions:
            # The first argument is the original.
            arguments = [argument for argument in named(ours)[1:] if argument != TRUSTED]
            expected = named(original)
            if takes_any(ours):
                expected = expected[: len(arguments)]
            if arguments != expected:
                function = f"{original.__module__}.{original.__qualname__}"
                differences.append(f"{function}: {arguments} instead of {expected}")
        assert not differences, "\n".join(differences)
        assert len(functions) > 15

    def test_archives_are_loaded_with_the_same_arguments(self):
        expected = [
            ("archive_file", Parameter.empty),
            ("cuda_device", -1),
            ("overrides", ""),
            ("weights_file", None),
        ]
        assert (
            named(archival.load_archive)
            == named(allennlp_today.load_archive)
            == [*expected, ("trusted", False)]
        )

    def test_classes_are_subclasses(self):
        assert issubclass(util.Params, Params)
        assert named(util.Params.from_file) == named(Params.from_file)


def broken_config(folder: Path) -> str:
    (folder / "config.json").write_text('{"a": }')
    return str(folder / "config.json")


class TestExceptions:
    """Each row is a call that fails: with ours, and with AllenNLP's own."""

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (
                lambda _: with_overrides({"a": 1}, {"a.x": 1}),
                lambda _: with_overrides.__wrapped__({"a": 1}, {"a.x": 1}),
            ),
            (
                lambda f: util.Params.from_file(broken_config(f)),
                lambda f: _jsonnet.evaluate_file(broken_config(f)),
            ),
            (
                lambda f: Vocabulary().set_from_file(broken_config(f)),
                lambda f: Vocabulary.set_from_file.__wrapped__(Vocabulary(), broken_config(f)),
            ),
            (
                lambda f: util.Params.from_file(f / "missing"),
                lambda f: Params.from_file(f / "missing"),
            ),
            (
                lambda f: archival.load_archive(f / "a.tar.gz"),
                lambda f: cached_path(f / "a.tar.gz"),
            ),
            (
                lambda f: cached_transformers.get_tokenizer(str(f)),
                lambda f: cached_transformers.get_tokenizer.__wrapped__(str(f)),
            ),
        ],
    )
    def test_ours_is_caught_by_the_same_except(self, tmp_path, ours, theirs):
        with pytest.raises(Exception) as expected:
            theirs(tmp_path)
        with pytest.raises(expected.type):
            ours(tmp_path)

    def test_a_program_that_calls_main_gets_the_error(
        self, tmp_path, monkeypatch, logging_as_before
    ):
        (tmp_path / "config.json").write_text(json.dumps({"a": 1}))
        monkeypatch.setattr(
            sys,
            "argv",
            ["allennlp", "train", str(tmp_path / "config.json"), "-s", str(tmp_path / "run")],
        )
        with pytest.raises(ConfigurationError):
            commands.main()
