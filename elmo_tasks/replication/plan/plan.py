"""The runs that a table or a figure needs."""

from collections.abc import Iterable, Sequence

from elmo_tasks.replication.plan.exhibit import Exhibit, tasks_of
from elmo_tasks.replication.plan.experiment import Experiment
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task import TASKS, Task
from elmo_tasks.replication.plan.variant import N_LSTMS, Variant

__all__ = ["LAMBDAS", "plan", "variants_of"]

# Lambda of Table 2.
LAMBDAS = (1.0, 0.001)
# Of Table 6: the context-insensitive layer and the LSTMs.
_LAYERS = range(1 + N_LSTMS)


def variants_of(exhibit: Exhibit, task: Task) -> list[Variant]:
    """
    # Returns

    `List[Variant]`
        The columns of the table in the paper's order; of Table 6 the rows.
    """
    baseline, elmo = Variant.baseline(), Variant.elmo(task)
    return {
        Exhibit.TABLE_1: [baseline, elmo],
        Exhibit.TABLE_2: [baseline, Variant.elmo(task, top=True), *(Variant.elmo(task, l2=l2) for l2 in LAMBDAS)],
        Exhibit.TABLE_3: [Variant(("input",)), Variant(("input", "output")), Variant(("output",))],
        Exhibit.TABLE_6: [Variant.of_layer(layer) for layer in _LAYERS],
        Exhibit.FIGURE_1: [baseline, elmo],
        Exhibit.FIGURE_2: [elmo],
    }[exhibit]


def plan(
    experiment: Experiment,
    exhibit: Exhibit,
    tasks: Iterable[str],
    n_seeds: int,
    sizes: Sequence[str] = (),
    contextual: Sequence[tuple[str, str]] = (),
) -> list[Run]:
    """
    # Parameters

    experiment
        The data, biLM and settings of the runs.
    exhibit
        The table or figure; any but Table 5.
    tasks
        Some of its tasks.
    n_seeds
        The seeds are 1 to this.
    sizes
        For Figure 1: sizes of parts of the training set, in addition to the whole.
    contextual
        For Table 1: transformers or other biLMs at ELMo's places, by name and checkpoint or folder, next to ELMo.

    # Returns

    `List[Run]`
        Seed by seed, so that a plan that is interrupted has as many seeds of everything as possible.

    # Raises

    `ValueError`
        If a task is not in the table, or there are no seeds, or sizes or transformers for what has none, or two of them
        have one name.
    `FileNotFoundError`
        If data or biLM is not there.
    """
    tasks = list(dict.fromkeys(tasks))
    unknown = [task for task in tasks if task not in tasks_of(exhibit)]
    if unknown:
        raise ValueError(f"{exhibit} is about {', '.join(tasks_of(exhibit))}, but not about {unknown[0]!r}")
    if n_seeds < 1:
        raise ValueError(f"there must be at least one seed, but --seeds is {n_seeds}")
    if sizes and exhibit is not Exhibit.FIGURE_1:
        raise ValueError(f"sizes of training sets are for figure 1, not for {exhibit}: omit --sizes")
    if contextual and exhibit is not Exhibit.TABLE_1:
        raise ValueError(f"transformers and other biLMs are for table 1, not for {exhibit}: omit --contextual")
    names = [name for name, _ in contextual]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"the names of --contextual must differ, but {twice!r} is there twice")
    counts = {task: sorted({count for size in sizes if (count := experiment.size(task, size))}) for task in tasks}
    return [
        experiment.run(task, variant, seed, size)
        for seed in range(1, n_seeds + 1)
        for task in tasks
        for variant in (
            *variants_of(exhibit, TASKS[task]),
            *(Variant.elmo(TASKS[task], contextual=transformer) for transformer in contextual),
        )
        for size in (*counts[task], None)
    ]
