"""Dataset reader of questions on paragraphs, in the format of SQuAD 1.1."""

import logging
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token, TokenIndexer, Tokenizer
from allennlp.data.fields import Field, IndexField, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data.fields import RepeatedTextField
from elmo_tasks.data.formats.squad_json import Answer, Question, read_questions
from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_tasks.data.token_cache import cached_tokens

__all__ = ["SquadReader"]

logger = logging.getLogger(__name__)


class _Passage(NamedTuple):
    """A paragraph, tokenized once for all questions on it. They share all of this, since words take memory."""

    text: str
    field: RepeatedTextField
    words: list[str]
    # The first character of each token, and the one after its last.
    starts: list[int]
    ends: list[int]
    offsets: list[tuple[int, int]]

    def span(self, answer: Answer) -> tuple[int, int]:
        """The first and the last token that have a character of the answer."""
        first = bisect_right(self.ends, answer.start)
        last = bisect_left(self.starts, answer.start + len(answer.text)) - 1
        return first, last

    def is_cut_off(self, answer: Answer) -> bool:
        """Whether the answer is not wholly in the tokens that are left of the paragraph."""
        return answer.start + len(answer.text.rstrip()) > self.ends[-1]

    def has_bounds_of(self, answer: Answer) -> bool:
        """Whether the answer begins where a token begins and ends where one ends, apart from white space."""
        first, last = self.span(answer)
        text = self.text[self.starts[first] : self.ends[last]]
        return text == answer.text.strip()


@DatasetReader.register("elmo_squad")
class SquadReader(DatasetReader):
    """
    Reads the JSON files of SQuAD 1.1. A paragraph is one sequence of tokens, as in the code of the paper's model
    (section A.4; Clark and Gardner 2017). An answer that begins or ends within a token is extended to all of that
    token; the log says how many are. Of several correct answers the most frequent is trained on, and the first of
    these.

    Registered as a `DatasetReader` with name "elmo_squad". AllenNLP's `squad1` does not notice an answer that is not
    where the file says, drops questions without counting them, fails on an answer that ends in white space at the end
    of its paragraph, and keeps the words of a paragraph in memory once for each question.

    # Parameters

    tokenizer : `Tokenizer`
        Of questions and paragraphs, by default `SpacyBlankTokenizer`. Its tokens must have their places in the text.
    token_indexers : `Dict[str, TokenIndexer]`, optional
        See `DatasetReader`; by default a `SingleIdTokenIndexer` named `tokens`.
    max_passage_tokens : `int`, optional
        Longer paragraphs are cut to this length; a question whose answer is lost is dropped, and the log says how many
        are. For training only: evaluation needs whole paragraphs.
    """

    def __init__(
        self,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[dict[str, TokenIndexer]] = None,
        max_passage_tokens: Optional[int] = None,
        **kwargs: object,
    ) -> None:
        # By name, from the config: `max_instances` and whatever else `DatasetReader` takes.
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        if max_passage_tokens is not None and max_passage_tokens < 1:
            raise ConfigurationError(f"max_passage_tokens must be at least 1, but is {max_passage_tokens}")
        self._tokenizer = tokenizer or SpacyBlankTokenizer()
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self._max_passage_tokens = max_passage_tokens

    def _read(self, file_path: str) -> Iterator[Instance]:
        counts: Counter[str] = Counter()
        passage = None
        path = cached_path(file_path)
        with cached_tokens(self._tokenizer, path) as tokenizer:
            for question in self.shard_iterable(read_questions(path)):
                if passage is None or passage.text is not question.paragraph:
                    passage = self._passage(tokenizer, question.paragraph)
                counts["questions"] += 1
                instance = self._instance(tokenizer, question, passage, counts)
                if instance is not None:
                    yield instance
        logger.info(
            "%s: %d questions; %d answers begin or end within a token, and are extended to all of it",
            *(file_path, counts["questions"], counts["within"]),
        )
        if counts["lost"]:
            logger.warning(
                "%s: %d of %d questions are dropped: their answers are beyond the first %d tokens of the paragraph",
                *(file_path, counts["lost"], counts["questions"], self._max_passage_tokens),
            )

    def text_to_instance(
        self,
        question: str,
        passage: str,
        answers: Sequence[tuple[str, int]] | None = None,
        question_id: str | None = None,
    ) -> Instance | None:
        """
        # Parameters

        question, passage : `str`
            Texts of at least one word.
        answers : `Sequence[Tuple[str, int]]`, optional
            Parts of the passage, each with the place of its first character.
        question_id : `str`, optional
            The id of the question.

        # Returns

        `Optional[Instance]`
            `question`; `passage`; `metadata` (`id`, `question_tokens`, `passage`, `passage_tokens`, and `offsets`, the
            first character of each of these and the one after its last); and, if there are answers, `span_start` and
            `span_end`, the first and the last token of the one to train on, with the texts of all as `answers` in the
            metadata. `None` if the answer to train on is beyond `max_passage_tokens`.

        # Raises

        `ValueError`
            If question or passage has no words, or an answer is not at its place in the passage.
        """
        for text, start in answers or ():
            if start < 0 or not text.strip() or not passage.startswith(text, start):
                raise ValueError(
                    f"an answer must be a part of the passage at its place, but {text!r:.99} is not at {start}"
                )
        gold = None if answers is None else tuple(Answer(*answer) for answer in answers)
        asked = Question(question_id, question, passage, gold)
        return self._instance(self._tokenizer, asked, self._passage(self._tokenizer, passage), Counter())

    def _passage(self, tokenizer: Tokenizer, text: str) -> _Passage:
        tokens = _tokens(tokenizer, text, "passage")[: self._max_passage_tokens]
        starts = [token.idx for token in tokens if token.idx is not None]
        if len(starts) < len(tokens):
            raise ConfigurationError(
                f"the tokenizer must say where each token begins, but {type(self._tokenizer).__name__} does not: "
                "use 'spacy_blank'"
            )
        words = [token.ensure_text() for token in tokens]
        ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
        offsets = list(zip(starts, ends, strict=True))
        return _Passage(text, RepeatedTextField(tokens), words, starts, ends, offsets)

    def _instance(
        self, tokenizer: Tokenizer, question: Question, passage: _Passage, counts: Counter[str]
    ) -> Instance | None:
        tokens = _tokens(tokenizer, question.text, "question")
        fields: dict[str, Field] = {"question": TextField(tokens), "passage": passage.field}
        metadata: dict[str, Any] = {
            "id": question.id,
            "question_tokens": [token.text for token in tokens],
            "passage": passage.text,
            "passage_tokens": passage.words,
            "offsets": passage.offsets,
        }
        if question.answers:
            # Those that are cut off have no tokens in which they could be the same.
            spans = [answer if passage.is_cut_off(answer) else passage.span(answer) for answer in question.answers]
            counted = Counter(spans)
            # The first of those that are equally frequent.
            answer = question.answers[max(range(len(spans)), key=lambda index: counted[spans[index]])]
            if passage.is_cut_off(answer):
                counts["lost"] += 1
                return None
            first, last = passage.span(answer)
            if first > last:
                raise ValueError(
                    f"the answer {answer.text!r} of question {question.id} must have a token, but "
                    f"{type(self._tokenizer).__name__} makes none of it: use 'spacy_blank'"
                )
            counts["within"] += not passage.has_bounds_of(answer)
            fields["span_start"] = IndexField(first, passage.field)
            fields["span_end"] = IndexField(last, passage.field)
            metadata["answers"] = [answer.text for answer in question.answers]
        return Instance({**fields, "metadata": MetadataField(metadata)})

    def apply_token_indexers(self, instance: Instance) -> None:
        for name in ("question", "passage"):
            instance[name].token_indexers = self._token_indexers


def _tokens(tokenizer: Tokenizer, text: str, name: str) -> list[Token]:
    tokens: list[Token] = tokenizer.tokenize(text)
    if not tokens:
        raise ValueError(f"a {name} must have at least one word, but is {text!r}")
    return tokens
