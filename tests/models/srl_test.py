from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import ModelTestCase

from elmo_tasks.modules import ElmoTokenEmbedder
from tests.models.conftest import BOTH, PLACES
from tests.srl_models import SMALL, Labeler, make_labeler, write_variant

SENTENCE, GOLD = "Anna sells old maps", "B-ARG0 B-V B-ARG1 I-ARG1"


@pytest.fixture
def labeler(tmp_path: Path, environment: pytest.MonkeyPatch) -> Callable[..., Labeler]:
    return lambda *arguments: make_labeler(tmp_path, *arguments)


def elmo_embedders(labeler: Labeler) -> list[ElmoTokenEmbedder]:
    return [module for module in labeler.model.modules() if isinstance(module, ElmoTokenEmbedder)]


def say(labeler: Labeler, tag: str) -> None:
    """Makes the model prefer a tag everywhere."""
    labeler.model.tag_projection.weight.data.zero_()
    bias = labeler.model.tag_projection.bias.data.zero_()
    bias[labeler.model.vocab.get_token_index(tag, "labels")] = 1.0


class TestSemanticRoleLabeler:
    @pytest.mark.parametrize("place", PLACES)
    def test_elmo_is_where_the_config_wants_it(self, labeler, place):
        """Oracle: the widths by hand: GloVe 100, the predicate 100, ELMo 2 * 8, the encoder 12."""
        made = labeler(PLACES[place])
        assert made.model.encoder.get_input_dim() == 200 + 16 * ("input" in PLACES[place])
        assert made.model.tag_projection.in_features == 12 + 16 * ("output" in PLACES[place])
        assert len(elmo_embedders(made)) == len(PLACES[place])

    def test_the_published_sizes_are_the_papers(self, labeler):
        """Oracle: section A.5: eight layers of 300, the predicate's vector of 100, dropout of 0.1."""
        model = labeler([], "{}").model
        assert len(model.encoder.layers) == 8
        assert model.encoder.get_output_dim() == 300
        assert model.predicate_embedding.weight.shape == (2, 100)
        assert all(layer._dropout == 0.1 for layer in model.encoder.layers)
        weight = model.tag_projection.weight
        torch.testing.assert_close(weight @ weight.t(), torch.eye(len(weight)), rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("place", PLACES)
    def test_everything_but_the_bilm_is_trained(self, labeler, place):
        """Oracle: the names of the parameters with a gradient that is not zero."""
        made = labeler(PLACES[place])
        made.model.train()(**made.tensors(made.instances))["loss"].backward()
        for name, parameter in made.model.named_parameters():
            if ".bilm." in name:
                assert parameter.grad is None, name
            else:
                assert parameter.grad.abs().max() > 0, name

    @pytest.mark.parametrize("place", PLACES)
    def test_the_bilm_runs_once_a_batch(self, labeler, place):
        """Oracle: the number of runs; none without ELMo."""
        made = labeler(PLACES[place])
        bilms = {embedder.bilm for embedder in elmo_embedders(made)}
        assert len(bilms) == min(1, len(PLACES[place]))
        passes: list[int] = []
        for bilm in bilms:
            bilm.bilm.register_forward_pre_hook(lambda module, args: passes.append(1))
        made.model(**made.tensors(made.instances[:3]))
        assert len(passes) == len(bilms)

    @pytest.mark.parametrize("place", ["input", "output"])
    def test_elmo_makes_a_difference(self, labeler, place):
        """Oracle: other logits with gamma = 0."""
        made = labeler(PLACES[place])
        tensors = made.sentences(SENTENCE)
        before = made.model(**tensors)["logits"]
        elmo_embedders(made)[0].mix.gamma.data.zero_()
        assert not torch.allclose(made.model(**tensors)["logits"], before)

    def test_the_predicate_makes_a_difference(self, labeler):
        """Oracle: other logits for another predicate of the same sentence."""
        made = labeler([])
        words = SENTENCE.split()
        marks = ([0, 1, 0, 0], [0, 0, 0, 1])
        logits = made.model(**made.tensors([made.reader.text_to_instance(words, mark) for mark in marks]))["logits"]
        assert not torch.allclose(logits[0], logits[1])

    def test_the_loss_is_the_mean_over_words(self, labeler):
        """Oracle: the negative logarithms of the gold tags' probabilities, word by word."""
        made = labeler(BOTH)
        output = made.model(**made.sentences(SENTENCE, "It rains", tags=[GOLD, "B-ARG0 B-V"]))
        losses = []
        for logits, tags in zip(output["logits"], (GOLD, "B-ARG0 B-V"), strict=True):
            for row, tag in zip(logits, tags.split(), strict=False):
                probabilities = row.exp() / row.exp().sum()
                losses.append(-probabilities[made.model.vocab.get_token_index(tag, "labels")].log().item())
        assert len(losses) == 6
        assert output["loss"].item() == pytest.approx(sum(losses) / 6, rel=1e-5)

    def test_the_tags_follow_bio_where_single_words_would_not(self, labeler):
        """Oracle: by hand: where `I-ARG1` is best everywhere, it may not come first; `B-ARG1` or another does."""
        made = labeler([])
        say(made, "I-ARG1")
        made.model.tag_projection.bias.data[made.model.vocab.get_token_index("B-ARG1", "labels")] = 0.5
        output = made.model.make_output_human_readable(made.model(**made.sentences(SENTENCE)))
        assert output["tags"] == [["B-ARG1", "I-ARG1", "I-ARG1", "I-ARG1"]]

    @pytest.mark.parametrize("place", PLACES)
    def test_predictions_do_not_depend_on_the_batch(self, labeler, place):
        """Oracle: each sentence alone."""
        made = labeler(PLACES[place])
        sentences = ["I am a Jordan .", "It rains", "Encyclopædia sells 😀 ."]
        together = made.model(**made.sentences(*sentences))
        for row, sentence in enumerate(sentences):
            alone = made.model(**made.sentences(sentence))
            logits = together["logits"][row, : len(sentence.split())]
            torch.testing.assert_close(logits, alone["logits"][0], rtol=0, atol=1e-5)
            assert together["tag_ids"][row] == alone["tag_ids"][0]

    def test_training_computes_no_tags_and_no_metrics(self, labeler):
        """Oracle: the keys: in training, decoding would cost time for nothing."""
        made = labeler([])
        assert "tag_ids" not in made.model.train()(**made.tensors(made.instances))
        assert made.model.get_metrics() == {}
        assert made.model.eval().get_metrics()["recall"] == 0.0

    def test_without_tags_there_is_no_loss(self, labeler):
        """Oracle: the keys."""
        made = labeler([])
        assert "loss" not in made.model(**made.sentences(SENTENCE))

    def test_the_metrics_are_of_arguments(self, labeler):
        """
        Oracle: by hand: `ARG0` at every word. One of two propositions with it is right; the other score joins parts,
        and so takes `ARG1 V C-ARG1` for one argument of three words, but has no other opinion here.
        """
        made = labeler([], "{ model+: { verbose_metrics: true, encoder+: { hidden_size: 12, num_layers: 2 } } }")
        say(made, "B-ARG0")
        made.model(**made.sentences("a b", "a b c", tags=["B-ARG0 O", "B-ARG1 B-V B-C-ARG1"]))
        metrics = made.model.get_metrics(reset=True)
        # Five predicted, one right; two gold.
        assert metrics["precision"] == pytest.approx(1 / 5)
        assert (metrics["recall"], metrics["recall-ARG0"], metrics["recall-ARG1"]) == (1 / 2, 1.0, 0.0)
        assert (metrics["f1"], metrics["span-f1"]) == pytest.approx((2 / 7, 2 / 7))
        assert metrics["perfect"] == 0.0
        assert not any(made.model.get_metrics().values())
        assert set(labeler([]).model.get_metrics()) == {"precision", "recall", "f1", "perfect", "span-f1"}

    def test_the_description_has_the_arguments_in_brackets(self, labeler):
        """Oracle: by hand."""
        made = labeler([])
        index = made.model.vocab.get_token_to_index_vocabulary("labels")
        tags = ["B-ARG0", "O", "B-V", "B-ARG1", "I-ARG1", "O"]
        output = {
            "words": [["Anna", "often", "eats", "an", "apple", "."]],
            "verb": ["eats"],
            "tag_ids": [[index[tag] for tag in tags]],
        }
        readable = made.model.make_output_human_readable(output)
        assert readable["description"] == ["[ARG0: Anna] often [V: eats] [ARG1: an apple] ."]
        assert (readable["tags"], readable["verb"]) == ([tags], ["eats"])

    def test_a_wrong_width_is_an_error(self, labeler):
        """Oracle: the message names both widths."""
        with pytest.raises(ConfigurationError, match=r"words with predicate vectors .* input_size, but got 200 and 7"):
            labeler([], "{ model+: { encoder+: { input_size: 7 } } }")


@pytest.mark.slow
class TestTrainingOfSrl(ModelTestCase):
    """Oracle: AllenNLP's `ModelTestCase`: trains, saves, loads, and compares the loaded model with the trained one."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path, environment) -> Iterator[None]:
        self.folder = tmp_path
        yield

    @pytest.mark.parametrize("place", PLACES)
    def test_it_can_train_save_and_load(self, place):
        """Oracle: see the class."""
        # Without buckets: they are shuffled, and the sentences of the two models could not be compared.
        overrides = f"{SMALL} + {{ data_loader: {{ batch_size: 8 }}, trainer+: {{ num_epochs: 1 }} }}"
        self.ensure_model_can_train_save_and_load(write_variant(self.folder, PLACES[place], overrides), seed=1)
