"""Archives of small models with random weights, which need no training."""

import json
from pathlib import Path

import pytest
import torch
from allennlp.models.archival import archive_model

import elmo_tasks.plugin  # noqa: F401
from tests.paths import TINY_BILM, TRAINING_CONFIGS
from tests.task_models import PLACES, model_of, params_of, variant_config


def write_archive(folder: Path, task: str, places: str = "none", seed: int = 0) -> Path:
    """
    The archive of a model from the published template.

    # Parameters

    folder
        Must not exist yet.
    task, places
        See `TASKS` and `PLACES` of the tests.
    seed
        For the random weights.
    """
    folder.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ELMO_TASKS_DATA", "ELMO_TASKS_GLOVE"):
            patch.delenv(name, raising=False)
        patch.setenv("ELMO_TASKS_BILM", str(TINY_BILM))
        config = folder / "variant.jsonnet"
        template = TRAINING_CONFIGS / "lib" / f"{task}.libsonnet"
        config.write_text(variant_config(template, PLACES[places]))
        model = model_of(task, config).model
        params = params_of(config).as_dict(quiet=True)
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():
        if ".bilm." not in name:
            parameter.data.normal_(std=0.3)
    (folder / "config.json").write_text(json.dumps(params))
    model.vocab.save_to_files(str(folder / "vocabulary"))
    torch.save(model.state_dict(), folder / "best.th")
    archive_model(str(folder))
    return folder / "model.tar.gz"
