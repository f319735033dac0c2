"""Several models of one task as one."""

from pathlib import Path

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch

from allennlp_today import load_archive
from elmo_tasks import TrainedTask
from elmo_tasks.models import Ensemble, write_ensemble
from tests.archives import write_archive
from tests.results import approximately

TASKS = ("ner", "srl", "sst", "snli", "squad", "pos_tagger")
SCORES = {"squad": ("start_log_probs", "end_log_probs")}
TEXTS = {"snli": ("Ann sang.", "She sang."), "squad": ("Who sang?", "Ann sang in Rome.")}


def tensors(archive) -> dict:
    """A few instances of the validation data, with what is right."""
    reader = archive.validation_dataset_reader
    instances = []
    for instance in reader.read(archive.config.params["validation_data_path"]):
        reader.apply_token_indexers(instance)
        instances.append(instance)
        if len(instances) == 3:
            break
    batch = Batch(instances)
    batch.index_instances(archive.model.vocab)
    return batch.as_tensor_dict()


@pytest.mark.parametrize("task", TASKS)
def test_it_chooses_by_the_mean_of_its_members(archive, tmp_path, task):
    paths = [archive(task, "none", seed) for seed in (1, 2)]
    write_ensemble(tmp_path / "both", paths)
    both = load_archive(tmp_path / "both")
    assert isinstance(both.model, Ensemble)
    batch = tensors(both)
    output = both.model.eval()(**batch)
    members = [load_archive(path).model.eval() for path in paths]
    outputs = [member(**batch) for member in members]
    for name in SCORES.get(task, ("logits",)):
        scores = torch.stack([member_output[name].double() for member_output in outputs])
        mean_score = output[name].double()
        if task == "ner":
            torch.testing.assert_close(mean_score, scores.mean(0), rtol=1e-4, atol=1e-4)
        else:
            expected = scores.softmax(-1).mean(0)
            torch.testing.assert_close(mean_score.exp(), expected, rtol=1e-4, atol=1e-6)
    assert output["loss"].item() > 0
    assert both.model.get_metrics().keys() == members[0].get_metrics().keys()


@pytest.mark.parametrize("task", TASKS)
def test_a_model_twice_is_the_model(archive, tmp_path, task):
    path = archive(task, "input", 3)
    write_ensemble(tmp_path / "twice", [path, path])
    text = TEXTS.get(task, ("Ann met Bob in Rome.",))
    expected = TrainedTask(path)(*text)
    result = TrainedTask(tmp_path / "twice")(*text)
    assert result == approximately(expected)


def test_the_scores_of_a_crf_are_means(archive, tmp_path):
    paths = [archive("ner", "none", seed) for seed in (1, 2)]
    write_ensemble(tmp_path / "both", paths)
    crf = load_archive(tmp_path / "both").model.members[0].crf
    one, other = [load_archive(path).model.crf.transitions for path in paths]
    torch.testing.assert_close(crf.transitions, (one + other) / 2)


def test_weights_that_are_equal_are_written_once(archive, tmp_path):
    path = archive("ner", "input", 3)
    sizes = []
    for n_members in (1, 3):
        folder = tmp_path / str(n_members)
        write_ensemble(folder, [path] * n_members)
        sizes.append((folder / "weights.th").stat().st_size)
    assert sizes[1] < 1.5 * sizes[0]


def test_members_must_belong_together(archive, tmp_path):
    first = archive("ner", "none", 1)
    other = write_archive(tmp_path / "ner", "ner", "input")
    for paths, message in (
        ([first, archive("srl", "none", 1)], "expected a NerTagger, got SemanticRoleLabeler"),
        ([archive("coref", "none", 3)], "got CorefResolver"),
        ([first, other], "dataset_reader"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            write_ensemble(tmp_path / "out", paths)
    assert not Path(tmp_path / "out").exists()


def test_it_is_not_trained(archive, tmp_path):
    write_ensemble(tmp_path / "one", [archive("sst", "none", 1)])
    loaded = load_archive(tmp_path / "one")
    with pytest.raises(ConfigurationError, match="cannot be trained"):
        loaded.model.train()(**tensors(loaded))
