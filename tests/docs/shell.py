"""
Runs the shell commands of a page: `allennlp` and `python -m elmo_tasks` in this process, and the
rest in bash.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from unittest.mock import Mock, patch

from elmo_tasks.__main__ import main as elmo_tasks_main
from elmo_tasks.commands import annotate, embed
from tests.paths import CHECKOUT

# Commands of `python -m elmo_tasks` whose options are checked where they are not run.
_MODULES = {"annotate": annotate, "embed": embed}
# Commands that bash may run; all others must be ours.
_BASH = {"cat", "echo", "head", "mkdir", "printf", "sed"}

# Overrides that shorten training, applied after the overrides of the page.
_SHORT = {"trainer.num_epochs": 1}
_NEW_BILM = {
    "model.options.lstm.dim": 16,
    "model.options.lstm.projection_dim": 8,
    "model.options.char_cnn.filters": [[1, 4], [2, 8]],
    "vocabulary.min_count": 1,
}


def commands_of(text: str) -> Iterator[tuple[dict[str, str], list[str], str]]:
    """The variables, the words and the full line of each command."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        variables = {}
        while words and re.fullmatch(r"\w+=.*", words[0], re.DOTALL):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        if words or variables:
            yield variables, words, line


class Shell:
    """The shell of a page, which keeps its folder and variables from one block to the next."""

    def __init__(self, work: Path, variables: dict[str, str]) -> None:
        self.work = work
        self.variables = variables

    def run(self, text: str) -> None:
        """Runs all commands of a block, and raises an error if one fails."""
        for variables, words, line in commands_of(text):
            with self.entered():
                if words[:1] == ["export"]:
                    for word in words[1:]:
                        name, _, value = word.partition("=")
                        self.variables[name] = self._expanded(value)
                    continue
                expanded = {name: self._expanded(value) for name, value in variables.items()}
                with patch.dict(os.environ, expanded):
                    self._command(words, line)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """In the folder and with the variables of this shell."""
        before = Path.cwd()
        with patch.dict(os.environ, self.variables):
            os.chdir(self.work)
            try:
                yield
            finally:
                os.chdir(before)

    def _command(self, words: list[str], line: str) -> None:
        if words[-2:-1] == [">"] and words[0] not in _BASH:
            with open(words[-1], "w", encoding="utf-8") as file, redirect_stdout(file):
                self._command(words[:-2], line)
        elif words[0] == "allennlp":
            _allennlp([self._expanded(word) for word in words[1:]])
        elif words[:3] == ["python", "-m", "elmo_tasks"]:
            arguments = [self._expanded(word) for word in words[3:]]
            assert elmo_tasks_main(arguments) == 0, line
        elif words[0] in _BASH:
            process = subprocess.run(
                ["bash", "-euc", line], check=True, stdout=subprocess.PIPE, text=True
            )
            print(process.stdout, end="")
        else:
            raise AssertionError(
                f"expected a command that a test can run, or a block that says why not, got: {line}"
            )

    def _expanded(self, word: str) -> str:
        return os.path.expandvars(os.path.expanduser(word))


def _allennlp(arguments: list[str]) -> None:
    from allennlp.commands import main

    if arguments[0] == "train":
        arguments = _shortened(arguments)
    with patch.object(sys, "argv", ["allennlp", *arguments]):
        main(prog="allennlp")


def _shortened(arguments: list[str]) -> list[str]:
    """The arguments of `allennlp train` with more overrides."""
    from elmo_tasks.configs import evaluate_file

    model = json.loads(evaluate_file(arguments[1], {}))["model"]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-o", "--overrides", type=json.loads, default={})
    given, other_arguments = parser.parse_known_args(arguments)
    overrides = {**given.overrides, **_SHORT}
    if model["type"] == "elmo_bilm":
        overrides["trainer.learning_rate_scheduler"] = None
        if "pretrained_file" not in model:
            overrides.update(_NEW_BILM)
    return [*other_arguments, "-o", json.dumps(overrides)]


def check_command(words: list[str], line: str) -> None:
    """
    Checks that a command which is not run still exists, with its options, file, target or extra.
    """
    if words[0] == "allennlp":
        _check_allennlp(words)
    elif words[:3] == ["python", "-m", "elmo_tasks"] and words[3] in _MODULES:
        parser = argparse.ArgumentParser()
        _MODULES[words[3]].add_arguments(parser)
        parser.parse_args(words[4:])
    elif words[:4] == ["python", "-m", "elmo_tasks", "serve"]:
        with patch.dict(sys.modules, uvicorn=Mock()), patch.dict(os.environ):
            assert elmo_tasks_main(words[3:]) == 0, line
    elif words[:5] == ["python", "-m", "spacy", "project", "run"]:
        assert f" {words[5]}" in _content("examples/spacy/project.yml"), line
    elif words[0] == "python":
        script = _content(words[1])
        for word in words[2:]:
            if word.startswith("--"):
                assert f'"{word}"' in script, f"{line}: {words[1]} has no {word}"
    elif words[0] == "gcc":
        _content(words[-1])
    elif words[0] == "make":
        targets = re.findall(r"^([\w-]+):", _content("Makefile"), re.MULTILINE)
        for word in words[1:]:
            assert "=" in word or word in targets, line
    elif words[:2] == ["pip", "install"] or words[:3] == ["uv", "pip", "install"]:
        _check_installation(words, line)
    else:
        assert words[0] in {".", "curl", "cd", "export", "uvicorn", *_BASH}, line


def _content(file: str) -> str:
    return (CHECKOUT / file).read_text(encoding="utf-8")


def _check_allennlp(words: list[str]) -> None:
    from allennlp.commands import parse_args
    from allennlp.common import Params

    with patch.object(sys, "argv", words):
        _, arguments = parse_args("allennlp")
    if words[1] == "train":
        # AllenNLP refuses a dotted override that does not match a key of the config.
        Params.from_file(CHECKOUT / arguments.param_path, arguments.overrides)


def _check_installation(words: list[str], line: str) -> None:
    setup = _content("setup.cfg")
    for extras in re.findall(r"\[([\w,]+)\]", line):
        for extra in extras.split(","):
            assert re.search(rf"^{extra} =$", setup, re.MULTILINE), line
    for word in words:
        assert not word.endswith(".txt") or (CHECKOUT / word).is_file(), line
