"""The JSON of the configs in training_configs/expanded/, and the headers of the configs."""

import json
import re
from statistics import mean

import pytest

from elmo_tasks.configs import evaluate_file, strings_of
from tests.paths import CHECKOUT, TRAINING_CONFIGS
from tests.task_models import TASKS
from tests.training_configs.configs import PUBLISHED
from tools.expand_configs import EXPANDED, expanded_configs

DEFAULTS = {
    "ELMO_TASKS_DATA": "fixtures",
    "ELMO_TASKS_GLOVE": "glove.open.100d.txt.gz",
    "ELMO_TASKS_BILM": "small-open",
    "ELMO_TASKS_LAYER": "1",
}
# The runs with the scores in the headers.
RUNS = {"pos_layer": "pos/layer-1"}
for task_name, task in TASKS.items():
    RUNS[task_name] = f"{task_name}/baseline"
    with_elmo = "both" if len(task.elmo_at) == 2 else "input"
    RUNS[f"{task_name}_elmo"] = f"{task_name}/{with_elmo}"


def test_the_files_are_what_plain_jsonnet_returns():
    texts = {path.name: path.read_text("utf-8") for path in EXPANDED.iterdir()}
    assert texts == expanded_configs(), "run `make configs`"


@pytest.mark.parametrize("name", PUBLISHED)
def test_allennlp_evaluates_the_same_with_the_default_variables(name):
    config = json.loads((EXPANDED / name).with_suffix(".json").read_text("utf-8"))
    evaluated = evaluate_file(str(TRAINING_CONFIGS / name), DEFAULTS)
    assert json.loads(evaluated.replace(f'"{CHECKOUT}/', '"')) == config
    for text in strings_of(config):
        is_path = text.startswith(("fixtures/", "elmo_tasks/"))
        assert not is_path or list(CHECKOUT.glob(text)), text


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_header_names_the_section_data_and_score(name):
    header = re.match(r"(//.*\n)+", (TRAINING_CONFIGS / name).read_text("utf-8"))[0]
    assert re.findall(r"^// ([a-z]+):", header, re.MULTILINE)[:3] == ["paper", "data", "score"]


@pytest.mark.parametrize(("name", "folder"), RUNS.items())
def test_a_score_is_the_mean_of_published_runs(name, folder):
    header = (TRAINING_CONFIGS / f"{name}.jsonnet").read_text("utf-8")
    runs = []
    for path in (CHECKOUT / "results/open" / folder).glob("?.json"):
        runs.append(json.loads(path.read_text("utf-8")))
    score = mean(run["dev"] if run["test"] is None else run["test"] for run in runs)
    assert re.search(r"score: .* (\d+\.\d) here", header)[1] == f"{score:.1f}"
    assert f"{len(runs)} seeds" in header
    # Not the shortest: runs that were interrupted lack the seconds before they were resumed.
    longest = max(run["seconds"] for run in runs) / 60
    assert f"time:  up to {longest:.0f} minutes" in header
