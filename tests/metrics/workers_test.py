"""
Two workers of a distributed run report what one process would: each metric adds up its counts.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from allennlp.training.metrics import Metric

from elmo_tasks.metrics import CorefScores, Perplexity, SpanF1, SrlF1
from tests.metrics.coref_scores_test import clusters

UNKNOWN = 2


def coref_call(*documents: tuple[str, str]) -> tuple:
    """The arguments of a call, from responses and keys in the notation of `clusters`."""
    responses = [clusters(response) for response, _ in documents]
    keys = [clusters(key) for _, key in documents]
    return responses, keys, [["a", "b"]] * len(keys)


class Calls(NamedTuple):
    """
    The calls of a metric by each worker. A second call shows that a worker does not count the sum
    of the others again.
    """

    metric: Metric
    by_first_worker: list[tuple]
    by_second_worker: list[tuple]


CALLS = {
    "spans": Calls(
        SpanF1(),
        [([["U-PER", "U-ORG"]], [["U-PER", "O"]]), ([["U-ORG"]], [["U-ORG"]])],
        [([["U-LOC", "O"]], [["U-LOC", "U-PER"]]), ([["U-ORG"]], [["U-ORG"]])],
    ),
    "roles": Calls(
        SrlF1(),
        [
            ([["B-V", "B-ARG0", "B-ARG1"]], [["B-V", "B-ARG0", "O"]]),
            ([["B-V", "B-ARG1"]], [["B-V", "B-ARG1"]]),
        ],
        [
            ([["B-V", "B-ARG1", "O"]], [["B-V", "B-ARG1", "B-ARG0"]]),
            ([["B-V", "B-ARG1"]], [["B-V", "B-ARG1"]]),
        ],
    ),
    "coreference": Calls(
        CorefScores(),
        [coref_call(("ab cd", "ab cd"), ("abc", "ab c")), coref_call(("xy", "xy"))],
        [coref_call(("abcd", "ab cd")), coref_call(("xy", "xy"))],
    ),
    # The second worker has no batch.
    "perplexity": Calls(
        Perplexity(UNKNOWN),
        [(torch.tensor([2.0, 4.0]), 2, torch.tensor([[UNKNOWN, 3]]))],
        [],
    ),
}


def report_of(metric: Metric, calls: list[tuple]) -> dict[str, float]:
    for call in calls:
        metric(*call)
    report = metric.get_metric()
    # Which is measured.
    report.pop("tokens_per_second", None)
    return report


def work(rank: int, folder: str) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", world_size=2, rank=rank
    )
    reports = {}
    for name, calls in CALLS.items():
        calls_of_worker = [calls.by_first_worker, calls.by_second_worker][rank]
        reports[name] = report_of(calls.metric, calls_of_worker)
    Path(folder, f"{rank}.json").write_text(json.dumps(reports))
    # A gloo thread may abort a process that exits normally.
    os._exit(0)


@pytest.mark.slow
def test_all_workers_report_the_sum(tmp_path):
    """
    The workers are forked, because spawned ones would spend most of the test's time on imports.
    """
    torch.multiprocessing.start_processes(work, (str(tmp_path),), nprocs=2, start_method="fork")
    reports = json.loads((tmp_path / "0.json").read_text())
    assert json.loads((tmp_path / "1.json").read_text()) == reports
    for name, calls in CALLS.items():
        all_calls = calls.by_first_worker + calls.by_second_worker
        assert reports[name] == pytest.approx(report_of(calls.metric, all_calls)), name
