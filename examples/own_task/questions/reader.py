"""Lines with a label, a tab and the words of a sentence: `yes	Who sang ?`"""

from collections.abc import Iterator, Sequence

from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import LabelField

from elmo_tasks.data.dataset_readers.task_reader import TaskReader, sentence_fields


@DatasetReader.register("questions")
class QuestionReader(TaskReader):
    def rows(self, path: str) -> Iterator[tuple[int, tuple[list[str], str | None]]]:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                label, sentence = line.rstrip("\n").split("\t")
                yield number, (sentence.split(), label if self.reads_gold else None)

    def text_to_instance(self, words: Sequence[str | Token], label: str | None = None) -> Instance:
        fields = sentence_fields(words)
        if label is not None:
            fields["label"] = LabelField(label)
        return Instance(fields)
