import json

import pytest

from tests.paths import TINY_BILM


def test_neighbors_are_json(command, tmp_path, capsys):
    (tmp_path / "text.txt").write_text(
        "They play football .\nThe play opens tonight .\n\nShe sat on the bank .\n"
    )
    index = tmp_path / "index"
    command(
        "elmo-neighbors",
        "index",
        tmp_path / "text.txt",
        index,
        "--bilm",
        TINY_BILM,
        "--layers",
        "1",
        "top",
    )
    assert "indexed 15 words" in capsys.readouterr().out
    command(
        "elmo-neighbors",
        "query",
        index,
        "They [play] tennis .",
        "-k",
        "2",
        "--layer",
        "1",
        "--same-word",
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["word"], found["sentence"]) == ("play", "They [play] tennis .")
    assert {each["sentence"] for each in found["neighbors"]} == {
        "They [play] football .",
        "The [play] opens tonight .",
    }
    with pytest.raises(SystemExit, match="index"):
        command("elmo-neighbors", "index", tmp_path / "text.txt", index, "--bilm", TINY_BILM)


def test_word_senses_are_written(command, environment, fixtures_root, tmp_path, capsys):
    environment.setenv("ELMO_TASKS_BILM", str(TINY_BILM))
    output = tmp_path / "wsd.json"
    wordnet = fixtures_root / "wsd" / "wordnet"
    command(
        "elmo-wsd", "--data", fixtures_root / "wsd", "--wordnet", wordnet, "--output-file", output
    )
    numbers = json.loads(output.read_text())
    assert numbers["wordnet"] and numbers["training"] == "semcor-mini"
    f1 = numbers["scores"]["mean"]["ALL"]["f1"]
    assert f"{100 * f1:.1f}" in capsys.readouterr().out
