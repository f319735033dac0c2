import gzip
from pathlib import Path

import pytest

from elmo_tasks.paper.wsd_corpus import WsdCorpus

XML = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="x">
<text id="d000">
<sentence id="d000.s000">
<wf lemma="`" pos=".">``</wf>
<instance id="d000.s000.t000" lemma="new_york" pos="NOUN">New York</instance>
<instance id="d000.s000.t001" lemma="Be" pos="VERB">is</instance>
<wf lemma="big" pos="ADJ">big &amp; old</wf>
</sentence>
<sentence id="d000.s001">
<wf lemma="yes" pos="X">Yes</wf>
</sentence>
<sentence id="d000.s002">
</sentence>
</text>
</corpus>
"""
KEYS = "d000.s000.t000 new_york%1:15:00::\n\nd000.s000.t001 be%2:42:03:: be%2:42:06::\n"


def write(
    folder: Path,
    xml: str | bytes = XML,
    keys: str | bytes = KEYS,
    name: str = "mini",
    end: str = "",
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.data.xml{end}"
    for file, content in ((path, xml), (folder / f"{name}.gold.key.txt{end}", keys)):
        raw = content if isinstance(content, bytes) else content.encode()
        file.write_bytes(gzip.compress(raw) if end and isinstance(content, str) else raw)
    return path


class TestWsdCorpus:
    @pytest.mark.parametrize("end", ["", ".gz"])
    def test_sentences_and_their_senses_are_read(self, tmp_path, end):
        corpus = WsdCorpus(write(tmp_path, end=end))
        assert corpus.name == "mini"
        first, second = corpus
        assert first.words == ['"', "New", "York", "is", "big", "&", "old"]
        assert [tuple(instance) for instance in first.instances] == [
            ("d000.s000.t000", "new_york", "NOUN", 1, 3, ("new_york%1:15:00::",)),
            ("d000.s000.t001", "be", "VERB", 3, 4, ("be%2:42:03::", "be%2:42:06::")),
        ]
        assert (second.words, second.instances) == (["Yes"], [])
        assert list(corpus) == [first, second], "it can be read again"

    def test_the_fixtures_are_read(self, fixtures_root):
        (training,) = WsdCorpus.find(fixtures_root / "wsd" / "train")
        one, other = WsdCorpus.find(fixtures_root / "wsd" / "test")
        assert [len(list(corpus)) for corpus in (training, one, other)] == [16, 6, 4]
        lemmas = [instance.lemma for sentence in one for instance in sentence.instances]
        assert lemmas == ["play", "play", "play", "bank", "cathedral", "zither"]

    def test_a_folder_lists_its_sets_by_name_without_all(self, tmp_path):
        for name in ("senseval3", "senseval2", "ALL"):
            write(tmp_path / name, name=name)
        assert [corpus.name for corpus in WsdCorpus.find(tmp_path)] == ["senseval2", "senseval3"]
        write(tmp_path, name="senseval2", end=".gz")
        assert len(WsdCorpus.find(tmp_path)) == 2
        with pytest.raises(FileNotFoundError, match="senseval9"):
            WsdCorpus.find(tmp_path / "senseval9")


@pytest.mark.parametrize(
    ("name", "old", "new", "names"),
    [
        ("data.xml", "</sentence>", "", "data.xml"),
        ("gold.key.txt", "d000.s000.t000 ", "other ", "d000.s000.t000"),
        ("gold.key.txt", " play%2:33:00::", "", "line 1"),
    ],
)
def test_an_error_names_the_bad_file(fixtures_root, tmp_path, name, old, new, names):
    for file in (fixtures_root / "wsd" / "test").glob("mini-1.*"):
        text = file.read_text()
        (tmp_path / file.name).write_text(
            text.replace(old, new, 1) if file.name.endswith(name) else text
        )
    with pytest.raises(ValueError, match=names):
        list(WsdCorpus(tmp_path / "mini-1.data.xml"))
