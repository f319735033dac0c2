"""`python -m elmo_tasks.replication README.md results/*.json`: what `make results` and `make check` call."""

import argparse
import sys
from pathlib import Path

from elmo_tasks.replication.report.readme import results_section, with_section

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> str | None:
    """
    # Parameters

    arguments : `List[str]`, optional (default = `None`)
        Those of the command line; `None` takes them from there.

    # Returns

    `Optional[str]`
        What is wrong; `None` if nothing is.
    """
    parser = argparse.ArgumentParser(description="Write the results into a README, or look whether they are there.")
    parser.add_argument("readme", type=Path, help="the file with the two markers")
    parser.add_argument("results", type=Path, nargs="+", help="result files")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something had to be written")
    given = parser.parse_args(arguments)
    try:
        before = given.readme.read_text(encoding="utf-8")
        after = with_section(before, results_section(given.results))
    except (ValueError, OSError) as error:
        return f"{given.readme}: {error}"
    if before == after:
        return None
    if given.check:
        return f"{given.readme} is not what the result files say: call `make results`"
    given.readme.write_text(after, encoding="utf-8")
    return None


if __name__ == "__main__":
    sys.exit(main())
