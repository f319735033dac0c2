"""Tests of what all task models share: ELMo at the input and output, initializers, labels."""

import numpy as np
import pytest
import torch
from allennlp.data import Vocabulary
from sklearn.metrics import f1_score

from elmo_tasks.models.elmo_model import warn_of_unknown_words
from elmo_tasks.models.labels import labels_of
from tests.task_models import BOTH, EACH_PLACE, PLACES, TASKS

EMBEDDERS = {"input": "text_field_embedder", "output": "output_embedder"}
ROWS = {
    "snli": [
        ("A man sleeps.", "A person is asleep.", "entailment"),
        ("x", "Two dogs run along a very long beach in the rain .", "neutral"),
        (
            "Girls sing in front of the old church, and nobody listens to them at all.",
            "Silence",
            "contradiction",
        ),
        ("One", "two", "neutral"),
    ],
    "sst": [
        (["A", "charming", "little", "film"], "3"),
        (["x"], "2"),
        (["The", "jokes", "are", "tired", ",", "and", "I", "hate", "it", "all", "."], "0"),
    ],
}


def loss_of(made):
    return made.model(**made.tensors(made.instances))["loss"]


def zeros_of_inputs(model, *names):
    """
    A dictionary that a forward pass fills with, for each of these modules, where its input is zero.
    """
    zeros = {}
    for name in names:

        def note_zeros(module, args, name=name):
            zeros[name] = args[0] == 0

        model.get_submodule(name).register_forward_pre_hook(note_zeros)
    return zeros


def encoded_by(encoder, text):
    """The output of an encoder for a text of shape `(1, timesteps, dim)` without padding."""
    return encoder(text, torch.ones(text.shape[:2], dtype=torch.bool))[0]


def copy_weights(modules, target):
    """Copies the weights of modules, in order, to a module with the same number of weights."""
    weights = []
    for module in modules:
        weights += module.parameters()
    for weight, target_weight in zip(weights, target.parameters(), strict=True):
        target_weight.data.copy_(weight.data)


def fill_biases(value, *modules):
    for module in modules:
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):
                parameter.data.fill_(value)


@pytest.mark.parametrize("task", [*TASKS, "pos_tagger"])
def test_the_field_of_the_reader_interleaving_is_ignored(make_model, task):
    made = make_model(task, PLACES["none"])
    tensors = made.tensors(made.instances[:2])
    loss = made.model(**tensors)["loss"]
    assert torch.equal(made.model(**tensors, dataset=["news", "mine"])["loss"], loss)


@pytest.mark.parametrize("task", TASKS)
class TestElmoInEveryModel:
    @pytest.mark.parametrize("place", EACH_PLACE)
    def test_all_parameters_but_the_frozen_ones_are_trained(self, make_model, task, place):
        made = make_model(task, PLACES[place], TASKS[task].gradient_overrides)
        found = [
            made.model.get_submodule(f"{EMBEDDERS[name]}.token_embedder_elmo")
            for name in PLACES[place]
        ]
        assert made.elmo_embedders() == found
        loss_of(made).backward()
        for name, parameter in made.model.named_parameters():
            if ".bilm." in name or name.endswith(TASKS[task].frozen):
                assert parameter.grad is None, name
            elif name not in TASKS[task].unseen:
                assert parameter.grad.abs().max() > 0, name
        # Each has an array of its own: gradients are clipped and added up in place.
        gradients = [
            parameter.grad for parameter in made.model.parameters() if parameter.grad is not None
        ]
        doubled = [2.0 * gradient for gradient in gradients]
        for gradient in gradients:
            gradient.mul_(2.0)
        assert all(map(torch.equal, gradients, doubled))

    def test_the_bilm_runs_once_per_batch_on_all_sentences(self, make_model, task):
        made = make_model(task, BOTH)
        (bilm,) = {embedder.bilm for embedder in made.elmo_embedders()}
        passes = []
        bilm.bilm.register_forward_pre_hook(lambda module, args: passes.append(len(args[0])))
        for number, training in enumerate((True, True, False), start=1):
            made.model.train(training)(**made.tensors(made.instances[:3]))
            assert passes == [TASKS[task].n_sentences] * number

    def test_each_place_has_its_own_mix(self, make_model, task):
        made = make_model(task, BOTH)
        made.enlarge()
        before = loss_of(made)
        before.backward()
        below, above = (embedder.mix for embedder in made.elmo_embedders())
        assert not torch.equal(below.layer_weights.grad, above.layer_weights.grad)
        with torch.no_grad():
            for mix in (below, above):
                gamma = mix.gamma.clone()
                mix.gamma.zero_()
                assert not torch.allclose(loss_of(made), before)
                mix.gamma.copy_(gamma)


def test_initializers_leave_frozen_weights_alone(make_model):
    constant = "{ model+: { initializer: { regexes: [['', { type: 'constant', val: 3 }]] } } }"
    plain, initialized = (
        make_model("sst", ["input"], overrides).model for overrides in ("{}", constant)
    )
    for name, weight in initialized.named_parameters():
        expected = plain.get_parameter(name)
        if weight.requires_grad:
            expected = torch.full_like(weight, 3.0)
        assert torch.equal(weight, expected)


@pytest.mark.parametrize("place", EACH_PLACE)
@pytest.mark.parametrize("task", ["ner", "srl"])
def test_tags_do_not_depend_on_the_batch(make_model, task, place):
    made = make_model(task, PLACES[place])
    rows = []
    for sentence in ("I am a Jordan .", "It rains", "Encyclopædia sells 😀 ."):
        words = sentence.split()
        if task == "srl":
            rows.append((words, [0, 1] + [0] * (len(words) - 2)))
        else:
            rows.append((words,))
    together = made.model(**made.batch(*rows))
    for number, row in enumerate(rows):
        alone = made.model(**made.batch(row))
        logits = together["logits"][number, : len(row[0])]
        torch.testing.assert_close(logits, alone["logits"][0], rtol=0, atol=1e-5)
        assert together["tag_ids"][number] == alone["tag_ids"][0]


@pytest.mark.parametrize("task", ROWS)
class TestClassifiers:
    def test_loss_accuracy_and_output(self, make_model, task):
        classifier = make_model(task, [])
        classifier.enlarge()
        model, rows = classifier.model, ROWS[task]
        output = model(**classifier.batch(*rows))
        logits = output["logits"].double().detach().numpy()
        labels = labels_of(model.vocab)
        gold = [labels.index(row[-1]) for row in rows]
        likelihood = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        assert output["loss"].item() == pytest.approx(
            -likelihood[range(len(gold)), gold].mean(), rel=1e-5
        )
        readable = model.make_output_human_readable(output)
        for label, probabilities in zip(readable["label"], readable["probabilities"], strict=True):
            assert set(probabilities) == set(labels)
            assert label == max(probabilities, key=probabilities.__getitem__)
        model.get_metrics(reset=True)
        guess = rows[1][-1]
        model.label_projection.weight.data.zero_()
        model.label_projection.bias.data.zero_()[labels.index(guess)] = 1.0
        model(**classifier.batch(*rows))
        assert "loss" not in model(**classifier.batch(rows[0][:-1]))
        truth = [row[-1] for row in rows]
        macro_f1 = f1_score(truth, [guess] * len(rows), average="macro", zero_division=0.0)
        assert model.get_metrics(reset=True) == {
            "accuracy": pytest.approx(truth.count(guess) / len(truth)),
            "macro_f1": pytest.approx(macro_f1),
        }
        model.train()
        assert set(model.get_metrics()) == {"accuracy"}

    def test_label_weights(self, make_model, task):
        """The mean of the losses of all texts, weighted by their labels."""
        rows = ROWS[task]
        name = rows[0][-1]
        weights = f"{{ model+: {{ label_weights: {{ '{name}': 3 }} }} }}"
        classifier = make_model(task, [], weights)
        classifier.enlarge()
        output = classifier.model(**classifier.batch(*rows))
        labels = labels_of(classifier.model.vocab)
        numbers = torch.tensor([labels.index(row[-1]) for row in rows])
        losses = torch.nn.functional.cross_entropy(output["logits"], numbers, reduction="none")
        factors = torch.tensor([3.0 if row[-1] == name else 1.0 for row in rows])
        expected = (losses * factors).sum() / factors.sum()
        torch.testing.assert_close(output["loss"], expected)


@pytest.mark.parametrize(("known", "warns"), [("The", False), ("나는", True)])
def test_word_vectors_of_a_different_language_are_a_warning(tmp_path, caplog, known, warns):
    """A fifth of the words, as they occur, must be known."""
    from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
    from allennlp.modules.token_embedders import Embedding

    file = tmp_path / "vectors.2d.txt"
    file.write_text(f"{known} 1 2\nother 3 4\n")
    counts = {"tokens": {"The": 2, "bank": 3, "is": 4}}
    # As in our configs, the words of the file are a part of the vocabulary.
    vocab = Vocabulary(
        counts, pretrained_files={"tokens": str(file)}, min_pretrained_embeddings={"tokens": -1}
    )
    embedding = Embedding(2, pretrained_file=str(file), vocab=vocab)
    warn_of_unknown_words(vocab, BasicTextFieldEmbedder({"tokens": embedding}))
    assert (
        str(file) in caplog.text and '"vocabulary.pretrained_files": null' in caplog.text
    ) == warns
