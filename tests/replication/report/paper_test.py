"""Tests of the paper's numbers."""

import pytest

from elmo_tasks.replication import SIX_TASKS, TABLE_1, TABLE_2, TABLE_3, TABLE_5, TABLE_6
from elmo_tasks.replication.report.paper import SOURCES, sources_of


class TestPaper:
    @pytest.mark.parametrize("task", TABLE_1)
    def test_increases_fit_the_scores(self, task):
        """Oracle: their definitions; the paper rounds to a tenth (its relative increase of NER to one percent)."""
        row = TABLE_1[task]
        assert row.elmo - row.baseline == pytest.approx(row.absolute, abs=0.011)
        relative = 100 * (row.elmo - row.baseline) / (100 - row.baseline)
        assert relative == pytest.approx(row.relative, abs=0.06)

    def test_every_number_has_sources_that_are_known(self):
        """Oracle: the keys of `SOURCES`."""
        rows = [row.source for row in TABLE_1.values()]
        rows += [row[1] for table in (TABLE_2, TABLE_3, TABLE_5, TABLE_6) for row in table.values()]
        assert set("".join(rows)) == set(SOURCES)
        assert set(TABLE_1) == set(SIX_TASKS)

    def test_sources_are_named_once_in_their_order(self):
        """Oracle: by hand."""
        assert sources_of("QWQ") == f"{SOURCES['W']}; {SOURCES['Q']}"
