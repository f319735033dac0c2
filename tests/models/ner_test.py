from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
import torch

from elmo_tasks.text.tags import tags_to_spans
from tests.task_models import BOTH, TaskModel

WORDS = ["Jordan", "beat", "Chelsea"]


def batch_of(
    tagger: TaskModel, *sentences: list[str], tags: list[list[str]] | None = None
) -> dict[str, Any]:
    """The tensors of sentences, with tags if given."""
    return tagger.batch(*zip(sentences, tags or [None] * len(sentences), strict=True))


def likelihoods(tagger: TaskModel, logits: torch.Tensor) -> np.ndarray:
    """
    The CRF's score of every tag sequence of three words, exponentiated: shape (n_tags, n_tags,
    n_tags).
    """
    crf = tagger.model.crf
    transitions = crf.transitions.double()
    # The scores of the first, the second and the third word.
    scores = logits.double()
    scores[0] += crf.start_transitions
    scores[2] += crf.end_transitions
    sequence_scores = scores[0][:, None, None] + scores[1][:, None] + scores[2]
    sequence_scores = sequence_scores + transitions[:, :, None] + transitions
    return sequence_scores.exp().detach().numpy()


class TestNerTagger:
    def test_the_loss_is_the_negative_log_likelihood_per_sentence(self, make_model):
        tagger = make_model("ner", BOTH)
        tags = [["B-PER", "I-PER", "O"], ["O", "O", "B-LOC"]]
        output = tagger.model(**batch_of(tagger, WORDS, ["in", "old", "Paris"], tags=tags))
        index = tagger.model.vocab.get_token_to_index_vocabulary("labels")
        bioul_tags = (["B-PER", "L-PER", "O"], ["O", "O", "U-LOC"])
        losses = []
        for logits, gold in zip(output["logits"], bioul_tags, strict=True):
            all_sequences = likelihoods(tagger, logits)
            gold_sequence = tuple(index[tag] for tag in gold)
            losses.append(-np.log(all_sequences[gold_sequence] / all_sequences.sum()))
        assert output["loss"].item() == pytest.approx(np.mean(losses), rel=1e-5)

    def test_the_tags_are_the_best_sequence_that_bioul_allows(self, make_model):
        from allennlp.modules.conditional_random_field.conditional_random_field import (
            allowed_transitions,
        )

        tagger = make_model("ner", [])
        output = tagger.model(**batch_of(tagger, WORDS))
        names = tagger.model.vocab.get_index_to_token_vocabulary("labels")
        allowed = set(allowed_transitions("BIOUL", names))
        start_tag = len(names)
        end_tag = start_tag + 1
        all_sequences = likelihoods(tagger, output["logits"][0])
        allowed_sequences = {}
        for sequence in np.ndindex(*all_sequences.shape):
            steps = set(pairwise([start_tag, *sequence, end_tag]))
            if steps <= allowed:
                allowed_sequences[sequence] = all_sequences[sequence]
        best = max(allowed_sequences, key=allowed_sequences.get)
        assert output["tag_ids"] == [list(best)]

    @pytest.mark.parametrize(
        "words", [["B-PER", "L-PER", "U-LOC"], ["U-ORG", "O", "U-ORG"], ["B-LOC", "I-LOC", "L-LOC"]]
    )
    def test_the_score_of_a_span_is_its_probability(self, make_model, words):
        tagger = make_model("ner", [])
        torch.manual_seed(1)
        index = tagger.model.vocab.get_token_to_index_vocabulary("labels")
        logits = torch.randn(1, 3, len(index))
        ids = [index[tag] for tag in words]
        output = {
            "words": [WORDS],
            "tag_ids": [ids],
            "logits": logits,
            "mask": torch.ones(1, 3, dtype=torch.bool),
        }
        readable = tagger.model.make_output_human_readable(output)
        all_sequences = likelihoods(tagger, logits[0])
        expected = []
        for label, first, last in tags_to_spans(words):
            # Any tags outside the span.
            sequences: list[Any] = [slice(None)] * 3
            sequences[first : last + 1] = ids[first : last + 1]
            score = all_sequences[tuple(sequences)].sum() / all_sequences.sum()
            expected.append(
                {
                    "label": label,
                    "start": first,
                    "end": last,
                    "text": " ".join(WORDS[first : last + 1]),
                    "score": pytest.approx(score),
                }
            )
        assert readable["spans"] == [expected]
        assert readable["tags"] == [words]

    def test_scores_stay_probabilities_in_long_sentences(self, make_model):
        """The partition function is so large that no digits are left after the decimal point."""
        tagger = make_model("ner", [])
        torch.manual_seed(0)
        logits = 30 * torch.randn(4, 120, tagger.model.vocab.get_vocab_size("labels"))
        mask = torch.ones(logits.shape[:2], dtype=torch.bool)
        tag_ids = [path for path, _ in tagger.model.crf.viterbi_tags(logits, mask)]
        output = {"words": [["word"] * 120] * 4, "tag_ids": tag_ids, "logits": logits, "mask": mask}
        readable = tagger.model.make_output_human_readable(output)
        spans = list(chain.from_iterable(readable["spans"]))
        assert len(spans) > 50
        assert all(0.0 <= span["score"] <= 1.0 for span in spans)

    def test_dropout_drops_the_same_units_at_all_words(self, make_model):
        """Section A.7 of the paper: all words of a sentence lose the same units."""
        tagger = make_model("ner", [])
        inputs: list[torch.Tensor] = []
        for encoder in tagger.model.encoders:
            encoder.register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
        tagger.model.train()(**batch_of(tagger, WORDS))
        assert len(inputs) == 2
        # The character part has zeros even without dropout.
        glove, hidden = inputs[0][0, :, -100:], inputs[1][0]
        for units in (glove, hidden):
            dropped = units == 0
            assert torch.equal(dropped, dropped[:1].expand_as(dropped))
            assert 0.25 < dropped[0].float().mean() < 0.75

    def test_the_metrics_count_entities(self, make_model):
        tagger = make_model("ner", [])
        model = tagger.model
        for weight in [*model.crf.parameters(), *model.tag_projection.parameters()]:
            weight.data.zero_()
        model.tag_projection.bias.data[model.vocab.get_token_index("U-PER", "labels")] = 1.0
        model(**batch_of(tagger, ["Ann"], ["Paris"], tags=[["B-PER"], ["B-LOC"]]))
        overall = {
            "precision-overall": 0.5,
            "recall-overall": 0.5,
            "f1-measure-overall": 0.5,
            # The F1 of `PER` is 2/3, that of `LOC` is 0.
            "macro_f1": pytest.approx(1 / 3),
        }
        # Without the labels, for a progress bar.
        assert model.get_metrics() == overall
        metrics = model.get_metrics(reset=True)
        assert {name: metrics[name] for name in overall} == overall
        assert metrics["precision-PER"] == 0.5
        assert metrics["recall-PER"] == 1.0
        assert metrics["recall-LOC"] == 0.0
        assert set(model.get_metrics(reset=True).values()) == {0.0}

    def test_the_scores_of_each_label_are_a_choice(self, make_model):
        """AllenNLP's name for it."""
        tagger = make_model("ner", [], "{ model+: { verbose_metrics: false } }")
        tagger.model(**batch_of(tagger, ["Ann"], tags=[["B-PER"]]))
        assert len(tagger.model.get_metrics(reset=True)) == 4

    @pytest.mark.parametrize("weight", [1.0, 3.0])
    def test_label_weights(self, make_model, weight):
        """A word counts as often as its weight says, with AllenNLP's loss of Lannoy et al."""
        plain = make_model("ner", [])
        # The start and the end of a sentence have no weight.
        plain.model.crf.start_transitions.data.zero_()
        plain.model.crf.end_transitions.data.zero_()
        weights = f"{{ model+: {{ label_weights: {{ PER: {weight} }} }} }}"
        weighted = make_model("ner", [], weights)
        weighted.model.load_state_dict(plain.model.state_dict(), strict=False)
        for tag, factor in (("O", 1.0), ("B-PER", weight)):
            batch = batch_of(plain, ["Ann"], tags=[[tag]])
            plain_loss = plain.model(**batch)["loss"].item()
            weighted_loss = weighted.model(**batch)["loss"].item()
            assert weighted_loss == pytest.approx(factor * plain_loss, rel=1e-5)
