"""Dataset reader for sentiment in the format of the Stanford Sentiment Treebank."""

from collections.abc import Iterator, Sequence
from typing import Any, Optional

from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import LabelField

from elmo_tasks.data.dataset_readers.task_reader import TaskReader, sentence_fields
from elmo_tasks.files.lines import located, numbered_lines
from elmo_tasks.text import TREEBANK_WORDS
from elmo_tasks.text.formats import lines_in

__all__ = ["SstReader"]


@DatasetReader.register("elmo_sst")
class SstReader(TaskReader):
    r"""
    Reads files with one tree per line, in the brackets of the Penn Treebank, with a sentiment from
    0 (very negative) to 4 (very positive) at each node: `(3 (2 It) (4 (2 's) (4 good)))`, or
    `(3 It 's good)`.

    Words are converted to ordinary text: `-LRB-` to `(`, `\/` to `/`, and the two kinds of double
    quotes to `"`. A number and a fraction that are joined by a no-break space, as in the treebank,
    become two words.

    AllenNLP's `sst_tokens` reads all phrases or none, and keeps the escapes of the treebank.

    # Parameters

    min_phrase_length : `int`, optional
        `None` reads whole sentences. With a number, each phrase of at least that many tokens is an
        instance (the paper trains on phrases of at least four, section A.8); shorter ones are
        skipped, even if they are whole sentences.
    """

    def __init__(self, *, min_phrase_length: Optional[int] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._min_phrase_length = min_phrase_length

    def rows(self, path: str) -> Iterator[tuple[int, tuple[list[Token], str | None]]]:
        if self.reads_gold:
            lines = numbered_lines(path)
        else:
            lines = lines_in(path, "one tree per line")
        for number, line in lines:
            if not line.strip():
                continue
            with located(path, number):
                tree = _tree(line)
            if self._min_phrase_length is None:
                phrases = [tree]
            else:
                phrases = list(tree.subtrees())
            for phrase in phrases:
                words = phrase.leaves()
                label = phrase.label() if self.reads_gold else None
                if len(words) >= (self._min_phrase_length or 1):
                    yield number, (words, label)

    def text_to_instance(self, words: Sequence[str | Token], label: str | None = None) -> Instance:
        """`tokens`, `metadata` (the words), and `label`, from `"0"` to `"4"`, if there is one."""
        fields = sentence_fields(words)
        if label is not None:
            if label not in set("01234"):
                raise ValueError(f"expected a sentiment from 0 to 4, got {label!r}")
            fields["label"] = LabelField(label)
        return Instance(fields)


def _tree(line: str) -> Any:
    """A tree of nltk. Its phrases share the tokens of their sentence."""
    # Imported here, because nltk would slow down the start of every command by a second.
    from nltk.tree import Tree

    try:
        return Tree.fromstring(line, read_leaf=lambda word: Token(_unescaped(word)))
    except ValueError:
        trees = "(3 (2 It) (4 works)), or (3 It works) for a sentence with only its own label"
        raise ValueError(f"expected a tree like {trees}, got {line[:60]!r}") from None


def _unescaped(word: str) -> str:
    return TREEBANK_WORDS.get(word, word).replace("\\/", "/").replace("\\*", "*")
