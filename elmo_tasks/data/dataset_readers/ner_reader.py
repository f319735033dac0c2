"""Dataset reader for named entities in CoNLL-2003 columns."""

import re
from collections.abc import Iterator, Sequence

from allennlp.data import DatasetReader, Instance, Token

from elmo_tasks.data.dataset_readers.task_reader import SpanTagsField, TaskReader, sentence_fields
from elmo_tasks.tags import spans_to_bioul, tags_to_spans
from elmo_tasks.text.formats import columns_of, line_blocks, lines_in

__all__ = ["NerReader"]

_TAG = re.compile(r"O|[BIELSU]-\S+")
# What is between sentences: of CoNLL-2003, of MultiCoNER (`# id 7`), and of treebanks (`# sent_id = 7`).
_COMMENT = re.compile(r"-DOCSTART-|# (id|\w+ =)\s")


@DatasetReader.register("elmo_ner")
class NerReader(TaskReader):
    """
    Reads files with one word per line and an empty line after each sentence. The first column is the word,
    the last its tag; columns between them (part of speech, chunk) are ignored. All lines have the same number
    of columns. For prediction, a file may have only words. Comments such as `# id 7` are ignored.

    Tags may be in the scheme IOB1, BIO, BIOES or BIOUL. They are converted to BIOUL, which the CRF of the
    paper's model uses (section A.7).

    AllenNLP's `conll2003` needs exactly four columns, and cannot read files without tags.
    """

    def rows(self, path: str) -> Iterator[tuple[int, tuple[list[str], list[str] | None]]]:
        n_columns = 0
        lines = lines_in(path, "one word per line, with its tag", "words with tags", "a table")
        for block in line_blocks(lines, _is_break):
            words, tags = [], []
            for number, line in block:
                columns = columns_of(line)
                n_columns = n_columns or max(len(columns), 1 + self.reads_gold)
                if len(columns) != n_columns or (self.reads_gold and not _TAG.fullmatch(columns[-1])):
                    last = ", the last a tag like O, B-PER or I-PER (predict needs none)" if self.reads_gold else ""
                    raise ValueError(f"expected {n_columns} columns{last}, got {line!r}: {path}, line {number}")
                words.append(columns[0])
                tags.append(columns[-1])
            yield block[0][0], (words, tags if self.reads_gold else None)

    def text_to_instance(self, words: Sequence[str | Token], tags: Sequence[str] | None = None) -> Instance:
        """`tokens`, `metadata` (the words), and `tags` in the BIOUL scheme if tags are given."""
        fields = sentence_fields(words)
        if tags is not None:
            bioul = spans_to_bioul(tags_to_spans(tags), len(tags))
            fields["tags"] = SpanTagsField(bioul, fields["tokens"], prefixes="BILU")
        return Instance(fields)


def _is_break(line: str) -> bool:
    return not line.strip(" \t") or _COMMENT.match(line) is not None
