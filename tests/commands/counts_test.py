"""A count of nothing is an error at every command, and in Python."""

import pytest

from elmo_tasks.__main__ import main
from elmo_tasks.corpora.embed import EmbedOptions, embed_file
from tests.paths import TINY_BILM

COMMANDS = [
    ["embed", "a.txt", "a.h5", "--part-lines"],
    ["embed", "a.txt", "a.h5", "--batch-tokens"],
    ["embed", "a.txt", "a.h5", "--workers"],
    ["annotate", "ner", "a.txt", "a.jsonl", "--part-texts"],
    ["annotate", "ner", "a.txt", "a.jsonl", "--workers"],
    ["elmo-neighbors", "query", "folder", "a [b]", "-k"],
    ["elmo-tables", "--seeds"],
    ["elmo-tables", "--jobs"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_count_is_at_least_one(capsys, command, words):
    for number in ("0", "-3"):
        with pytest.raises(SystemExit):
            if words[0].startswith("elmo-"):
                command(*words, number)
            else:
                main([*words, number])
        message = f"argument {words[-1]}: expected at least 1, got {number}"
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(("options", "workers"), [({"part_lines": 0}, None), ({}, 0), ({}, -3)])
def test_parts_and_workers_are_at_least_one_in_python(tmp_path, options, workers):
    (tmp_path / "a.txt").write_text("a b\n")
    options = EmbedOptions(bilm=str(TINY_BILM), **options)
    with pytest.raises(ValueError, match="expected at least 1, got"):
        embed_file(tmp_path / "a.txt", tmp_path / "a.h5", options, workers=workers)
    assert not list(tmp_path.glob("a.h5*"))
