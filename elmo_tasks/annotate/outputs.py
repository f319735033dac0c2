"""
The outputs of `annotate`: JSON lines, Parquet, spaCy's `DocBin`, CoNLL-U, columns of words, and a folder for brat.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elmo_tasks.annotate.documents import Document
from elmo_tasks.extras import needs
from elmo_tasks.files.json_files import json_lines
from elmo_tasks.text import located_sentences
from elmo_tasks.text.normal import readable

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

    from elmo_tasks import TrainedTask

__all__ = ["OUTPUTS", "Annotated", "Output"]

_Tasks = dict[str, "TrainedTask"]
_MARK = "documents.jsonl"
# With a place in spaCy's documents; others are in `doc._.results`.
_COMPONENTS = ("ner", "srl", "coref", "sst", "pos")


class Annotated(NamedTuple):
    """A document and its results by the names of the tasks."""

    document: Document
    results: dict[str, Any]


class Output(NamedTuple):
    """How the annotated documents of a part are written to its file, and how these files are joined."""

    write: Callable[[list[Annotated], _Tasks, str, Path], None]
    join: Callable[[_Tasks, list[Path], Path], None]
    takes: Sequence[tuple[int, str]] = ()
    """The numbers of texts and the kinds of results (`JsonLinesPredictor.shown_as`) that fit; none: all."""
    suffix: str = ".jsonl"
    keeps: bool = True
    """Whether columns of the corpus can be kept."""
    mark: str = ""
    """See `Job`."""


def _write_lines(rows: Iterable[dict[str, Any]], path: Path) -> None:
    with open(path, "w", encoding="utf-8") as file:
        # Dates of Parquet become strings.
        file.writelines(readable(json.dumps(row, ensure_ascii=False, default=str)) + "\n" for row in rows)


def _write_rows(part: list[Annotated], tasks: _Tasks, language: str, path: Path) -> None:
    _write_lines(({"document": document.name, **document.kept, **results} for document, results in part), path)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [row for _, row in json_lines(path)]


def _join_bytes(tasks: _Tasks, files: list[Path], path: Path, *, compressed: bool = False) -> None:
    with open(path, "wb") as output:
        for file in files:
            content = file.read_bytes()
            # Without a time, so the same results are the same bytes.
            output.write(gzip.compress(content, mtime=0) if compressed else content)


def _join_parquet(tasks: _Tasks, files: list[Path], path: Path) -> None:
    """A row group per part. The types of results are those of the tasks, also where no text has any."""
    with needs("parquet"):
        import pyarrow
        from pyarrow.parquet import ParquetWriter

    schemas = [pyarrow.schema({"document": pyarrow.string()})]
    schemas += [pyarrow.Table.from_pylist(_rows(file)).schema for file in files]
    schemas.append(pyarrow.schema({name: _parquet_type(task) for name, task in tasks.items()}))
    schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
    with ParquetWriter(path, schema) as writer:
        for file in files:
            writer.write_table(pyarrow.Table.from_pylist(_rows(file), schema=schema))


def _parquet_type(task: "TrainedTask") -> Any:
    """The type of the task's plain results."""
    from pyarrow import float64, infer_type, int64, list_, string, struct

    place = {"text": string(), "start": int64(), "end": int64()}
    role = struct({**place, "label": string()})
    verb = {"verb": string(), "start": int64(), "end": int64()}
    types = {
        "spans": list_(struct({**place, "label": string(), "probability": float64()})),
        "roles": list_(struct({**verb, "roles": list_(role)})),
        "chains": struct({"chains": list_(list_(struct(place))), "resolved": string()}),
        "answer": struct({**place, "probability": float64()}),
    }
    predictor = task.predictor
    return types.get(predictor.shown_as) or infer_type(list(task.stream(predictor.examples)))


def _docs(part: list[Annotated], language: str) -> Iterator[tuple[Annotated, "Doc"]]:
    """The documents as spaCy's, with the words and the sentences that the tasks read."""
    import spacy
    from spacy.tokens import Doc
    from spacy.util import get_words_and_spaces

    vocab = spacy.blank(language).vocab
    for row in part:
        (text,) = row.document.texts
        sentences = located_sentences(text, language)
        words = [text[word.start : word.end] for word in chain.from_iterable(sentences)]
        words, spaces = get_words_and_spaces(words, text)
        doc = Doc(vocab, words=words, spaces=spaces)
        starts = {sentence[0].start for sentence in sentences}
        for token in doc:
            token.is_sent_start = token.idx in starts
        yield row, doc


def _write_docs(part: list[Annotated], tasks: _Tasks, language: str, path: Path) -> None:
    import spacy
    from spacy.tokens import DocBin

    nlp = spacy.blank(language)
    components: dict[str, Any] = {}
    for name, task in tasks.items():
        # A second model of names would only fill the gaps of the first.
        is_first = task.task not in {tasks[earlier].task for earlier in components}
        factory = f"elmo_{task.task}" if is_first and task.task in _COMPONENTS else "elmo_task"
        components[name] = nlp.create_pipe(factory, name, config={"model": str(task.path)})
    docs = DocBin(store_user_data=True)
    for (document, results), doc in _docs(part, language):
        doc.user_data |= {"document": document.name, **json.loads(json.dumps(document.kept, default=str))}
        for name, result in results.items():
            components[name].annotate(doc, result)
        docs.add(doc)
    docs.to_disk(path)


def _join_docs(tasks: _Tasks, files: list[Path], path: Path) -> None:
    from spacy.tokens import DocBin

    docs = DocBin(store_user_data=True)
    for file in files:
        docs.merge(DocBin(store_user_data=True).from_disk(file))
    docs.to_disk(path)


def _labels(doc: "Doc", task: "TrainedTask", result: list[dict[str, Any]]) -> list[str]:
    """The part of speech of each token, or its BIO tag."""
    is_word = task.task == "pos"
    labels = ["_" if is_word else "O"] * len(doc)
    for each in result:
        for number, token in enumerate(doc.char_span(each["start"], each["end"], alignment_mode="expand") or ()):
            labels[token.i] = each["label"] if is_word else f"{'I' if number else 'B'}-{each['label']}"
    return labels


def _write_columns(part: list[Annotated], tasks: _Tasks, language: str, path: Path) -> None:
    """A word and a column for each task, as in CoNLL-2003."""
    with open(path, "w", encoding="utf-8") as file:
        for (document, results), doc in _docs(part, language):
            file.write(f"-DOCSTART- ({' '.join(document.name.split())})\n\n")
            labels = [_labels(doc, tasks[name], result) for name, result in results.items()]
            for words in _sentences(doc):
                for word in words:
                    file.write("\t".join([word.text, *(of_task[word.i] for of_task in labels)]) + "\n")
                file.write("\n")


def _sentences(doc: "Doc") -> Iterator[list["Token"]]:
    words = ([token for token in sentence if not token.is_space] for sentence in doc.sents)
    return filter(None, words)


def _write_conllu(part: list[Annotated], tasks: _Tasks, language: str, path: Path) -> None:
    """Words and parts of speech; in the last column, the places of words, and the tags of other tasks."""
    from spacy.parts_of_speech import IDS as UNIVERSAL_TAGS

    with open(path, "w", encoding="utf-8") as file:
        for (document, results), doc in _docs(part, language):
            about = {"newdoc id": document.name, **document.kept}
            labels = {name: _labels(doc, tasks[name], result) for name, result in results.items()}
            tags = next((labels.pop(name) for name in results if tasks[name].task == "pos"), ["_"] * len(doc))
            for words in _sentences(doc):
                about["text"] = doc[words[0].i : words[-1].i + 1].text
                file.writelines(f"# {key} = {' '.join(readable(str(value)).split())}\n" for key, value in about.items())
                about = {}
                for number, word in enumerate(words, start=1):
                    end = word.idx + len(word)
                    misc = [f"{name}={of_task[word.i]}" for name, of_task in labels.items()]
                    misc += [f"start_char={word.idx}", f"end_char={end}"]
                    misc += ["SpaceAfter=No"] if doc.text[end : end + 1].strip() else []
                    tag = tags[word.i]
                    columns = [
                        number,
                        word.text,
                        "_",
                        tag if tag in UNIVERSAL_TAGS else "_",
                        tag,
                        *"____",
                        "|".join(misc),
                    ]
                    file.write("\t".join(map(str, columns)) + "\n")
                file.write("\n")


def _write_standoff(part: list[Annotated], tasks: _Tasks, language: str, path: Path) -> None:
    rows = (
        {"about": {"document": document.name, **document.kept}, "text": document.texts[0]}
        | {"standoff": _standoff(document.texts[0], results, tasks)}
        for document, results in part
    )
    _write_lines(rows, path)


def _standoff(text: str, results: dict[str, Any], tasks: _Tasks) -> list[str]:
    """brat's lines: names and mentions, relations of predicates to arguments, and chains of equivalent mentions."""
    marks: list[str] = []
    links: list[str] = []

    def mark(label: str, place: dict[str, Any]) -> str:
        # brat does not allow line ends in a span, but several parts.
        found = re.finditer(r"[^\r\n]+", text[place["start"] : place["end"]])
        parts = [(place["start"] + part.start(), place["start"] + part.end(), part.group()) for part in found]
        places = ";".join(f"{start} {end}" for start, end, _ in parts)
        marks.append(f"T{len(marks) + 1}\t{label} {places}\t{' '.join(part for *_, part in parts)}")
        return f"T{len(marks)}"

    kinds = {name: tasks[name].predictor.shown_as for name in results}
    for name, result in results.items():
        if kinds[name] == "spans":
            prefix = f"{name}-" if [*kinds.values()].count("spans") > 1 else ""
            for each in result:
                mark(_brat_name(prefix + each["label"]), each)
        elif kinds[name] == "roles":
            for predicate in result:
                verb = mark("predicate", predicate)
                for role in (role for role in predicate["roles"] if role["label"] != "V"):
                    link = f"{_brat_name(role['label'])} Arg1:{verb} Arg2:{mark('argument', role)}"
                    links.append(f"R{len(links) + 1}\t{link}")
        else:
            for mentions in result["chains"]:
                links.append(f"*\tcoreference {' '.join(mark('mention', each) for each in mentions)}")
    return marks + links


def _brat_name(label: str) -> str:
    return re.sub(r"[^\w-]", "_", label)


def _join_standoff(tasks: _Tasks, files: list[Path], path: Path) -> None:
    """A text and its annotation per document; their names and what was kept of them; and the types, as brat needs."""
    n_of_name: Counter[str] = Counter()
    types: dict[str, set[str]] = {"T": set(), "R": set(), "*": set()}
    with open(path / _MARK, "w", encoding="utf-8") as documents:
        for row in chain.from_iterable(map(_rows, files)):
            parts = [re.sub(r"[^\w.-]", "_", part)[:100] for part in row["about"]["document"].split("/")]
            name = "/".join(part for part in parts if part.strip(".")).removesuffix(".txt") or "document"
            n_of_name[name] += 1
            name = f"{name}~{n_of_name[name]}" if n_of_name[name] > 1 else name
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            # brat counts both characters of a Windows line end as one.
            text = row["text"].replace("\r\n", " \n").replace("\r", "\n")
            (path / f"{name}.txt").write_text(text, encoding="utf-8", newline="")
            (path / f"{name}.ann").write_text("".join(f"{line}\n" for line in row["standoff"]), encoding="utf-8")
            documents.write(json.dumps({"file": name, **row["about"]}, ensure_ascii=False) + "\n")
            for line in row["standoff"]:
                types[line[0]].add(line.split("\t")[1].split()[0])
    relations = [f"{name} Arg1:predicate, Arg2:argument" for name in sorted(types["R"])]
    relations += [f"{name} Arg1:mention, Arg2:mention, <REL-TYPE>:symmetric-transitive" for name in types["*"]]
    sections = {"entities": sorted(types["T"]), "relations": relations, "events": [], "attributes": []}
    lines = [line for title, rows in sections.items() for line in (f"[{title}]", *rows)]
    (path / "annotation.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")


_SPANS = ((1, "spans"),)
_PLACES = (*_SPANS, (1, "roles"), (1, "chains"))
_OF_A_TEXT = (*_PLACES, (1, "label"), (1, "answer"), (1, "json"))
OUTPUTS = {
    ".jsonl": Output(_write_rows, _join_bytes),
    ".jsonl.gz": Output(_write_rows, partial(_join_bytes, compressed=True)),
    ".parquet": Output(_write_rows, _join_parquet),
    ".spacy": Output(_write_docs, _join_docs, takes=_OF_A_TEXT, suffix=".spacy"),
    ".conllu": Output(_write_conllu, _join_bytes, takes=_SPANS, suffix=".conllu"),
    ".conll": Output(_write_columns, _join_bytes, takes=_SPANS, suffix=".conll", keeps=False),
    "/": Output(_write_standoff, _join_standoff, takes=_PLACES, mark=_MARK),
}
"""By the ending of the output; `/` is a folder for brat."""
