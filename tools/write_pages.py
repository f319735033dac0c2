"""Writes README.md's table and docs/replication/results.md: `make results`."""

import sys
from pathlib import Path

import pandas as pd

from elmo_tasks.replication.figures import draw
from elmo_tasks.replication.paper import TASKS
from elmo_tasks.replication.plan import Plan
from elmo_tasks.replication.tables import TITLES, notes, runs_of, table, word_sense_notes, word_sense_table
from elmo_tasks.replication.train import sort_out, word_senses

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
    sections, found = [], {}
    for exhibit, title in TITLES.items():
        if exhibit == "table 5":
            senses = word_senses(plan) or {}
            made, below = word_sense_table(senses), word_sense_notes(senses)
        else:
            found[exhibit] = _runs(plan, exhibit)
            sizes = {name: task["size"] for name, task in plan.tasks.items()}
            made, below = table(exhibit, found[exhibit], sizes), notes(exhibit, found[exhibit])
        sections += [f"## {title}", _markdown(made), "\n".join(f"- {note}" for note in below)]
        if exhibit == "table 1":
            short = made[list(_README)].rename(columns={key: name or key for key, name in _README.items()})
    curves, mixes = _runs(plan, "figure 1"), _runs(plan, "figure 2")
    sections += ["## Figure 1: less training data, fewer epochs"]
    sections += ["![Scores by training examples](figure1_examples.svg)", "![Scores by epoch](figure1_epoch.svg)"]
    sections += ["## Figure 2: the weights of the layers", "![Weights](figure2.svg)"]
    sections += ["## Data and settings", "\n".join(f"- {note}" for note in plan.notes(TASKS))]
    for path, text in {Path("README.md"): _markdown(short), _PAGE: "\n\n".join(sections)}.items():
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


def _runs(plan: Plan, exhibit: str) -> pd.DataFrame:
    scores, missing, problems = sort_out(plan.runs([exhibit]))
    if missing or problems:
        sys.exit("\n".join([*(f"{run.file} is missing" for run in missing), *problems.values()]))
    return runs_of(scores)


def _markdown(values: pd.DataFrame) -> str:
    return str(values.to_markdown(index=False, disable_numparse=True)).replace("< 0", r"\< 0")


if __name__ == "__main__":
    main()
