"""The options of vectors have the same names and defaults wherever vectors are computed."""

import argparse
import inspect
from collections.abc import Callable
from typing import Any, get_args

import pytest

from elmo_tasks import Elmo
from elmo_tasks.bilm.bilm import Precision
from elmo_tasks.commands.embed import add_arguments
from elmo_tasks.corpora.embed import EmbedOptions
from elmo_tasks.spacy.elmo_component import ElmoComponent
from elmo_tasks.vectors.layers import LayerSelection, Pool
from elmo_tasks.vectors.sklearn_vectorizer import ElmoVectorizer


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    values = {parameter.name: parameter.default for parameter in parameters}
    values.pop("self", None)
    values.pop("sentences", None)
    return values


OPTIONS = defaults(Elmo.from_pretrained) | defaults(Elmo.embed_iter)
IN_PYTHON = {"layer_cache", "output", "progress"}
# The columns and files of a corpus.
OF_CORPUS = {"text_column", "id_column", "keep", "glob", "input_format", "sheet", "header_row"}


@pytest.mark.parametrize(
    ("entry_point", "differs", "lacks", "adds"),
    [
        # One vector per text.
        (ElmoVectorizer, {"pool": "mean"}, IN_PYTHON, set()),
        # For spans and documents; tokens keep theirs. The pipeline has the tokenizer.
        (
            ElmoComponent,
            {"pool": "mean"},
            {*IN_PYTHON, "tokenizer"},
            {"nlp", "name", "similarity", "save_weights"},
        ),
        # A line of a file is split at white space by default.
        (
            EmbedOptions,
            {},
            {*IN_PYTHON, "tokenizer"},
            {"dtype", "part_lines", "tokenize", *OF_CORPUS},
        ),
        (LayerSelection, {}, {*OPTIONS} - {"layers", "weights", "gamma", "pool"}, {"n_layers"}),
    ],
)
def test_names_and_defaults_are_those_of_elmo(entry_point, differs, lacks, adds):
    options = defaults(entry_point)
    assert OPTIONS.keys() - options.keys() == lacks
    assert options.keys() - OPTIONS.keys() == adds
    for name in options.keys() - adds:
        assert options[name] == differs.get(name, OPTIONS[name]), name


def test_the_choices_of_the_command_line_are_all_values():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    explained = parser.format_help()
    for name, values in (("precision", get_args(Precision)), ("pool", get_args(Pool))):
        assert f"--{name} {{{','.join(values)}}}" in explained
