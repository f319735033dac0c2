"""
Tests that the code still computes what it computed when the published runs were trained.

They compare the losses of three seeded training steps per task, on the included data and tiny biLM, with small models
where the template allows it. If a loss changes, published scores and scores of this code are not comparable.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from unittest.mock import patch

import numpy
import pytest
import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.util import prepare_environment

from elmo_tasks.modules.dropout import Dropout
from tests.paths import FIXTURES, TRAINING_CONFIGS

KNOWN = json.loads((FIXTURES / "computation.json").read_text())["losses"]
TOLERANCE = 1e-3  # Relative. Different processors and thread counts change less than a hundredth of it.
STEPS, BATCH_SIZE, SEED = 3, 2, 13370
ELMO = {
    "squad": {"elmo_at": ["input", "output"]},
    "snli": {"elmo_at": ["input", "output"], "hidden": 30},
    "srl": {"elmo_at": ["input"], "hidden": 30},
    "coref": {"elmo_at": ["input"]},
    "ner": {"elmo_at": ["input"]},
    "sst": {"elmo_at": ["input", "output"], "hidden": 30},
    "pos": {"layer": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "kind"), [(task, kind) for task in KNOWN for kind in KNOWN[task]])
def test_the_first_training_steps_have_the_recorded_losses(environment, tmp_path, task, kind):
    arguments = {key: value for key, value in ELMO[task].items() if kind == "elmo" or key == "hidden"}
    variant = tmp_path / "variant.jsonnet"
    template = json.dumps(str(TRAINING_CONFIGS / "lib" / f"{task}.libsonnet"))
    variant.write_text(f"(import {template})({', '.join(f'{k}={json.dumps(v)}' for k, v in arguments.items())})")
    config = Params.from_file(str(variant)).as_dict(quiet=True)
    for key in ("validation_data_path", "test_data_path", "evaluate_on_test"):
        config.pop(key, None)
    config["dataset_reader"]["max_instances"] = STEPS * BATCH_SIZE
    if "batch_sampler" in config["data_loader"]:
        config["data_loader"]["batch_sampler"]["batch_size"] = BATCH_SIZE
    prepare_environment(Params(dict.fromkeys(("random_seed", "numpy_seed", "pytorch_seed"), SEED)))
    with dropout_of_numpy():
        assert losses(config, str(tmp_path)) == pytest.approx(KNOWN[task][kind], rel=TOLERANCE)


def losses(config: dict, folder: str) -> list[float]:
    """The loss before each step, including regularization."""
    training = TrainModel.from_params(Params(config), serialization_dir=folder, local_rank=0)
    training.model.train()
    trainer, found = training.trainer, []
    for batch in islice(trainer.data_loader, STEPS):
        trainer.optimizer.zero_grad()
        loss = trainer.batch_outputs(batch, for_training=True)["loss"]
        loss.backward()
        trainer.rescale_gradients()
        trainer.clip_gradient()
        trainer.optimizer.step()
        found.append(loss.item())
    return found


@contextmanager
def dropout_of_numpy() -> Iterator[None]:
    """
    Dropout with NumPy's random numbers, because torch's depend on the kind of processor. So is our `Dropout` where it
    draws the same numbers as torch (`tests/modules/dropout_test.py`).
    """
    generator = numpy.random.default_rng(SEED)

    def dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        if not training or p == 0:
            return input
        kept = torch.from_numpy(generator.random(tuple(input.shape)) >= p).to(input)
        return input * kept / (1 - p)

    def forward(module: Dropout, input: torch.Tensor) -> torch.Tensor:
        return (ours if module.shares_draws else torch.nn.Dropout.forward)(module, input)

    ours = Dropout.forward
    with patch("torch.nn.functional.dropout", dropout), patch.object(Dropout, "forward", forward):
        yield
