"""Tests of the figures as tables."""

from elmo_tasks.replication.report.figure_tables import compared, figure_sections
from elmo_tasks.replication.report.plan_results import PlanResults
from elmo_tasks.replication.report.summary import Summary


def row(variant: str, x: str, number: int, mean: float, n: int = 1) -> dict:
    return {"task": "srl", "variant": variant, x: number, "mean": mean, "sd": 0.5 if n > 1 else "", "n": n}


SIZES = [row("baseline", "size", 1000, 50.0, n=3), row("baseline", "size", 100, 20.0)]
SIZES += [row("input", "size", 1000, 60.5, n=3), row("input", "size", 100, 31.25), row("input", "size", 10, 1.0)]
EPOCHS = [row("baseline", "epoch", 1, 40.0), row("input", "epoch", 1, 45.0)]


class TestCompared:
    def test_scores_of_both_from_the_smallest_on(self):
        """Oracle: by hand; the smallest size has no baseline."""
        pairs = {
            100: (Summary(20.0, None, 1), Summary(31.25, None, 1)),
            1000: (Summary(50.0, 0.5, 3), Summary(60.5, 0.5, 3)),
        }
        assert compared(SIZES, "size") == {"srl": pairs} and list(compared(SIZES, "size")["srl"]) == [100, 1000]

    def test_a_task_with_one_of_the_two_is_none(self):
        """Oracle: by hand; seeds that agree have the deviation 0."""
        assert compared([], "epoch") == compared(SIZES[:2], "size") == {}
        rows = [{**row(variant, "epoch", 1, 40.0, n=2), "sd": 0.0} for variant in ("baseline", "input")]
        assert compared(rows, "epoch") == {"srl": {1: (Summary(40.0, 0.0, 2), Summary(40.0, 0.0, 2))}}


class TestFigureSections:
    def test_curves_are_tables_of_sizes_and_epochs(self):
        """Oracle: by hand: the lines of both."""
        heading, sizes, epochs = figure_sections(PlanResults(sizes=SIZES, epochs=EPOCHS))
        assert heading.startswith("## Figure 1")
        lines = [" ".join(line.split()) for line in sizes.splitlines()]
        assert lines[0] == "| task | training examples | baseline | ELMo | increase |"
        assert lines[2:] == [
            "| SRL, F1 | 100 | 20.00 (1) | 31.25 (1) | +11.25 |",
            "| SRL, F1 | 1,000 | 50.00 ± 0.50 (3) | 60.50 ± 0.50 (3) | +10.50 |",
        ]
        assert " ".join(epochs.splitlines()[2].split()) == "| SRL, F1 | 1 | 40.00 (1) | 45.00 (1) | +5.00 |"

    def test_values_that_are_not_there_have_no_section(self):
        """Oracle: by hand; without a run on all of the training set there are no epochs."""
        assert figure_sections(PlanResults()) == figure_sections(PlanResults(sizes=SIZES[:2], epochs=EPOCHS[:1])) == []
        assert len(figure_sections(PlanResults(sizes=SIZES))) == 2
