"""Reports from two workers of a distributed run."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


def reports_of_two_workers(folder: Path, report: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    """
    Calls `report` with the rank in each of two workers, which can communicate, and returns their results. The workers
    are forked, because spawned ones would spend most of the test's time on imports.
    """
    torch.multiprocessing.start_processes(_work, (str(folder), report), nprocs=2, start_method="fork")
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


def _work(rank: int, folder: str, report: Callable[[int], dict[str, Any]]) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", world_size=2, rank=rank)
    Path(folder, f"{rank}.json").write_text(json.dumps(report(rank)))
    # A gloo thread may abort a process that exits normally.
    os._exit(0)
