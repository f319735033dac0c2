"""
Tests that the code still computes what it computed when the published runs were trained.

They compare the losses of three training steps per task, on the included data and tiny biLM, with
small models where the template allows it. Weights depend only on their names and masks of dropout
only on their shapes, so the order of random draws may change. If a loss changes, published scores
and scores of this code are not comparable.

The losses were recorded at commit 753caa77. There, the code still had the losses that were recorded
at 7f217b62, which depended on the order of random draws.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from unittest.mock import patch
from zlib import crc32

import numpy
import pytest
import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.util import prepare_environment

from elmo_tasks.modules.dropout import Dropout
from tests.paths import FIXTURES, TRAINING_CONFIGS

KNOWN = json.loads((FIXTURES / "computation.json").read_text())
# Relative. Different processors and thread counts change less than a hundredth of it.
TOLERANCE = 1e-3
STEPS, BATCH_SIZE = 3, 2
SEEDS = dict.fromkeys(("random_seed", "numpy_seed", "pytorch_seed"), 13370)
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
    arguments = []
    for name, value in ELMO[task].items():
        # The baseline has the same size.
        if kind == "elmo" or name == "hidden":
            arguments.append(f"{name}={json.dumps(value)}")
    variant = tmp_path / "variant.jsonnet"
    template = json.dumps(str(TRAINING_CONFIGS / "lib" / f"{task}.libsonnet"))
    variant.write_text(f"(import {template})({', '.join(arguments)})")
    config = Params.from_file(str(variant)).as_dict(quiet=True)
    for key in ("validation_data_path", "test_data_path", "evaluate_on_test"):
        config.pop(key, None)
    config["dataset_reader"]["max_instances"] = STEPS * BATCH_SIZE
    if "batch_sampler" in config["data_loader"]:
        config["data_loader"]["batch_sampler"]["batch_size"] = BATCH_SIZE
    with dropout_by_shape():
        assert losses(config, str(tmp_path)) == pytest.approx(KNOWN[task][kind], rel=TOLERANCE)


def losses(config: dict, folder: str) -> list[float]:
    """The loss before each step, including regularization."""
    training = TrainModel.from_params(Params(config), serialization_dir=folder, local_rank=0)
    training.model.train()
    load_weights(training.model)
    trainer = training.trainer
    step_losses = []
    prepare_environment(Params(dict(SEEDS)))
    for batch in islice(trainer.data_loader, STEPS):
        trainer.optimizer.zero_grad()
        loss = trainer.batch_outputs(batch, for_training=True)["loss"]
        loss.backward()
        trainer.rescale_gradients()
        trainer.clip_gradient()
        trainer.optimizer.step()
        step_losses.append(loss.item())
    return step_losses


@torch.no_grad()
def load_weights(model: torch.nn.Module) -> None:
    """Weights by their names, except those of the biLM and the rules of a CRF."""
    for name, weight in model.named_parameters():
        if ".bilm." not in name and not name.endswith("_constraint_mask"):
            values = numpy.random.default_rng(crc32(name.encode())).normal(size=tuple(weight.shape))
            # The variance of a product is about the variance of its input.
            scale = weight[0].numel() ** -0.5 if weight.dim() > 1 else 0.1
            weight.copy_(torch.as_tensor(scale * values))


@contextmanager
def dropout_by_shape() -> Iterator[None]:
    """Dropout with NumPy's random numbers, because torch's depend on the kind of processor."""

    def dropout(
        input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        if not training or p == 0:
            return input
        kept = torch.from_numpy(
            numpy.random.default_rng(input.shape).random(tuple(input.shape)) >= p
        ).to(input)
        return input * kept / (1 - p)

    with (
        patch("torch.nn.functional.dropout", dropout),
        patch.object(Dropout, "forward", torch.nn.Dropout.forward),
    ):
        yield
