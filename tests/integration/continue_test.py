"""A tagger that continues from the archive of a tagger, at every place that loads it."""

import json
import shutil
from pathlib import Path

import pytest
import spacy
from allennlp.commands.train import train_model
from allennlp.common import Params

from elmo_tasks import TrainedTask
from elmo_tasks.corpora.annotate import annotate_file
from elmo_tasks.predictors.trained_task import predictor_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("logging_as_before")]

TEXT = "Ann met Bob in Rome."
DATA = "Zora B-PER\nmet O\nBob B-PER\n. O\n\nOslo B-LOC\nwon O\n. O\n"


@pytest.fixture(scope="module")
def continued(archive, tmp_path_factory) -> Path:
    """The folder of a run. The archive that it started from is gone."""
    folder = tmp_path_factory.mktemp("continued")
    start_archive = archive("ner", "input")
    start = Path(shutil.copy(start_archive, folder / "start.tar.gz"))
    start_config = json.loads(start_archive.with_name("config.json").read_text())
    data = folder / "data.txt"
    data.write_text(DATA)
    config = {
        "dataset_reader": start_config["dataset_reader"],
        "train_data_path": str(data),
        "model": {"type": "from_archive", "archive_file": str(start)},
        "data_loader": {"batch_size": 8},
        "trainer": {"num_epochs": 1, "optimizer": "adam"},
    }
    train_model(Params(config), str(folder / "run"), return_model=False)
    start.unlink()
    return folder / "run"


@pytest.mark.parametrize("path", [".", "model.tar.gz"])
def test_it_is_loaded_in_python_and_in_spacy(continued, path):
    assert predictor_of(continued / path).__name__ == "NerPredictor"
    names = TrainedTask(continued / path)(TEXT)
    assert names, "random weights find some"
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_ner", config={"model": str(continued / path)})
    entities = [(entity.start_char, entity.end_char, entity.label_) for entity in nlp(TEXT).ents]
    assert entities == [(name["start"], name["end"], name["label"]) for name in names]


def test_it_annotates_a_corpus(continued, tmp_path):
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n")
    annotate_file([continued], tmp_path / "texts.txt", tmp_path / "names.jsonl")
    (line,) = (tmp_path / "names.jsonl").read_text().splitlines()
    assert json.loads(line)["run"] == TrainedTask(continued)(TEXT)


def test_without_the_model_in_its_config_its_predictor_is_unknown(tmp_path):
    """As the archives that AllenNLP alone has written."""
    config = {"model": {"type": "from_archive", "archive_file": "start.tar.gz"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert predictor_of(tmp_path) is None
