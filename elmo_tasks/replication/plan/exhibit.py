"""The tables and figures of the paper that can be made."""

from enum import StrEnum

from elmo_tasks.analysis import WORD_SENSES
from elmo_tasks.replication.plan.task import POS, SIX_TASKS

__all__ = ["FIGURES", "MORE_TASKS_OF", "TASKS_OF", "Exhibit", "tasks_of"]


class Exhibit(StrEnum):
    """A table or figure of the paper; its value is the name that messages and result files have."""

    TABLE_1 = "table 1"
    TABLE_2 = "table 2"
    TABLE_3 = "table 3"
    TABLE_5 = WORD_SENSES
    TABLE_6 = "table 6"
    TABLE_7 = "table 7"
    FIGURE_1 = "figure 1"
    FIGURE_2 = "figure 2"


FIGURES = (Exhibit.FIGURE_1, Exhibit.FIGURE_2)

_ABLATED = ("squad", "snli", "srl")
TASKS_OF = {
    Exhibit.TABLE_1: tuple(SIX_TASKS),
    Exhibit.TABLE_2: _ABLATED,
    Exhibit.TABLE_3: _ABLATED,
    Exhibit.TABLE_6: (POS.name,),
    Exhibit.FIGURE_1: ("snli", "srl"),
    Exhibit.FIGURE_2: tuple(SIX_TASKS),
}
"""The tasks of each; Table 5 needs no training, and Table 7 trains the biLM."""

MORE_TASKS_OF = {Exhibit.TABLE_2: ("sst",), Exhibit.TABLE_3: ("sst",)}
"""Tasks that the paper's table is not about, and ours may be, if they are asked for."""


def tasks_of(exhibit: Exhibit) -> tuple[str, ...]:
    """All tasks that a table or figure may have."""
    return (*TASKS_OF.get(exhibit, ()), *MORE_TASKS_OF.get(exhibit, ()))
