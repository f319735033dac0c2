"""Dataset reader for sentence pairs in the format of SNLI and MultiNLI."""

import json
from collections.abc import Iterator
from typing import Any, Optional

from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, TokenIndexer, Tokenizer
from allennlp_models.pair_classification import SnliReader as AllenNlpSnliReader

from elmo_tasks.data.dataset_readers.task_reader import located
from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["SnliReader"]


@DatasetReader.register("elmo_snli")
class SnliReader(AllenNlpSnliReader):
    """
    Like AllenNLP's `snli`, but with the `pairID` of a pair in its metadata, and with spaCy's rules as the tokenizer.
    Pairs with the label `-`, on which the annotators did not agree, are skipped. For prediction, labels may be missing.

    # Parameters

    tokenizer : `Tokenizer`
        The tokenizer of both sentences, by default `SpacyBlankTokenizer`.
    """

    reads_gold = True

    def __init__(
        self,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[dict[str, TokenIndexer]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer or SpacyBlankTokenizer(), token_indexers, **kwargs)

    def _read(self, file_path: str) -> Iterator[Instance]:
        path = cached_path(file_path)
        for number, pair in self.shard_iterable(self._pairs(path)):
            with located(path, number):
                label = pair.get("gold_label") if self.reads_gold else None
                instance = self.text_to_instance(pair["sentence1"], pair["sentence2"], label)
                if "pairID" in pair:
                    instance["metadata"].metadata["pairID"] = pair["pairID"]
            yield instance

    def _pairs(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in numbered_lines(path):
            with located(path, number):
                pair = json.loads(line)
                is_skipped = self.reads_gold and pair.get("gold_label") == "-"
            if not is_skipped:
                yield number, pair
