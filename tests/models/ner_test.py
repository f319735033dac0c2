from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import ModelTestCase

from elmo_tasks.modules import ElmoTokenEmbedder
from elmo_tasks.tags import tags_to_spans
from tests.models.conftest import BOTH, PLACES, Tagger

WORDS = ["Jordan", "beat", "Chelsea"]


def elmo_embedders(tagger: Tagger) -> list[ElmoTokenEmbedder]:
    return [module for module in tagger.model.modules() if isinstance(module, ElmoTokenEmbedder)]


def likelihoods(tagger: Tagger, logits: torch.Tensor) -> np.ndarray:
    """The CRF's score of every tag sequence of three words, exponentiated: shape (n_tags, n_tags, n_tags)."""
    crf = tagger.model.crf
    first, second, third = logits.double().detach().numpy()
    between, start, end = (
        p.double().detach().numpy() for p in (crf.transitions, crf.start_transitions, crf.end_transitions)
    )
    scores = (
        (start + first)[:, None, None]
        + between[:, :, None]
        + second[None, :, None]
        + between[None, :, :]
        + (third + end)[None, None, :]
    )
    return np.exp(scores)


class TestNerTagger:
    @pytest.mark.parametrize("place", PLACES)
    def test_elmo_is_where_the_config_wants_it(self, make_tagger, place):
        """Oracle: the widths by hand: GloVe 100, characters 128, ELMo 2 * 8, the highest biLSTM 2 * 100."""
        tagger = make_tagger(PLACES[place])
        assert tagger.model.encoders[0].get_input_dim() == 100 + 128 + 16 * ("input" in PLACES[place])
        assert tagger.model.tag_projection.in_features == 200 + 16 * ("output" in PLACES[place])
        assert len(elmo_embedders(tagger)) == len(PLACES[place])

    @pytest.mark.parametrize("place", PLACES)
    def test_everything_but_the_bilm_is_trained(self, make_tagger, place):
        """Oracle: the names of the parameters with a gradient that is not zero."""
        tagger = make_tagger(PLACES[place])
        tagger.model(**tagger.tensors(tagger.instances))["loss"].backward()
        for name, parameter in tagger.model.named_parameters():
            if ".bilm." in name or name == "crf._constraint_mask":
                assert parameter.grad is None, name
            else:
                assert parameter.grad.abs().max() > 0, name

    @pytest.mark.parametrize("place", PLACES)
    def test_the_bilm_runs_once_a_batch(self, make_tagger, place):
        """Oracle: the number of runs; none without ELMo."""
        tagger = make_tagger(PLACES[place])
        bilms = {embedder.bilm for embedder in elmo_embedders(tagger)}
        assert len(bilms) == min(1, len(PLACES[place]))
        passes: list[int] = []
        for bilm in bilms:
            bilm.bilm.register_forward_pre_hook(lambda module, args: passes.append(1))
        tagger.model.train()
        for number in (1, 2):
            tagger.model(**tagger.tensors(tagger.instances[:3]))
            assert len(passes) == (number if bilms else 0)

    def test_the_two_places_have_mixes_of_their_own(self, make_tagger):
        """Oracle: by hand: other modules, and a step of training makes their weights different."""
        tagger = make_tagger(BOTH)
        below, above = (embedder.mix for embedder in elmo_embedders(tagger))
        assert below.layer_weights is not above.layer_weights
        tagger.model(**tagger.tensors(tagger.instances))["loss"].backward()
        assert not torch.equal(below.layer_weights.grad, above.layer_weights.grad)

    @pytest.mark.parametrize("place", ["input", "output"])
    def test_elmo_makes_a_difference(self, make_tagger, place):
        """Oracle: other logits with gamma = 0; without ELMo there is nothing to turn off."""
        tagger = make_tagger(PLACES[place])
        tensors = tagger.sentences(WORDS)
        before = tagger.model(**tensors)["logits"]
        elmo_embedders(tagger)[0].mix.gamma.data.zero_()
        assert not torch.allclose(tagger.model(**tensors)["logits"], before)

    def test_the_loss_is_the_negative_log_likelihood_a_sentence(self, make_tagger):
        """Oracle: the sum over all tag sequences of three words, enumerated in NumPy."""
        tagger = make_tagger(BOTH)
        tags = [["B-PER", "I-PER", "O"], ["O", "O", "B-LOC"]]
        output = tagger.model(**tagger.sentences(WORDS, ["in", "old", "Paris"], tags=tags))
        index = tagger.model.vocab.get_token_to_index_vocabulary("labels")
        expected = []
        for logits, gold in zip(output["logits"], (["B-PER", "L-PER", "O"], ["O", "O", "U-LOC"]), strict=True):
            all_sequences = likelihoods(tagger, logits)
            expected.append(-np.log(all_sequences[tuple(index[tag] for tag in gold)] / all_sequences.sum()))
        assert output["loss"].item() == pytest.approx(np.mean(expected), rel=1e-5)

    def test_the_tags_are_the_best_sequence_that_bioul_allows(self, make_tagger):
        """Oracle: the largest likelihood of all well-formed sequences, enumerated."""
        from allennlp.modules.conditional_random_field.conditional_random_field import allowed_transitions

        tagger = make_tagger([])
        output = tagger.model(**tagger.sentences(WORDS))
        names = tagger.model.vocab.get_index_to_token_vocabulary("labels")
        allowed = set(allowed_transitions("BIOUL", names))
        n_tags = len(names)
        best, best_likelihood = None, 0.0
        all_sequences = likelihoods(tagger, output["logits"][0])
        for sequence in np.ndindex(*all_sequences.shape):
            steps = zip([n_tags, *sequence], [*sequence, n_tags + 1], strict=True)
            if all_sequences[sequence] > best_likelihood and all(step in allowed for step in steps):
                best, best_likelihood = sequence, all_sequences[sequence]
        assert output["tag_ids"] == [list(best)]

    @pytest.mark.parametrize(
        "words", [["B-PER", "L-PER", "U-LOC"], ["U-ORG", "O", "U-ORG"], ["B-LOC", "I-LOC", "L-LOC"]]
    )
    def test_the_score_of_a_span_is_its_probability(self, make_tagger, words):
        """Oracle: the likelihood of all sequences with the span's tags, of the likelihood of all, enumerated."""
        tagger = make_tagger([])
        torch.manual_seed(1)
        index = tagger.model.vocab.get_token_to_index_vocabulary("labels")
        logits = torch.randn(1, 3, len(index))
        ids = [index[tag] for tag in words]
        output = {"words": [WORDS], "tag_ids": [ids], "logits": logits, "mask": torch.ones(1, 3, dtype=torch.bool)}
        readable = tagger.model.make_output_human_readable(output)
        all_sequences = likelihoods(tagger, logits[0])
        expected = []
        for label, start, end in tags_to_spans(words):
            held = tuple(ids[word] if start <= word <= end else slice(None) for word in range(3))
            score = all_sequences[held].sum() / all_sequences.sum()
            text = " ".join(WORDS[start : end + 1])
            expected.append({"label": label, "start": start, "end": end, "text": text, "score": pytest.approx(score)})
        assert readable["spans"] == [expected]
        assert readable["tags"] == [words]

    def test_scores_stay_probabilities_in_long_sentences(self, make_tagger):
        """Oracle: 0 to 1, where the partition function is so large that it has no digits left after the point."""
        tagger = make_tagger([])
        torch.manual_seed(0)
        logits = 30 * torch.randn(4, 120, tagger.model.vocab.get_vocab_size("labels"))
        mask = torch.ones(logits.shape[:2], dtype=torch.bool)
        tag_ids = [path for path, _ in tagger.model.crf.viterbi_tags(logits, mask)]
        output = {"words": [["word"] * 120] * 4, "tag_ids": tag_ids, "logits": logits, "mask": mask}
        readable = tagger.model.make_output_human_readable(output)
        spans = [span for sentence in readable["spans"] for span in sentence]
        assert len(spans) > 50
        assert all(0.0 <= span["score"] <= 1.0 for span in spans)

    @pytest.mark.parametrize("place", PLACES)
    def test_predictions_do_not_depend_on_the_batch(self, make_tagger, place):
        """Oracle: each sentence alone; long and short ones, with words of one letter."""
        tagger = make_tagger(PLACES[place])
        sentences = [["I", "am", "a", "Jordan", "."], ["x"], [], ["Encyclopædia", "Britannica"]]
        together = tagger.model(**tagger.sentences(*sentences))
        for row, words in enumerate(sentences):
            alone = tagger.model(**tagger.sentences(words))
            logits = together["logits"][row, : len(words)]
            torch.testing.assert_close(logits, alone["logits"][0], rtol=0, atol=1e-5)
            assert together["tag_ids"][row] == alone["tag_ids"][0]

    @pytest.mark.parametrize("place", PLACES)
    def test_a_sentence_without_words_has_no_tags_and_no_loss(self, make_tagger, place):
        """Oracle: the other sentence alone, over two; the probability of the only sequence of no tags is 1."""
        tagger = make_tagger(PLACES[place])
        gold = ["U-PER", "O", "U-ORG"]
        output = tagger.model(**tagger.sentences(WORDS, [], tags=[gold, []]))
        alone = tagger.model(**tagger.sentences(WORDS, tags=[gold]))
        assert output["loss"].item() == pytest.approx(alone["loss"].item() / 2, rel=1e-5)
        assert output["tag_ids"] == [*alone["tag_ids"], []]
        readable = tagger.model.make_output_human_readable(output)
        assert (readable["words"][1], readable["tags"][1], readable["spans"][1]) == ([], [], [])

    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("n_sentences", [1, 2])
    def test_a_batch_without_words_has_no_tags_and_no_loss(self, make_tagger, place, n_sentences):
        """Oracle: empty lists and zero; the loss can be gone back from, as the trainer does."""
        tagger = make_tagger(PLACES[place])
        empty: list[list[str]] = [[]] * n_sentences
        output = tagger.model.train()(**tagger.sentences(*empty, tags=empty))
        assert output["loss"] == 0
        output["loss"].backward()
        readable = tagger.model.make_output_human_readable(output)
        assert readable == {"words": empty, "tags": empty, "spans": empty}

    def test_without_tags_there_is_no_loss(self, make_tagger):
        """Oracle: the keys."""
        tagger = make_tagger([])
        assert "loss" not in tagger.model(**tagger.sentences(WORDS))

    def test_dropout_drops_the_same_units_at_all_words(self, make_tagger):
        """Oracle: section A.7 of the paper: variational dropout; the zeroes of all words of a sentence are the same."""
        tagger = make_tagger([])
        inputs: list[torch.Tensor] = []
        for encoder in tagger.model.encoders:
            encoder.register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
        tagger.model.train()(**tagger.sentences(WORDS))
        assert len(inputs) == 2
        # The characters' part has zeroes of its own.
        glove, hidden = inputs[0][0, :, -100:], inputs[1][0]
        for units in (glove, hidden):
            dropped = units == 0
            assert torch.equal(dropped, dropped[:1].expand_as(dropped))
            assert 0.25 < dropped[0].float().mean() < 0.75

    def test_a_wrong_width_is_an_error(self, make_tagger):
        """Oracle: the message names the encoder, what it has and what it gets."""
        narrow = "{ model+: { encoders: [super.encoders[0] { input_size: 7 }, super.encoders[1]] } }"
        with pytest.raises(ConfigurationError, match=r"encoder 0 .* must have the input_size 228.* but has 7"):
            make_tagger([], narrow)
        narrow = "{ model+: { encoders: [super.encoders[0], super.encoders[1] { input_size: 7 }] } }"
        with pytest.raises(ConfigurationError, match=r"encoder 1 .* must have the input_size 400.* but has 7"):
            make_tagger([], narrow)

    def test_the_metrics_are_of_entities(self, make_tagger):
        """Oracle: by hand: the gold tags are what the model predicts, but for one sentence of two."""
        tagger = make_tagger([], "{ model+: { verbose_metrics: true } }")
        model = tagger.model
        model.crf.start_transitions.data.zero_(), model.crf.end_transitions.data.zero_()
        model.crf.transitions.data.zero_(), model.tag_projection.weight.data.zero_()
        model.tag_projection.bias.data.zero_()[model.vocab.get_token_index("U-PER", "labels")] = 1.0
        model(**tagger.sentences(["Ann"], ["Paris"], tags=[["B-PER"], ["B-LOC"]]))
        metrics = model.get_metrics(reset=True)
        expected = {"overall": (0.5, 0.5, 0.5), "PER": (0.5, 1.0, 2 / 3), "LOC": (0.0, 0.0, 0.0)}
        for name, values in expected.items():
            found = tuple(metrics[f"{metric}-{name}"] for metric in ("precision", "recall", "f1-measure"))
            assert found == pytest.approx(values)
        assert model.get_metrics()["f1-measure-overall"] == 0.0
        assert set(make_tagger([]).model.get_metrics()) == {
            "precision-overall",
            "recall-overall",
            "f1-measure-overall",
        }


@pytest.mark.slow
class TestTrainingOfNer(ModelTestCase):
    """Oracle: AllenNLP's `ModelTestCase`: trains, saves, loads, and compares the loaded model with the trained one."""

    @pytest.fixture(autouse=True)
    def _snippet(self, snippet, small_ner, environment) -> Iterator[None]:
        environment.setenv("ELMO_TASKS_DATA", str(small_ner))
        self.snippet = snippet
        yield

    @pytest.mark.parametrize("place", PLACES)
    def test_it_can_train_save_and_load(self, place):
        """Oracle: see the class; the frozen biLM and the mask of what BIOUL allows have no gradients."""
        # Without buckets: they are shuffled, and the sentences of the two models could not be compared.
        overrides = "{ data_loader: { batch_size: 8 }, trainer+: { num_epochs: 1 } }"
        path: Path = self.snippet(PLACES[place], overrides)
        self.ensure_model_can_train_save_and_load(path, seed=1)
