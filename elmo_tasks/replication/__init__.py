"""The paper's tables and figures: the plan of their runs, the training of these, and the report."""

from elmo_tasks.replication.evidence.evidence import Evidence
from elmo_tasks.replication.evidence.measurement import Measurement
from elmo_tasks.replication.make import draw, experiment_of, table_of, train_runs, word_senses
from elmo_tasks.replication.overview.report_page import report_page
from elmo_tasks.replication.overview.sources import ReportedRun, Sources, read_sources
from elmo_tasks.replication.plan.exhibit import FIGURES, TASKS_OF, Exhibit
from elmo_tasks.replication.plan.experiment import Experiment
from elmo_tasks.replication.plan.fine_tuning import fine_tunings
from elmo_tasks.replication.plan.plan import plan
from elmo_tasks.replication.plan.plan_file import PlanFile
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task import SIX_TASKS, TASKS, Task
from elmo_tasks.replication.plan.task_text import TASK_TEXTS, TaskText
from elmo_tasks.replication.plan.variant import Variant
from elmo_tasks.replication.replicate import Replication, replication_of
from elmo_tasks.replication.report.figure_plots import draw_curves, draw_mixes
from elmo_tasks.replication.report.figure_values import by_epochs, by_sizes, mixes
from elmo_tasks.replication.report.finished_run import FinishedRun
from elmo_tasks.replication.report.layer_weights import LayerWeight, layer_weights
from elmo_tasks.replication.report.layout import layout
from elmo_tasks.replication.report.pages import readme_table, runs_page, tables_page
from elmo_tasks.replication.report.paper import TABLE_1, TABLE_2, TABLE_3, TABLE_5, TABLE_6, TABLE_7
from elmo_tasks.replication.report.render import RENDERERS
from elmo_tasks.replication.report.results import Results
from elmo_tasks.replication.report.summary import Summary
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.report.table_5 import word_senses_table
from elmo_tasks.replication.report.table_7 import fine_tuning_results, fine_tuning_table, fine_tuning_table_in
from elmo_tasks.replication.train.outcome import Outcome
from elmo_tasks.replication.train.record import status
from elmo_tasks.replication.train.runner import run_here, run_on_ray
from elmo_tasks.replication.train.training import Training
from elmo_tasks.replication.train.wsd_run import WordSenseRun

__all__ = [
    "FIGURES",
    "RENDERERS",
    "SIX_TASKS",
    "TABLE_1",
    "TABLE_2",
    "TABLE_3",
    "TABLE_5",
    "TABLE_6",
    "TABLE_7",
    "TASKS",
    "TASKS_OF",
    "TASK_TEXTS",
    "Evidence",
    "Exhibit",
    "Experiment",
    "FinishedRun",
    "LayerWeight",
    "Measurement",
    "Outcome",
    "PlanFile",
    "Replication",
    "ReportedRun",
    "Results",
    "Run",
    "Sources",
    "Summary",
    "Table",
    "Task",
    "TaskText",
    "Training",
    "Variant",
    "WordSenseRun",
    "by_epochs",
    "by_sizes",
    "draw",
    "draw_curves",
    "draw_mixes",
    "experiment_of",
    "fine_tuning_results",
    "fine_tuning_table",
    "fine_tuning_table_in",
    "fine_tunings",
    "layer_weights",
    "layout",
    "mixes",
    "plan",
    "read_sources",
    "readme_table",
    "replication_of",
    "report_page",
    "run_here",
    "run_on_ray",
    "runs_page",
    "status",
    "table_of",
    "tables_page",
    "train_runs",
    "word_senses",
    "word_senses_table",
]
