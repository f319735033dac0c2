"""Tests of the table of environment variables."""

import re

from elmo_tasks.variables import VARIABLES
from tests.paths import PACKAGE, TRAINING_CONFIGS


class TestVariables:
    def test_every_variable_that_is_read_is_in_the_table(self):
        """Oracle: the names in the sources of the package and of the configs; and none that no source has."""
        sources = [*PACKAGE.rglob("*.py"), *TRAINING_CONFIGS.rglob("*.*sonnet")]
        sources.remove(PACKAGE / "variables.py")
        read = {name for file in sources for name in re.findall(r"\bELMO_TASKS_[A-Z_]+", file.read_text("utf-8"))}
        assert read == {variable.name for variable in VARIABLES if variable.name.startswith("ELMO_TASKS_")}

    def test_each_has_a_row(self):
        """Oracle: the names are there once, and no cell is empty or breaks a row of a table in Markdown."""
        names = [variable.name for variable in VARIABLES]
        assert len(set(names)) == len(names)
        for variable in VARIABLES:
            for cell in (variable.default, variable.meaning):
                assert cell and "\n" not in cell and "|" not in cell
