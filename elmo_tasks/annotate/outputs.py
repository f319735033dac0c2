"""
The outputs of `annotate`: JSON lines, Parquet, CSV, XLSX, spaCy's `DocBin`, CoNLL-U, columns of words, Label Studio's
predictions, and a folder for brat.
"""

import gzip
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin, get_type_hints, is_typeddict

from elmo_tasks.corpus import in_column, parquet_type
from elmo_tasks.files.json_files import json_lines
from elmo_tasks.files.tables import write_csv, write_xlsx
from elmo_tasks.kinds import Kind, Names, Standoff
from elmo_tasks.tags import spans_to_bioul, tags_to_spans
from elmo_tasks.text import located_sentences
from elmo_tasks.text.lines import as_cell

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

    from elmo_tasks import TrainedTask
    from elmo_tasks.text import Word

__all__ = ["FOLDER_MARK", "OUTPUTS", "Annotated", "Annotations", "Output"]

logger = logging.getLogger(__name__)

FOLDER_MARK = "documents.jsonl"
"""A file in each folder for brat."""

# The names in Label Studio's template for named entities: `<Labels name="label" toName="text">`, and `$text`.
_NAMES = {"from_name": "label", "to_name": "text"}


class Annotated(NamedTuple):
    """A document, and its results by the names of the tasks."""

    name: str
    texts: Sequence[str]
    kept: dict[str, Any]
    results: dict[str, Any]

    @property
    def row(self) -> dict[str, Any]:
        return {"document": self.name, **self.kept, **self.results}


@dataclass(frozen=True)
class Annotations:
    """The annotated documents in the files of all parts."""

    files: Sequence[Path]
    tasks: dict[str, "TrainedTask"]
    language: str
    kept: dict[str, str] = field(default_factory=dict)
    """The types of the columns that are kept, as in `Corpus.survey`."""

    def __iter__(self) -> Iterator[Annotated]:
        return chain.from_iterable(self.parts())

    def parts(self) -> Iterator[list[Annotated]]:
        for file in self.files:
            yield [Annotated(**row) for _, row in json_lines(file)]

    def docs(self) -> Iterator[tuple[Annotated, "Doc"]]:
        """The documents as spaCy's, with the words and the sentences that the tasks read."""
        import spacy
        from spacy.tokens import Doc
        from spacy.util import get_words_and_spaces

        vocab = spacy.blank(self.language).vocab
        for each in self:
            (text,) = each.texts
            sentences = located_sentences(text, self.language)
            words, spaces = get_words_and_spaces(list(_parts(text, chain.from_iterable(sentences))), text)
            doc = Doc(vocab, words=words, spaces=spaces)
            starts = {sentence[0].start for sentence in sentences}
            for token in doc:
                token.is_sent_start = token.idx in starts
            yield each, doc


def _parts(text: str, words: Iterable["Word"]) -> Iterator[str]:
    """The parts of a text that are words. A character that NFC divides into two words belongs to the first one."""
    end = 0
    for word in words:
        if word.end > end:
            yield text[max(word.start, end) : word.end]
            end = word.end


class Output(NamedTuple):
    """How an output is written, and what it has a place for."""

    write: Callable[[Annotations, Path], None]
    needs: str = ""
    """What a kind must have: `has_places` or `has_tags`."""
    of_one_text: bool = True
    """Whether the results belong to a single text, not to a pair."""
    keeps: bool = True
    """Whether columns of the corpus can be kept."""
    module: tuple[str, str] | None = None
    """A module that it needs, and the extra that has it."""


def _write_lines(found: Annotations, path: Path, *, compressed: bool = False) -> None:
    lines = (json.dumps(each.row, ensure_ascii=False) + "\n" for each in found)
    with open(path, "wb") as file:
        # Without a time, so the same results are the same bytes.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compressed else nullcontext(file) as output:
            output.writelines(line.encode() for line in lines)


def _write_parquet(found: Annotations, path: Path) -> None:
    """A row group per part. The types of results are those of the tasks, also where no text has any."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    types = {"document": pyarrow.string(), **{name: parquet_type(kind) for name, kind in found.kept.items()}}
    types |= {name: _arrow_type(task.kind.result) for name, task in found.tasks.items()}
    # Results of any form are JSON.
    kinds = found.kept | {name: "json" for name, task in found.tasks.items() if task.kind.result is Any}
    with ParquetWriter(path, schema := pyarrow.schema(types)) as writer:
        for part in found.parts():
            rows = [
                each.row | {name: in_column(each.row.get(name), kind) for name, kind in kinds.items()} for each in part
            ]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))


def _write_table(found: Annotations, path: Path, *, write: Callable[..., None]) -> None:
    """A row for each name, role, mention or word, else for each text. Results of any form are JSON."""
    columns = list(dict.fromkeys(chain.from_iterable(task.kind.columns or ["result"] for task in found.tasks.values())))
    tasks = ["task"] if len(found.tasks) > 1 else []
    kept = [f"corpus.{name}" if name in {"document", *tasks, *columns} else name for name in found.kept]

    def rows() -> Iterator[list[Any]]:
        for each in found:
            about = [each.name, *(in_column(each.kept.get(name), kind) for name, kind in found.kept.items())]
            for name, result in each.results.items():
                kind = found.tasks[name].kind
                for row in kind.rows(result) if kind.columns else [{"result": json.dumps(result, ensure_ascii=False)}]:
                    yield [*about, *(name for _ in tasks), *map(row.get, columns)]

    write(path, ["document", *kept, *tasks, *columns], rows())


def _arrow_type(of: Any) -> Any:
    """The type in Parquet of a type in Python."""
    import pyarrow

    if is_typeddict(of):
        return pyarrow.struct({name: _arrow_type(each) for name, each in get_type_hints(of).items()})
    if get_origin(of) is list:
        return pyarrow.list_(_arrow_type(*get_args(of)))
    if get_origin(of) is UnionType:
        return _arrow_type(get_args(of)[0])
    return {int: pyarrow.int64(), float: pyarrow.float64()}.get(of, pyarrow.string())


def _write_docs(found: Annotations, path: Path) -> None:
    import spacy
    from spacy.tokens import DocBin

    nlp = spacy.blank(found.language)
    # A second model of names would only fill the gaps of the first.
    first = {task.task: name for name, task in reversed(found.tasks.items()) if nlp.has_factory(f"elmo_{task.task}")}
    docs = DocBin(store_user_data=True)
    for each, doc in found.docs():
        doc.user_data |= {"document": each.name, **each.kept}
        for name, result in each.results.items():
            if name in first.values():
                found.tasks[name].kind.set_in(doc, result)
            else:
                doc._.results = {**doc._.results, name: result}
        docs.add(doc)
    docs.to_disk(path)


def _tags(doc: "Doc", task: "TrainedTask", result: Any) -> list[dict[str, str]]:
    return task.kind.tags([(token.idx, token.idx + len(token)) for token in doc], result)


def _sentences(doc: "Doc") -> Iterator[list["Token"]]:
    words = ([token for token in sentence if not token.is_space] for sentence in doc.sents)
    return filter(None, words)


def _write_columns(found: Annotations, path: Path) -> None:
    """A word and a column for each task, as in CoNLL-2003."""
    with open(path, "w", encoding="utf-8") as file:
        for document, doc in found.docs():
            # As spaCy's converter expects it.
            file.write("-DOCSTART- -X- O O\n\n")
            results = document.results.items()
            tags = [_tags(doc, found.tasks[name], result) for name, result in results]
            # The last column has BIO tags, if there are some.
            tags.sort(key=lambda tags_of_task: "tag" in next(iter(tags_of_task), {}))
            for words in _sentences(doc):
                for word in words:
                    cells = [word.text, *(_one_tag(tags_of_task[word.i]) for tags_of_task in tags)]
                    file.write("\t".join(map(as_cell, cells)) + "\n")
                file.write("\n")


def _one_tag(columns: dict[str, str]) -> str:
    """A tag, or a part of speech: the universal one, or else the treebank's."""
    return next((tag for tag in columns.values() if tag != "_"), "_")


# CoNLL-U.


def _write_conllu(found: Annotations, path: Path) -> None:
    """
    Words and parts of speech; in the last column, names as spaCy's converter reads them, the tags
    of other tasks, and the places of words. A text without words is left out: CoNLL-U has no
    sentences without words.
    """
    names_task = _first_task_with(found.tasks, Names)
    if names_task is not None:
        _warn_of_labels(found.tasks[names_task].kind.labels)
    n_without_words = 0
    with open(path, "w", encoding="utf-8") as file:
        for document, doc in found.docs():
            comments = {"newdoc id": document.name}
            for name, kind in found.kept.items():
                comments[f"meta::{name}"] = in_column(document.kept[name], kind)
            tags = {}
            for name, result in document.results.items():
                tags[name] = _tags(doc, found.tasks[name], result)
            sentences = list(_sentences(doc))
            n_without_words += not sentences
            for words in sentences:
                comments["text"] = doc[words[0].i : words[-1].i + 1].text
                file.writelines(_conllu_comments(comments))
                file.writelines(_conllu_rows(doc, words, tags, names_task))
                file.write("\n")
                comments = {}
    if n_without_words:
        logger.warning("%d texts without words are left out: CoNLL-U has none", n_without_words)


def _first_task_with(tasks: dict[str, "TrainedTask"], kind: type[Kind]) -> str | None:
    for name, task in tasks.items():
        if isinstance(task.kind, kind):
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
    tagger = next((name for name, rows in tags.items() if "xpos" in rows[words[0].i]), None)
    names = ["O"] * len(words)
    if names_task is not None:
        names = _names_for_spacy([tags[names_task][word.i].get("tag", "O") for word in words])
    for number, word in enumerate(words, start=1):
        misc: dict[str, Any] = {}
        if names_task is not None:
            misc["name"] = names[number - 1]
        for name, rows in tags.items():
            if name not in (names_task, tagger):
                misc[name] = rows[word.i].get("tag", rows[word.i].get("xpos"))
        misc["start_char"] = word.idx
        misc["end_char"] = end = word.idx + len(word)
        if doc.text[end : end + 1].strip():
            misc["SpaceAfter"] = "No"
        upos = xpos = "_"
        if tagger is not None:
            upos, xpos = tags[tagger][word.i]["upos"], tags[tagger][word.i]["xpos"]
        values = [f"{name}={as_cell(str(value)).replace('|', '_')}" for name, value in misc.items()]
        cells = [word.text, "_", upos, xpos, *"____", "|".join(values)]
        yield "\t".join([str(number), *map(as_cell, cells)]) + "\n"


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
    unread = [label for label in labels if not _LABEL_FOR_SPACY.fullmatch(_label_for_spacy(label))]
    if unread:
        message = "spaCy's converter of CoNLL-U reads labels of the letters A to Z and _, not %s"
        logger.warning(message, ", ".join(unread))


# brat.


def _write_brat(found: Annotations, path: Path) -> None:
    """
    A text and its annotation per document; their names and what was kept of them; and the types, as
    brat needs.
    """
    kinds = {name: task.kind for name, task in found.tasks.items()}
    # Labels of two models, each with the name of its model.
    tagged = [name for name, kind in kinds.items() if kind.has_tags]
    prefixes = {}
    for name in kinds:
        prefixes[name] = f"{name}-" if name in tagged and len(tagged) > 1 else ""
    n_of_name: Counter[str] = Counter()
    labels: set[str] = set()
    relations: set[str] = set()
    with open(path / FOLDER_MARK, "w", encoding="utf-8") as documents:
        for document in found:
            name = _brat_file(document.name)
            n_of_name[name] += 1
            if n_of_name[name] > 1:
                name = f"{name}~{n_of_name[name]}"
            results = []
            for task, result in document.results.items():
                results.append((prefixes[task], kinds[task].standoff(result)))
            text = document.texts[0]
            marks, links = _brat_lines(text, results)
            labels.update(mark.split()[1] for mark in marks)
            relations.update(link.split()[1] for link in links)
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            # brat counts both characters of a Windows line end as one.
            text = text.replace("\r\n", " \n").replace("\r", "\n")
            (path / f"{name}.txt").write_text(text, encoding="utf-8", newline="")
            lines = "".join(f"{line}\n" for line in marks + links)
            (path / f"{name}.ann").write_text(lines, encoding="utf-8")
            about = {"file": name, "document": document.name, **document.kept}
            documents.write(json.dumps(about, ensure_ascii=False) + "\n")
    (path / "annotation.conf").write_text(_brat_config(labels, relations), encoding="utf-8")


def _brat_file(name: str) -> str:
    """The path of a document in the folder, without a suffix."""
    parts = [_file_name(part) for part in name.split("/")]
    parts = [part for part in parts if part.strip(".")]
    if not parts:
        return "document"
    *folders, file = parts
    # A folder never has the name of a file.
    folders = [_SUFFIX_OF_FILE.sub(r"_\1", folder) for folder in folders]
    return "/".join([*folders, file.removesuffix(".txt") or "document"])


_SUFFIX_OF_FILE = re.compile(r"\.(txt|ann|conf|jsonl)$", re.IGNORECASE)


def _file_name(part: str) -> str:
    # File systems have names of at most 255 bytes.
    return re.sub(r"[^\w.-]", "_", part).encode()[:200].decode(errors="ignore")


def _brat_lines(text: str, results: Iterable[tuple[str, Standoff]]) -> tuple[list[str], list[str]]:
    """
    The marks of a text and the links between them, from its results, each with a prefix of its
    labels.
    """
    marks: list[str] = []
    links: list[str] = []
    for prefix, standoff in results:
        first = len(marks) + 1
        names = [f"T{number}" for number in range(first, first + len(standoff.marks))]
        for name, (label, place) in zip(names, standoff.marks, strict=True):
            marks.append(f"{name}\t{_brat_name(prefix + label)} {_brat_place(text, place)}")
        for mentions in standoff.chains:
            links.append(f"*\tcoreference {' '.join(names[mention] for mention in mentions)}")
        for label, head, tail in standoff.links:
            ends = f"Arg1:{names[head]} Arg2:{names[tail]}"
            links.append(f"R{len(links) + 1}\t{_brat_name(label)} {ends}")
    return marks, links


def _brat_place(text: str, place: Any) -> str:
    # brat does not allow line ends in a span, but several parts.
    lines = list(re.finditer(r"[^\r\n]+", text[place["start"] : place["end"]]))
    offsets = []
    for line in lines:
        offsets.append(f"{place['start'] + line.start()} {place['start'] + line.end()}")
    # Other white space, such as a tab, would end the cell, or the line for some programs.
    marked = re.sub(r"\s", " ", " ".join(line.group() for line in lines))
    return f"{';'.join(offsets)}\t{marked}"


def _brat_name(label: str) -> str:
    return re.sub(r"[^\w-]", "_", label)


def _brat_config(labels: set[str], relations: set[str]) -> str:
    """`annotation.conf`: any two marks may be linked."""
    entities = sorted(labels)
    ends = f"Arg1:{'|'.join(entities)}, Arg2:{'|'.join(entities)}"
    kinds = {"coreference": ", <REL-TYPE>:symmetric-transitive"}
    rows = [f"{label} {ends}{kinds.get(label, '')}" for label in sorted(relations)]
    lines = ["[entities]", *entities, "[relations]", *rows, "[events]", "[attributes]", ""]
    return "\n".join(lines)


# Label Studio.


def _prediction(text: str, model: str, found: Standoff) -> dict[str, Any]:
    """Of Label Studio, which sorts texts by the score: the lowest probability of a place."""
    names = [f"{model}-{number}" for number in range(len(found.marks))]
    marks = zip(names, found.marks, strict=True)
    regions = [_region(text, name, label, place) for name, (label, place) in marks]
    # A chain links each mention to the one before it.
    chains = (("coreference", *pair) for pair in chain.from_iterable(map(pairwise, found.chains)))
    relations = [
        {"type": "relation", "from_id": names[head], "to_id": names[tail], "direction": "right", "labels": [label]}
        for label, head, tail in chain(found.links, chains)
    ]
    scores = [region["score"] for region in regions if "score" in region]
    score = {"score": min(scores)} if scores else {}
    return {"model_version": model, **score, "result": regions + relations}


def _region(text: str, name: str, label: str, place: dict[str, Any]) -> dict[str, Any]:
    start, end = place["start"], place["end"]
    score = {"score": place["probability"]} if "probability" in place else {}
    value = {"start": start, "end": end, "text": text[start:end], "labels": [label]}
    return {"id": name, **_NAMES, "type": "labels", **score, "value": value}


def _write_label_studio(found: Annotations, path: Path) -> None:
    """A list of tasks, each with a prediction of each model, as Label Studio imports it."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("[")
        for number, each in enumerate(found):
            (text,) = each.texts
            standoffs = {name: found.tasks[name].kind.standoff(result) for name, result in each.results.items()}
            predictions = [_prediction(text, *of_model) for of_model in standoffs.items()]
            task = {"data": {"document": each.name, **each.kept, "text": text}, "predictions": predictions}
            file.write((",\n" if number else "\n") + json.dumps(task, ensure_ascii=False))
        file.write("\n]\n")


OUTPUTS = {
    ".jsonl": Output(_write_lines, of_one_text=False),
    ".jsonl.gz": Output(partial(_write_lines, compressed=True), of_one_text=False),
    ".parquet": Output(_write_parquet, of_one_text=False, module=("pyarrow", "parquet")),
    ".csv": Output(partial(_write_table, write=write_csv), of_one_text=False),
    ".xlsx": Output(partial(_write_table, write=write_xlsx), of_one_text=False, module=("openpyxl", "tables")),
    ".spacy": Output(_write_docs),
    ".conllu": Output(_write_conllu, needs="has_tags"),
    ".conll": Output(_write_columns, needs="has_tags", keeps=False),
    ".labelstudio.json": Output(_write_label_studio, needs="has_places"),
    "/": Output(_write_brat, needs="has_places"),
}
"""By the ending of the output; `/` is a folder for brat."""
