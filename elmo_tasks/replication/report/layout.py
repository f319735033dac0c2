"""Tables 1, 2, 3 and 6: our scores next to the paper's."""

import json
from collections.abc import Mapping, Sequence

from elmo_tasks.replication.plan.exhibit import Exhibit, tasks_of
from elmo_tasks.replication.plan.plan import LAMBDAS, variants_of
from elmo_tasks.replication.plan.task import LAYER_NAMES, POS, TASKS, Task
from elmo_tasks.replication.plan.variant import Variant, name_of_other
from elmo_tasks.replication.report import paper
from elmo_tasks.replication.report.linked_text import LinkedText
from elmo_tasks.replication.report.results import Results, Split
from elmo_tasks.replication.report.summary import Summary, paired_p_value
from elmo_tasks.replication.report.table import Table

__all__ = ["increases", "layout"]

_FEW_SEEDS = "n too small"
_NO_RUN = "–"


def layout(results: Results) -> Table:
    """
    # Parameters

    results
        Of table 1, 2, 3 or 6; the cell of a variant that has no score yet is a dash.

    # Raises

    `ValueError`
        If it is another table, or has scores of a task that is not in it.
    """
    layouts = {
        Exhibit.TABLE_1: _table_1,
        Exhibit.TABLE_2: _table_2,
        Exhibit.TABLE_3: _table_3,
        Exhibit.TABLE_6: _table_6,
    }
    if results.table not in layouts:
        raise ValueError(f"results must be those of {', '.join(layouts)}, but are those of {results.table}")
    others = [task for task in results.tasks() if task not in tasks_of(results.table)]
    if others:
        raise ValueError(
            f"{results.table} is about {', '.join(tasks_of(results.table))}, but has scores of {others[0]}"
        )
    return layouts[results.table](results)


def increases(results: Results) -> list[list[str]]:
    """Of Table 1 the task, the measure, baseline and ELMo, the increase, and that of the paper."""
    rows = []
    for task in (TASKS[name] for name in results.tasks()):
        baseline, elmo = _summaries(results, task.name, task.split)
        increase = _NO_RUN if baseline is None or elmo is None else f"{baseline.absolute_increase(elmo):+.2f}"
        quoted = f"{paper.TABLE_1[task.name].absolute:+.2f}"
        cells = _cells(results, task.name, [baseline, elmo])
        rows.append([task.title, f"{task.score}, {task.split}", *cells, increase, quoted])
    return rows


def _table_1(results: Results) -> Table:
    others = _others(results)
    columns = ["task", "measure", "baseline", "ELMo", *others, "increase (relative)", "p", "p, paired"]
    columns += ["paper: previous", "paper: baseline", "paper: ELMo", "paper: increase (relative)"]
    rows = []
    for task in (TASKS[name] for name in results.tasks()):
        baseline, elmo = _summaries(results, task.name, task.split)
        quoted = paper.TABLE_1[task.name]
        sd = "" if quoted.sd is None else f" ± {quoted.sd:.2f}"
        rows.append(
            [
                task.title,
                f"{task.score}, {task.split}",
                *_cells(results, task.name, [baseline, elmo]),
                *(_cell_of_other(results, task, name) for name in others),
                *(_increase(baseline, elmo), _p(baseline, elmo), _paired_p(results, task)),
                f"{quoted.previous} ({quoted.whose})",
                *(str(quoted.baseline), f"{quoted.elmo}{sd}"),
                f"{quoted.absolute:.2f} ({quoted.relative:.1f}%)",
            ]
        )
    sources = paper.sources_of("".join(paper.TABLE_1[name].source for name in results.tasks()))
    relative = "relative increase: the part of the baseline's errors that ELMo avoids"
    test = "p: Welch's t-test between baseline and ELMo, two-sided"
    paired = "p, paired: the paired t-test over the seeds that both have, two-sided"
    said = [relative, test, paired]
    if untested := [TASKS[name].title for name in results.tasks() if _has_no_score(results, TASKS[name])]:
        said.append(f"{', '.join(untested)}: without a test set, so without a score")
    caption = _caption(results, sources, ["baseline", "ELMo", *others], said)
    return Table("Table 1: baseline and ELMo", columns, rows, caption, _runs(results))


def _has_no_score(results: Results, task: Task) -> bool:
    """Whether the runs of a task have other scores than those of the table."""
    of_task = [row for row in results.runs if row["task"] == task.name]
    return bool(of_task) and all(row[task.split] is None for row in of_task)


def _others(results: Results) -> list[str]:
    """The names of the transformers and other biLMs that have runs at ELMo's places, in the order of these runs."""
    found = (name_of_other(TASKS[row["task"]], row["variant"]) for row in results.runs)
    return list(dict.fromkeys(name for name in found if name is not None))


def _cell_of_other(results: Results, task: Task, name: str) -> str:
    variant = f"{Variant.elmo(task).name}-{name}"
    return _cell(results.summary(task.name, variant, task.split), task.name, variant)


def _table_2(results: Results) -> Table:
    names = ["baseline", "last layer only", *(f"all layers, λ={value:g}" for value in LAMBDAS)]
    return _ablation("Table 2: the layers, scores on the dev sets", results, names, paper.TABLE_2, (0, 3))


def _table_3(results: Results) -> Table:
    names = ["input", "input and output", "output"]
    return _ablation("Table 3: the places of ELMo, scores on the dev sets", results, names, paper.TABLE_3, (0, 1))


def _table_6(results: Results) -> Table:
    variants = variants_of(results.table, POS)
    ours = {
        name: [results.summary(POS.name, variant.name, split) for split in ("dev", "test")]
        for name, variant in zip(LAYER_NAMES, variants, strict=True)
    }
    rows = []
    for model in dict.fromkeys([*ours, *paper.TABLE_6]):
        quoted = paper.TABLE_6.get(model)
        variant = variants[LAYER_NAMES.index(model)].name if model in ours else None
        cells = [_cell(summary, POS.name, variant) for summary in ours.get(model, [None, None])]
        rows.append([model, *cells, _NO_RUN if quoted is None else str(quoted[0])])
    first, second = (ours[name][1] for name in LAYER_NAMES[1:])
    test = f"{_increase(first, second)}, p (Welch's t-test, two-sided): {_p(first, second)}"
    sources = paper.sources_of("".join(source for _, source in paper.TABLE_6.values()))
    return Table(
        f"Table 6: parts of speech, {POS.score}",
        ["model", "dev", "test", "paper, Wall Street Journal"],
        rows,
        _caption(results, sources, ["dev", "test"], [f"from the first layer to the second, on test: {test}"]),
        _runs(results),
    )


def _ablation(
    title: str,
    results: Results,
    names: list[str],
    quoted: Mapping[str, tuple[tuple[float, ...], str]],
    compared: tuple[int, int],
) -> Table:
    """Dev sets, a row of ours above the paper's; two columns are compared."""
    rows = []
    for task in (TASKS[name] for name in results.tasks()):
        ours = _summaries(results, task.name, "dev")
        first, second = (ours[index] for index in compared)
        rows.append(
            [task.title, task.score, *_cells(results, task.name, ours), _increase(first, second), _p(first, second)],
        )
        if task.name in quoted:
            rows.append([f"{task.title}, paper", task.score, *map(str, quoted[task.name][0]), "", ""])
    first_name, second_name = (names[index] for index in compared)
    sources = paper.sources_of("".join(quoted[name][1] for name in results.tasks() if name in quoted))
    test = f"increase and p (Welch's t-test, two-sided): from “{first_name}” to “{second_name}”"
    return Table(
        title,
        ["task", "measure", *names, "increase (relative)", "p"],
        rows,
        _caption(results, sources, names, [test]),
        _runs(results),
    )


def _summaries(results: Results, task: str, split: Split) -> list[Summary | None]:
    return [results.summary(task, variant.name, split) for variant in variants_of(results.table, TASKS[task])]


def _cells(results: Results, task: str, summaries: Sequence[Summary | None]) -> list[str]:
    """Those of `_summaries`."""
    variants = variants_of(results.table, TASKS[task])
    return [_cell(summary, task, variant.name) for summary, variant in zip(summaries, variants, strict=True)]


def _cell(summary: Summary | None, task: str, variant: str | None) -> str:
    return _NO_RUN if summary is None or variant is None else LinkedText(str(summary), (task, variant))


def _increase(first: Summary | None, second: Summary | None) -> str:
    if first is None or second is None:
        return _NO_RUN
    relative = first.relative_increase(second)
    return f"{first.absolute_increase(second):+.2f}" + ("" if relative is None else f" ({relative:+.1f}%)")


def _p(first: Summary | None, second: Summary | None) -> str:
    if first is None or second is None:
        return _NO_RUN
    n = min(first.n, second.n)
    return _FEW_SEEDS if n < 2 else _p_text(first.p_value(second), n)


def _paired_p(results: Results, task: Task) -> str:
    first, second = (variant.name for variant in variants_of(results.table, task))
    pairs = results.pairs(task.name, first, second, task.split)
    if not pairs:
        return _NO_RUN
    return _FEW_SEEDS if len(pairs) < 2 else _p_text(paired_p_value(pairs), len(pairs))


def _p_text(p: float | None, n: int) -> str:
    if p is None:
        return "no variance"
    # With two seeds each, a variance is known from one difference only: it may be anything.
    few = f" ({_FEW_SEEDS} to trust)" if n < 3 else ""
    return ("< 0.001" if p < 0.001 else f"{p:.3f}") + few


def _caption(results: Results, sources: str, columns: Sequence[str], tests: Sequence[str]) -> list[str]:
    caption = [
        f"{', '.join(columns)}: percent, mean ± standard deviation over seeds (their number); {'; '.join(tests)}."
    ]
    for name in results.tasks():
        task, about = TASKS[name], results.about.get(name, {})
        parts = [f"data: {about.get('data', 'not stated')}"]
        parts.append(f"biLM: {about['bilm']}" if about.get("bilm") else "biLM: not stated")
        parts += [f"{key}: {value}" for key, value in about.items() if key.startswith(("transformer ", "biLM "))]
        parts += [f"{key}: {json.dumps(about[key])}" for key in ("arguments", "overrides") if about.get(key)]
        parts.append("differs from the paper: " + ", ".join(task.differences))
        caption.append(f"{task.title}: {'; '.join(parts)}.")
    return [*caption, *results.notes, f"The paper's numbers: {sources}."]


def _runs(results: Results) -> list[str]:
    made_with = [f"Made with {' and with '.join(results.versions)}."] if results.versions else []
    return [*made_with, *results.made]
