"""Dataset reader for parts of speech in CoNLL-U, the format of Universal Dependencies."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import SequenceLabelField

from elmo_tasks.data.dataset_readers.task_reader import TaskReader, sentence_fields
from elmo_tasks.text.formats import conllu_sentences

__all__ = ["PosReader"]


@DatasetReader.register("elmo_pos")
class PosReader(TaskReader):
    """
    Reads the words of CoNLL-U files and one or both of their tag columns. A multiword token is read
    as the words that it represents, because these have the tags.

    AllenNLP's `universal_dependencies` reads syntax for a different model.

    # Parameters

    tags : `Literal["upos", "xpos", "both"]`
        Which column: the 17 universal tags, or the tags of the language, which in English treebanks
        are the Penn Treebank's, as in the paper. `"both"`: a tag such as `NOUN|NNS`.
    """

    def __init__(self, *, tags: Literal["upos", "xpos", "both"] = "upos", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.columns = ("upos", "xpos") if tags == "both" else (tags,)

    def rows(self, path: str) -> Iterator[tuple[int, tuple[list[str], list[str] | None]]]:
        for number, sentence in conllu_sentences(path):
            words = [word["form"] for word in sentence]
            tags = [self._tag_of(word) for word in sentence]
            yield number, (words, tags if self.reads_gold else None)

    def _tag_of(self, word: dict[str, Any]) -> str:
        return "|".join(word[column] or "_" for column in self.columns)

    def text_to_instance(
        self, words: Sequence[str | Token], tags: Sequence[str] | None = None
    ) -> Instance:
        """`tokens`, `metadata` (the words), and `tags` if tags are given."""
        fields = sentence_fields(words)
        if tags is not None:
            if any("_" in tag.split("|") for tag in tags):
                expected = f"a tag for each word as {' and '.join(self.columns)}"
                hint = " (tags='upos' reads the universal tags)" if "xpos" in self.columns else ""
                raise ValueError(f"expected {expected}, got '_'{hint}")
            fields["tags"] = SequenceLabelField(list(tags), fields["tokens"])
        return Instance(fields)
