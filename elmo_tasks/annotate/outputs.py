"""
The outputs of `annotate`: JSON lines, Parquet, spaCy's `DocBin`, CoNLL-U, columns of words, and a folder for brat.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elmo_tasks.extras import needs
from elmo_tasks.files.json_files import json_lines
from elmo_tasks.text import located_sentences
from elmo_tasks.text.normal import readable

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

    from elmo_tasks import TrainedTask

__all__ = ["FOLDER_MARK", "OUTPUTS", "Annotated", "Annotations", "Output", "write_part"]

FOLDER_MARK = "documents.jsonl"
"""A file in each folder for brat."""


class Annotated(NamedTuple):
    """A document, and its results by the names of the tasks."""

    name: str
    texts: Sequence[str]
    kept: dict[str, Any]
    results: dict[str, Any]

    @property
    def row(self) -> dict[str, Any]:
        return {"document": self.name, **self.kept, **self.results}


def write_part(rows: Iterable[Annotated], path: Path) -> None:
    """Writes a part of a job, in one form for all outputs."""
    with open(path, "w", encoding="utf-8") as file:
        # Dates of Parquet become strings.
        lines = (json.dumps(each._asdict(), ensure_ascii=False, default=str) for each in rows)
        file.writelines(readable(line) + "\n" for line in lines)


@dataclass(frozen=True)
class Annotations:
    """The annotated documents in the files of all parts."""

    files: Sequence[Path]
    tasks: dict[str, "TrainedTask"]
    language: str

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
            words = [text[word.start : word.end] for word in chain.from_iterable(sentences)]
            words, spaces = get_words_and_spaces(words, text)
            doc = Doc(vocab, words=words, spaces=spaces)
            starts = {sentence[0].start for sentence in sentences}
            for token in doc:
                token.is_sent_start = token.idx in starts
            yield each, doc


class Output(NamedTuple):
    """How an output is written, and what it has a place for."""

    write: Callable[[Annotations, Path], None]
    takes: Sequence[str] = ()
    """The kinds of results (`shown_as` of a task) that fit, of single texts; none: all results."""
    keeps: bool = True
    """Whether columns of the corpus can be kept."""


def _write_lines(found: Annotations, path: Path, *, compressed: bool = False) -> None:
    lines = (json.dumps(each.row, ensure_ascii=False) + "\n" for each in found)
    with open(path, "wb") as file:
        # Without a time, so the same results are the same bytes.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compressed else nullcontext(file) as output:
            output.writelines(line.encode() for line in lines)


def _write_parquet(found: Annotations, path: Path) -> None:
    """A row group per part. The types of results are those of the tasks, also where no text has any."""
    with needs("parquet"):
        import pyarrow
        from pyarrow.parquet import ParquetWriter

    schemas = [pyarrow.Table.from_pylist([each.row for each in part]).schema for part in found.parts()]
    forms = {name: [_form_of(task)] for name, task in found.tasks.items()}
    schemas.append(pyarrow.table({"document": [""], **forms}).schema)
    schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
    with ParquetWriter(path, schema) as writer:
        for part in found.parts():
            writer.write_table(pyarrow.Table.from_pylist([each.row for each in part], schema=schema))


def _form_of(task: "TrainedTask") -> Any:
    """A plain result of the task with all of its parts."""
    place = {"text": "", "start": 0, "end": 0}
    forms = {
        "spans": [{**place, "label": "", "probability": 0.0}],
        "roles": [{"verb": "", "start": 0, "end": 0, "roles": [{**place, "label": ""}]}],
        "chains": {"chains": [[place]], "resolved": ""},
        "answer": {**place, "probability": 0.0},
    }
    example = None if task.predictor.shown_as in forms else next(task.stream(task.predictor.examples), None)
    # As in a part, where numbers of stars are strings.
    return forms.get(task.predictor.shown_as) or json.loads(json.dumps(example))


def _write_docs(found: Annotations, path: Path) -> None:
    import spacy
    from spacy.tokens import DocBin

    nlp = spacy.blank(found.language)
    components: dict[str, Any] = {}
    for name, task in found.tasks.items():
        # A second model of names would only fill the gaps of the first.
        is_first = task.task not in {found.tasks[earlier].task for earlier in components}
        factory = f"elmo_{task.task}" if is_first and nlp.has_factory(f"elmo_{task.task}") else "elmo_task"
        components[name] = nlp.create_pipe(factory, name, config={"model": str(task.path)})
    docs = DocBin(store_user_data=True)
    for each, doc in found.docs():
        doc.user_data |= {"document": each.name, **each.kept}
        for name, result in each.results.items():
            components[name].annotate(doc, result)
        docs.add(doc)
    docs.to_disk(path)


def _labels(doc: "Doc", task: "TrainedTask", result: list[dict[str, Any]]) -> list[str]:
    """The part of speech of each token, or its BIO tag."""
    is_word = task.task == "pos"
    labels = ["_" if is_word else "O"] * len(doc)
    for each in result:
        for number, token in enumerate(doc.char_span(each["start"], each["end"], alignment_mode="expand") or ()):
            labels[token.i] = each["label"] if is_word else f"{'I' if number else 'B'}-{each['label']}"
    return labels


def _sentences(doc: "Doc") -> Iterator[list["Token"]]:
    words = ([token for token in sentence if not token.is_space] for sentence in doc.sents)
    return filter(None, words)


def _write_columns(found: Annotations, path: Path) -> None:
    """A word and a column for each task, as in CoNLL-2003."""
    with open(path, "w", encoding="utf-8") as file:
        for each, doc in found.docs():
            file.write(f"-DOCSTART- ({' '.join(each.name.split())})\n\n")
            labels = [_labels(doc, found.tasks[name], result) for name, result in each.results.items()]
            for words in _sentences(doc):
                for word in words:
                    file.write("\t".join([word.text, *(of_task[word.i] for of_task in labels)]) + "\n")
                file.write("\n")


def _write_conllu(found: Annotations, path: Path) -> None:
    """Words and parts of speech; in the last column, the places of words, and the tags of other tasks."""
    from spacy.parts_of_speech import IDS as UNIVERSAL_TAGS

    with open(path, "w", encoding="utf-8") as file:
        for each, doc in found.docs():
            about = {"newdoc id": each.name, **each.kept}
            labels = {name: _labels(doc, found.tasks[name], result) for name, result in each.results.items()}
            tagger = next((name for name in labels if found.tasks[name].task == "pos"), "")
            tags = labels.pop(tagger, ["_"] * len(doc))
            for words in _sentences(doc):
                about["text"] = doc[words[0].i : words[-1].i + 1].text
                file.writelines(f"# {key} = {' '.join(str(value).split())}\n" for key, value in about.items())
                about = {}
                for number, word in enumerate(words, start=1):
                    end = word.idx + len(word)
                    misc = [f"{name}={of_task[word.i]}" for name, of_task in labels.items()]
                    misc += [f"start_char={word.idx}", f"end_char={end}"]
                    misc += ["SpaceAfter=No"] if doc.text[end : end + 1].strip() else []
                    xpos = tags[word.i]
                    upos = xpos if xpos in UNIVERSAL_TAGS else "_"
                    file.write("\t".join([str(number), word.text, "_", upos, xpos, *"____", "|".join(misc)]) + "\n")
                file.write("\n")


class _Standoff:
    """The lines of brat for a text: its names or mentions, and their relations or chains."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.marks: list[str] = []
        self.links: list[str] = []

    def mark(self, label: str, place: dict[str, Any]) -> str:
        # brat does not allow line ends in a span, but several parts.
        found = re.finditer(r"[^\r\n]+", self._text[place["start"] : place["end"]])
        parts = [(place["start"] + part.start(), place["start"] + part.end(), part.group()) for part in found]
        places = ";".join(f"{start} {end}" for start, end, _ in parts)
        name = f"T{len(self.marks) + 1}"
        self.marks.append(f"{name}\t{_brat_name(label)} {places}\t{' '.join(part for *_, part in parts)}")
        return name

    def add(self, kind: str, result: Any, prefix: str) -> None:
        # Not earlier: `python -m elmo_tasks` imports this module for all commands.
        from elmo_tasks.predictors.views import groups_of

        for head, spans in groups_of(kind, result):
            if kind == "chains":
                self.links.append(f"*\tcoreference {' '.join(self.mark('mention', span) for span in spans)}")
            elif head is None:
                for span in spans:
                    self.mark(prefix + span["label"], span)
            else:
                verb = self.mark("predicate", head)
                for role in (span for span in spans if span["label"] != "V"):
                    link = f"{_brat_name(role['label'])} Arg1:{verb} Arg2:{self.mark('argument', role)}"
                    self.links.append(f"R{len(self.links) + 1}\t{link}")


def _brat_name(label: str) -> str:
    return re.sub(r"[^\w-]", "_", label)


def _write_brat(found: Annotations, path: Path) -> None:
    """A text and its annotation per document; their names and what was kept of them; and the types, as brat needs."""
    kinds = {name: task.predictor.shown_as for name, task in found.tasks.items()}
    has_prefix = [*kinds.values()].count("spans") > 1
    n_of_name: Counter[str] = Counter()
    types: dict[str, set[str]] = {"T": set(), "R": set(), "*": set()}
    with open(path / FOLDER_MARK, "w", encoding="utf-8") as documents:
        for each in found:
            parts = [re.sub(r"[^\w.-]", "_", part)[:100] for part in each.name.split("/")]
            name = "/".join(part for part in parts if part.strip(".")).removesuffix(".txt") or "document"
            n_of_name[name] += 1
            name = f"{name}~{n_of_name[name]}" if n_of_name[name] > 1 else name
            standoff = _Standoff(each.texts[0])
            for task, result in each.results.items():
                standoff.add(kinds[task], result, f"{task}-" if has_prefix else "")
            lines = standoff.marks + standoff.links
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            # brat counts both characters of a Windows line end as one.
            text = each.texts[0].replace("\r\n", " \n").replace("\r", "\n")
            (path / f"{name}.txt").write_text(text, encoding="utf-8", newline="")
            (path / f"{name}.ann").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            about = {"file": name, "document": each.name, **each.kept}
            documents.write(json.dumps(about, ensure_ascii=False) + "\n")
            for line in lines:
                types[line[0]].add(line.split("\t")[1].split()[0])
    relations = [f"{name} Arg1:predicate, Arg2:argument" for name in sorted(types["R"])]
    relations += [f"{name} Arg1:mention, Arg2:mention, <REL-TYPE>:symmetric-transitive" for name in types["*"]]
    sections = {"entities": sorted(types["T"]), "relations": relations, "events": [], "attributes": []}
    lines = [line for title, rows in sections.items() for line in (f"[{title}]", *rows)]
    (path / "annotation.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")


_PLACES = ("spans", "roles", "chains")
OUTPUTS = {
    ".jsonl": Output(_write_lines),
    ".jsonl.gz": Output(partial(_write_lines, compressed=True)),
    ".parquet": Output(_write_parquet),
    ".spacy": Output(_write_docs, takes=(*_PLACES, "label", "answer", "json")),
    ".conllu": Output(_write_conllu, takes=("spans",)),
    ".conll": Output(_write_columns, takes=("spans",), keeps=False),
    "/": Output(_write_brat, takes=_PLACES),
}
"""By the ending of the output; `/` is a folder for brat."""
