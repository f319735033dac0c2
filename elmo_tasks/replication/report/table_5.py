"""Table 5: word senses, made of the file that `allennlp elmo-wsd` writes."""

from pathlib import Path
from typing import Any

from elmo_tasks.analysis import WORD_SENSES
from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.replication.plan.task import LAYER_NAMES
from elmo_tasks.replication.report import paper
from elmo_tasks.replication.report.table import Table

__all__ = ["word_senses_table"]

_FIRST_SENSE = "first sense"
_NAMES = {f"layer {number}": name for number, name in enumerate(LAYER_NAMES)} | {"mean": "biLM, mean of the layers"}
# The paper's sets together, and all that there are.
_COLUMNS = ("the four", "ALL")


def word_senses_table(path: Path) -> Table:
    """
    # Parameters

    path
        The file of `allennlp elmo-wsd --output-file`; `notes`, sentences for the caption, and `made`, sentences
        on the run, may be added.

    # Returns

    `Table`
        F1 in percent of our layers, and of the paper's systems.

    # Raises

    `ValueError`
        If it is another file.
    """
    try:
        numbers = read_json(path)
        if (numbers["format"], numbers["table"]) != (1, WORD_SENSES):
            raise ValueError(f'it must have "format": 1 and "table": "{WORD_SENSES}"')
        return _table(numbers)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} must be a file of `allennlp elmo-wsd --output-file`, but: {error!r}") from None


def _table(numbers: dict[str, Any]) -> Table:
    ours = {_name(measured, numbers["wordnet"]): row for measured, row in numbers["scores"].items()}
    if not ours:
        raise ValueError("it must have scores, but has none")
    columns = [column for column in _COLUMNS if column in next(iter(ours.values()))]
    rows = []
    for model in dict.fromkeys([*ours, *paper.TABLE_5]):
        cells = [f"{100 * ours[model][column]['f1']:.1f}" if model in ours else "–" for column in columns]
        quoted = paper.TABLE_5.get(model)
        rows.append([model, *cells, "–" if quoted is None else str(quoted[0])])
    columns = ["model", *columns, "paper, the four"]
    return Table("Table 5: word senses, F1", columns, rows, _caption(numbers), list(numbers.get("made", [])))


def _name(measured: str, has_wordnet: bool) -> str:
    if measured == _FIRST_SENSE:
        return "WordNet 1st sense" if has_wordnet else "most frequent sense of the training data"
    return _NAMES.get(measured, f"biLM, {measured}")


def _caption(numbers: dict[str, Any]) -> list[str]:
    learned = f"{numbers['senses']:,} senses, of {numbers['instances_of_training']:,} instances of"
    learned += f" {numbers['training']}, nearest by {numbers['distance']}"
    caption = [
        "the four: senseval2, senseval3, semeval2013 and semeval2015 as one set.",
        f"Data: {learned}; tested on {', '.join(numbers['sets'])}.",
        f"biLM: {numbers['bilm']}.",
        f"First senses, for lemmas that were not learned: {numbers['first_senses']}.",
    ]
    unseen, unanswered = (
        sum(counts[key] for counts in numbers["sets"].values()) for key in ("lemma_not_in_training", "unanswered")
    )
    caption.append(f"Of ALL, {unseen:,} instances have such a lemma, and {unanswered:,} stay unanswered.")
    if numbers["max_sentences"] is not None:
        caption.append(f"Learned from the first {numbers['max_sentences']:,} sentences only.")
    if unknown := numbers["senses_not_in_wordnet"]:
        caption.append(f"{unknown:,} of the senses are not in this WordNet: their keys are those of WordNet 3.0.")
    if not numbers["wordnet"]:
        caption.append("Differs from the paper: without the first senses of WordNet, so that F1 does not compare.")
    sources = paper.sources_of("".join(source for _, source in paper.TABLE_5.values()))
    return [*caption, *numbers.get("notes", []), f"The paper's numbers: {sources}."]
