"""
Dataset reader for named entities in columns such as those of CoNLL-2003, and in files of labelling
tools.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from allennlp.data import DatasetReader, Instance, Token

from elmo_tasks.data.dataset_readers.task_reader import SpanTagsField, TaskReader, sentence_fields
from elmo_tasks.data.labelled_texts import LabelledText, labelled_texts, tagged_sentences
from elmo_tasks.data.labelling_tools import LabelOptions
from elmo_tasks.files.lines import located
from elmo_tasks.text.formats import columns_of, line_blocks, lines_in
from elmo_tasks.text.tags import spans_to_bioul, tags_to_spans

__all__ = ["NerReader"]

logger = logging.getLogger(__name__)

_TaggedSentence = tuple[list[str], list[str] | None]

_HINT = "convert it first, for example by `cut -f2,3`, or export it as CoNLL 2002"
_TAG = re.compile(r"O|[BIELSU]-\S+")
# What is between sentences: of CoNLL-2003, of MultiCoNER (`# id 7`), and of treebanks
# (`# sent_id = 7`).
_COMMENT = re.compile(r"-DOCSTART-|# (id|\w+ =)\s")
_WITH_LANGUAGE = re.compile(r"[a-z-]{2,}:\S")
_WITH_TAG = re.compile(rf".+/({_TAG.pattern})")


@DatasetReader.register("elmo_ner")
class NerReader(TaskReader):
    """
    Reads files with one word per line and an empty line after each sentence. The first column is
    the word, the last its tag; columns between them (part of speech, chunk) are ignored. All lines
    have the same number of columns. For prediction, a file may have only words. Comments such as
    `# id 7` are ignored.

    Tags may be in the scheme IOB1, BIO, BIOES or BIOUL. They are converted to BIOUL, which the CRF
    of the paper's model uses (section A.7).

    It also reads the exports of labelling tools: see `elmo_tasks.data.labelling_tools`. Texts that
    nobody has labelled, or that were rejected or skipped, are left out, except for prediction. Of
    equal texts, one is read.

    AllenNLP's `conll2003` needs exactly four columns, and cannot read files without tags.

    # Parameters

    language : `str`
        spaCy's code for the rules that split a labelled text into sentences and words.
    text_column : `str`
        The name of the text in the JSON of a labelling tool.
    from_name : `str`, optional
        The name of the control whose labels are read, of several in a project of Label Studio.
    skip_bad_spans : `bool`
        Whether spans that overlap, have gaps or are not in the text are left out and counted. By
        default, the first of them is an error.
    """

    def __init__(
        self,
        *,
        language: str = "en",
        text_column: str = "text",
        from_name: Optional[str] = None,
        skip_bad_spans: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._language = language
        self._label_options = LabelOptions(text_column, from_name, skip_bad_spans)

    def rows(self, path: str) -> Iterator[tuple[int | str, _TaggedSentence]]:
        texts = labelled_texts(path, self._label_options)
        if texts is None:
            return self._columns(path)
        return self._sentences(path, texts)

    def _columns(self, path: str) -> Iterator[tuple[int, _TaggedSentence]]:
        lines = lines_in(
            path, "one word per line, with its tag", "columns", "tsv", "CoNLL-2003", hint=_HINT
        )
        n_columns = 0
        for block in line_blocks(lines, _is_break):
            first_number, first_line = block[0]
            is_first_sentence = not n_columns
            if is_first_sentence:
                n_columns = max(len(columns_of(first_line)), 1 + self.reads_gold)
            words = []
            tags = []
            for number, line in block:
                columns = columns_of(line)
                has_tag = not self.reads_gold or _TAG.fullmatch(columns[-1])
                if len(columns) != n_columns or not has_tag:
                    expected = self._expected_columns(n_columns)
                    raise ValueError(f"expected {expected}, got {line!r}: {path}, line {number}")
                words.append(columns[0])
                tags.append(columns[-1])
            if is_first_sentence:
                _check_first_column(words, n_columns, f"{path}, line {first_number}")
            yield first_number, (words, tags if self.reads_gold else None)

    def _expected_columns(self, n_columns: int) -> str:
        columns = f"{n_columns} columns"
        if self.reads_gold:
            columns += ", the last a tag like O, B-PER or I-PER (predict needs none)"
        return columns

    def _sentences(
        self, path: str, texts: list[LabelledText]
    ) -> Iterator[tuple[int | str, _TaggedSentence]]:
        n_spans = 0
        cut: list[str] = []
        for labelled in texts:
            if self.reads_gold and labelled.spans is None:
                continue
            spans = labelled.spans or []
            with located(path, labelled.place):
                sentences, cut_in_text = tagged_sentences(labelled.text, spans, self._language)
            n_spans += len(spans)
            cut += cut_in_text
            for words, tags in sentences:
                yield labelled.place, (words, tags if self.reads_gold else None)
        if self.reads_gold and not n_spans:
            raise ValueError(f"expected texts with labelled spans, got none: {path}")
        if cut and self.reads_gold:
            message = "%s: %d of %d spans begin or end inside a word, such as %r: %s"
            rule = "their labels are for whole words"
            logger.warning(message, path, len(cut), n_spans, cut[0], rule)

    def text_to_instance(
        self, words: Sequence[str | Token], tags: Sequence[str] | None = None
    ) -> Instance:
        """`tokens`, `metadata` (the words), and `tags` in the BIOUL scheme if tags are given."""
        fields = sentence_fields(words)
        if tags is not None:
            bioul = spans_to_bioul(tags_to_spans(tags), len(tags))
            fields["tags"] = SpanTagsField(bioul, fields["tokens"], prefixes="BILU")
        return Instance(fields)


def _is_break(line: str) -> bool:
    return not line.strip(" \t") or _COMMENT.match(line) is not None


def _check_first_column(words: list[str], n_columns: int, place: str) -> None:
    """Raises an error if the first column, as far as its first sentence, does not have words."""
    content = _other_than_words(words, n_columns)
    if content is not None:
        raise ValueError(
            f"expected words in the first column, got {content}: {' '.join(words):.60}: {place}"
        )


def _other_than_words(words: list[str], n_columns: int) -> str | None:
    """What words from the first column of a file are if not words."""
    n_words = len(words)
    if n_words > 1 and words == [str(number) for number in range(1, n_words + 1)]:
        return "numbers"
    if all(map(_TAG.fullmatch, words)) and set(words) != {"O"}:
        return "tags"
    if n_columns > 9 and n_words > 2 and len(set(words)) == 1:
        return "the name of a document (CoNLL-2012)"
    if n_words > 2 and all(map(_WITH_LANGUAGE.match, words)):
        return "words with language codes (WikiANN)"
    if n_words > 1 and set(words) in ({"_"}, {"[WORD]"}):
        return "a mark for each word"
    if all(map(_WITH_TAG.fullmatch, words)):
        return "words joined to their tags"
    return None
