"""Files of data that are damaged: an error names the file, in one sentence."""

import zlib

import pytest
import spacy
import srsly
from allennlp.data import DatasetReader
from spacy.tokens import DocBin

import elmo_tasks.data  # noqa: F401

DOCUMENTS = DocBin(docs=[spacy.blank("en")("Ann sings")]).to_bytes()
CONTENT = srsly.msgpack_loads(zlib.decompress(DOCUMENTS))


def documents(**changes: object) -> bytes:
    return zlib.compress(srsly.msgpack_dumps({**CONTENT, **changes}))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        b"\0" * 100,
        DOCUMENTS[: len(DOCUMENTS) // 2],
        zlib.compress(srsly.msgpack_dumps([1])),
        documents(tokens=b"\0\1"),
        documents(attrs=["x"]),
        documents(strings=3),
    ],
)
def test_documents_of_spacy(tmp_path, content):
    (tmp_path / "train.spacy").write_bytes(content)
    reader = DatasetReader.by_name("elmo_ner")()
    with pytest.raises(ValueError, match=r"train\.spacy"):
        list(reader.read(tmp_path / "train.spacy"))
