"""
Renews the config digests in the runs of a plan: `python tools/renew_digests.py`, in the checkout.

For a type or a key that was renamed in the configs: the models must compute what they did, which the three-step test
checks against losses that are older than the change.
"""

import subprocess
import sys
from pathlib import Path

from elmo_tasks import plugin  # noqa: F401
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.replication.paper import TABLES
from elmo_tasks.replication.plan import Plan

subprocess.run(["git", "diff", "--exit-code", "--stat", "HEAD", "--", "fixtures/computation.json"], check=True)
subprocess.run([sys.executable, "-m", "pytest", "-q", "tests/replication/three_steps_test.py"], check=True)
for run in Plan("open", data="data", results=Path("results/open")).runs(list(TABLES)):
    write_json(run.file, {**read_json(run.file), "digest": run.digest})
