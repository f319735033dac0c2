"""`make demo`: the trainings that a newcomer starts first."""

import json
import re

import pytest

from tests.paths import CHECKOUT, TRAINING_CONFIGS


@pytest.mark.weekly
def test_the_demo_has_the_scores_of_the_readme(environment, command, tmp_path):
    environment.delenv("ELMO_TASKS_BILM")
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    overrides = re.search(r"^DEMO_OVERRIDES := (.+)$", makefile, re.MULTILINE)[1]
    scores = []
    for name in ("ner", "ner_elmo"):
        config = TRAINING_CONFIGS / f"{name}.jsonnet"
        command("train", config, "-s", tmp_path / name, "-o", overrides)
        metrics = json.loads((tmp_path / name / "metrics.json").read_text())
        scores.append(100 * metrics["test_f1-measure-overall"])
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    promised = re.search(r"prints F1: ([\d.]+), and ([\d.]+) with ELMo", readme).groups()
    # A processor that is not among those of the README may decide a few words differently.
    assert scores == pytest.approx([float(score) for score in promised], abs=1.0)
