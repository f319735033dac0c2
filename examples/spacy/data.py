"""
The open data of a checkout, as files that `spacy convert` and `spacy init vectors` read.

    python data.py ../../data/open corpus
"""

import gzip
import json
import lzma
import sys
from pathlib import Path

import spacy
from spacy.tokens import Doc, DocBin

LABELS = ("contradiction", "entailment", "neutral")


def text_of(file: Path) -> str:
    """The text of a compressed file."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        return lines.read()


def main(source: Path, target: Path) -> None:
    """
    Writes columns for named entities, CoNLL-U, and documents with the second sentences of SNLI.
    """
    for folder in ("ner", "syntax", "textcat"):
        (target / folder).mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        columns = text_of(source / "ner" / f"{part}.txt.xz").removeprefix(
            "-DOCSTART- -X- -X- O\n\n"
        )
        # `spacy convert` chooses files by their ending.
        (target / "ner" / f"{part}.ner").write_text(columns, "utf-8")
        (target / "syntax" / f"{part}.conllu").write_text(
            text_of(source / "pos" / f"{part}.conllu.xz"), "utf-8"
        )
        docs, vocab = DocBin(), spacy.blank("en").vocab
        for pair in map(json.loads, text_of(source / "snli" / f"{part}.jsonl.xz").splitlines()):
            doc = Doc(vocab, words=pair["sentence2"].split())
            doc.cats = {label: float(label == pair["gold_label"]) for label in LABELS}
            docs.add(doc)
        docs.to_disk(target / "textcat" / f"{part}.spacy")
    (target / "glove.txt").write_bytes(
        gzip.decompress((source / "glove" / "glove.open.100d.txt.gz").read_bytes())
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
