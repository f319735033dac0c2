"""Dataset reader of sentiment, in the format of the Stanford Sentiment Treebank."""

import logging
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token, TokenIndexer
from allennlp.data.fields import Field, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data.fields import KnownLabelField
from elmo_tasks.data.formats.treebank_words import TREEBANK_WORDS
from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["SstReader"]

logger = logging.getLogger(__name__)

# From very negative to very positive.
_LABELS = ("0", "1", "2", "3", "4")
# An opening bracket with the label of its node, a closing one, or a word.
_TOKEN = re.compile(r"\(\s*(?P<label>[^\s()]*)|(?P<end>\))|[^\s()]+")
# Each phrase of a tree is copied as an instance: this bounds how often its words are.
_MAX_DEPTH = 1000


class _Phrase(NamedTuple):
    """A node of a tree."""

    label: str
    # Those of the sentence: the phrases of a tree have each word many times.
    tokens: list[Token]


@DatasetReader.register("elmo_sst")
class SstReader(DatasetReader):
    r"""
    Reads files with one tree on each line, in the brackets of the Penn Treebank, with a sentiment from 0 (very
    negative) to 4 (very positive) at each node: `(3 (2 It) (4 (2 's) (4 good)))`.

    Words are converted to ordinary text: `-LRB-` to `(`, `\/` to `/`, and the two kinds of double quotes to `"`. A
    number that a no-break space joins to a fraction, as in the treebank, becomes two words.

    Registered as a `DatasetReader` with name "elmo_sst". AllenNLP's `sst_tokens` reads all phrases or none, and does
    not say which line is broken.

    # Parameters

    token_indexers : `Dict[str, TokenIndexer]`, optional
        See `DatasetReader`; by default a `SingleIdTokenIndexer` named `tokens`.
    min_phrase_length : `int`, optional
        `None` reads whole sentences. With a number, each phrase of at least that many tokens is an instance (the paper
        trains on those of four, section A.8); shorter ones are not, even if they are whole sentences.
    """

    def __init__(
        self,
        token_indexers: Optional[dict[str, TokenIndexer]] = None,
        min_phrase_length: Optional[int] = None,
        **kwargs: object,
    ) -> None:
        # By name, from the config: `max_instances` and whatever else `DatasetReader` takes.
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        if min_phrase_length is not None and min_phrase_length < 1:
            raise ConfigurationError(f"min_phrase_length must be at least 1, or null, but is {min_phrase_length}")
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self._min_phrase_length = min_phrase_length

    def _read(self, file_path: str) -> Iterator[Instance]:
        for where, phrase in self.shard_iterable(self._phrases(cached_path(file_path))):
            yield self.text_to_instance(phrase.tokens, phrase.label, where=where)

    def _phrases(self, path: str) -> Iterator[tuple[str, _Phrase]]:
        n_sentences = n_phrases = 0
        for number, line in numbered_lines(path):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            n_sentences += 1
            sentence, *others = _tree(line, where)
            for phrase in [sentence] if self._min_phrase_length is None else [sentence, *others]:
                if len(phrase.tokens) >= (self._min_phrase_length or 1):
                    n_phrases += 1
                    yield where, phrase
        if not n_phrases:
            least = f" of {self._min_phrase_length} tokens" if self._min_phrase_length else ""
            raise ValueError(f"{path} must hold at least one phrase{least}, but holds none in {n_sentences} sentences")
        logger.info("%s: %d instances of %d sentences", path, n_phrases, n_sentences)

    def text_to_instance(
        self, words: Sequence[str | Token], label: str | None = None, where: str = "the input"
    ) -> Instance:
        """
        # Parameters

        words : `Sequence[Union[str, Token]]`
            A sentence or a phrase.
        label : `str`, optional
            Its sentiment, from `"0"` to `"4"`.
        where : `str`
            Its place as an error names it.

        # Returns

        `Instance`
            `tokens`, `metadata` (the words), and `label` if there is one.

        # Raises

        `ValueError`
            If there are no words.
        """
        if not words:
            raise ValueError(f"{where}: a sentence must have at least one word, but has none")
        tokens = [word if isinstance(word, Token) else Token(word) for word in words]
        metadata = MetadataField({"words": [token.text for token in tokens]})
        fields: dict[str, Field] = {"tokens": TextField(tokens), "metadata": metadata}
        if label is not None:
            fields["label"] = KnownLabelField(label, where)
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        instance["tokens"].token_indexers = self._token_indexers


def _tree(line: str, where: str) -> list[_Phrase]:
    """The phrases of a tree, in the order in which they begin: the first is the sentence."""
    words: list[Token] = []
    # For each node its label, its first word and the one after its last.
    nodes: list[tuple[str, int]] = []
    ends: dict[int, int] = {}
    # The nodes that have not ended, each with the place where it begins in the line.
    opened: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(line):
        if not opened and (nodes or token["label"] is None):
            found = f"{line[token.start() :]!r:.50}"
            raise _not_a_tree(line, where, f"{found} follows its end" if nodes else f"it begins with {found}")
        if token["label"] is not None:
            if token["label"] not in _LABELS:
                raise _bad_node(line[token.start() :], where)
            opened.append((len(nodes), token.start()))
            nodes.append((token["label"], len(words)))
            if len(opened) > _MAX_DEPTH:
                raise ValueError(
                    f"{where}: the nodes of a tree must be nested less than {_MAX_DEPTH} times, but are more"
                )
        elif token["end"]:
            node, start = opened.pop()
            if nodes[node][1] == len(words):
                raise _bad_node(line[start : token.end()], where)
            ends[node] = len(words)
        else:
            words.append(Token(_unescaped(token[0])))
    if opened:
        raise _not_a_tree(line, where, "closing brackets are missing at its end")
    return [_Phrase(label, words[start : ends[node]]) for node, (label, start) in enumerate(nodes)]


def _not_a_tree(line: str, where: str, problem: str) -> ValueError:
    return ValueError(f"{where}: a line must be a tree like (3 (2 It) (3 works)), but is {line!r:.100} ({problem})")


def _bad_node(node: str, where: str) -> ValueError:
    return ValueError(
        f"{where}: each node of a tree must have a sentiment from 0 to 4 and words or nodes below it, but here is "
        f"{node!r:.100}"
    )


def _unescaped(word: str) -> str:
    return TREEBANK_WORDS.get(word, word).replace("\\/", "/").replace("\\*", "*")
