"""Tests of `allennlp elmo-data`."""

from elmo_tasks.commands import data
from elmo_tasks.public_data import CORPORA, Corpus, PublicFile
from tests.public_data.server import serving


class TestPublicData:
    def test_it_lays_out_a_corpus_and_says_what_to_set(self, command, tmp_path, capsys, monkeypatch):
        """Oracle: the file of a server here in the place of the owner's; what is printed."""
        monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
        with serving({"/t": b"(3 good)\n"}) as address:
            corpus = Corpus("trees", (PublicFile(f"{address}/t", "sst/train.txt"),), "free")
            monkeypatch.setitem(data.CORPORA, "sst", corpus)
            command("elmo-data", "sst", "--to", tmp_path)
        captured = capsys.readouterr()
        assert captured.out == f"{tmp_path}/sst/train.txt\n"
        assert f"export ELMO_TASKS_DATA={tmp_path}" in captured.err
        assert (tmp_path / "sst" / "train.txt").read_text() == "(3 good)\n"

    def test_a_tilde_that_the_shell_left_is_the_home_folder(self, command, tmp_path, monkeypatch):
        """Oracle: the place of the file."""
        monkeypatch.setenv("HOME", str(tmp_path))
        with serving({"/t": b"(3 good)\n"}) as address:
            corpus = Corpus("trees", (PublicFile(f"{address}/t", "sst/train.txt"),), "free")
            monkeypatch.setitem(data.CORPORA, "sst", corpus)
            command("elmo-data", "sst", "--to", "~/data")
        assert (tmp_path / "data" / "sst" / "train.txt").exists()

    def test_without_a_name_all_are_listed(self, command, capsys):
        """Oracle: the names."""
        command("elmo-data")
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines] == [*CORPORA, "wsd", "conll2003", "srl", "coref"]

    def test_data_that_is_not_downloaded_is_explained(self, command, capsys):
        """Oracle: the commands that lay it out."""
        command("elmo-data", "conll2003", "coref", "wsd")
        out = capsys.readouterr().out
        assert "SemCor/semcor.* DATA/wsd/train" in out
        assert "cp eng.train DATA/ner/train.txt" in out and "> DATA/coref/train.conll" in out

    def test_errors_are_one_line(self, error_of, monkeypatch):
        """Oracle: the messages; nothing is downloaded."""
        monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
        assert "a name must be one of snli, squad" in error_of("elmo-data", "imdb")
        assert "name it with --to, or set ELMO_TASKS_DATA" in error_of("elmo-data", "sst")
