"""The paper's tables and figures: which runs they need, the runs, and how they are printed."""

from elmo_tasks.tables.drawing import draw_curves, draw_mixes
from elmo_tasks.tables.figures import by_epochs, by_sizes, mixes
from elmo_tasks.tables.layer_weights import LayerWeight, layer_weights
from elmo_tasks.tables.layout import layout
from elmo_tasks.tables.outcome import Outcome
from elmo_tasks.tables.paper import TABLE_1, TABLE_2, TABLE_3, TABLE_5, TABLE_6
from elmo_tasks.tables.plan import TASKS_OF, plan
from elmo_tasks.tables.readme import results_section, with_section
from elmo_tasks.tables.record import status
from elmo_tasks.tables.render import RENDERERS
from elmo_tasks.tables.results import Results
from elmo_tasks.tables.run import Run
from elmo_tasks.tables.runner import run_here, run_on_ray
from elmo_tasks.tables.setting import Setting
from elmo_tasks.tables.summary import Summary
from elmo_tasks.tables.table import Table
from elmo_tasks.tables.task import SIX_TASKS, TASKS, Task
from elmo_tasks.tables.training import Training
from elmo_tasks.tables.variant import Variant
from elmo_tasks.tables.word_sense_run import WordSenseRun
from elmo_tasks.tables.word_senses import WORD_SENSES, word_senses_table

__all__ = [
    "RENDERERS",
    "SIX_TASKS",
    "TABLE_1",
    "TABLE_2",
    "TABLE_3",
    "TABLE_5",
    "TABLE_6",
    "TASKS",
    "TASKS_OF",
    "WORD_SENSES",
    "LayerWeight",
    "Outcome",
    "Results",
    "Run",
    "Setting",
    "Summary",
    "Table",
    "Task",
    "Training",
    "Variant",
    "WordSenseRun",
    "by_epochs",
    "by_sizes",
    "draw_curves",
    "draw_mixes",
    "layer_weights",
    "layout",
    "mixes",
    "plan",
    "results_section",
    "run_here",
    "run_on_ray",
    "status",
    "with_section",
    "word_senses_table",
]
