"""Writes README.md's table, docs/replication/results.md and the table of results/README.md: `make results`."""

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd

from elmo_tasks.replication.figures import draw
from elmo_tasks.replication.paper import TABLES
from elmo_tasks.replication.plan import Plan
from elmo_tasks.replication.tables import TITLES, finished_runs, table_of, version_notes
from elmo_tasks.replication.train import sort_out

_BEGIN, _END = (f"<!-- Made from results/ by `make results`: {word} -->" for word in ("begin", "end"))
_README = {
    **dict.fromkeys(("task", "measure", "trained on", "baseline", "ELMo")),
    "increase (relative)": "increase",
    "paper†: trained on": "the paper† trained on",
    "paper: increase (relative)": "its increase†",
}
_PAGE = Path("docs/replication/results.md")


def main() -> None:
    """With `--check`, writes nothing and fails if the pages differ from the results."""
    # The digests of the data are not compared, so the pages are the same on every machine.
    plan = Plan("open", data="data", results=Path("results/open"))
    found = sort_out(plan.runs(list(TABLES)))
    if found.missing or found.problems:
        sys.exit("\n".join([*(f"{run.file} is missing" for run in found.missing), *found.problems.values()]))
    tables = {exhibit: table_of(plan, exhibit) for exhibit in TITLES}
    sections = []
    for exhibit, made in tables.items():
        below = "\n".join(f"- {note}" for note in made.notes)
        sections += [f"## {TITLES[exhibit]}", _markdown(made.rows), below]
    short = tables["table 1"].rows[list(_README)]
    short = short.rename(columns={key: name or key for key, name in _README.items()})
    curves, mixes = finished_runs(plan, "figure 1"), finished_runs(plan, "figure 2")
    sections += ["## Figure 1: less training data, fewer epochs"]
    sections += ["![Scores by training examples](figure1_examples.svg)", "![Scores by epoch](figure1_epoch.svg)"]
    sections += ["## Figure 2: the weights of the layers", "![Weights](figure2.svg)"]
    sections += version_notes([*curves["version"], *mixes["version"]])
    readme = "\n\n".join([_markdown(short), *version_notes(finished_runs(plan, "table 1")["version"])])
    texts = {Path("README.md"): readme, _PAGE: "\n\n".join(sections), Path("results/README.md"): _origins(found.scores)}
    for path, text in texts.items():
        old = path.read_text("utf-8")
        before, after = old.partition(_BEGIN)[0], old.partition(_END)[2]
        new = f"{before}{_BEGIN}\n\n{text}\n\n{_END}{after}"
        if new != old and "--check" in sys.argv:
            sys.exit(f"{path} differs from results/: run `make results`")
        path.write_text(new, "utf-8")
    if "--check" not in sys.argv:
        for exhibit, runs in (("figure 1", curves), ("figure 2", mixes)):
            for path in draw(exhibit, runs, _PAGE.parent):
                if path.suffix != ".svg":
                    path.unlink()


def _origins(scores: list[dict[str, Any]]) -> str:
    """The runs of each version and commit, as a list."""
    runs: dict[str, list[str]] = defaultdict(list)
    for run in sorted(scores, key=lambda run: (run["task"], run["variant"], run["size"] or 0, run["seed"])):
        part = f"-{run['size']}" if run["size"] else ""
        code = f"{run['versions']['elmo_tasks']}, commit `{run['commit']}`"
        runs[code].append(f"{run['task']}/{run['variant']}/{run['seed']}{part}")
    return "\n".join(f"- {code}: {', '.join(names)}" for code, names in sorted(runs.items()))


def _markdown(values: pd.DataFrame) -> str:
    return str(values.to_markdown(index=False, disable_numparse=True)).replace("< 0", r"\< 0")


if __name__ == "__main__":
    main()
