"""Dataset reader for questions about paragraphs in the format of SQuAD 1.1."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Optional
from unicodedata import is_normalized

from allennlp.data import DatasetReader, Instance, Token, Tokenizer, Vocabulary
from allennlp.data.fields import TextField
from allennlp_models.rc.dataset_readers.squad import SquadReader as AllenNlpSquadReader

from elmo_tasks.data.dataset_readers.task_reader import FileReader
from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.lines import located

__all__ = ["SquadReader"]


@DatasetReader.register("elmo_squad")
class SquadReader(FileReader, AllenNlpSquadReader):
    """
    Like AllenNLP's `squad1`, but with spaCy's rules as the tokenizer. A paragraph is one sequence
    of tokens, as in the code of the paper's model (section A.4; Clark and Gardner 2017). An answer
    that begins or ends within a token is extended to the whole token. The most frequent of several
    correct answers is used for training.

    # Parameters

    max_passage_tokens : `int`, optional
        Longer paragraphs are cut to this length, and a question is dropped if its answer was cut
        off. For training only: evaluation needs whole paragraphs.
    """

    wanted = "question"

    def __init__(
        self,
        tokenizer: Optional[Tokenizer] = None,
        max_passage_tokens: Optional[int] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            tokenizer or SpacyBlankTokenizer(),
            passage_length_limit=max_passage_tokens,
            skip_impossible_questions=max_passage_tokens is not None,
            **kwargs,
        )

    def rows(self, path: str) -> Iterator[tuple[str, tuple[dict[str, Any], str, list[Token]]]]:
        content = read_json(path)
        numbers = count(1)
        with located(path, "in SQuAD's format"):
            for article in content["data"]:
                for paragraph in article["paragraphs"]:
                    passage_tokens = self._tokenizer.tokenize(paragraph["context"])
                    for question in paragraph["qas"]:
                        name = question.get("id", next(numbers))
                        yield f"question {name}", (question, paragraph["context"], passage_tokens)

    def instance_of(
        self, question: dict[str, Any], passage: str, passage_tokens: list[Token]
    ) -> Instance | None:
        answers = None
        if self.reads_gold:
            answers = [(answer["text"], answer["answer_start"]) for answer in question["answers"]]
        return self.text_to_instance(
            question["question"], passage, answers, question.get("id"), passage_tokens
        )

    def _read(self, file_path: str) -> Iterator[Instance]:
        shared: dict[str, Any] = {}
        for instance in super()._read(file_path):
            metadata = instance["metadata"].metadata
            if shared.get("original_passage") is not metadata["original_passage"]:
                shared = metadata
                passage = _PassageField(instance["passage"].tokens)
            # All questions about a paragraph share its words, which take most of the memory.
            instance.fields["passage"] = passage
            metadata["passage_tokens"] = shared["passage_tokens"]
            metadata["token_offsets"] = shared["token_offsets"]
            yield instance

    def text_to_instance(
        self,
        question: str,
        passage: str,
        answers: Sequence[tuple[str, int]] | None = None,
        question_id: str | None = None,
        passage_tokens: list[Token] | None = None,
    ) -> Instance | None:
        """
        As in AllenNLP's `squad1`. Answers are parts of the passage, each with the offset of its
        first character. Returns `None` if all answers are beyond `max_passage_tokens`.
        """
        if answers is not None:
            _check_answers(passage, answers)
        tokens = passage_tokens
        if tokens is None:
            tokens = self._tokenizer.tokenize(passage)
        tokens_in_passage = tokens
        if not is_normalized("NFC", passage):
            # AllenNLP takes the length of a word, which is in NFC, for its length in the passage.
            tokens_in_passage = [
                Token(passage[token.idx : token.idx_end], token.idx) for token in tokens
            ]
        char_spans = []
        answer_texts = []
        for text, start in answers or ():
            # AllenNLP would add the token before or after white space at an end of the answer.
            n_leading = len(text) - len(text.lstrip())
            char_spans.append((start + n_leading, start + len(text.rstrip())))
            answer_texts.append(text)
        instance = super().text_to_instance(
            question,
            passage,
            char_spans=char_spans,
            answer_texts=answer_texts,
            passage_tokens=tokens_in_passage,
            additional_metadata={"id": question_id},
        )
        if instance is None:
            return None
        # Words and characters are counted in the order of the fields.
        n_tokens = len(instance.fields.pop("passage"))
        tokens = tokens[:n_tokens]
        instance.fields["passage"] = TextField(tokens)
        instance["metadata"].metadata["passage_tokens"] = [token.text for token in tokens]
        # AllenNLP's reader adds them, but data loader workers refuse instances that have them.
        instance["question"]._token_indexers = None
        return instance


def _check_answers(passage: str, answers: Sequence[tuple[str, int]]) -> None:
    if not answers or not all(text.strip() for text, _ in answers):
        raise ValueError("expected an answer, as in SQuAD 1.1, got none")
    for text, start in answers:
        # The model would learn from the wrong span.
        if passage[start : start + len(text)] != text:
            marked = passage[start:][: len(text)]
            raise ValueError(f"expected the answer {text!r} at character {start}, got {marked!r}")


class _PassageField(TextField):
    """A paragraph, which is indexed once for all its questions."""

    def index(self, vocab: Vocabulary) -> None:
        if self._indexed_tokens is None:
            super().index(vocab)
