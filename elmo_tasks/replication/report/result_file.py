"""Result files: scores of runs, and measurements of a biLM."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.report.results import Results
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.report.table_5 import word_senses_table
from elmo_tasks.replication.report.table_7 import fine_tuning_table_in

__all__ = ["TABLES_WITHOUT_RUNS", "exhibit_without_runs", "read_result_files"]

TABLES_WITHOUT_RUNS: dict[Exhibit, Callable[[Path], Table]] = {
    Exhibit.TABLE_5: word_senses_table,
    Exhibit.TABLE_7: fine_tuning_table_in,
}
"""What reads a file of measurements, by its table."""


def exhibit_without_runs(path: Path) -> Exhibit | None:
    """
    # Parameters

    path
        A result file.

    # Returns

    `Exhibit`
        One of `TABLES_WITHOUT_RUNS`, as the file says it is; `None` for all others, which `Results.from_file` reads.

    # Raises

    `ValueError`
        If the file is not JSON.
    """
    content = read_json(path)
    name = content.get("table") if isinstance(content, dict) else None
    return next((exhibit for exhibit in TABLES_WITHOUT_RUNS if exhibit == name), None)


def read_result_files(
    files: Iterable[Path], of_plan: Collection[Exhibit] = ()
) -> tuple[dict[Exhibit, Results], dict[Exhibit, Path]]:
    """
    # Parameters

    files
        Result files, as `allennlp elmo-tables --format json` prints them, and `allennlp elmo-wsd` writes them.
    of_plan
        The tables that the finished runs of a plan have, which no file may have too.

    # Returns

    `Tuple[Dict[Exhibit, Results], Dict[Exhibit, Path]]`
        The scores of runs, and the files of measurements, by their tables.

    # Raises

    `ValueError`
        If one is not a result file, or there is a table twice.
    """
    scores: dict[Exhibit, Results] = {}
    measurements: dict[Exhibit, Path] = {}
    for path in sorted(files):
        results = None
        if (exhibit := exhibit_without_runs(path)) is None:
            results = Results.from_file(path)
            exhibit = results.table
        if exhibit in {*of_plan, *scores, *measurements}:
            raise ValueError(f"{path} has {exhibit}, which is there from elsewhere too: move the file away")
        if results is None:
            measurements[exhibit] = path
        else:
            scores[exhibit] = results
    return scores, measurements
