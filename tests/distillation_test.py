"""Tests of students that learn from soft labels."""

import copy
import itertools
import json

import numpy as np
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Lazy, Params
from allennlp.common.checks import ConfigurationError
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.models import load_archive
from allennlp.modules import ConditionalRandomField
from allennlp.predictors import Predictor

from elmo_tasks.distillation.data import DistilledDataLoader
from elmo_tasks.modules.labels import soft_loss, tag_marginals
from tests.demo.archives import write_archive
from tests.paths import FIXTURES, TRAINING_CONFIGS

TEXTS = [{"words": ["Jordan", "beat", "Chelsea", "."]}, {"words": ["It", "rains"]}, {"sentence": "Ann left Berlin."}]


def test_marginals_are_sums_over_all_sequences():
    torch.manual_seed(0)
    crf = ConditionalRandomField(3)
    logits, mask = torch.randn(2, 4, 3), torch.tensor([[True] * 4, [True, True, False, False]])
    found = tag_marginals(crf, logits, mask).detach().numpy()
    for row, length in enumerate([4, 2]):
        expected = np.zeros((4, 3))
        for tags in itertools.product(range(3), repeat=length):
            score = sum(logits[row, step, tag].item() for step, tag in enumerate(tags))
            score += sum(crf.transitions[pair].item() for pair in itertools.pairwise(tags))
            score += crf.start_transitions[tags[0]].item() + crf.end_transitions[tags[-1]].item()
            for step, tag in enumerate(tags):
                expected[step, tag] += np.exp(score)
        expected[:length] /= expected[0].sum()
        np.testing.assert_allclose(found[row], expected, atol=1e-5)


def test_the_loss_is_a_cross_entropy():
    logits, teacher = torch.randn(4, 3, requires_grad=True), torch.rand(4, 3).softmax(-1)
    expected = -(teacher * logits.log_softmax(-1)).sum(-1).mean()
    torch.testing.assert_close(soft_loss(logits, teacher), expected)
    # For a tagger, the losses of the words of a sentence add up.
    crf, mask = ConditionalRandomField(3), torch.tensor([[True, True, False]])
    words = torch.randn(1, 3, 3, requires_grad=True)
    marginals = tag_marginals(crf, words, mask)
    entropy = -(marginals.detach() * marginals.clamp_min(1e-30).log()).sum()
    loss = soft_loss(words, marginals.detach(), mask, crf)
    torch.testing.assert_close(loss, entropy)
    loss.backward()
    # At the teacher's probabilities, the gradient is zero.
    assert words.grad.abs().max() < 1e-4


@pytest.mark.slow
def test_a_student_learns_from_two_teachers(environment, tmp_path):
    import elmo_tasks.plugin  # noqa: F401

    config = Params.from_file(TRAINING_CONFIGS / "ner.jsonnet").as_dict(quiet=True)
    config["trainer"] |= {"num_epochs": 1}
    train_model(Params(copy.deepcopy(config)), str(tmp_path / "teacher"))
    teacher = load_archive(tmp_path / "teacher" / "model.tar.gz")
    predictor = Predictor.from_archive(teacher, "elmo_soft_labels")
    found = predictor.predict_batch_json(TEXTS)
    for text, words in zip(found, [4, 2, 4], strict=True):
        assert np.array(text["probabilities"]).shape == (words, len(text["labels"]))
        np.testing.assert_allclose(np.sum(text["probabilities"], -1), 1.0, atol=1e-5)
    files = [str(tmp_path / name) for name in ("one.jsonl", "other.jsonl")]
    for file in files:
        with open(file, "w") as lines:
            lines.writelines(json.dumps(text) + "\n" for text in found)
    config["data_loader"] = {"type": "elmo_distilled", "soft_labels": files, "loader": config["data_loader"]}
    config["validation_data_loader"] = {"batch_sampler": {"type": "bucket", "batch_size": 64}}
    # The student learns only from the soft labels.
    train_model(Params(copy.deepcopy(config)), str(tmp_path / "student"))
    assert load_archive(tmp_path / "student" / "model.tar.gz").model.default_predictor == "elmo_sentence"
    with open(files[1], "w") as lines:
        lines.writelines(json.dumps({**text, "labels": text["labels"][::-1]}) + "\n" for text in found)
    with pytest.raises((ConfigurationError, ValueError), match="labels"):
        train_model(Params(copy.deepcopy(config)), str(tmp_path / "other"))


@pytest.mark.slow
def test_pairs_are_read_as_the_teacher_read_them(environment, tmp_path):
    archive = load_archive(write_archive(tmp_path / "snli", "snli"))
    predictor = Predictor.from_archive(archive, "elmo_soft_labels")
    pairs = [{"sentence1": "Two dogs can't run.", "sentence2": "Animals move."}]
    (tmp_path / "soft.jsonl").write_text(json.dumps(predictor.predict_batch_json(pairs)[0]) + "\n")
    loader = Lazy(MultiProcessDataLoader, constructor_extras={"batch_size": 4})
    batches = DistilledDataLoader(
        archive.dataset_reader, str(FIXTURES / "snli" / "dev.jsonl"), [str(tmp_path / "soft.jsonl")], loader
    )
    batches.index_with(archive.model.vocab)
    _, soft = itertools.islice(batches, 2)
    expected = Predictor.from_archive(archive).predict_json(pairs[0])
    assert soft["metadata"][0]["premise_tokens"] == expected["premise_tokens"]
    labels = archive.model.vocab.get_index_to_token_vocabulary("labels")
    found = {labels[number]: share for number, share in enumerate(soft["teacher"][0].tolist())}
    assert found == pytest.approx(expected["probabilities"])


def test_the_template_adds_the_loader(environment, tmp_path):
    config = tmp_path / "student.jsonnet"
    library = TRAINING_CONFIGS / "lib"
    distilled = f"(import '{library}/distilled.libsonnet')"
    config.write_text(f"local ner = import '{library}/ner.libsonnet';\n{distilled}(ner(), ['soft.jsonl'])")
    loader = Params.from_file(config)["data_loader"].as_dict(quiet=True)
    assert loader["soft_labels"] == ["soft.jsonl"]
    assert FIXTURES.exists() and loader["loader"]["batch_sampler"]["type"] == "bucket"
