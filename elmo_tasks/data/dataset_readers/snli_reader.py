"""Dataset reader for sentence pairs in the format of SNLI and MultiNLI."""

from collections.abc import Iterator
from typing import Any, Optional

from allennlp.data import DatasetReader, Instance, Tokenizer
from allennlp_models.pair_classification import SnliReader as AllenNlpSnliReader

from elmo_tasks.data.dataset_readers.task_reader import FileReader
from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_tasks.files.json_files import json_lines

__all__ = ["SnliReader", "labelled_pairs"]


@DatasetReader.register("elmo_snli")
class SnliReader(FileReader, AllenNlpSnliReader):
    """
    Like AllenNLP's `snli`, but with the `pairID` of a pair in its metadata, and with spaCy's rules
    as the tokenizer. Pairs without a label are skipped: see `labelled_pairs`. For prediction,
    labels may be missing.
    """

    wanted = "pair"

    def __init__(self, tokenizer: Optional[Tokenizer] = None, **kwargs: Any) -> None:
        super().__init__(tokenizer or SpacyBlankTokenizer(), **kwargs)

    def rows(self, path: str) -> Iterator[tuple[int, tuple[dict[str, Any]]]]:
        pairs = labelled_pairs(path) if self.reads_gold else json_lines(path)
        for number, pair in pairs:
            yield number, (pair,)

    def instance_of(self, pair: dict[str, Any]) -> Instance:
        label = pair["gold_label"] if self.reads_gold else None
        if label not in (None, "contradiction", "neutral", "entailment"):
            raise ValueError(
                f"expected contradiction, neutral or entailment as gold_label, got {label!r}"
            )
        instance = self.text_to_instance(pair["sentence1"], pair["sentence2"], label)
        if "pairID" in pair:
            instance["metadata"].metadata["pairID"] = pair["pairID"]
        return instance


def labelled_pairs(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """
    The pairs of a file, each with its line number, except those with the label `-`: their
    annotators disagreed.
    """
    for number, pair in json_lines(path):
        if pair.get("gold_label") != "-":
            yield number, pair
