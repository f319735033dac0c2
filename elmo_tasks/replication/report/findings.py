"""The findings of the paper, and whether our runs have the same."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.plan.plan import variants_of
from elmo_tasks.replication.plan.task import TASKS, Task
from elmo_tasks.replication.plan.task_text import TASK_TEXTS
from elmo_tasks.replication.report.figure_tables import compared
from elmo_tasks.replication.report.plan_results import PlanResults
from elmo_tasks.replication.report.render import grid
from elmo_tasks.replication.report.result_file import TABLES_WITHOUT_RUNS, read_result_files
from elmo_tasks.replication.report.results import Results, Split
from elmo_tasks.replication.report.summary import Summary

__all__ = ["findings"]

_NO_PLAN = PlanResults()
# A difference of means is called significant below this, as usual.
_ALPHA = 0.05


class _Finding(NamedTuple):
    """
    # Parameters

    exhibit
        The table that shows it.
    text
        The finding.
    lower, higher
        Two columns of the table, of which the second is better in the paper.
    tasks
        The tasks that have it, and SST-5, which the paper's Tables 2 and 3 lack; `None` is all.
    """

    exhibit: Exhibit
    text: str
    lower: int
    higher: int
    tasks: tuple[str, ...] | None = None


_FINDINGS = (
    _Finding(Exhibit.TABLE_1, "ELMo is better than the baseline", 0, 1),
    _Finding(Exhibit.TABLE_2, "the last layer alone is better than the baseline", 0, 1),
    _Finding(Exhibit.TABLE_2, "all layers are better than the last one", 1, 3),
    _Finding(Exhibit.TABLE_2, "the smaller λ is better than the larger", 2, 3),
    _Finding(Exhibit.TABLE_3, "both places are better than the input alone", 0, 1, ("squad", "snli", "sst")),
    _Finding(Exhibit.TABLE_3, "both places are better than the output alone", 2, 1, ("squad", "snli", "srl", "sst")),
    _Finding(Exhibit.TABLE_3, "the input alone is better than both places", 1, 0, ("srl",)),
    _Finding(Exhibit.TABLE_6, "the first layer knows more of parts of speech than the second", 2, 1),
)
_LESS_DATA = "ELMo brings more where there is less training data"
_FEWER_EPOCHS = "with ELMo fewer epochs reach the best score of the baseline"
_WORD_SENSES = "the second layer knows more of word senses than the first"
_FINE_TUNING = "an epoch on the text of a task lowers the perplexity of the biLM there"


class _Case(NamedTuple):
    """
    One task: its name, both scores as text, whether it is as in the paper (`None`: the scores are equal as they are
    shown), and what to add to the verdict.
    """

    title: str
    scores: str
    holds: bool | None
    remark: str = ""


def findings(files: Iterable[Path], plan: PlanResults = _NO_PLAN) -> str:
    """
    # Parameters

    files, plan
        As for `tables_page`.

    # Returns

    `str`
        A table in Markdown: each finding of the paper that our runs are about, both of our scores for each task, and
        whether they are in the paper's order.

    # Raises

    `ValueError`
        As for `tables_page`.
    """
    scores, measured = read_result_files(files, plan.tables)
    tables = {**scores, **plan.tables}
    rows = []
    for finding in _FINDINGS:
        if finding.exhibit in tables:
            rows.append(_row(finding.exhibit, finding.text, list(_cases(finding, tables[finding.exhibit]))))
    for text, found in ((_LESS_DATA, _of_sizes(plan)), (_FEWER_EPOCHS, _of_epochs(plan))):
        rows.append(_row(Exhibit.FIGURE_1, text, list(found)))
    for exhibit, text, cases in (
        (Exhibit.TABLE_5, _WORD_SENSES, _of_word_senses),
        (Exhibit.TABLE_7, _FINE_TUNING, _of_fine_tuning),
    ):
        if exhibit in measured:
            # Refuses a file that is damaged.
            TABLES_WITHOUT_RUNS[exhibit](measured[exhibit])
            rows.append(_row(exhibit, text, list(cases(read_json(measured[exhibit])))))
    return grid(["the paper", "in", "ours", "as in the paper"], [row for row in rows if row])


def _row(exhibit: Exhibit, text: str, cases: list[_Case]) -> list[str]:
    if not cases:
        return []
    scores = "; ".join(f"{case.title} {case.scores}" for case in cases)
    verdicts = []
    for word, holds in (("yes", True), ("no", False), ("equal", None)):
        if names := [f"{case.title}{case.remark}" for case in cases if case.holds is holds]:
            verdicts.append(f"{word}: {', '.join(names)}")
    verdict = "; ".join(verdicts)
    return [text, exhibit.value.capitalize(), scores, verdict]


def _cases(finding: _Finding, results: Results) -> Iterator[_Case]:
    for task in TASKS.values():
        if finding.tasks is not None and task.name not in finding.tasks:
            continue
        if (pair := _pair(finding, results, task)) is not None:
            yield _case(task, *pair)


def _pair(finding: _Finding, results: Results, task: Task) -> tuple[Summary, Summary] | None:
    if task.name not in results.tasks():
        return None
    of_table: dict[Exhibit, Split] = {Exhibit.TABLE_1: task.split, Exhibit.TABLE_6: "test"}
    split = of_table.get(finding.exhibit, "dev")
    variants = variants_of(finding.exhibit, task)
    lower, higher = (results.summary(task.name, variants[i].name, split) for i in (finding.lower, finding.higher))
    return None if lower is None or higher is None else (lower, higher)


def _few_seeds(*summaries: Summary) -> str:
    """As tables say it: with two seeds the standard deviations of a test mean little."""
    number = min(summary.n for summary in summaries)
    return {1: " (one seed)", 2: " (two seeds)"}.get(number, "")


def _untested(*summaries: Summary) -> str:
    return _few_seeds(*summaries) or " (not tested)"


def _case(task: Task, lower: Summary, higher: Summary) -> _Case:
    p = lower.p_value(higher)
    remark = _few_seeds(lower, higher)
    if min(lower.n, higher.n) > 1 and (p is None or p >= _ALPHA):
        remark = " (not significant)"
    return _Case(task.title, *_ordered(lower.mean, higher.mean), remark)


def _ordered(lower: float, higher: float, decimals: int = 1) -> tuple[str, bool | None]:
    """Both numbers as text, and whether the second is larger: `None` if their texts are the same."""
    first, second = (f"{number:.{decimals}f}" for number in (lower, higher))
    return f"{first} → {second}", None if first == second else higher > lower


def _of_sizes(plan: PlanResults) -> Iterator[_Case]:
    """The increase with each part of the training set; that with the largest is compared with that with all of it."""
    for task, scores in compared(plan.sizes, "size").items():
        if len(scores) < 2 or max(scores) != plan.training_sizes[task]:
            continue
        increases = {size: scores[size][0].absolute_increase(scores[size][1]) for size in sorted(scores)}
        part, whole = list(increases)[-2:]
        shown = {size: f"{increase:+.1f}" for size, increase in increases.items()}
        holds = None if shown[part] == shown[whole] else increases[part] > increases[whole]
        text = ", ".join(f"{increase} with {size:,}" for size, increase in shown.items())
        yield _Case(TASKS[task].title, text, holds, _untested(*scores[part], *scores[whole]))


def _of_epochs(plan: PlanResults) -> Iterator[_Case]:
    """The best epoch of the baseline, and the first with ELMo that is as good."""
    for task, scores in compared(plan.epochs, "epoch").items():
        best = max(scores, key=lambda epoch: scores[epoch][0].mean)
        as_good = [epoch for epoch, (_, elmo) in scores.items() if elmo.mean >= scores[best][0].mean]
        text = f"epoch {best} → {min(as_good)}" if as_good else f"epoch {best} → none"
        seen = scores[min(as_good)] if as_good else scores[best]
        yield _Case(TASKS[task].title, text, bool(as_good) and min(as_good) < best, _untested(scores[best][0], seen[1]))


def _of_word_senses(content: dict[str, Any]) -> Iterator[_Case]:
    # A biLM may have one layer, and a file fewer data sets.
    scores = [content["scores"].get(f"layer {layer}", {}).get("the four") for layer in (1, 2)]
    if None not in scores:
        first, second = (100 * score["f1"] for score in scores)
        yield _Case("F1", *_ordered(first, second))


def _of_fine_tuning(content: dict[str, Any]) -> Iterator[_Case]:
    for row in content["rows"]:
        text, rises = _ordered(row["before"], row["after"], decimals=0)
        yield _Case(TASK_TEXTS[row["text"]].title, text, None if rises is None else not rises)
