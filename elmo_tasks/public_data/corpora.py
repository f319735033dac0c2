"""Corpora by their names: the files of their owners, and their places in `ELMO_TASKS_DATA`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CORPORA", "EXPLAINED", "Corpus", "PublicFile"]


@dataclass(frozen=True)
class PublicFile:
    """
    A file that is downloaded.

    # Parameters

    url
        Where its owner publishes it.
    place
        Where it is put, relative to the folder of the data; `None` for a zip archive, whose members are.
    members
        Of a zip archive: the members that are kept, and their places.
    n_bytes
        Its size, if that is known.
    max_bytes
        The most that it, and each of its members, may have.
    sha256
        Its SHA-256, if that is known.
    """

    url: str
    place: str | None = None
    members: Mapping[str, str] = field(default_factory=dict)
    n_bytes: int | None = None
    max_bytes: int = 2**30
    sha256: str | None = None

    @property
    def places(self) -> list[str]:
        """All that come of it."""
        return list(self.members.values()) if self.place is None else [self.place]


@dataclass(frozen=True)
class Corpus:
    """
    # Parameters

    title
        What it is.
    files
        What is downloaded.
    note
        What its user should know: its licence, or how it differs from the paper's data.
    """

    title: str
    files: tuple[PublicFile, ...]
    note: str


_STANFORD = "https://nlp.stanford.edu"
_SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset"
# A release and not a branch, so that all have the same.
_EWT = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.14/en_ewt-ud"
# It has no releases.
_WNUT = "https://raw.githubusercontent.com/leondz/emerging_entities_17/master"

CORPORA = {
    "snli": Corpus(
        "SNLI 1.0",
        (
            PublicFile(
                f"{_STANFORD}/projects/snli/snli_1.0.zip",
                members={f"snli_1.0/snli_1.0_{part}.jsonl": f"snli/{part}.jsonl" for part in ("train", "dev", "test")},
                sha256="afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
            ),
        ),
        "CC BY-SA 4.0; the paper's data",
    ),
    "squad": Corpus(
        "SQuAD 1.1",
        (
            PublicFile(
                f"{_SQUAD}/train-v1.1.json",
                "squad/train.json",
                n_bytes=30_288_272,
                sha256="3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955",
            ),
            PublicFile(
                f"{_SQUAD}/dev-v1.1.json",
                "squad/dev.json",
                n_bytes=4_854_279,
                sha256="95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
            ),
        ),
        "CC BY-SA 4.0; the paper's data, whose test set is not public",
    ),
    "sst": Corpus(
        "the Stanford Sentiment Treebank",
        (
            PublicFile(
                f"{_STANFORD}/sentiment/trainDevTestTrees_PTB.zip",
                members={f"trees/{part}.txt": f"sst/{part}.txt" for part in ("train", "dev", "test")},
                n_bytes=789_539,
                sha256="5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc",
            ),
        ),
        "the paper's data",
    ),
    "glove": Corpus(
        "GloVe, 6 billion words, vectors of 100",
        (
            PublicFile(
                f"{_STANFORD}/data/glove.6B.zip",
                members={"glove.6B.100d.txt": "glove/glove.6B.100d.txt"},
                n_bytes=862_182_613,
                sha256="617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
            ),
        ),
        "Public Domain Dedication and License 1.0; lower case",
    ),
    "glove-840b": Corpus(
        "GloVe, 840 billion words, vectors of 300",
        (
            PublicFile(
                f"{_STANFORD}/data/glove.840B.300d.zip",
                members={"glove.840B.300d.txt": "glove/glove.840B.300d.txt"},
                max_bytes=2**33,
                sha256="c06db255e65095393609f19a4cfca20bf3a71e20cc53e892aafa490347e3849f",
            ),
        ),
        "Public Domain Dedication and License 1.0; cased. If glove/ has other files, name it with ELMO_TASKS_GLOVE",
    ),
    "pos": Corpus(
        "UD English EWT 2.14",
        tuple(PublicFile(f"{_EWT}-{part}.conllu", f"pos/{part}.conllu") for part in ("train", "dev", "test")),
        "CC BY-SA 4.0; the paper has the Wall Street Journal of the Penn Treebank, which is licensed",
    ),
    "ner": Corpus(
        "WNUT-17",
        tuple(
            PublicFile(f"{_WNUT}/{name}", f"ner/{part}.txt")
            for name, part in (
                ("wnut17train.conll", "train"),
                ("emerging.dev.conll", "dev"),
                ("emerging.test.annotated", "test"),
            )
        ),
        "CC BY 4.0; the paper has CoNLL-2003, which is licensed: see `allennlp elmo-data conll2003`",
    ),
}

_ONTONOTES = (
    "OntoNotes 5.0 is published by the LDC (LDC2013T19, free of charge for members of institutions), and its columns, "
    "*_gold_conll, are made by the scripts of CoNLL-2012."
)
EXPLAINED = {
    "wsd": (
        "Word senses for Table 5 are published as the unified evaluation framework of Raganato et al. (2017), "
        "http://lcl.uniroma1.it/wsdeval: SemCor to learn from, and five test sets. They are read as they are, also "
        "compressed (.gz):\n"
        "  mkdir -p DATA/wsd/train DATA/wsd/test\n"
        "  cp WSD_Evaluation_Framework/Training_Corpora/SemCor/semcor.* DATA/wsd/train\n"
        "  cp WSD_Evaluation_Framework/Evaluation_Datasets/s*/*.xml DATA/wsd/test\n"
        "  cp WSD_Evaluation_Framework/Evaluation_Datasets/s*/*.gold.key.txt DATA/wsd/test\n"
        "First senses are those of WordNet 3.0: elmo-tables --table 5 --wordnet FOLDER"
    ),
    "conll2003": (
        "CoNLL-2003 (named entities) is made of the Reuters Corpus, which NIST gives on request; with it, scripts "
        "of the shared task make eng.train, eng.testa and eng.testb. They are read as they are:\n"
        "  mkdir -p DATA/ner && cp eng.train DATA/ner/train.txt && cp eng.testa DATA/ner/dev.txt && "
        "cp eng.testb DATA/ner/test.txt"
    ),
    "srl": (
        f"{_ONTONOTES} Folders of them are read as they are:\n"
        "  mkdir -p DATA/srl\n"
        "  cp -r conll-2012/v4/data/train/data/english DATA/srl/train\n"
        "  cp -r conll-2012/v4/data/development/data/english DATA/srl/dev\n"
        "  cp -r conll-2012/v4/data/test/data/english DATA/srl/test"
    ),
    "coref": (
        f"{_ONTONOTES} Each part is one file:\n"
        "  mkdir -p DATA/coref\n"
        "  find conll-2012/v4/data/train/data/english -name '*gold_conll' -exec cat {} + > DATA/coref/train.conll\n"
        "  find conll-2012/v4/data/development/data/english -name '*gold_conll' -exec cat {} + > DATA/coref/dev.conll\n"
        "  find conll-2012/v4/data/test/data/english -name '*gold_conll' -exec cat {} + > DATA/coref/test.conll"
    ),
}
"""What is not downloaded, since it has to be asked for, bought or put together, and the commands that lay it out."""
