"""
The tasks and tables of Peters et al. 2018, *Deep contextualized word representations*; numbers are
percent.
"""

import json
from functools import cache
from typing import Any, NamedTuple

from elmo_tasks.configs import evaluate_file
from elmo_tasks.files.shipped import DEFAULT_BILM, TRAINING_CONFIGS

__all__ = [
    "LAYERS",
    "TABLES",
    "TABLE_1",
    "TABLE_2",
    "TABLE_3",
    "TABLE_4",
    "TABLE_5",
    "TABLE_6",
    "TASKS",
    "TRANSFORMER",
    "PaperTask",
    "source_of",
    "variants_of",
]

# The arguments of a task's template.
_Arguments = dict[str, Any]


class PaperTask(NamedTuple):
    """How the paper scores a task, and where its model in Table 1 has ELMo."""

    title: str
    score: str
    metric: str
    elmo_at: tuple[str, ...]
    trained_on: str
    """The size of the paper's training set, as published with the data set."""
    split: str = "test"

    @property
    def elmo(self) -> str:
        """The variant with ELMo in Table 1."""
        return "both" if len(self.elmo_at) == 2 else "input"

    @property
    def transformer(self) -> str:
        """The variant with a transformer at ELMo's places."""
        return f"{self.elmo}-transformer"


_BOTH = ("input", "output")
TASKS = {
    # SQuAD's test set is not public.
    "squad": PaperTask("SQuAD", "F1", "f1", _BOTH, "87,599 questions", split="dev"),
    "snli": PaperTask("SNLI", "accuracy", "accuracy", _BOTH, "549,367 pairs"),
    "srl": PaperTask("SRL", "F1", "f1", ("input",), "75,187 sentences"),
    "coref": PaperTask("Coref", "mean F1", "coref_f1", ("input",), "2,802 documents"),
    "ner": PaperTask("NER", "F1", "f1-measure-overall", ("input",), "14,041 sentences"),
    "sst": PaperTask("SST-5", "accuracy", "accuracy", _BOTH, "8,544 sentences"),
    "pos": PaperTask("POS", "accuracy", "accuracy", (), "38,219 sentences"),
}

# Test sets: previous state of the art, baseline, ELMo, increase (relative).
TABLE_1 = {
    "squad": ("84.4 (SAN, Liu et al. 2017)", "81.1", "85.8", "4.7 (24.9%)"),
    "snli": ("88.6 (Chen et al. 2017)", "88.0", "88.7 ± 0.17", "0.7 (5.8%)"),
    "srl": ("81.7 (He et al. 2017)", "81.4", "84.6", "3.2 (17.2%)"),
    "coref": ("67.2 (Lee et al. 2017)", "67.2", "70.4", "3.2 (9.8%)"),
    # The two scores differ by 2.07; the paper prints 2.06.
    "ner": ("91.93 ± 0.19 (TagLM, Peters et al. 2017)", "90.15", "92.22 ± 0.10", "2.06 (21%)"),
    "sst": ("53.7 (McCann et al. 2017)", "51.4", "54.7 ± 0.5", "3.3 (6.8%)"),
}
# Dev sets: baseline, last layer only, all layers with lambda 1 and 0.001.
TABLE_2 = {
    "squad": ("80.8", "84.7", "85.0", "85.2"),
    "snli": ("88.1", "89.1", "89.3", "89.5"),
    "srl": ("81.6", "84.1", "84.6", "84.8"),
}
# Dev sets: input, input and output, output.
TABLE_3 = {
    "squad": ("85.1", "85.6", "84.8"),
    "snli": ("88.9", "89.5", "88.7"),
    "srl": ("84.7", "84.3", "80.9"),
}
# The beginnings of the source sentences, which are in SemCor, with their word in brackets, and the
# nearest sentence; for GloVe its neighbours.
TABLE_4 = {
    "GloVe": "playing, game, games, played, players, plays, player, Play, football, multiplayer",
    "Chico Ruiz made a spectacular [play] on Alusik 's grounder": (
        "Kieffer , the only junior in the group , was commended for his ability to hit in the "
        "clutch , as well as his all-round excellent play ."
    ),
    "Olivia De Havilland signed to do a Broadway [play] for Garson": (
        "{...} they were actors who had been handed fat roles in a successful play , and had "
        "talent enough to fill the roles competently , with nice understatement ."
    ),
}
LAYERS = ("biLM, context-insensitive layer", "biLM, first layer", "biLM, second layer")
TABLE_5 = {
    "WordNet 1st sense": 65.9,
    "Raganato et al. 2017a": 69.9,
    "Iacobacci et al. 2016": 70.1,
    "CoVe, first layer": 59.4,
    "CoVe, second layer": 64.7,
    LAYERS[1]: 67.4,
    LAYERS[2]: 69.0,
}
TABLE_6 = {
    "Collobert et al. 2011": 97.3,
    "Ma and Hovy 2016": 97.6,
    "Ling et al. 2015": 97.8,
    "CoVe, first layer": 93.3,
    "CoVe, second layer": 92.8,
    LAYERS[1]: 97.3,
    LAYERS[2]: 96.8,
}

_SOURCE = "Peters et al. 2018 (NAACL; arXiv 1802.05365v2)"
"""Where the numbers of all tables are from."""

TRANSFORMER = "table 1, transformer"
"""Not in the paper: Table 1's models with a transformer instead of the biLM."""

# SST-5 is our addition to Tables 2 and 3. Tables 4 and 5 need no training.
_ABLATED = ("squad", "snli", "srl", "sst")
TABLES = {
    "table 1": tuple(TABLE_1),
    TRANSFORMER: tuple(TABLE_1),
    "table 2": _ABLATED,
    "table 3": _ABLATED,
    "table 4": (),
    "table 5": (),
    "table 6": ("pos",),
    "figure 1": ("snli", "srl"),
    "figure 2": tuple(TABLE_1),
}
"""The tasks of each table and figure."""


def source_of(exhibit: str) -> str:
    """A line that says where the paper's numbers in a table are from."""
    return f"The paper's numbers: {exhibit.capitalize()} of {_SOURCE}."


def variants_of(exhibit: str, name: str) -> dict[str, _Arguments]:
    """
    The variants that a table compares, in the order of its columns: names and template arguments.
    """
    task = TASKS[name]
    baseline: dict[str, _Arguments] = {"baseline": {}}
    elmo: dict[str, _Arguments] = {task.elmo: {"elmo_at": list(task.elmo_at)}}
    if exhibit in ("table 1", "figure 1"):
        return {**baseline, **elmo}
    if exhibit == "figure 2":
        return elmo
    if exhibit == TRANSFORMER:
        # The plan names the transformer.
        return {task.transformer: elmo[task.elmo]}
    if exhibit == "table 2":
        return {**baseline, **_layer_variants(name, elmo[task.elmo])}
    if exhibit == "table 3":
        return {
            "input": {"elmo_at": ["input"]},
            "both": {"elmo_at": ["input", "output"]},
            "output": {"elmo_at": ["output"]},
        }
    if exhibit == "table 6":
        return {f"layer-{layer}": {"layer": layer} for layer in range(3)}
    raise KeyError(exhibit)


def _layer_variants(name: str, elmo: _Arguments) -> dict[str, _Arguments]:
    """Table 2's variants with ELMo."""
    task = TASKS[name]
    variants = {f"{task.elmo}-top": {**elmo, "elmo": {"layers": "top"}}}
    for l2 in (1.0, 0.001):
        if l2 == _template_l2(name):
            # Not in the name, so tables share runs.
            variants[task.elmo] = elmo
        else:
            variants[f"{task.elmo}-l2-{l2:g}"] = {**elmo, "elmo": {"l2": l2}}
    return variants


@cache
def _template_l2(task: str) -> float:
    """The lambda of a task's template; 0 if it has none."""
    template = TRAINING_CONFIGS / f"{task}_elmo.jsonnet"
    config = json.loads(evaluate_file(str(template), {"ELMO_TASKS_BILM": DEFAULT_BILM}))
    regularizer = config["model"].get("regularizer", {"regexes": []})
    for regex, penalty in regularizer["regexes"]:
        if regex == "layer_weights$":
            return float(penalty["alpha"])
    return 0.0
