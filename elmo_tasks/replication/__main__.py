"""`python -m elmo_tasks.replication README.md results/*.json`: the command behind `make results` and `make check`."""

import argparse
import sys
from pathlib import Path

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.printable import one_line
from elmo_tasks.replication.overview.report_page import report_page, without_figures
from elmo_tasks.replication.overview.sources import read_sources
from elmo_tasks.replication.report.pages import readme_table, runs_page, tables_page, with_section

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> str | None:
    """
    # Parameters

    arguments
        Those of the command line; `None` takes them from there.

    # Returns

    `Optional[str]`
        The error; `None` after success.
    """
    parser = argparse.ArgumentParser(description="Write the results into the README and the pages of docs/replication.")
    parser.add_argument("readme", type=Path, help="the file with the two markers; docs/replication is next to it")
    parser.add_argument("results", type=Path, nargs="+", help="result files")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    given = parser.parse_args(arguments)
    try:
        pages = given.readme.parent / "docs" / "replication"
        readme = with_section(given.readme.read_text(encoding="utf-8"), readme_table(given.results))
        made = {
            given.readme: readme,
            pages / "tables.md": tables_page(given.results),
            pages / "runs.md": runs_page(given.results),
            pages.parent / "report.html": _report(given.results),
        }
        stale = [path for path in made if not path.is_file() or not _is_same(path.read_text("utf-8"), made[path])]
        if stale and given.check:
            return f"{', '.join(map(str, stale))} must be what the result files say, but is stale: run `make results`"
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as temporary:
                temporary.write_text(made[path], encoding="utf-8")
    except (ValueError, OSError) as error:
        return one_line(f"{given.readme}: {error}")
    return None


def _report(result_files: list[Path]) -> str:
    """With the runs that are next to the files."""
    sources = read_sources(result_files[0].parent, result_files)
    if sources.problems:
        raise ValueError(sources.problems[0])
    return report_page(sources)


def _is_same(old: str, new: str) -> bool:
    return without_figures(old) == without_figures(new)


if __name__ == "__main__":
    sys.exit(main())
