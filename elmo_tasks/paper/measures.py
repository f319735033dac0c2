"""Tables 4 and 5, which need no training: each is measured into one file of the results."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elmo_tasks.files.json_files import write_json
from elmo_tasks.paper.neighbors import NeighborIndex, Query, build_index, marked_text, marked_word
from elmo_tasks.paper.numbers import TABLE_4
from elmo_tasks.paper.plan import Plan
from elmo_tasks.paper.static_vectors import StaticVectors
from elmo_tasks.paper.train import checked_scores, surroundings
from elmo_tasks.paper.word_senses import measure_senses
from elmo_tasks.paper.wsd_corpus import WsdCorpus
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["MEASURED", "find_neighbors", "measure", "measured"]

_N_NEIGHBORS = 3
MEASURED = {"table 4": "neighbors.json", "table 5": "wsd.json"}
"""The files of the tables that are measured, in the folder of the results."""


def measured(plan: Plan, exhibit: str) -> dict[str, Any] | None:
    """Table 4 or 5; `None` if it is not measured. Different data raise a `ValueError`."""
    return checked_scores(plan.results / MEASURED[exhibit], _inputs(plan, exhibit))


def measure(plan: Plan, exhibit: str) -> str | None:
    """Measures Table 4 or 5, and returns the reason if that failed."""
    plan.results.mkdir(parents=True, exist_ok=True)
    try:
        if exhibit == "table 4":
            scores = _neighbors(plan)
        else:
            scores = _word_senses(plan)
    except (OSError, ValueError) as error:
        return str(error)
    inputs = _inputs(plan, exhibit)
    write_json(plan.results / MEASURED[exhibit], {**scores, "inputs": inputs, **surroundings()})
    return None


def _inputs(plan: Plan, exhibit: str) -> dict[str, str]:
    bilm = f"{plan.variables['ELMO_TASKS_BILM']}/weights.hdf5"
    data = plan.variables["ELMO_TASKS_DATA"]
    if exhibit == "table 4":
        return plan.inputs([f"{data}/wsd/train", str(_glove(plan)), bilm])
    return plan.inputs([f"{data}/wsd", bilm])


def _glove(plan: Plan) -> Path:
    """`ELMO_TASKS_GLOVE` is a path, or the name of a file in `glove/` of the data."""
    file = Path(plan.variables["ELMO_TASKS_GLOVE"])
    if len(file.parts) == 1:
        file = Path(plan.variables["ELMO_TASKS_DATA"], "glove", file)
    return file


def _word_senses(plan: Plan) -> dict[str, Any]:
    data = Path(plan.variables["ELMO_TASKS_DATA"], "wsd")
    return measure_senses(plan.variables["ELMO_TASKS_BILM"], data)


def _neighbors(plan: Plan) -> dict[str, Any]:
    (corpus,) = WsdCorpus.find(f"{plan.variables['ELMO_TASKS_DATA']}/wsd/train")
    sentences = [sentence.words for sentence in corpus]
    glove = StaticVectors(_glove(plan))
    elmo = Elmo.from_pretrained(plan.variables["ELMO_TASKS_BILM"])
    with TemporaryDirectory() as folder:
        index = build_index(elmo, sentences, Path(folder, "index"))
        neighbors = find_neighbors(index, sentences)
    return {
        "bilm": plan.bilm,
        "text": corpus.name,
        "glove_file": _glove(plan).name,
        "glove_words": len(glove),
        "glove": glove.nearest("play"),
        "biLM": neighbors,
    }


def find_neighbors(index: NeighborIndex, sentences: Iterable[list[str]]) -> list[dict[str, Any]]:
    """The nearest words of the paper's source sentences, which are among the `sentences`."""
    queries = []
    for text in TABLE_4:
        if "[" in text:
            queries.append(_whole_sentence(marked_word(text), sentences))
    rows = []
    for query, neighbors in zip(queries, index.search(queries, _N_NEIGHBORS), strict=True):
        nearest = []
        for neighbor in neighbors:
            cosine = round(neighbor.similarity, 4)
            nearest.append({"sentence": marked_text(neighbor), "cosine": cosine})
        rows.append({"source": marked_text(query), "nearest": nearest})
    return rows


def _whole_sentence(source: Query, sentences: Iterable[list[str]]) -> Query:
    """The sentence that begins with the words of the query, at the same position."""
    n_words = len(source.words)
    for words in sentences:
        if words[:n_words] == source.words:
            return Query(words, source.position)
    raise ValueError(f"expected the sentence {' '.join(source.words)!r} in the text")
