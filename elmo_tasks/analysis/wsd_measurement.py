"""The measurement of Table 5: word senses of the unified evaluation framework, for each layer of a biLM."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.analysis.disambiguation import AnsweredSet, WordSenses, scores_of
from elmo_tasks.analysis.first_senses import FirstSenses
from elmo_tasks.analysis.wsd_corpus import WsdCorpus
from elmo_tasks.analysis.wsd_score import WsdScore
from elmo_tasks.files.atomic_files import atomic_file, atomic_folder
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["WORD_SENSES", "WsdMeasurement"]

WORD_SENSES = "table 5"
"""The value of the key `"table"` in a file of scores."""


@dataclass(frozen=True, kw_only=True)
class WsdMeasurement:
    """
    Senses that were learned, and the answers to the test sets.

    # Parameters

    bilm
        The name of the biLM.
    training
        The name of the training data.
    has_wordnet
        Whether first senses are those of WordNet.
    distance, max_sentences
        See `WordSenses`.
    senses
        The senses.
    sets
        The answers.
    scores
        Those of `scores_of`.
    """

    bilm: str
    training: str
    has_wordnet: bool
    distance: str
    max_sentences: int | None
    senses: WordSenses
    sets: list[AnsweredSet]
    scores: dict[str, dict[str, WsdScore]]

    @classmethod
    def of(
        cls,
        bilm: str,
        data: Path,
        *,
        train: Path | None = None,
        wordnet: Path | None = None,
        distance: Literal["cosine", "euclidean"] = "cosine",
        precision: Literal["float32", "bf16"] = "float32",
        max_sentences: int | None = None,
        batch_tokens: int = 4096,
    ) -> "WsdMeasurement":
        """
        # Parameters

        bilm
            The name or folder of a biLM.
        data
            A folder with `train/` and `test/`.
        train
            The file `NAME.data.xml` to learn from. `None`: the only one in `train/`.
        wordnet
            The folder of WordNet, for first senses.
        distance, max_sentences, batch_tokens
            See `WordSenses`.
        precision
            See `Elmo.from_pretrained`.

        # Raises

        `ValueError`, `FileNotFoundError`
            If data, biLM or WordNet is not there, or not as it should be.
        """
        training, tests = _training(train, data / "train"), WsdCorpus.find(data / "test")
        first_senses = None if wordnet is None else FirstSenses.from_wordnet(wordnet)
        senses = WordSenses(
            Elmo.from_pretrained(bilm, precision=precision),
            training,
            first_senses=first_senses,
            distance=distance,
            max_sentences=max_sentences,
            batch_tokens=batch_tokens,
        )
        sets = [senses.answer(corpus) for corpus in tests]
        return cls(
            bilm=Path(bilm).resolve().name,
            training=training.name,
            has_wordnet=wordnet is not None,
            distance=distance,
            max_sentences=max_sentences,
            senses=senses,
            sets=sets,
            scores=scores_of(sets),
        )

    def write_scores(self, path: Path) -> None:
        """Writes all numbers as JSON, as `make results` reads them."""
        numbers: dict[str, Any] = {
            "format": 1,
            "table": WORD_SENSES,
            "bilm": self.bilm,
            "training": self.training,
            "wordnet": self.has_wordnet,
            "distance": self.distance,
            "max_sentences": self.max_sentences,
            "instances_of_training": self.senses.n_instances,
            "senses": len(self.senses.senses),
            # Without the path of WordNet, which is of this machine.
            "first_senses": "WordNet" if self.has_wordnet else self.senses.first_senses.source,
            "senses_not_in_wordnet": self.senses.n_unknown_senses,
            "scores": {name: {group: asdict(s) for group, s in row.items()} for name, row in self.scores.items()},
            "sets": {a.name: {"lemma_not_in_training": a.n_unseen, "unanswered": a.n_unanswered} for a in self.sets},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            file.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")

    def write_answers(self, folder: Path) -> None:
        """Writes a file for each test set and representation into a new folder, as the official scorer reads them."""
        with atomic_folder(folder, ()) as temporary:
            for answered in self.sets:
                for name, answers in answered.answers.items():
                    lines = "".join(f"{instance} {' '.join(senses)}\n" for instance, senses in answers.items())
                    file = temporary / f"{answered.name}.{name.replace(' ', '-')}.key.txt"
                    file.write_text(lines, encoding="utf-8")


def _training(path: Path | None, folder: Path) -> WsdCorpus:
    if path is not None:
        return WsdCorpus(path)
    corpora = WsdCorpus.find(folder)
    if len(corpora) > 1:
        names = ", ".join(str(corpus.path) for corpus in corpora)
        raise ValueError(
            f"'{folder}' must have one data set to learn from, but has {names}: choose one with --train, or keep only "
            "one there"
        )
    return corpora[0]
