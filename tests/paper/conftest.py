"""
Runs without training: a shell script replaces Python in
`python -m allennlp train CONFIG -s FOLDER ...`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from elmo_tasks.paper.plan import Run

STUB = """#!/bin/sh
echo "$@" >> {folder}/calls
mkdir -p "$6"
cp {folder}/best.th "$6"/
duration=0:02:00.000000
{behaviour}
cd "$6"
echo '{{"validation_accuracy": 0.4, "training_duration": "0:01:00.400000"}}' > metrics_epoch_0.json
echo '{{"validation_accuracy": 0.5, "training_duration": "'$duration'"}}' > metrics_epoch_1.json
echo '{{"best_validation_accuracy": 0.5, "test_accuracy": 0.25}}' > metrics.json
"""


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """
    Makes training run a shell command: `stub("exit 1")`; `$4` is the config, `$6` the serialization
    directory, `$duration` the time from the start of training to the end of its second epoch.
    """

    def behave(behaviour: str = "") -> None:
        script = tmp_path / "python"
        script.write_text(STUB.format(folder=tmp_path, behaviour=behaviour))
        script.chmod(0o755)

    mix = "text_field_embedder.token_embedder_elmo.mix"
    state = {
        f"{mix}.layer_weights": torch.tensor([0.0, 0.0, 1.0]),
        f"{mix}.gamma": torch.tensor([2.0]),
    }
    torch.save(state, tmp_path / "best.th")
    behave()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return behave


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    def make(
        seed: int = 1,
        digest: str = "digest",
        hidden: int = 150,
        patience: int | None = None,
        **inputs: str,
    ) -> Run:
        return Run(
            "snli",
            "both",
            seed=seed,
            size=None,
            folder=tmp_path / "results" / "open" / "snli" / "both" / str(seed),
            config={"random_seed": seed},
            settings={"data": "SNLI", "arguments": {"hidden": hidden}, "overrides": {}},
            training_size=100,
            digest=digest,
            inputs=inputs,
            patience=patience,
        )

    return make
