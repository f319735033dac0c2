"""
Writes README.md's table, docs/replication/results.md and the lists of results/README.md from the
files in results/: `make results`.

With `--from FOLDER`, it first copies the finished runs of the plan `open` from the folder in which
`allennlp elmo-tables` has trained them. A run that the plan refuses is named and not copied.
"""

import argparse
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from elmo_tasks.files.json_files import read_json
from elmo_tasks.paper.figures import draw_curves, draw_mixes, draw_sizes
from elmo_tasks.paper.findings import findings
from elmo_tasks.paper.measures import MEASURED, measured
from elmo_tasks.paper.numbers import TABLES, TASKS, variants_of
from elmo_tasks.paper.plan import Plan, Run
from elmo_tasks.paper.run_scores import finished_runs, runs_of, scores_by_seed, version_notes
from elmo_tasks.paper.tables import TITLES, Table, table_of
from elmo_tasks.paper.train import best_epoch, finished, sort_out

_BEGIN = "<!-- Made from results/ by `make results`: begin -->"
_END = "<!-- Made from results/ by `make results`: end -->"
_PAGE = Path("docs/replication/results.md")
_README_COLUMNS = {
    "task": "task",
    "measure": "measure",
    "trained on": "examples",
    "baseline": "baseline",
    "ELMo": "ELMo",
    "increase": "increase",
    "paper: increase": "paper",
}
# These columns of Table 1 are in a second table, because one would be too wide to read.
_COLUMNS_OF_THE_PAPER = ["paper: trained on", "previous", "paper: baseline", "paper: ELMo"]
_OPEN = Path("results/open")
# Runs of an earlier plan, which had a fixed number of epochs.
_STOPPED = Path("results/stopped")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, help="copy finished runs from here")
    help_of_check = "write nothing, and fail if a page differs"
    parser.add_argument("--check", action="store_true", help=help_of_check)
    arguments = parser.parse_args()
    # The digests of the data are not compared, so the pages are the same on every machine.
    plan = Plan("open", data="data", results=_OPEN)
    runs = plan.runs(list(TABLES))
    if arguments.source is not None:
        copy_finished(runs, arguments.source)
    problems = sort_out(runs).problems
    if problems:
        sys.exit("\n".join(problems.values()))
    runs_by_exhibit = {}
    for exhibit in ("table 1", "table 2", "table 3", "table 6", "figure 1", "figure 2"):
        exhibit_runs = finished_runs(plan, exhibit)
        assert exhibit_runs is not None
        runs_by_exhibit[exhibit] = exhibit_runs
    texts = {
        Path("README.md"): readme_table(plan, runs_by_exhibit["table 1"]),
        _PAGE: results_page(plan, runs_by_exhibit),
        Path("results/README.md"): origins(plan, runs),
    }
    for path, text in texts.items():
        old = path.read_text("utf-8")
        before, _, _ = old.partition(_BEGIN)
        _, _, after = old.partition(_END)
        new = f"{before}{_BEGIN}\n\n{text}\n\n{_END}{after}"
        if new == old:
            continue
        if arguments.check:
            sys.exit(f"{path} differs from results/: run `make results`")
        path.write_text(new, "utf-8")
    if not arguments.check:
        draw_figures(runs_by_exhibit)


def copy_finished(runs: Iterable[Run], source: Path) -> None:
    """Copies the score files of finished runs, and of the tables that need no training."""
    for run in runs:
        file = source / run.file.relative_to(_OPEN.absolute())
        if run.file.exists() or not file.exists():
            continue
        run.file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, run.file)
        try:
            finished(run)
        except ValueError as error:
            run.file.unlink()
            print(f"not copied: {error}", file=sys.stderr)
        else:
            print(f"copied: {run.file}")
    for name in MEASURED.values():
        if (source / name).exists():
            shutil.copyfile(source / name, _OPEN / name)
            print(f"copied: {_OPEN / name}")


def readme_table(plan: Plan, runs: pd.DataFrame) -> str:
    """Table 1, narrow enough for README."""
    rows = known_table(plan, "table 1").rows
    # Without the relative increase, which is in brackets.
    rows["increase"] = rows["increase (relative)"].str.split().str[0]
    rows["paper: increase"] = "+" + rows["paper: increase (relative)"].str.split().str[0]
    # "9,231 questions"
    rows["trained on"] = rows["trained on"].str.split().str[0]
    columns = _README_COLUMNS
    if "frozen transformer" in rows:
        columns = {**columns, "frozen transformer": "frozen MiniLM"}
    table = markdown(rows[list(columns)].rename(columns=columns))
    return "\n\n".join([table, *version_notes(runs["version"])])


def results_page(plan: Plan, runs: dict[str, pd.DataFrame]) -> str:
    sections = ["## Findings", markdown(findings(runs))]
    for exhibit, title in TITLES.items():
        made = known_table(plan, exhibit)
        below = list(made.notes)
        sections.append(f"## {title}")
        if exhibit == "table 5":
            # Before the table: that the biLM is below the most frequent sense.
            sections.append(below.pop(0))
        rows = made.rows
        if exhibit == "table 1":
            rows = rows.drop(columns=_COLUMNS_OF_THE_PAPER)
        sections.append(markdown(rows))
        sections.append("\n".join(f"- {note}" for note in below))
        if exhibit == "table 1":
            sections.append("The paper's Table 1 in full, and the best system before it:")
            sections.append(markdown(made.rows[["task", *_COLUMNS_OF_THE_PAPER]]))
    sections += [
        "## Figure 1: less training data, fewer epochs",
        "![Scores by training examples](figure1_examples.svg)",
        "Mean and standard deviation over seeds, by the number of training examples. Points "
        "without a bar have one seed.",
        "![Learning curves](figure1_epoch.svg)",
        "The learning curves of all runs of Table 1, also of the tasks that are not in the paper's "
        "figure: a circle or square is the epoch that is scored, a bar is where the run ended.",
        "## Figure 2: the weights of the layers",
        "![Weights](figure2.svg)",
    ]
    versions = [*runs["figure 1"]["version"], *runs["figure 2"]["version"]]
    return "\n\n".join([*sections, *version_notes(versions)])


def known_table(plan: Plan, exhibit: str) -> Table:
    made = table_of(plan, exhibit)
    if made is None:
        sys.exit(f"{_OPEN} has nothing for {exhibit}: allennlp elmo-tables --plan open")
    return made


def origins(plan: Plan, runs: list[Run]) -> str:
    """How Table 1 has changed, and the runs of each version and commit."""
    new = runs_of(sort_out(runs).scores)
    stopped = runs_of(read_json(file) for file in sorted(_STOPPED.glob("*/*/*.json")))
    sections = [
        "## Table 1, stopped and to the end",
        markdown(old_and_new(new, stopped)),
        "In epochs and seconds, the mean over the seeds; baseline / ELMo. Seconds are of a busy "
        "machine. Runs that were interrupted before 30 November 2026 have only the seconds since "
        "they were resumed.",
        "## Code of the runs in `open`",
        by_commit(new),
        "## Code of the runs in `stopped`",
        by_commit(stopped),
    ]
    for exhibit, file in MEASURED.items():
        scores_of_table = measured(plan, exhibit)
        if scores_of_table is not None:
            commit = scores_of_table.get("commit")
            sections.append(f"{exhibit.capitalize()}: `open/{file}`, commit `{commit}`.")
    return "\n\n".join(sections)


def old_and_new(new: pd.DataFrame, stopped: pd.DataFrame) -> pd.DataFrame:
    """The scores of Table 1 after a fixed number of epochs, and at the end of the training."""
    rows = []
    for name in TABLES["table 1"]:
        task = TASKS[name]
        baseline, elmo = variants_of("table 1", name)
        row = {"task": task.title}
        for when, runs in (("stopped", stopped), ("now", new)):
            whole_runs = whole(runs)
            baseline_mean = scores_by_seed(whole_runs, name, baseline, task.split).mean()
            elmo_mean = scores_by_seed(whole_runs, name, elmo, task.split).mean()
            row[f"baseline, {when}"] = formatted(baseline_mean)
            row[f"ELMo, {when}"] = formatted(elmo_mean)
            row[f"gain, {when}"] = formatted(elmo_mean - baseline_mean)
        task_runs = whole(new[new["task"] == name])
        baseline_runs = task_runs[task_runs["variant"] == baseline]
        elmo_runs = task_runs[task_runs["variant"] == elmo]
        baseline_costs = costs(baseline_runs)
        for key, elmo_cost in costs(elmo_runs).items():
            row[key] = f"{baseline_costs[key]} / {elmo_cost}"
        commits = {*baseline_runs["commit"], *elmo_runs["commit"]}
        row["commit"] = ", ".join(f"`{commit}`" for commit in sorted(commits))
        rows.append(row)
    return pd.DataFrame(rows)


def costs(runs: pd.DataFrame) -> dict[str, str]:
    epochs = runs["epochs"]
    return {
        "seeds": str(len(runs)),
        "best epoch": formatted(epochs.map(best_epoch).mean(), 0),
        "last epoch": formatted(epochs.map(len).mean(), 0),
        "seconds": formatted(runs["seconds"].mean(), 0),
    }


def whole(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs on whole training sets."""
    return runs[runs["size"].isna()]


def formatted(value: float, n_decimals: int = 1) -> str:
    return "–" if pd.isna(value) else f"{value:,.{n_decimals}f}"


def by_commit(runs: pd.DataFrame) -> str:
    """The runs of each version and commit, as a list."""
    names: dict[str, list[str]] = defaultdict(list)
    runs = runs.assign(size=runs["size"].fillna(0).astype(int))
    for run in runs.sort_values(["task", "variant", "size", "seed"]).itertuples():
        name = f"{run.task}/{run.variant}/{run.seed}"
        if run.size:
            name += f"-{run.size}"
        names[f"{run.version}, commit `{run.commit}`"].append(name)
    lines = []
    for code, code_names in sorted(names.items()):
        lines.append(f"- {code}: {', '.join(code_names)}")
    return "\n".join(lines)


def draw_figures(runs: dict[str, pd.DataFrame]) -> None:
    folder = _PAGE.parent
    files = draw_sizes(runs["figure 1"], folder) + draw_curves(runs["table 1"], folder)
    files += draw_mixes(runs["figure 2"], folder)
    for file in files:
        if file.suffix != ".svg":
            file.unlink()


def markdown(values: pd.DataFrame) -> str:
    return str(values.to_markdown(index=False, disable_numparse=True)).replace("< 0", r"\< 0")


if __name__ == "__main__":
    main()
