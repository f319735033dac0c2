"""The help of the commands."""

import re

import pytest


@pytest.mark.parametrize(
    "words",
    [
        "elmo-data",
        "elmo-demo",
        "elmo-export",
        "elmo-neighbors index",
        "elmo-neighbors query",
        "elmo-perplexity",
        "elmo-tables",
        "elmo-wsd",
    ],
)
def test_the_default_of_an_option_is_printed_once(command, capsys, words):
    # AllenNLP adds the defaults to the help.
    with pytest.raises(SystemExit):
        command(*words.split(), "--help")
    options = re.split(r"\n  (?=-)", capsys.readouterr().out)
    assert len(options) > 2
    counts = [len(re.findall(r"\bdefault\b", option)) for option in options]
    assert max(counts) == 1, options[counts.index(max(counts))]
