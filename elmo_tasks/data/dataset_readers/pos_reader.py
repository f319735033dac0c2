"""Dataset reader of parts of speech, in CoNLL-U, the format of Universal Dependencies."""

import logging
from collections.abc import Iterator, Sequence
from typing import Literal, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token, TokenIndexer
from allennlp.data.fields import Field, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data.fields import KnownTagsField
from elmo_tasks.data.formats.conllu import conllu_sentences

__all__ = ["PosReader"]

logger = logging.getLogger(__name__)

_COLUMNS = {"upos": 3, "xpos": 4}
_OTHER = {"upos": "xpos", "xpos": "upos"}
_UNIVERSAL = frozenset(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()  # noqa: SIM905
)
_NO_TAG = "_"


@DatasetReader.register("elmo_pos")
class PosReader(DatasetReader):
    """
    Reads the words of CoNLL-U files and one of their two columns of tags. A multiword token is read as the words that
    it stands for, which have the tags; empty nodes, which are not in the text, are skipped. A file without any tag in
    the column is for prediction.

    Registered as a `DatasetReader` with name "elmo_pos". AllenNLP's `universal_dependencies` reads syntax for another
    model, has other names of fields than `simple_tagger`, and does not name the broken line.

    # Parameters

    token_indexers : `Dict[str, TokenIndexer]`, optional
        See `DatasetReader`; by default a `SingleIdTokenIndexer` named `tokens`.
    tags : `Literal["upos", "xpos"]`
        Which column: the 17 universal tags, or those of the language; in English treebanks these are the Penn
        Treebank's, as in the paper.

    # Raises

    `ConfigurationError`
        If `tags` is neither of the two.
    """

    def __init__(
        self,
        token_indexers: Optional[dict[str, TokenIndexer]] = None,
        tags: Literal["upos", "xpos"] = "upos",
        **kwargs: object,
    ) -> None:
        # By name, from the config: `max_instances` and whatever else `DatasetReader` takes.
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        if tags not in _COLUMNS:
            raise ConfigurationError(f"tags must be 'upos' or 'xpos', but is {tags!r}")
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self._tags = tags

    def _read(self, file_path: str) -> Iterator[Instance]:
        for where, words, tags in self.shard_iterable(_tagged(cached_path(file_path), self._tags)):
            yield self.text_to_instance(words, tags, where=where)

    def text_to_instance(
        self, words: Sequence[str | Token], tags: Sequence[str] | None = None, where: str = "the input"
    ) -> Instance:
        """
        # Parameters

        words : `Sequence[Union[str, Token]]`
            A sentence.
        tags : `Sequence[str]`, optional
            A tag for each word.
        where : `str`
            The place of the sentence as an error names it.

        # Returns

        `Instance`
            `tokens`, `metadata` (the words), and `tags` if tags are given.

        # Raises

        `ValueError`
            If there are no words.
        """
        if not words:
            raise ValueError(f"{where}: a sentence must have at least one word, but has none: remove it")
        tokens = [word if isinstance(word, Token) else Token(word) for word in words]
        text = TextField(tokens)
        fields: dict[str, Field] = {"tokens": text, "metadata": MetadataField({"words": [t.text for t in tokens]})}
        if tags is not None:
            fields["tags"] = KnownTagsField(tags, text, where)
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        instance["tokens"].token_indexers = self._token_indexers


def _tagged(path: str, column: str) -> Iterator[tuple[str, list[str], list[str] | None]]:
    """The sentences of a file with the place of each, and its tags if the file has tags."""
    has_tags: bool | None = None
    n_sentences = 0
    for where, rows in conllu_sentences(path):
        n_sentences += 1
        tags = []
        for number, columns in rows:
            tag = columns[_COLUMNS[column]]
            if has_tags is None:
                has_tags = tag != _NO_TAG
            if has_tags is not (tag != _NO_TAG):
                raise ValueError(
                    f"{path}, line {number}: all words of a file must have a tag in the column {column.upper()}, or "
                    f"none, but the first word of this file has {'one' if has_tags else 'none'}, and "
                    f"{columns[1]!r} has {tag!r}: fill it in, remove the sentence, or read the other column with tags: "
                    f"'{_OTHER[column]}'"
                )
            if not tag or len(tag.split()) != 1 or tag != tag.strip():
                raise ValueError(
                    f"{path}, line {number}: {column.upper()} must be a tag without white space, or _ for none, but is "
                    f"{tag!r}: correct it"
                )
            if has_tags and column == "upos" and tag not in _UNIVERSAL:
                raise ValueError(
                    f"{path}, line {number}: UPOS must be one of the universal tags ({', '.join(sorted(_UNIVERSAL))}), "
                    f"but is {tag!r}: correct it, or read the other column with tags: 'xpos'"
                )
            tags.append(tag)
        yield where, [columns[1] for _, columns in rows], tags if has_tags else None
    if not n_sentences:
        raise ValueError(f"{path} must hold at least one sentence in CoNLL-U, but holds none")
    if not has_tags:
        logger.warning(
            "%s has no tags in the column %s: it serves for predictions, but not for training or evaluation. "
            "The reader's tags: '%s' reads the other column",
            path,
            column.upper(),
            _OTHER[column],
        )
