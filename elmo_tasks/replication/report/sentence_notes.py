"""For the caption of Table 1: whether two models differ on the sentences of the test set."""

from collections.abc import Sequence

from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.plan.variant import Variant
from elmo_tasks.replication.report.finished_run import FinishedRun
from elmo_tasks.replication.report.sentence_scores import permutation_p_value

__all__ = ["sentence_notes"]


def sentence_notes(runs: Sequence[FinishedRun]) -> list[str]:
    """
    # Parameters

    runs
        Of Table 1.

    # Returns

    `List[str]`
        One sentence on all tasks of which there is a seed whose two runs say what they get right in each sentence; none
        if there is no such task.

    # Raises

    `ValueError`
        If the two runs were tested on other sentences.
    """
    found = []
    for task in TASKS.values():
        pair = _pair(task.name, runs)
        if pair is not None:
            seed, first, second = pair
            assert first.sentences is not None and second.sentences is not None
            p = permutation_p_value(first.sentences, second.sentences)
            text = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
            found.append(f"{task.title} {text} ({len(first.sentences):,}, seed {seed})")
    if not found:
        return []
    return [
        "Baseline and ELMo of one seed over the sentences of the set (their number), by a paired permutation test, "
        f"two-sided: {'; '.join(found)}."
    ]


def _pair(task: str, runs: Sequence[FinishedRun]) -> tuple[int, FinishedRun, FinishedRun] | None:
    names = [Variant.baseline().name, Variant.elmo(TASKS[task]).name] if TASKS[task].places else []
    known = {
        (run.variant, run.seed): run
        for run in runs
        if run.task == task and run.size is None and run.sentences is not None
    }
    for seed in sorted({seed for _, seed in known}):
        pair = [known.get((name, seed)) for name in names]
        if len(pair) == 2 and pair[0] is not None and pair[1] is not None:
            return seed, pair[0], pair[1]
    return None
