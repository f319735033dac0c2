"""Table 7 of the appendix: the perplexity of the biLM on the text of each task, before and after fine-tuning."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.files.text_lines import numbered_lines
from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task_text import TASK_TEXTS
from elmo_tasks.replication.report import paper
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.train.record import check_scores, read_record, training_seconds

__all__ = ["fine_tuning_results", "fine_tuning_table", "fine_tuning_table_in"]

_FORMAT = 1


def fine_tuning_results(runs: Sequence[Run]) -> dict[str, Any]:
    """
    # Parameters

    runs
        Finished ones, as `fine_tunings` makes them.

    # Returns

    `Dict[str, Any]`
        The content of a result file.

    # Raises

    `ValueError`, `FileNotFoundError`
        If a file of a run is damaged or missing.
    """
    rows, made, versions = [], [], set()
    for run in runs:
        check_scores(run.folder)
        before, after = (read_json(run.serialization_dir / f"metrics{name}.json") for name in ("_before", ""))
        n_sentences, n_words = _size_of(run.config["train_data_path"])
        rows.append(
            {
                "text": run.variant,
                "data": run.about["data"],
                "sentences": n_sentences,
                "words": n_words,
                "unknown_share": before["unknown_share"],
                "before": before["perplexity"],
                "after": after["best_validation_perplexity"],
            }
        )
        record = read_record(run.folder) or {}
        training = record.get("training", {})
        commits, machines = (", ".join(training.get(key, [])) for key in ("commits", "machines"))
        minutes = training_seconds(run.folder, record) / 60
        made.append(f"{TASK_TEXTS[run.variant].title}: {minutes:.0f} min, commit {commits}, on {machines}.")
        versions.add(", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items()))
    (bilm,) = {run.about["bilm"] for run in runs}
    content = {"format": _FORMAT, "table": Exhibit.TABLE_7, "bilm": bilm, "rows": rows, "versions": sorted(versions)}
    return {**content, "made": made}


def _size_of(path: str) -> tuple[int, int]:
    lines = [line.split() for _, line in numbered_lines(path)]
    return len(lines), sum(map(len, lines))


def fine_tuning_table_in(path: Path) -> Table:
    """
    `fine_tuning_table` of a result file.

    # Raises

    `ValueError`
        If it is another file.
    """
    try:
        return fine_tuning_table(read_json(path))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must be a file of `allennlp elmo-tables --table 7 --format json`, but: {error!r}"
        ) from None


def fine_tuning_table(content: dict[str, Any]) -> Table:
    """
    # Parameters

    content
        That of a result file of Table 7.

    # Returns

    `Table`
        Our perplexities and the paper's.

    # Raises

    `KeyError`, `TypeError`, `ValueError`
        If it is not such a content.
    """
    if (content["format"], content["table"]) != (_FORMAT, Exhibit.TABLE_7):
        raise ValueError(f'it must have "format": {_FORMAT} and "table": "{Exhibit.TABLE_7}"')
    rows, letters = [], ""
    for row in content["rows"]:
        title = TASK_TEXTS[row["text"]].title
        quoted, source = paper.TABLE_7[title]
        letters += source
        size = [f"{row['words']:,}", f"{100 * row['unknown_share']:.1f}%"]
        rows.append([title, *size, *(f"{row[key]:.1f}" for key in ("before", "after")), *map(str, quoted)])
    columns = ["text", "words", "unknown", "before", "after", "paper, before", "paper, after"]
    data = "; ".join(dict.fromkeys(row["data"] for row in content["rows"]))
    caption = [
        "Perplexity on the dev set's text, the mean of forward and backward, over the vocabulary of the biLM, before "
        "and after one epoch on the text of the training set; each sentence once.",
        "unknown: the share of the dev set's words that are not in the vocabulary, and count as one word.",
        f"biLM: {content['bilm']}. Data: {data}.",
        f"The paper's numbers: {paper.sources_of(letters)}.",
    ]
    return Table(
        "Table 7: fine-tuning the biLM, perplexity", columns, rows, caption, [*content["versions"], *content["made"]]
    )
