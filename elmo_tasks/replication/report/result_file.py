"""Result files that are not made of runs with scores: measurements of a biLM."""

from collections.abc import Callable
from pathlib import Path

from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.report.table_5 import word_senses_table
from elmo_tasks.replication.report.table_7 import fine_tuning_table_in

__all__ = ["TABLES_WITHOUT_RUNS", "exhibit_without_runs"]

TABLES_WITHOUT_RUNS: dict[Exhibit, Callable[[Path], Table]] = {
    Exhibit.TABLE_5: word_senses_table,
    Exhibit.TABLE_7: fine_tuning_table_in,
}
"""What reads such a file, by its table."""


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
