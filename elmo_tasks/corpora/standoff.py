"""
The outputs for annotation tools, which mark spans of a text and link them: brat and Label Studio.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from elmo_tasks.corpora.annotations import Annotations
from elmo_tasks.predictors.results import Chains, ResultType, Roles

__all__ = ["FOLDER_MARK", "Standoff", "standoff_of", "write_brat", "write_label_studio"]

FOLDER_MARK = "documents.jsonl"
"""A file in each folder for brat."""

# The names in Label Studio's template for named entities: `<Labels name="label" toName="text">`,
# and `$text`.
_NAMES = {"from_name": "label", "to_name": "text"}
# The suffixes of the files in a folder for brat.
_SUFFIX_OF_FILE = re.compile(r"\.(txt|ann|conf|jsonl)$", re.IGNORECASE)


@dataclass
class Standoff:
    """Marked spans of a text, and what links them."""

    marks: list[tuple[str, Any]] = field(default_factory=list)
    """Labels and spans."""
    links: list[tuple[str, int, int]] = field(default_factory=list)
    """Labels, and the numbers of two marks."""
    chains: list[list[int]] = field(default_factory=list)
    """The numbers of marks that mean the same thing."""


def standoff_of(result_type: ResultType, result: Any) -> Standoff:
    """The spans of a result: those of a group are linked to its head."""
    standoff = Standoff()
    if isinstance(result_type, Chains):
        for mentions in result["chains"]:
            chain = []
            for mention in mentions:
                chain.append(len(standoff.marks))
                standoff.marks.append(("mention", mention))
            standoff.chains.append(chain)
        return standoff
    for head, spans in result_type.groups(result):
        if head is None:
            standoff.marks.extend((span["label"], span) for span in spans)
            continue
        number_of_head = len(standoff.marks)
        standoff.marks.append((head.get("label", "predicate"), head))
        for span in spans:
            # The verb itself is the head.
            if isinstance(result_type, Roles) and span["label"] == "V":
                continue
            standoff.links.append((span["label"], number_of_head, len(standoff.marks)))
            standoff.marks.append((span.get("type", "argument"), span))
    return standoff


def write_brat(annotations: Annotations, path: Path) -> None:
    """
    A text and its annotation per document; their names and what was kept of them; and the types, as
    brat needs.
    """
    prefixes = _label_prefixes(annotations)
    n_of_name: Counter[str] = Counter()
    labels: set[str] = set()
    relations: set[str] = set()
    with open(path / FOLDER_MARK, "w", encoding="utf-8") as documents:
        for document in annotations:
            name = _brat_file(document.name)
            n_of_name[name] += 1
            if n_of_name[name] > 1:
                name = f"{name}~{n_of_name[name]}"
            standoffs = {}
            for task, result in document.results.items():
                standoffs[task] = standoff_of(annotations.tasks[task].result_type, result)
            text = document.texts[0]
            marks, links = _brat_lines(text, standoffs, prefixes)
            # The second field of a line is its label: `T1<tab>PER 0 5<tab>Maria`.
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


def _label_prefixes(annotations: Annotations) -> dict[str, str]:
    """For each task: if several tag words, their labels have the names of their tasks."""
    taggers = [name for name, task in annotations.tasks.items() if task.result_type.has_tags]
    prefixes = dict.fromkeys(annotations.tasks, "")
    if len(taggers) > 1:
        prefixes |= {name: f"{name}-" for name in taggers}
    return prefixes


def _brat_file(name: str) -> str:
    """The path of a document in the folder, without a suffix."""
    names = []
    for component in name.split("/"):
        file_name = _file_name(component)
        if file_name.strip("."):
            names.append(file_name)
    if not names:
        return "document"
    *folders, file = names
    # A folder never has the name of a file.
    folders = [_SUFFIX_OF_FILE.sub(r"_\1", folder) for folder in folders]
    return "/".join([*folders, file.removesuffix(".txt") or "document"])


def _file_name(component: str) -> str:
    name = re.sub(r"[^\w.-]", "_", component)
    # File systems have names of at most 255 bytes.
    return name.encode()[:200].decode(errors="ignore")


def _brat_lines(
    text: str, standoffs: dict[str, Standoff], prefixes: dict[str, str]
) -> tuple[list[str], list[str]]:
    """
    The marks of a text and the links between them, from the results of its tasks, each with a
    prefix of its labels.
    """
    marks: list[str] = []
    links: list[str] = []
    for task, standoff in standoffs.items():
        n_marks = len(marks) + len(standoff.marks)
        names = [f"T{number}" for number in range(len(marks) + 1, n_marks + 1)]
        for name, (label, span) in zip(names, standoff.marks, strict=True):
            prefixed_label = _brat_name(prefixes[task] + label)
            marks.append(f"{name}\t{prefixed_label} {_brat_span(text, span)}")
        for mentions in standoff.chains:
            links.append(f"*\tcoreference {' '.join(names[mention] for mention in mentions)}")
        for label, head, tail in standoff.links:
            ends = f"Arg1:{names[head]} Arg2:{names[tail]}"
            links.append(f"R{len(links) + 1}\t{_brat_name(label)} {ends}")
    return marks, links


def _brat_span(text: str, span: Any) -> str:
    # brat does not allow line ends in a span, but several parts.
    lines = list(re.finditer(r"[^\r\n]+", text[span["start"] : span["end"]]))
    offsets = []
    for line in lines:
        offsets.append(f"{span['start'] + line.start()} {span['start'] + line.end()}")
    # Other white space, such as a tab, would end the cell, or the line for some programs.
    marked = " ".join(line.group() for line in lines)
    marked = re.sub(r"\s", " ", marked)
    return f"{';'.join(offsets)}\t{marked}"


def _brat_name(label: str) -> str:
    return re.sub(r"[^\w-]", "_", label)


def _brat_config(labels: set[str], relations: set[str]) -> str:
    """`annotation.conf`: any two marks may be linked."""
    entities = sorted(labels)
    ends = f"Arg1:{'|'.join(entities)}, Arg2:{'|'.join(entities)}"
    properties = {"coreference": ", <REL-TYPE>:symmetric-transitive"}
    lines = ["[entities]", *entities, "[relations]"]
    for label in sorted(relations):
        lines.append(f"{label} {ends}{properties.get(label, '')}")
    lines += ["[events]", "[attributes]", ""]
    return "\n".join(lines)


def write_label_studio(annotations: Annotations, path: Path) -> None:
    """A list of tasks, each with a prediction of each model, as Label Studio imports it."""
    separator = "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write("[")
        for document in annotations:
            (text,) = document.texts
            predictions = []
            for model, result in document.results.items():
                standoff = standoff_of(annotations.tasks[model].result_type, result)
                predictions.append(_prediction(text, model, standoff))
            task = {
                "data": {"document": document.name, **document.kept, "text": text},
                "predictions": predictions,
            }
            file.write(separator + json.dumps(task, ensure_ascii=False))
            separator = ",\n"
        file.write("\n]\n")


def _prediction(text: str, model: str, standoff: Standoff) -> dict[str, Any]:
    """
    A model's prediction for a text, in Label Studio's form. Its score, by which Label Studio sorts
    texts, is the lowest probability of a span.
    """
    names = [f"{model}-{number}" for number in range(len(standoff.marks))]
    regions = []
    for name, (label, span) in zip(names, standoff.marks, strict=True):
        regions.append(_region(text, name, label, span))
    links = list(standoff.links)
    for mentions in standoff.chains:
        # Each mention is linked to the one before it.
        for before, mention in pairwise(mentions):
            links.append(("coreference", before, mention))
    relations = []
    for label, head, tail in links:
        relation = {
            "type": "relation",
            "from_id": names[head],
            "to_id": names[tail],
            "direction": "right",
            "labels": [label],
        }
        relations.append(relation)
    prediction: dict[str, Any] = {"model_version": model}
    scores = [region["score"] for region in regions if "score" in region]
    if scores:
        prediction["score"] = min(scores)
    prediction["result"] = regions + relations
    return prediction


def _region(text: str, name: str, label: str, span: dict[str, Any]) -> dict[str, Any]:
    start = span["start"]
    end = span["end"]
    region: dict[str, Any] = {"id": name, **_NAMES, "type": "labels"}
    if "probability" in span:
        region["score"] = span["probability"]
    region["value"] = {"start": start, "end": end, "text": text[start:end], "labels": [label]}
    return region
