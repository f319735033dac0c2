from typing import Any

import pytest
import torch

from tests.task_models import BOTH, EACH_PLACE, PLACES, TaskModel

SENTENCE = "Anna sells old maps"
GOLD = "B-ARG0 B-V B-ARG1 I-ARG1"


def batch_of(labeler: TaskModel, *sentences: str, tags: list[str] | None = None) -> dict[str, Any]:
    """The tensors of sentences in which the second word is the predicate, with tags if given."""
    rows = []
    for number, sentence in enumerate(sentences):
        words = sentence.split()
        indicator = [0, 1] + [0] * (len(words) - 2)
        sentence_tags = None if tags is None else tags[number].split()
        rows.append((words, indicator, sentence_tags))
    return labeler.batch(*rows)


def say(labeler: TaskModel, tag: str) -> None:
    """Makes the model prefer a tag everywhere."""
    labeler.model.tag_projection.weight.data.zero_()
    bias = labeler.model.tag_projection.bias.data.zero_()
    bias[labeler.model.vocab.get_token_index(tag, "labels")] = 1.0


class TestSemanticRoleLabeler:
    def test_the_published_sizes_match_the_paper(self, make_model):
        """Section A.5 of the paper."""
        model = make_model("srl", [], small=False).model
        assert len(model.encoder.layers) == 8
        assert model.encoder.get_output_dim() == 300
        assert model.predicate_embedding.weight.shape == (2, 100)
        weight = model.tag_projection.weight
        products = weight @ weight.t()
        torch.testing.assert_close(products, torch.eye(len(weight)), rtol=1e-4, atol=1e-4)

    def test_the_loss_is_the_mean_over_words(self, make_model):
        made = make_model("srl", BOTH)
        output = made.model(**batch_of(made, SENTENCE, "It rains", tags=[GOLD, "B-ARG0 B-V"]))
        losses = []
        for logits, tags in zip(output["logits"], (GOLD, "B-ARG0 B-V"), strict=True):
            for row, tag in zip(logits, tags.split(), strict=False):
                probabilities = row.exp() / row.exp().sum()
                number = made.model.vocab.get_token_index(tag, "labels")
                losses.append(-probabilities[number].log().item())
        assert len(losses) == 6
        assert output["loss"].item() == pytest.approx(sum(losses) / 6, rel=1e-5)

    def test_label_weights(self, make_model):
        """The losses of words with these labels count more, among as many words."""
        made = make_model("srl", [], "{ model+: { label_weights: { ARG1: 3, V: 0 } } }")
        output = made.model(**batch_of(made, SENTENCE, tags=[GOLD]))
        losses = []
        for row, tag in zip(output["logits"][0].log_softmax(-1), GOLD.split(), strict=True):
            losses.append(-row[made.model.vocab.get_token_index(tag, "labels")].item())
        expected = losses[0] + 3 * losses[2] + 3 * losses[3]
        assert output["loss"].item() == pytest.approx(expected / 4, rel=1e-5)

    def test_the_tags_follow_bio_even_if_the_best_single_tags_do_not(self, make_model):
        """`I-ARG1` is best everywhere, but may not come first."""
        made = make_model("srl", [])
        say(made, "I-ARG1")
        number = made.model.vocab.get_token_index("B-ARG1", "labels")
        made.model.tag_projection.bias.data[number] = 0.5
        output = made.model.make_output_human_readable(made.model(**batch_of(made, SENTENCE)))
        assert output["tags"] == [["B-ARG1", "I-ARG1", "I-ARG1", "I-ARG1"]]

    @pytest.mark.parametrize("place", EACH_PLACE)
    def test_the_predicates_of_a_sentence_share_its_embedded_words(self, make_model, place):
        made = make_model("srl", PLACES[place])
        sells = SENTENCE.split()
        rows = [
            (sells, [1, 0, 0, 0]),
            (sells, [0, 1, 0, 0]),
            (["It", "rains"], [0, 1]),
            (sells, [0, 0, 1, 0]),
        ]
        alone = [made.model(**made.batch(row))["logits"][0] for row in rows]
        batch = made.batch(*rows)
        embedded = []
        for embedder in (made.model.text_field_embedder, made.model.output_embedder):
            if embedder is not None:
                embedder.register_forward_hook(
                    lambda module, args, output: embedded.append(len(output))
                )
        together = made.model(**batch)["logits"]
        for logits, expected in zip(together, alone, strict=True):
            torch.testing.assert_close(logits[: len(expected)], expected, rtol=0, atol=1e-5)
        # In training, each predicate has its own dropout.
        made.model.train()(**batch)
        n_embedders = 1 + ("output" in PLACES[place])
        assert embedded == [3] * n_embedders + [4] * n_embedders

    def test_training_computes_no_tags_and_no_metrics(self, make_model):
        """Decoding in training would waste time."""
        made = make_model("srl", [])
        assert "tag_ids" not in made.model.train()(**made.tensors(made.instances))
        assert made.model.get_metrics() == {}
        assert made.model.eval().get_metrics()["recall"] == 0.0

    def test_the_metrics_count_arguments(self, make_model):
        made = make_model("srl", [])
        say(made, "B-ARG0")
        made.model(**batch_of(made, "a b", "a b c", tags=["B-ARG0 O", "B-ARG1 B-V B-C-ARG1"]))
        metrics = made.model.get_metrics(reset=True)
        # Five predicted, one right; two gold.
        assert metrics["precision"] == pytest.approx(1 / 5)
        assert metrics["recall"] == 1 / 2
        assert metrics["f1"] == pytest.approx(2 / 7)
        assert metrics["perfect"] == 0.0
        assert metrics["recall-ARG0"] == 1.0 and metrics["recall-ARG1"] == 0.0
        assert not any(made.model.get_metrics().values())

    def test_the_description_has_the_arguments_in_brackets(self, make_model):
        made = make_model("srl", [])
        index = made.model.vocab.get_token_to_index_vocabulary("labels")
        tags = ["B-ARG0", "O", "B-V", "B-ARG1", "I-ARG1", "O"]
        output = {
            "words": [["Anna", "often", "eats", "an", "apple", "."]],
            "verb": ["eats"],
            "tag_ids": [[index[tag] for tag in tags]],
            "logits": torch.zeros(1, 6, len(index)),
        }
        readable = made.model.make_output_human_readable(output)
        assert readable["description"] == ["[ARG0: Anna] often [V: eats] [ARG1: an apple] ."]
        assert (readable["tags"], readable["verb"]) == ([tags], ["eats"])
        assert readable["probabilities"] == [pytest.approx([1 / len(index)] * 6)]
