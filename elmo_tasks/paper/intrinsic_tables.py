"""Tables 4 and 5, which are computed without training a task."""

from typing import Any

import pandas as pd

from elmo_tasks.paper import numbers as paper
from elmo_tasks.paper.numbers import LAYERS
from elmo_tasks.paper.run_scores import NONE, version_mark, version_notes, version_of

__all__ = ["neighbor_notes", "neighbor_table", "word_sense_notes", "word_sense_table"]


def neighbor_table(neighbors: dict[str, Any]) -> pd.DataFrame:
    """Table 4: the nearest neighbours of *play* by GloVe and by the biLM."""
    ours = "ours, nearest first"
    glove = ", ".join(word for word, _ in neighbors["glove"])
    rows = [{"": "GloVe", "source": "play", ours: glove, "paper": paper.TABLE_4["GloVe"]}]
    sources = [source for source in paper.TABLE_4 if source != "GloVe"]
    for source, source_neighbors in zip(sources, neighbors["biLM"], strict=True):
        about = {"": "biLM", "source": f"{source} {{...}}", "paper": paper.TABLE_4[source]}
        for neighbor in source_neighbors["nearest"]:
            text = f"{neighbor['sentence']} ({neighbor['cosine']:.2f})"
            rows.append({**about, ours: text})
            # Only in the first row of a source.
            about = {}
    return pd.DataFrame(rows, columns=["", "source", ours, "paper"]).fillna("")


def neighbor_notes(neighbors: dict[str, Any]) -> list[str]:
    text = neighbors["text"]
    return [
        f"biLM: the words in {text} whose vectors in the top layer have the largest cosines (in "
        "parentheses) with the word in brackets, one per sentence.",
        f"GloVe: {neighbors['glove_words']:,} words of {neighbors['glove_file']}.",
        *version_notes([version_of(neighbors)]),
        paper.source_of("table 4"),
    ]


def word_sense_table(scores: dict[str, Any]) -> pd.DataFrame:
    """Table 5, from the output of `allennlp elmo-wsd`."""
    names = {f"layer {layer}": name for layer, name in enumerate(LAYERS)}
    names["mean"] = "biLM, mean of the layers"
    names["first sense"] = "most frequent sense of the training data"
    if scores["wordnet"]:
        names["first sense"] = "WordNet 1st sense"
    mark = version_mark([version_of(scores)])
    ours: dict[str, dict[str, str]] = {}
    for key, sets in scores["scores"].items():
        cells = ours.setdefault(names.get(key, key), {})
        for column in ("the four", "ALL"):
            if column in sets:
                cells[column] = f"{100 * sets[column]['f1']:.1f}{mark}"
    rows = []
    for model in dict.fromkeys([*ours, *paper.TABLE_5]):
        printed = paper.TABLE_5.get(model)
        rows.append({"model": model, **ours.get(model, {}), "paper, the four": printed})
    return pd.DataFrame(rows, dtype=object).fillna(NONE)


def word_sense_notes(scores: dict[str, Any]) -> list[str]:
    """What Table 5 was learned from, and what limits it."""
    lines = []
    layer_2 = _f1_on_the_four(scores, "layer 2")
    first_sense = _f1_on_the_four(scores, "first sense")
    if layer_2 is not None and first_sense is not None and layer_2 < first_sense:
        lines.append(
            f"The second layer ({layer_2:.1f}) scores below the most frequent sense "
            f"({first_sense:.1f}): choosing the nearest mean vector ignores how frequent a "
            f"sense is, and the vectors of {scores['bilm']} are not good enough to make up "
            "for it. The paper's biLM, which is larger and has read more, is 3.1 above "
            "WordNet's first sense."
        )
    unanswered = sum(counts["unanswered"] for counts in scores["sets"].values())
    not_comparable = "without WordNet's first senses, F1 is not comparable with the paper's"
    instances = f"{scores['instances_of_training']:,} instances of {scores['training']}"
    learned = f"{scores['senses']:,} senses of {instances}, nearest by {scores['distance']}"
    return [
        *lines,
        "The four: senseval2, senseval3, semeval2013, semeval2015 as one set; ALL: semeval2007, "
        "too.",
        f"Learned: {learned}. First senses: {scores['first_senses']}.",
        f"Unanswered: {unanswered:,} of ALL; {not_comparable}.",
        *version_notes([version_of(scores)]),
        paper.source_of("table 5"),
    ]


def _f1_on_the_four(scores: dict[str, Any], model: str) -> float | None:
    """In percent. `None`: not all of the paper's sets were scored."""
    sets = scores["scores"].get(model, {})
    if "the four" not in sets:
        return None
    return float(100 * sets["the four"]["f1"])
