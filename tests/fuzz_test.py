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
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

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
CONTROL_CHARACTERS = [b"\0", b"\r", b"\r\n", b"\t", b"\n\n\n", b"\x1b[2J"]
BYTE_ORDER_MARKS = [b"\xef\xbb\xbf", b"\xff\xfe"]
BROKEN_UTF8 = [b"\xff", b"\xed\xa0\x80"]
UNUSUAL_CHARACTERS = ["\u200b\u2028\u202e\U0001f600".encode()]
LONG = [b" " * 300, b"x" * 20_000, b"1" * 5000, b"[" * 5000, b"{" * 5000, b"(" * 5000]
JSON_TOKENS = [b'"', b"\\", b"\\ud800", b"-1", b"NaN", b"1e999", b"null"]
MARKUP = [b"&amp;", b"]]>", b"<!DOCTYPE a>"]
CONLL_MARKERS = [b"#begin document", b"-DOCSTART-"]
FRAGMENTS: list[bytes] = [
    *CONTROL_CHARACTERS,
    *BYTE_ORDER_MARKS,
    *BROKEN_UTF8,
    *UNUSUAL_CHARACTERS,
    *LONG,
    *JSON_TOKENS,
    *MARKUP,
    *CONLL_MARKERS,
]


def flip_a_bit(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def insert(content: bytes, draw: random.Random) -> bytes:
    position = draw.randrange(len(content) + 1)
    return content[:position] + draw.choice(FRAGMENTS) + content[position:]


def delete(content: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(content) + 1)
    end = draw.randrange(start, len(content) + 1)
    return content[:start] + content[end:]


def swap_lines(content: bytes, draw: random.Random) -> bytes:
    lines = content.split(b"\n")
    one = draw.randrange(len(lines))
    other = draw.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def repeat_a_line(content: bytes, draw: random.Random) -> bytes:
    lines = content.split(b"\n")
    position = draw.randrange(len(lines))
    lines.insert(position, draw.choice(lines))
    return b"\n".join(lines)


MUTATIONS = [flip_a_bit, cut, insert, delete, swap_lines, repeat_a_line]


def mutated(content: bytes, draw: random.Random) -> bytes:
    """Makes one to three changes."""
    for _ in range(draw.randint(1, 3)):
        mutate = draw.choice(MUTATIONS)
        content = mutate(content, draw)
    return content


def read_all(items: Iterable[object]) -> None:
    """Up to 10,000, so that damage cannot make a test endless."""
    for _ in islice(items, 10_000):
        pass


def with_reader(reader_class: Callable[[], DatasetReader]) -> Callable[[Path], None]:
    """A function that reads a file; its reader is made at the first call."""
    make_reader = cache(reader_class)

    def read(path: Path) -> None:
        read_all(make_reader().read(str(path)))

    return read


def read_language_model_text(path: Path) -> None:
    read_all(LmText(str(path)))


def read_tiny_weights(path: Path) -> None:
    read_weights(path, OPTIONS)


def read_tiny_softmax(path: Path) -> None:
    read_softmax(path, OPTIONS)


def read_word_senses(path: Path) -> None:
    keys = "mini-1.gold.key.txt"
    if path.parent != WSD:
        shutil.copy(WSD / keys, path.parent / keys)
    read_all(WsdCorpus(path))


def embed(path: Path) -> None:
    embed_file(path, path.with_name("out.h5"), EmbedOptions(str(TINY_BILM)))


class Format(NamedTuple):
    """An included file, and a function that reads a file like it."""

    file: Path
    read: Callable[[Path], object]


FORMATS = {
    "ner": Format(FIXTURES / "ner" / "dev.txt", with_reader(NerReader)),
    "srl": Format(FIXTURES / "srl" / "dev" / "small.gold_conll", with_reader(SrlReader)),
    "snli": Format(FIXTURES / "snli" / "dev.jsonl", with_reader(SnliReader)),
    "squad": Format(FIXTURES / "squad" / "dev.json", with_reader(SquadReader)),
    "coref": Format(FIXTURES / "coref" / "dev.conll", with_reader(CorefReader)),
    "sst": Format(FIXTURES / "sst" / "dev.txt", with_reader(SstReader)),
    "pos": Format(FIXTURES / "pos" / "dev.conllu", with_reader(PosReader)),
    "lm": Format(FIXTURES / "lm" / "dev.txt", read_language_model_text),
    "options": Format(TINY_BILM / "options.json", BilmOptions.from_file),
    "weights": Format(TINY_BILM / "weights.hdf5", read_tiny_weights),
    "softmax": Format(TINY_BILM / "weights.hdf5", read_tiny_softmax),
    "wsd": Format(WSD / "mini-1.data.xml", read_word_senses),
    "glove": Format(FIXTURES / "glove" / "glove.open.100d.txt.gz", StaticVectors),
    "words": Format(SHIPPED_BILM / "vocab.txt", WordList.from_file),
}
TEXT_FORMATS = ["ner", "srl", "snli", "squad", "coref", "sst", "pos", "lm", "wsd"]


class Foreign(NamedTuple):
    """The content of a file of another corpus, and the names of the formats that read it."""

    content: bytes
    formats: set[str]


CONLLU = b"""\
# sent_id = 1
1\tik\tik\tPRON\tPRP\t_\t_\t_\t_\t_
2\tik\tik\tPRON\tPRP\t_\t_\t_\t_\t_
"""
GERMEVAL = b"#\thttp://a\t[2010]\n1\tAnna\tB-PER\tO\n2\tsang\tO\tO\n"
NER = b"Anna NNP I-NP B-PER\nsang NNP I-NP O\n. NNP I-NP O\n" * 2
SKELETON = b"""\
#begin document (bn/abc); part 000
bn/abc 0 0 [WORD] NN * - - - - * (V*) -
bn/abc 0 1 [WORD] NN * - - - - * (V*) -

#end document
"""
FOREIGN = {
    "CoNLL-U": Foreign(CONLLU, {"pos", "lm", "embed"}),
    "GermEval": Foreign(GERMEVAL, {"pos"}),
    "CoNLL-2003": Foreign(b"-DOCSTART- -X- -X- O\n\n" + NER, {"ner"}),
    "CoNLL-2000": Foreign(NER, {"ner"}),
    "skeleton": Foreign(SKELETON, set()),
    "FASTA": Foreign(b">sp|P1 a protein\nMGSSHHHHHH\nMKQ\n", set()),
    "JSON lines": Foreign(b'{"sentence": "Jordan beat Chelsea."}\n', set()),
    "JSON array": Foreign(
        b'[{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}]', set()
    ),
    "markup": Foreign(b'<doc id="1" title="A">\nA sentence .\n</doc>\n', {"wsd"}),
    "table": Foreign(b"id\ttext\n1\tA good film .\n2\tBad .\n", set()),
}
TEXT_READERS = {name: FORMATS[name].read for name in TEXT_FORMATS} | {"embed": embed}


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("name", TEXT_READERS)
def test_a_file_of_a_different_format_is_refused(tmp_path, name, foreign):
    content, formats = FOREIGN[foreign]
    read = TEXT_READERS[name]
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    if name in formats:
        read(path)
    else:
        with pytest.raises((ValueError, ConfigurationError), match=r"file\.txt|file\.gold"):
            read(path)


@pytest.mark.slow
class TestEveryReader:
    @pytest.mark.parametrize("name", FORMATS)
    def test_a_damaged_file_is_read_or_named_in_an_error(self, tmp_path, name):
        source, read = FORMATS[name]
        content = source.read_bytes()
        draw = random.Random(name)
        path = tmp_path / source.name
        n_refused = 0
        for number in range(N_MUTATIONS):
            path.write_bytes(mutated(content, draw))
            try:
                read(path)
            except (ValueError, ConfigurationError) as error:
                # Sense keys are in a separate file, which has the same start of its name.
                name_start, _, _ = path.name.partition(".")
                assert name_start in str(error), f"mutation {number}"
                n_refused += 1
        assert n_refused, "no mutation was refused: the reader was not called"

    @pytest.mark.parametrize("name", TEXT_FORMATS)
    def test_an_error_names_a_file_that_is_not_text(self, tmp_path, name):
        source, read = FORMATS[name]
        path = tmp_path / source.name
        path.write_bytes("é".encode("latin-1") + source.read_bytes())
        with pytest.raises((ValueError, ConfigurationError), match=re.escape(path.name)):
            read(path)
