"""Which runs a table or a figure needs."""

from collections.abc import Iterable, Sequence

from elmo_tasks.replication.plan.experiment import Experiment
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task import POS, SIX_TASKS, TASKS, Task
from elmo_tasks.replication.plan.variant import Variant

__all__ = ["LAMBDAS", "LAYERS", "TASKS_OF", "plan", "variants_of"]

# Lambda of Table 2.
LAMBDAS = (1.0, 0.001)
# Of Table 6: the context-insensitive layer and the two LSTMs.
LAYERS = range(3)

_ABLATED = ("squad", "snli", "srl")
TASKS_OF = {
    "table 1": tuple(SIX_TASKS),
    "table 2": _ABLATED,
    "table 3": _ABLATED,
    "table 6": (POS.name,),
    "figure 1": ("snli", "srl"),
    "figure 2": tuple(SIX_TASKS),
}


def variants_of(what: str, task: Task) -> list[Variant]:
    """
    # Parameters

    what : `str`
        A key of `TASKS_OF`.
    task : `Task`
        A task.

    # Returns

    `List[Variant]`
        The columns of the table in the paper's order; of Table 6 the rows.
    """
    baseline, elmo = Variant.baseline(), Variant.elmo(task)
    return {
        "table 1": [baseline, elmo],
        "table 2": [baseline, Variant.elmo(task, top=True), *(Variant.elmo(task, l2=l2) for l2 in LAMBDAS)],
        "table 3": [Variant(("input",)), Variant(("input", "output")), Variant(("output",))],
        "table 6": [Variant.of_layer(layer) for layer in LAYERS],
        "figure 1": [baseline, elmo],
        "figure 2": [elmo],
    }[what]


def plan(setting: Experiment, what: str, tasks: Iterable[str], n_seeds: int, sizes: Sequence[str] = ()) -> list[Run]:
    """
    # Parameters

    setting : `Experiment`
        What they share.
    what : `str`
        A key of `TASKS_OF`.
    tasks : `Iterable[str]`
        Some of its tasks.
    n_seeds : `int`
        The seeds are 1 to this.
    sizes : `Sequence[str]`, optional (default = `()`)
        For Figure 1: how much of the training sets, beside all.

    # Returns

    `List[Run]`
        Seed by seed, so that a plan that is broken off has as many seeds of everything as it can.

    # Raises

    `ValueError`
        If a task is not in the table, or there are no seeds, or sizes for what has none.
    `FileNotFoundError`
        If data or biLM is not there.
    """
    tasks = list(tasks)
    unknown = [task for task in tasks if task not in TASKS_OF[what]]
    if unknown:
        raise ValueError(f"{what} is about {', '.join(TASKS_OF[what])}, but not about {unknown[0]!r}")
    if n_seeds < 1:
        raise ValueError(f"there must be at least one seed, but --seeds is {n_seeds}")
    if sizes and what != "figure 1":
        raise ValueError(f"sizes of training sets are for figure 1, not for {what}: leave --sizes away")
    counts = {task: sorted({count for size in sizes if (count := setting.size(task, size))}) for task in tasks}
    return [
        setting.run(task, variant, seed, size)
        for seed in range(1, n_seeds + 1)
        for task in tasks
        for variant in variants_of(what, TASKS[task])
        for size in (*counts[task], None)
    ]
