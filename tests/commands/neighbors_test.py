"""Tests of `allennlp elmo-neighbors`."""

import io
import json
import shutil
import unicodedata
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.analysis.neighbors.exact import has_library
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from tests.paths import TINY_BILM

TEXT = "They play on Saturdays .\nThe play opens at the theatre .\nShe played the piano .\nYes .\n"


@pytest.fixture
def index(command, tmp_path: Path, capsys) -> Path:
    """An index of four sentences with the tiny biLM."""
    (tmp_path / "text.txt").write_text(TEXT)
    command("elmo-neighbors", "index", tmp_path / "text.txt", tmp_path / "index")
    assert "indexed 19 words of 4 sentences in 0.0 MB, with the biLM " in capsys.readouterr().out
    return tmp_path / "index"


def message_of(command, *arguments) -> str:
    with pytest.raises(SystemExit) as error:
        command("elmo-neighbors", *arguments)
    message = str(error.value)
    assert message.startswith("allennlp elmo-neighbors: error: ")
    assert "\n" not in message
    return message


class TestNeighbors:
    def test_neighbors_are_printed_next_to_those_of_glove(self, index, command, fixtures_root, tmp_path, capsys):
        """Oracle: the JSON, whose words and cosines are in the table; the query's own sentence is not there."""
        glove, output = fixtures_root / "glove" / "glove.open.100d.txt.gz", tmp_path / "found.json"
        options = ("--word", "play", "-k", "2", "--glove", glove, "--output-file", output)
        command("elmo-neighbors", "query", index, "They play on Saturdays.", *options)
        printed, found = capsys.readouterr().out.splitlines(), json.loads(output.read_text())
        assert printed[0] == "They [play] on Saturdays ."
        assert found["words"] == ["They", "play", "on", "Saturdays", "."]
        assert (found["position"], found["layer"]) == (1, "top")
        assert [len(found["neighbors"]), len(found["static_neighbors"])] == [2, 2]
        assert found["words"] not in [neighbor["words"] for neighbor in found["neighbors"]]
        for line, neighbor, (word, cosine) in zip(
            printed[-2:], found["neighbors"], found["static_neighbors"], strict=True
        ):
            assert line.startswith(f"{cosine:.2f}  {word}")
            assert f"{neighbor['similarity']:.2f}  " in line
            assert f"[{neighbor['words'][neighbor['position']]}]" in line

    def test_without_glove_there_is_one_column(self, index, command, capsys):
        """Oracle: the lines by hand: the query, an empty one, the title, one neighbour."""
        command("elmo-neighbors", "query", index, "Yes", "--word", "Yes", "-k", "1", "--tokenized")
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "[Yes]"
        assert lines[2] == "in context"
        assert len(lines) == 4

    def test_a_word_that_glove_does_not_have_is_named(self, index, command, fixtures_root, capsys):
        """Oracle: the line."""
        glove = fixtures_root / "glove" / "glove.open.100d.txt.gz"
        command("elmo-neighbors", "query", index, "zzyzx play", "--word", "zzyzx", "--glove", glove)
        assert f"'zzyzx' has no vector in {glove}" in capsys.readouterr().out

    def test_a_word_that_is_there_twice_needs_its_place(self, index, command, capsys):
        """Oracle: the messages, and the brackets."""
        sentence = "They play a play"
        message = message_of(command, "query", index, sentence, "--word", "play")
        assert "is 2 times: choose one with --position: 0:They 1:play 2:a 3:play" in message
        command("elmo-neighbors", "query", index, sentence, "--word", "play", "--position", "3")
        assert capsys.readouterr().out.startswith("They play a [play]\n")
        assert "but is 2; the words are" in message_of(
            command, "query", index, sentence, "--word", "play", "--position", "2"
        )
        assert "is 0 times: name one" in message_of(command, "query", index, sentence, "--word", "plays")

    def test_a_word_in_brackets_that_is_named_too(self, index, command, capsys):
        """Oracle: the message; and brackets with white space, which are of the sentence."""
        message = message_of(command, "query", index, "They [play] .", "--word", "play")
        assert "'play' is both: omit --word; brackets of the sentence itself are written as [ play ]" in message
        command("elmo-neighbors", "query", index, "They [ play ] .", "--word", "play", "-k", "1")
        assert capsys.readouterr().out.startswith("They [ [play] ] .\n")

    def test_a_shell_answers_each_line(self, index, command, monkeypatch, capsys):
        """Oracle: what `query` prints; a line that cannot be answered is one line, and the next is read."""
        command("elmo-neighbors", "query", index, "They [play] chess .", "-k", "2")
        alone = capsys.readouterr().out
        monkeypatch.setattr("sys.stdin", io.StringIO("They [play] chess .\n\nno brackets\nYes\n"))
        command("elmo-neighbors", "shell", index, "-k", "2")
        printed = capsys.readouterr().out
        assert printed.startswith(alone)
        rest = printed.removeprefix(alone).splitlines()
        assert rest[0].startswith("a query must have one word in brackets") and rest[1] == "[Yes]"

    def test_a_shell_answers_with_json(self, index, command, monkeypatch, capsys):
        """Oracle: the keys of a line for each query."""
        monkeypatch.setattr("sys.stdin", io.StringIO("They [play] chess .\n[a] [b]\n"))
        command("elmo-neighbors", "shell", index, "--json", "-k", "1")
        found, error = map(json.loads, capsys.readouterr().out.splitlines())
        assert (found["words"][found["position"]], len(found["neighbors"]), found["recall"]) == ("play", 1, None)
        assert "has 2: write one" in error["error"]

    def test_a_line_of_other_bytes_is_an_error_of_its_own(self, index, command, monkeypatch, capsys):
        """Oracle: by hand: the lines before and after it have answers."""
        typed = io.BytesIO(b"They [play] chess .\n\xff bad [a]\nThey [play] .\n")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(typed, encoding="utf-8"))
        command("elmo-neighbors", "shell", index, "--json", "-k", "1")
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert ["error" in line for line in found] == [False, True, False]
        assert found[1]["error"].startswith("a query must be UTF-8, but is not")

    def test_a_batch_is_written_as_lines_of_json(self, index, command, tmp_path, capsys):
        """Oracle: the JSON of each query by itself; a bad line is named, and nothing is written."""
        sentences = ["They [play] chess .", "The [theatre] opens ."]
        (tmp_path / "queries.txt").write_text("\n\n".join(sentences) + "\n")
        command("elmo-neighbors", "batch", index, tmp_path / "queries.txt", "--output-file", tmp_path / "out.jsonl")
        lines = (tmp_path / "out.jsonl").read_text().splitlines()
        capsys.readouterr()
        for sentence, line in zip(sentences, lines, strict=True):
            command("elmo-neighbors", "query", index, sentence, "--json")
            alone, found = json.loads(capsys.readouterr().out), json.loads(line)
            assert [each["words"] for each in found["neighbors"]] == [each["words"] for each in alone["neighbors"]]
        (tmp_path / "queries.txt").write_text("They [play] .\nThey play .\n")
        given = ("batch", index, tmp_path / "queries.txt", "--output-file", tmp_path / "no.jsonl")
        assert "queries.txt, line 2: a query must have one word in brackets" in message_of(command, *given)
        assert not (tmp_path / "no.jsonl").exists()
        queries = (tmp_path / "queries.txt").read_bytes()
        given = ("batch", index, tmp_path / "queries.txt", "--output-file", tmp_path / "queries.txt")
        assert "must be another file than what is read" in message_of(command, *given)
        assert (tmp_path / "queries.txt").read_bytes() == queries

    @pytest.mark.parametrize("action", ["query", "batch"])
    @pytest.mark.parametrize("read", ["g.txt", "index/sentences.txt", "bilm/options.json"])
    def test_what_is_read_is_not_replaced(self, index, command, tmp_path, action, read):
        """Oracle: the message, and the bytes of the file."""
        shutil.copytree(TINY_BILM, tmp_path / "bilm")
        (tmp_path / "g.txt").write_text("the 1 2 3\nplay 2 1 1\n")
        (tmp_path / "queries.txt").write_text("They [play] .\n")
        given = tmp_path / "queries.txt" if action == "batch" else "They [play] ."
        before = (tmp_path / read).read_bytes()
        options = ("--glove", tmp_path / "g.txt", "--bilm", tmp_path / "bilm", "--output-file", tmp_path / read)
        message = message_of(command, action, index, given, *options)
        assert message.endswith(
            f"must be another file than what is read, but {tmp_path / read} is both: choose another name"
        )
        assert (tmp_path / read).read_bytes() == before

    def test_a_query_in_another_unicode_form_is_the_same(self, index, command, monkeypatch, tmp_path, capsys):
        """Oracle: what the text in NFC brings; spaCy divides the other one otherwise."""
        composed = "r\u00e9sum\u00e9-writer at the [caf\u00e9] ."
        queries = [composed, unicodedata.normalize("NFD", composed)]
        found = []
        for query in queries:
            command("elmo-neighbors", "query", index, query, "--json")
            found.append(capsys.readouterr().out)
            word = unicodedata.normalize("NFD", "caf\u00e9")
            command("elmo-neighbors", "query", index, query.replace("[", "").replace("]", ""), "--word", word, "--json")
            found.append(capsys.readouterr().out)
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{query}\n" for query in queries)))
        command("elmo-neighbors", "shell", index, "--json")
        found += capsys.readouterr().out.splitlines()
        (tmp_path / "queries.txt").write_text("".join(f"{query}\n" for query in queries))
        command("elmo-neighbors", "batch", index, tmp_path / "queries.txt", "--output-file", tmp_path / "out.jsonl")
        found += (tmp_path / "out.jsonl").read_text().splitlines()
        contents = [json.loads(each) for each in found]
        assert contents[0]["words"] == ["r\u00e9sum\u00e9", "-", "writer", "at", "the", "caf\u00e9", "."]
        assert [(each["words"], each["position"]) for each in contents] == [(contents[0]["words"], 5)] * 8

    def test_tags_filter_the_neighbours(self, command, fixtures_root, tmp_path, capsys):
        """Oracle: the tags of the fixture: all neighbours are nouns."""
        command("elmo-neighbors", "index", fixtures_root / "pos" / "dev.conllu", tmp_path / "tagged")
        capsys.readouterr()
        command(*("elmo-neighbors", "query", tmp_path / "tagged", "We [like] it", "--json", "--filter", "pos=NOUN"))
        found = json.loads(capsys.readouterr().out)
        tags = dict(
            zip(
                *((tmp_path / "tagged" / f"{n}.txt").read_text().splitlines() for n in ("sentences", "pos")),
                strict=True,
            )
        )
        assert found["where"] == {"pos": "NOUN"} and len(found["neighbors"]) == 10
        for each in found["neighbors"]:
            assert tags[" ".join(each["words"])].split()[each["position"]] == "NOUN"
        with pytest.raises(SystemExit) as ended:
            command("elmo-neighbors", "query", tmp_path / "tagged", "[We]", "--filter", "pos")
        assert ended.value.code == 2

    @pytest.mark.skipif(not has_library(), reason="usearch is not installed: `pip install usearch`")
    def test_an_approximate_search_says_its_recall(self, index, command, capsys):
        """Oracle: the line that the graph was built with; without a graph how to build it."""
        query = ("query", index, "They [play] chess .", "--approximate")
        assert "build it with `allennlp elmo-neighbors graph" in message_of(command, *query)
        command("elmo-neighbors", "graph", index)
        built = capsys.readouterr().out.strip()
        assert built.startswith("built a graph of 19 words in 0.0 MB; approximate: finds ")
        command("elmo-neighbors", *query)
        assert built.partition("; ")[2] in capsys.readouterr().out.splitlines()

    def test_errors_are_one_line(self, index, command, tmp_path):
        """Oracle: the messages."""
        assert "there must be an index" in message_of(command, "query", tmp_path / "none", "a", "--word", "a")
        assert "must not be there yet" in message_of(command, "index", tmp_path / "text.txt", index)
        assert "layers must be" in message_of(command, "index", tmp_path / "text.txt", tmp_path / "x", "--layer", "7")
        assert "pattern that matches files" in message_of(command, "index", tmp_path / "no.txt", tmp_path / "y")

    @pytest.mark.parametrize("query", [["They [pl\udcffay] ."], ["They play .", "--word", "\udcff"]])
    def test_arguments_of_other_bytes_are_one_line(self, index, command, query):
        """Oracle: the message; a byte that is not UTF-8, as Python has it in an argument."""
        assert "a query must be UTF-8, but is not" in message_of(command, "query", index, *query)

    def test_another_bilm_is_refused(self, index, command, fixtures_root, tmp_path):
        """Oracle: the message, for a folder with one other number; the same biLM in another folder is not refused."""
        moved = tmp_path / "moved"
        shutil.copytree(TINY_BILM, moved)
        command("elmo-neighbors", "query", index, "play", "--word", "play", "--bilm", moved)
        with h5py.File(moved / "weights.hdf5", "r+") as file:
            file["CNN_proj"]["b_proj"][0] += 1
        message = message_of(command, "query", index, "play", "--word", "play", "--bilm", moved)
        assert "has other weights or options now" in message

    def test_an_index_that_does_not_name_its_bilm_needs_the_name(self, index, command, fixtures_root, capsys):
        """Oracle: the message, and the same neighbours as before once it is named."""
        query = ("elmo-neighbors", "query", index, "play", "--word", "play")
        command(*query)
        before = capsys.readouterr().out
        about = read_sealed(index / "index.json")
        write_sealed(index / "index.json", {key: about[key] for key in ("layer", "dim", "dtype", "files")})
        assert "does not say which biLM" in message_of(command, *query[1:])
        command(*query, "--bilm", TINY_BILM)
        assert capsys.readouterr().out == before

    def test_an_index_does_not_begin_a_download(self, index, command, tmp_path, environment):
        """Oracle: the message (N09), and that nothing was asked for; `--bilm original` is what may begin it."""
        environment.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        write_sealed(index / "index.json", {**read_sealed(index / "index.json"), "bilm": "original"})
        with environment.context() as patch:
            patch.setattr(Elmo, "from_pretrained", lambda *args: pytest.fail("files were asked for"))
            message = message_of(command, "query", index, "play", "--word", "play")
        assert "'original', which is not on this machine, and an index must not begin a download: add --bilm" in message

    def test_control_characters_of_sentences_are_escaped(self, index, command, capsys):
        """Oracle: the line (N06), with all letters as they are."""
        path = index / "sentences.txt"
        path.write_text(path.read_text().replace("theatre", "th\x1b]0;é"))
        about = read_sealed(index / "index.json")
        lines = np.cumsum([0, *map(len, path.read_bytes().splitlines(keepends=True))])
        np.save(index / "lines.npy", lines.astype("<i8"))
        files = {name: sha256_of(index / name) for name in about["files"]}
        write_sealed(index / "index.json", {**about, "files": files})
        command("elmo-neighbors", "query", index, "The play opens", "--word", "play", "-k", "5", "--tokenized")
        printed = capsys.readouterr().out
        assert "\x1b]" not in printed
        assert "at the th\\u001b]0;é ." in printed
