"""
Tests every reader on damaged data, which it must either read or refuse with an error that names the
file.

The mutations are drawn from a fixed seed. `ELMO_TASKS_FUZZ` is the number of mutations per format.
"""

import os
import random
import re
import shutil
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.bilm.softmax.word_list import WordList
from elmo_tasks.bilm.weights import read_softmax, read_weights
from elmo_tasks.corpora.embed import EmbedOptions, embed_file
from elmo_tasks.data import (
    CorefReader,
    LmText,
    NerReader,
    PosReader,
    SnliReader,
    SquadReader,
    SrlReader,
    SstReader,
)
from elmo_tasks.paper.static_vectors import StaticVectors
from elmo_tasks.paper.wsd_corpus import WsdCorpus
from tests.paths import FIXTURES, SHIPPED_BILM, TINY_BILM

WSD = FIXTURES / "wsd" / "test"
OPTIONS = BilmOptions.from_file(TINY_BILM / "options.json")
N_MUTATIONS = int(os.environ.get("ELMO_TASKS_FUZZ", "25"))
# Content of files from malicious authors or from other programs.
FRAGMENTS: list[bytes] = [
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\r\n", b"\t", b"\n\n\n", b" " * 300, b"\x1b[2J"),
    *(b"[" * 5000, b"{" * 5000, b"(" * 5000, b'"', b"\\ud800", b"1" * 5000, b"-1", b"NaN", b"1e999", b"null", b"\\"),
    *("\u200b\u2028\u202e\U0001f600".encode(), b"x" * 20_000, b"&amp;", b"]]>", b"<!DOCTYPE a>", b"\xed\xa0\x80"),
    *(b"#begin document", b"-DOCSTART-"),
]  # fmt: skip


def mutated(content: bytes, draw: random.Random) -> bytes:
    """
    Makes one to three changes: a flipped bit, a cut, an inserted fragment, or swapped or repeated
    lines.
    """
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(content)) if content else 0
        kind = draw.randrange(6)
        if kind == 0 and content:
            content = (
                content[:place]
                + bytes([content[place] ^ 1 << draw.randrange(8)])
                + content[place + 1 :]
            )
        elif kind == 1:
            content = content[:place]
        elif kind == 2:
            content = content[:place] + draw.choice(FRAGMENTS) + content[place:]
        elif kind == 3:
            content = content[:place] + content[draw.randrange(place, len(content) + 1) :]
        else:
            lines = content.split(b"\n")
            first, second = draw.randrange(len(lines)), draw.randrange(len(lines))
            if kind == 4:
                lines[first], lines[second] = lines[second], lines[first]
            else:
                lines.insert(first, lines[second])
            content = b"\n".join(lines)
    return content


def consumed(items: Iterable[Any]) -> int:
    return sum(1 for _ in islice(items, 10_000))


def reader_of(reader_class: Callable[[], Any]) -> Callable[[Path], object]:
    reader = cache(reader_class)
    return lambda path: consumed(reader().read(str(path)))


def read_wsd(path: Path) -> None:
    keys = "mini-1.gold.key.txt"
    if path.parent != WSD:
        shutil.copy(WSD / keys, path.parent / keys)
    consumed(WsdCorpus(path))


# For each format, an included file and the function that reads it.
FORMATS: dict[str, tuple[Path, Callable[[Path], object]]] = {
    "ner": (FIXTURES / "ner" / "dev.txt", reader_of(NerReader)),
    "srl": (FIXTURES / "srl" / "dev" / "small.gold_conll", reader_of(SrlReader)),
    "snli": (FIXTURES / "snli" / "dev.jsonl", reader_of(SnliReader)),
    "squad": (FIXTURES / "squad" / "dev.json", reader_of(SquadReader)),
    "coref": (FIXTURES / "coref" / "dev.conll", reader_of(CorefReader)),
    "sst": (FIXTURES / "sst" / "dev.txt", reader_of(SstReader)),
    "pos": (FIXTURES / "pos" / "dev.conllu", reader_of(PosReader)),
    "lm": (FIXTURES / "lm" / "dev.txt", lambda path: consumed(LmText(str(path)))),
    "options": (TINY_BILM / "options.json", BilmOptions.from_file),
    "weights": (TINY_BILM / "weights.hdf5", lambda path: read_weights(path, OPTIONS)),
    "softmax": (TINY_BILM / "weights.hdf5", lambda path: read_softmax(path, OPTIONS)),
    "wsd": (WSD / "mini-1.data.xml", read_wsd),
    "glove": (FIXTURES / "glove" / "glove.open.100d.txt.gz", StaticVectors),
    "words": (SHIPPED_BILM / "vocab.txt", WordList.from_file),
}
TEXT_FORMATS = ["ner", "srl", "snli", "squad", "coref", "sst", "pos", "lm", "wsd"]


# Files of other corpora, and the formats that read them.
NER = b"".join(
    b"%s NNP I-NP %s\n" % pair for pair in [(b"Anna", b"B-PER"), (b"sang", b"O"), (b".", b"O")] * 2
)
SKELETON = b"bn/abc 0 %d [WORD] NN * - - - - * (V*) -\n"
FOREIGN: dict[str, tuple[bytes, set[str]]] = {
    "CoNLL-U": (
        b"# sent_id = 1\n"
        + b"".join(b"%d\tik\tik\tPRON\tPRP" % n + b"\t_" * 5 + b"\n" for n in (1, 2)),
        {"pos", "lm", "embed"},
    ),
    "GermEval": (b"#\thttp://a\t[2010]\n1\tAnna\tB-PER\tO\n2\tsang\tO\tO\n", {"pos"}),
    "CoNLL-2003": (b"-DOCSTART- -X- -X- O\n\n" + NER, {"ner"}),
    "CoNLL-2000": (NER, {"ner"}),
    "skeleton": (
        b"#begin document (bn/abc); part 000\n"
        + SKELETON % 0
        + SKELETON % 1
        + b"\n#end document\n",
        set(),
    ),
    "FASTA": (b">sp|P1 a protein\nMGSSHHHHHH\nMKQ\n", set()),
    "JSON lines": (b'{"sentence": "Jordan beat Chelsea."}\n', set()),
    "JSON array": (b'[{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}]', set()),
    "markup": (b'<doc id="1" title="A">\nA sentence .\n</doc>\n', {"wsd"}),
    "table": (b"id\ttext\n1\tA good film .\n2\tBad .\n", set()),
}


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("name", [*TEXT_FORMATS, "embed"])
def test_a_file_of_a_different_format_is_refused(tmp_path, name, foreign):
    content, readers = FOREIGN[foreign]
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    job = partial(embed_file, output=tmp_path / "out.h5", options=EmbedOptions(str(TINY_BILM)))
    if name in readers:
        (job if name == "embed" else FORMATS[name][1])(path)
        return
    with pytest.raises((ValueError, ConfigurationError), match=r"file\.txt|file\.gold"):
        (job if name == "embed" else FORMATS[name][1])(path)


@pytest.mark.slow
class TestEveryReader:
    @pytest.mark.parametrize("name", FORMATS)
    def test_a_damaged_file_is_read_or_named_in_an_error(self, tmp_path, name):
        source, read = FORMATS[name]
        content, draw = source.read_bytes(), random.Random(name)
        path, n_refused = tmp_path / source.name, 0
        for number in range(N_MUTATIONS):
            path.write_bytes(mutated(content, draw))
            try:
                read(path)
            except (ValueError, ConfigurationError) as error:
                # Sense keys are in a separate file, so the message need only contain the common
                # part of the name.
                assert path.name.partition(".")[0] in str(error), f"mutation {number}"
                n_refused += 1
        assert n_refused, "no mutation was refused: the reader was not called"

    @pytest.mark.parametrize("name", TEXT_FORMATS)
    def test_an_error_names_a_file_that_is_not_text(self, tmp_path, name):
        source, read = FORMATS[name]
        path = tmp_path / source.name
        path.write_bytes("é".encode("latin-1") + source.read_bytes())
        with pytest.raises((ValueError, ConfigurationError), match=re.escape(path.name)):
            read(path)
