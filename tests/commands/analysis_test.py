import json

import pytest

from tests.paths import TINY_BILM


def test_neighbors_are_json(command, tmp_path, capsys):
    (tmp_path / "text.txt").write_text(
        "They play football .\nThe play opens tonight .\n\nShe sat on the bank .\n"
    )
    index = tmp_path / "index"
    index_command = ["elmo-neighbors", "index", tmp_path / "text.txt", index, "--bilm", TINY_BILM]
    command(*index_command, "--layers", "1", "top")
    assert "indexed 15 words" in capsys.readouterr().out
    sentence = "They [play] tennis ."
    options = ["-k", "2", "--layer", "1", "--same-word"]
    command("elmo-neighbors", "query", index, sentence, *options)
    result = json.loads(capsys.readouterr().out)
    assert result["word"] == "play"
    assert result["sentence"] == sentence
    sentences = {neighbor["sentence"] for neighbor in result["neighbors"]}
    assert sentences == {"They [play] football .", "The [play] opens tonight ."}
    with pytest.raises(SystemExit, match="index"):
        command(*index_command)


def test_word_senses_are_written(command, environment, fixtures_root, tmp_path, capsys):
    environment.setenv("ELMO_TASKS_BILM", str(TINY_BILM))
    output = tmp_path / "wsd.json"
    wordnet = fixtures_root / "wsd" / "wordnet"
    command(
        "elmo-wsd", "--data", fixtures_root / "wsd", "--wordnet", wordnet, "--output-file", output
    )
    numbers = json.loads(output.read_text())
    assert numbers["wordnet"]
    assert numbers["training"] == "semcor-mini"
    f1 = numbers["scores"]["mean"]["ALL"]["f1"]
    assert f"{100 * f1:.1f}" in capsys.readouterr().out
