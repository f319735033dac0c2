"""The outputs `.conll`, columns of words as in CoNLL-2003, and `.conllu`."""

import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.corpora.annotations import Annotations
from elmo_tasks.corpora.corpus import in_column
from elmo_tasks.files.lines import as_cell
from elmo_tasks.predictors.results import Names
from elmo_tasks.text.tags import spans_to_bioul, tags_to_spans

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

    from elmo_tasks import TrainedTask

__all__ = ["write_conll", "write_conllu"]

logger = logging.getLogger(__name__)


def _tags(doc: "Doc", task: "TrainedTask", result: Any) -> list[dict[str, str]]:
    words = [(token.idx, token.idx + len(token)) for token in doc]
    return task.result_type.tags(words, result)


def _sentences(doc: "Doc") -> Iterator[list["Token"]]:
    for sentence in doc.sents:
        words = [token for token in sentence if not token.is_space]
        if words:
            yield words


def write_conll(annotations: Annotations, path: Path) -> None:
    """A word and a column for each task, as in CoNLL-2003."""
    with open(path, "w", encoding="utf-8") as file:
        for document, doc in annotations.docs():
            # As spaCy's converter expects it.
            file.write("-DOCSTART- -X- O O\n\n")
            columns = []
            for name, result in document.results.items():
                columns.append(_tags(doc, annotations.tasks[name], result))
            # The last column has BIO tags, if there are some.
            columns.sort(key=_is_bio)
            for words in _sentences(doc):
                for word in words:
                    cells = [word.text]
                    cells += [_one_tag(column[word.i]) for column in columns]
                    file.write("\t".join(map(as_cell, cells)) + "\n")
                file.write("\n")


def _is_bio(tags: list[dict[str, str]]) -> bool:
    return bool(tags) and "tag" in tags[0]


def _one_tag(tags_of_word: dict[str, str]) -> str:
    """A tag, or a part of speech: the universal one, or else the treebank's."""
    for tag in tags_of_word.values():
        if tag != "_":
            return tag
    return "_"


def write_conllu(annotations: Annotations, path: Path) -> None:
    """
    Words and parts of speech; in the last column, names as spaCy's converter reads them, the tags
    of other tasks, and the offsets of words. A text without words is left out: CoNLL-U has no
    sentences without words.
    """
    names_task = _task_of_names(annotations.tasks)
    if names_task is not None:
        _warn_of_labels(annotations.tasks[names_task].result_type.labels)
    n_without_words = 0
    with open(path, "w", encoding="utf-8") as file:
        for document, doc in annotations.docs():
            comments = {"newdoc id": document.name}
            for name, column_type in annotations.kept.items():
                comments[f"meta::{name}"] = in_column(document.kept[name], column_type)
            tags = {}
            for name, result in document.results.items():
                tags[name] = _tags(doc, annotations.tasks[name], result)
            sentences = list(_sentences(doc))
            if not sentences:
                n_without_words += 1
            for words in sentences:
                comments["text"] = doc[words[0].i : words[-1].i + 1].text
                file.writelines(_conllu_comments(comments))
                file.writelines(_conllu_rows(doc, words, tags, names_task))
                file.write("\n")
                comments = {}
    if n_without_words:
        logger.warning("%d texts without words are left out: CoNLL-U has none", n_without_words)


def _task_of_names(tasks: dict[str, "TrainedTask"]) -> str | None:
    for name, task in tasks.items():
        if isinstance(task.result_type, Names):
            return name
    return None


def _conllu_comments(comments: dict[str, Any]) -> Iterator[str]:
    for name, value in comments.items():
        if value is not None:
            yield " ".join(f"# {name} = {value}".split()) + "\n"


def _conllu_rows(
    doc: "Doc",
    words: list["Token"],
    tags: dict[str, list[dict[str, str]]],
    names_task: str | None,
) -> Iterator[str]:
    tagger = _tagger(tags, words[0])
    names = ["O"] * len(words)
    if names_task is not None:
        bio_tags = [tags[names_task][word.i].get("tag", "O") for word in words]
        names = _names_for_spacy(bio_tags)
    for number, word in enumerate(words, start=1):
        misc: dict[str, Any] = {}
        if names_task is not None:
            misc["name"] = names[number - 1]
        for name, tags_of_task in tags.items():
            if name not in (names_task, tagger):
                word_tags = tags_of_task[word.i]
                misc[name] = word_tags.get("tag", word_tags.get("xpos"))
        end = word.idx + len(word)
        misc["start_char"] = word.idx
        misc["end_char"] = end
        if doc.text[end : end + 1].strip():
            misc["SpaceAfter"] = "No"
        parts_of_speech = {"upos": "_", "xpos": "_"}
        if tagger is not None:
            parts_of_speech = tags[tagger][word.i]
        cells = [str(number), as_cell(word.text), "_"]
        cells += [as_cell(parts_of_speech["upos"]), as_cell(parts_of_speech["xpos"])]
        cells += ["_", "_", "_", "_", as_cell(_misc_cell(misc))]
        yield "\t".join(cells) + "\n"


def _tagger(tags: dict[str, list[dict[str, str]]], word: "Token") -> str | None:
    """The first task with parts of speech."""
    for name, tags_of_task in tags.items():
        if "xpos" in tags_of_task[word.i]:
            return name
    return None


def _misc_cell(misc: dict[str, Any]) -> str:
    values = []
    for name, value in misc.items():
        values.append(f"{name}={as_cell(str(value)).replace('|', '_')}")
    return "|".join(values)


# In a tag that spaCy's converter reads.
_LABEL_FOR_SPACY = re.compile("[A-Z_]+")


def _names_for_spacy(tags: list[str]) -> list[str]:
    """BILOU tags for BIO tags, with labels in capitals if spaCy's converter then reads them."""
    spans = tags_to_spans(tags)
    spans_for_spacy = [(_label_for_spacy(label), start, end) for label, start, end in spans]
    return spans_to_bioul(spans_for_spacy, len(tags))


def _label_for_spacy(label: str) -> str:
    capitals = as_cell(label).upper()
    return capitals if _LABEL_FOR_SPACY.fullmatch(capitals) else label


def _warn_of_labels(labels: Iterable[str]) -> None:
    unread = []
    for label in labels:
        if not _LABEL_FOR_SPACY.fullmatch(_label_for_spacy(label)):
            unread.append(label)
    if unread:
        message = "spaCy's converter of CoNLL-U reads labels of the letters A to Z and _, not %s"
        logger.warning(message, ", ".join(unread))
