import gzip
import re
from pathlib import Path

import pytest

from elmo_tasks.analysis import wsd_corpus
from elmo_tasks.analysis.wsd_corpus import WsdCorpus

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


def write(folder: Path, xml: str | bytes = XML, keys: str | bytes = KEYS, name: str = "mini", end: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.data.xml{end}"
    for file, content in ((path, xml), (folder / f"{name}.gold.key.txt{end}", keys)):
        raw = content if isinstance(content, bytes) else content.encode()
        file.write_bytes(gzip.compress(raw) if end and isinstance(content, str) else raw)
    return path


class TestWsdCorpus:
    @pytest.mark.parametrize("end", ["", ".gz"])
    def test_sentences_and_their_senses_are_read(self, tmp_path, end):
        """Oracle: by hand; words with spaces are split, quotes written as in ordinary text, lemmas in lower case."""
        corpus = WsdCorpus(write(tmp_path, end=end))
        assert corpus.name == "mini"
        first, second = corpus
        assert first.words == ["``".replace("``", '"'), "New", "York", "is", "big", "&", "old"]
        assert [tuple(instance) for instance in first.instances] == [
            ("d000.s000.t000", "new_york", "NOUN", 1, 3, ("new_york%1:15:00::",)),
            ("d000.s000.t001", "be", "VERB", 3, 4, ("be%2:42:03::", "be%2:42:06::")),
        ]
        assert (second.words, second.instances) == (["Yes"], [])
        assert list(corpus) == [first, second], "it can be read again"

    def test_the_fixtures_are_read(self, fixtures_root):
        """Oracle: the numbers of the README; the lemmas of the first test set by hand."""
        (training,) = WsdCorpus.find(fixtures_root / "wsd" / "train")
        one, other = WsdCorpus.find(fixtures_root / "wsd" / "test")
        assert [len(list(corpus)) for corpus in (training, one, other)] == [16, 6, 4]
        lemmas = [instance.lemma for sentence in one for instance in sentence.instances]
        assert lemmas == ["play", "play", "play", "bank", "cathedral", "zither"]

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('pos="VERB"', 'pos="V"', r"mini.data.xml, line 9, sentence d000.s000: .* pos one of NOUN, .*'pos': 'V'"),
            ('lemma="Be" ', "", "sentence d000.s000: an instance must have an id, a lemma"),
            (">is<", "> <", "sentence d000.s000: an instance .* the text ' '"),
            ("t001", "t007", "sentence d000.s000: mini.gold.key.txt must hold the sense of d000.s000.t007"),
            ('t001" lemma="Be"', 't000" lemma="Be"', "the instance d000.s000.t000 must come once, but comes twice"),
            ('<wf lemma="big"', '<x lemma="big"', "line 8, sentence d000.s000: a sentence must .* but has <x>"),
            ("</wf>\n</sentence>", "</x>\n</sentence>", "mini.data.xml, line 8: the file must be XML"),
            (XML[-30:], "", "mini.data.xml, line 1[0-9]: the file must be XML"),
            ("is</instance>", "is</instance> not", "line 8, .*s000: words must be in <wf> or <instance>, .* 'not' out"),
            ("</text>", "lost </text>", "line 15: words must be in <wf> or <instance>, .* 'lost' outside"),
            (">is<", "><wf>is</wf><", "line 7, .*s000: <wf> must be directly in a sentence, but is in <instance>"),
            (">is<", "><b>is</b><", "line 7, .*s000: a sentence must consist of .* but has <b>"),
            ('<sentence id="d000.s001">', "<p>", "line 11: <wf> must be directly in a sentence, but is in no sentence"),
            ("<corpus", '<!DOCTYPE a [<!ENTITY b "c">]><corpus', "line 2: a data set must define no entities"),
            (">is<", ">&is;<", "line 7: the file must be XML, .* undefined entity"),
            ('"UTF-8"', '"klingon"', "line 1: the file must be XML in UTF-8, .* unknown encoding: klingon"),
            ('"UTF-8"', '"rot13"', "line 1: the file must be XML in UTF-8, .* 'rot13' is not a text encoding"),
            ('"UTF-8"', '"utf-7"', "line 1: the file must be XML in UTF-8, .* multi-byte"),
            ('<wf lemma="yes" pos="X">Yes</wf>', "<word/>", "s001: a sentence must .* but has <word>"),
        ],
    )
    def test_a_broken_sentence_is_named(self, tmp_path, old, new, message):
        """Oracle: the message says file, line or sentence, rule and value."""
        assert old in XML
        with pytest.raises(ValueError, match=message):
            list(WsdCorpus(write(tmp_path, XML.replace(old, new, 1))))

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            (KEYS + "d000.s000.t009\n", r"mini.gold.key.txt, line 4: a line must have .* but is 'd000.s000.t009'"),
            (KEYS + "d000.s000.t009 play\n", "line 4: a line must have"),
            (KEYS + KEYS, "line 4: an instance must have one line, but d000.s000.t000 has another"),
            (b"d000.s000.t000 caf\xe9%1:1:1::\n", "line 1: the file must be UTF-8"),
            ("\n", "must hold the senses of at least one instance"),
            (KEYS + "d000.s000.t009 a%1:1:1::\n", "has 1 that it lacks, d000.s000.t009 among them"),
        ],
    )
    def test_broken_keys_are_named(self, tmp_path, keys, message):
        """Oracle: the message says file, line, rule and value."""
        with pytest.raises(ValueError, match=message):
            list(WsdCorpus(write(tmp_path, keys=keys)))

    def test_a_sentence_without_end_is_not_read_into_memory(self, tmp_path, monkeypatch):
        """Oracle: the message; a lower limit stands for that of 16 MiB. Many sentences may be longer than it."""
        monkeypatch.setattr(wsd_corpus, "MAX_LINE_BYTES", 2**18)
        many = "<wf>abcdefgh</wf></sentence>\n<sentence>" * 10_000
        path = write(tmp_path, XML.replace("</text>", f"<sentence>{many}</sentence></text>"), end=".gz")
        assert len(list(WsdCorpus(path))) == 10_002
        path = write(tmp_path, XML.split("<wf", 1)[0] + "<wf>abcdefgh</wf>" * 20_000, end=".gz")
        with pytest.raises(ValueError, match=r"line 5, sentence d000.s000: there must be less than 0 MiB from one end"):
            list(WsdCorpus(path))

    def test_the_keys_may_begin_with_a_byte_order_mark(self, tmp_path):
        """Oracle: the same sentences."""
        corpora = [WsdCorpus(write(tmp_path / str(n), keys=mark + KEYS)) for n, mark in enumerate(("", "\ufeff"))]
        assert list(corpora[0]) == list(corpora[1])

    def test_a_cut_archive_is_named(self, tmp_path):
        """Oracle: the message, for each of the two files."""
        xml, keys = gzip.compress(XML.encode() * 9), gzip.compress(KEYS.encode() * 9)
        for content in ({"xml": xml[:-20]}, {"keys": keys[:-20]}):
            with pytest.raises(ValueError, match="must be one that can be decompressed"):
                list(WsdCorpus(write(tmp_path, end=".gz", **content)))

    def test_missing_files_are_named(self, tmp_path):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=r"must be a file NAME\.data\.xml or .*, but is 'x\.xml'"):
            WsdCorpus("x.xml")
        path = tmp_path / "x.data.xml"
        with pytest.raises(FileNotFoundError, match=re.escape(f"there must be a data set '{path}'")):
            WsdCorpus(path)
        path.write_text(XML)
        with pytest.raises(FileNotFoundError, match=r"must be its keys, x\.gold\.key\.txt, plain or \.gz"):
            WsdCorpus(path)

    def test_a_folder_has_its_sets_by_name_without_their_sum(self, tmp_path):
        """Oracle: by hand: the layout of the framework, a folder for each; the same name twice is an error."""
        for name in ("senseval3", "senseval2", "ALL"):
            write(tmp_path / name, name=name)
        assert [corpus.name for corpus in WsdCorpus.find(tmp_path)] == ["senseval2", "senseval3"]
        write(tmp_path, name="senseval2", end=".gz")
        with pytest.raises(ValueError, match="must have one file, but senseval2 has several in"):
            WsdCorpus.find(tmp_path)
        with pytest.raises(FileNotFoundError, match="must hold data sets"):
            WsdCorpus.find(tmp_path / "senseval9")
