"""Tests of `allennlp elmo-embed`."""

from elmo_tasks.__main__ import main
from tests.paths import TINY_BILM


class TestEmbed:
    def test_it_writes_what_the_module_writes(self, command, tmp_path, fixtures_root):
        (tmp_path / "text.txt").write_text("a b\n\nc\n")
        text, bilm = tmp_path / "text.txt", TINY_BILM
        command("elmo-embed", text, tmp_path / "a.h5", "--bilm", bilm, "--layers", "all")
        main(["embed", str(text), str(tmp_path / "b.h5"), "--bilm", str(bilm), "--layers", "all"])
        assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
