"""
Lines with the words of a sentence and its relations, each after a tab, as `lives_in 0-0 3-3`: the
label, and the first and the last word of two names, counted from 0.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import AdjacencyField

from elmo_tasks.data.dataset_readers.task_reader import TaskReader, sentence_fields


@DatasetReader.register("relations")
class RelationReader(TaskReader):
    def rows(self, path: str) -> Iterator[tuple[int, Any]]:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                sentence, *relations = line.rstrip("\n").split("\t")
                yield number, (sentence.split(), relations if self.reads_gold else None)

    def text_to_instance(
        self, words: Sequence[str | Token], relations: Sequence[str] | None = None
    ) -> Instance:
        fields = sentence_fields(words)
        if relations is not None:
            # A relation is found at the last words of its names.
            labels = []
            pairs = []
            for relation in relations:
                label, head, tail = relation.split()
                labels.append(label)
                pairs.append((int(head.split("-")[1]), int(tail.split("-")[1])))
            fields["relations"] = AdjacencyField(pairs, fields["tokens"], labels)
        return Instance(fields)
