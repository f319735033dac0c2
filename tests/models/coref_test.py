import math
from itertools import chain, cycle, islice
from typing import Any

import pytest
import torch

from elmo_tasks.models.span_ranking import spans_without_crossings
from tests.largest_tensor import largest_tensor
from tests.task_models import BOTH, EACH_PLACE, PLACES, TaskModel

SENTENCES = [
    ["Ada", "Berg", "sang", "in", "Oslo", "."],
    ["She", "slept", "there", "."],
    ["It", "rained", "."],
]
CLUSTERS = [[(0, 1), (6, 6)], [(4, 4), (8, 8)]]
SMALL = "{ model+: { encoder+: { hidden_size: 7 }, hidden_dim: 5, max_antecedents: 3 } }"


def batch_of(resolver: TaskModel, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The tensors of a document, from arguments of the reader's `text_to_instance`."""
    return resolver.tensors([resolver.reader.text_to_instance(*args, **kwargs)])


def long_document(n_sentences: int) -> dict:
    """
    Three-word sentences. One cluster has all first words, two more the second and third words of
    odd sentences.
    """
    sentences = [[f"a{number}", "b", "c"] for number in range(n_sentences)]
    last = 3 * n_sentences
    odd = [[(start + word, start + word) for start in range(3, last, 6)] for word in (1, 2)]
    return {
        "sentences": sentences,
        "clusters": [[(start, start) for start in range(0, last, 3)], *odd],
    }


class TestCorefResolver:
    @pytest.mark.parametrize("place", ["input", "output"])
    def test_the_bilm_runs_sentence_by_sentence(self, make_model, place):
        resolver = make_model("coref", PLACES[place])
        passes: list[torch.Size] = []
        bilm = resolver.elmo_embedders()[0].bilm.bilm
        bilm.register_forward_pre_hook(lambda module, args: passes.append(args[0].shape))
        resolver.model(**resolver.tensors(resolver.instances))
        sentences = list(
            chain.from_iterable(i["metadata"].metadata["sentences"] for i in resolver.instances)
        )
        assert passes == [(len(sentences), max(map(len, sentences)), 50)]

    def test_loss_and_antecedents_match_the_parts(self, make_model):
        """
        Oracle: the parts of the model, which have tests, composed for one document, with a loop
        over the pairs.
        """
        resolver = make_model("coref", ["input"], SMALL)
        model = resolver.model
        speakers = [["Ann"] * 6, ["Bob"] * 4, ["Ann"] * 3]
        tensors = batch_of(resolver, SENTENCES, speakers, CLUSTERS, genre="bc")
        output = model(**tensors)

        embedded, hidden = [], []
        for words in SENTENCES:
            tokens = batch_of(resolver, [words])["tokens"]
            flat = {
                name: {key: tensor[0] for key, tensor in inner.items()}
                for name, inner in tokens.items()
            }
            embedded.append(model.text_field_embedder(flat)[0])
            hidden.append(
                model.encoder(embedded[-1][None], torch.ones(1, len(words), dtype=torch.bool))[0]
            )
        sentences = torch.tensor([0] * 6 + [1] * 4 + [2] * 3)
        spans = model.span_embedder.spans(sentences)
        vectors = model.span_embedder(torch.cat(embedded), torch.cat(hidden), spans)
        scores = model.mention_scorer(vectors)[:, 0]
        # 0.4 spans per word.
        kept = spans_without_crossings(spans, scores, 5)
        spans = spans[kept]
        assert len(kept) == 5
        speaker = [list(chain.from_iterable(speakers))[start] for start, _ in spans.tolist()]
        ids = torch.tensor([["Ann", "Bob"].index(name) for name in speaker])
        pairs = model.antecedent_scorer(vectors[kept], scores[kept], ids, 0)
        cluster_of = {
            mention: number for number, cluster in enumerate(CLUSTERS) for mention in cluster
        }
        total, antecedents = 0.0, []
        for i, span in enumerate(spans.tolist()):
            weights = {j: pairs[i, i - 1 - j].exp().item() for j in range(max(0, i - 3), i)}
            mine = cluster_of.get(tuple(span))
            right = [
                j
                for j in weights
                if mine is not None and cluster_of.get(tuple(spans[j].tolist())) == mine
            ]
            total -= math.log(
                (sum(weights[j] for j in right) if right else 1.0) / (1.0 + sum(weights.values()))
            )
            best = max(weights, key=lambda j: weights[j], default=None)
            antecedents.append(best if best is not None and weights[best] > 1.0 else -1)
        assert output["loss"].item() == pytest.approx(total, rel=1e-4)
        assert output["spans"][0].tolist() == spans.tolist()
        assert output["antecedents"][0].tolist() == antecedents

    @pytest.mark.parametrize("place", EACH_PLACE)
    def test_predictions_do_not_depend_on_the_batch(self, make_model, place):
        resolver = make_model("coref", PLACES[place])
        instances = [
            *resolver.instances[:2],
            resolver.reader.text_to_instance([[], *SENTENCES[:2], [], SENTENCES[2]]),
            resolver.reader.text_to_instance([["Yes"]]),
        ]
        together = resolver.model(**resolver.tensors(instances))
        for row, instance in enumerate(instances):
            alone = resolver.model(**resolver.tensors([instance]))
            assert together["spans"][row].tolist() == alone["spans"][0].tolist()
            assert together["clusters"][row] == alone["clusters"][0]
        assert "loss" not in together

    @pytest.mark.parametrize("place", EACH_PLACE)
    def test_without_gradients_a_long_document_is_computed_in_parts(
        self, make_model, place, monkeypatch
    ):
        resolver = make_model("coref", PLACES[place])
        resolver.enlarge()
        # Words with different vectors, so no two spans have nearly the same score.
        words = cycle(resolver.model.vocab.get_token_to_index_vocabulary("tokens"))
        sentences = [list(islice(words, n)) for n in [1, 7, 2, 50, 3, 3, 30] * 5]
        tensors, sizes, outputs = batch_of(resolver, sentences, clusters=CLUSTERS), [], []
        monkeypatch.setattr("elmo_tasks.models.coref.MAX_WORDS", 350)
        monkeypatch.setattr("elmo_tasks.models.span_ranking.WORDS_AT_ONCE", 20)
        batches = []
        resolver.model.encoder.register_forward_pre_hook(
            lambda module, args: batches.append(tuple(args[1].shape))
        )
        for has_gradients in (True, False):
            with torch.set_grad_enabled(has_gradients):
                sizes.append(largest_tensor(lambda: outputs.append(resolver.model(**tensors))))
        whole, *parts = batches
        assert whole == (35, 50) and parts == [(7, 50)] * 5
        for name in ("spans", "antecedents"):
            assert torch.equal(*(output[name][0] for output in outputs))
        torch.testing.assert_close(outputs[0]["loss"], outputs[1]["loss"], rtol=1e-4, atol=0)
        assert sizes[1] < sizes[0] / 2

    def test_the_loss_is_the_mean_of_the_documents(self, make_model):
        resolver = make_model("coref", BOTH)
        alone = [resolver.model(**resolver.tensors([i]))["loss"].item() for i in resolver.instances]
        together = resolver.model(**resolver.tensors(resolver.instances))["loss"].item()
        assert together == pytest.approx(sum(alone) / 3, rel=1e-4)

    def test_kept_spans_have_at_most_ten_words_of_one_sentence_and_do_not_cross(self, make_model):
        resolver = make_model("coref", [])
        sentences = [[f"w{word}" for word in range(30)], ["x", "y"]] * 4
        (spans,) = resolver.model(**batch_of(resolver, sentences))["spans"]
        assert len(spans) == int(0.4 * 32 * 4)
        sentence_of = list(
            chain.from_iterable([number] * len(words) for number, words in enumerate(sentences))
        )
        pairs = [tuple(span) for span in spans.tolist()]
        assert pairs == sorted(pairs)
        for start, end in pairs:
            assert end - start < 10 and sentence_of[start] == sentence_of[end]
            assert not any(start < other <= end < last for other, last in pairs)

    def test_a_cut_document_equals_a_document_of_the_same_sentences(self, make_model):
        resolver = make_model(
            "coref",
            [],
            "{ model+: { max_sentences: 4, spans_per_word: 2.0, lexical_dropout: 0, dropout: 0 } }",
        )
        document = long_document(6)
        firsts = set()
        for seed in range(10):
            torch.manual_seed(seed)
            whole = resolver.model.train()(**batch_of(resolver, **document, genre="nw"))
            # All single words are kept, because they cross nothing.
            first = int(whole["spans"][0].min())
            clusters = [
                [(m - first,) * 2 for m, _ in c if first <= m < first + 12]
                for c in document["clusters"]
            ]
            sentences = document["sentences"][first // 3 : first // 3 + 4]
            part = resolver.model(**batch_of(resolver, sentences, clusters=clusters, genre="nw"))
            assert (part["spans"][0] + first).tolist() == whole["spans"][0].tolist()
            assert whole["loss"].item() == pytest.approx(part["loss"].item(), rel=1e-4)
            firsts.add(first)
        assert len(firsts) > 1

    @pytest.mark.parametrize(
        ("key", "values"),
        [("genre", ("bc", "nw", "12")), ("speakers", ("AAA", "ABA", "BAB", "ABC"))],
    )
    def test_genre_and_speakers_make_a_difference(self, make_model, key, values):
        # Spans of all sentences are kept and compared, regardless of their scores.
        resolver = make_model(
            "coref", [], SMALL + " + { model+: { spans_per_word: 2.0, max_antecedents: 50 } }"
        )
        losses = []
        for value in values:
            given = (
                [[s] * len(w) for s, w in zip(value, SENTENCES, strict=True)]
                if key == "speakers"
                else value
            )
            losses.append(
                resolver.model(**batch_of(resolver, SENTENCES, clusters=CLUSTERS, **{key: given}))[
                    "loss"
                ]
            )
        if key == "speakers":
            assert losses.pop(2) == losses[1]
        else:
            losses_of = batch_of(resolver, SENTENCES, clusters=CLUSTERS, genre="??")
            assert resolver.model(**losses_of)["loss"] == losses[2]
        assert len({loss.item() for loss in losses}) == 3

    def test_a_document_without_words_has_no_clusters(self, make_model):
        resolver = make_model("coref", BOTH)
        for sentences in ([], [[]]):
            output = resolver.model(**batch_of(resolver, sentences, clusters=[]))
            assert (output["clusters"], output["loss"].item()) == ([[]], 0.0)
            assert resolver.model.make_output_human_readable(output)["texts"] == [[]]

    def test_the_output_is_words_and_clusters(self, make_model):
        resolver = make_model("coref", [])
        metadata = resolver.reader.text_to_instance(SENTENCES, name="nw/x", part=2)[
            "metadata"
        ].metadata
        output = {"metadata": [metadata], "clusters": [[[(0, 1), (6, 6)]]]}
        assert resolver.model.make_output_human_readable(output) == {
            "document": ["nw/x"],
            "part": [2],
            "sentences": [SENTENCES],
            "clusters": [[[[0, 1], [6, 6]]]],
            "texts": [[["Ada Berg", "She"]]],
        }

    def test_the_metrics_match_the_clusters(self, make_model):
        resolver = make_model("coref", [])
        # Ensures clusters with any weights.
        resolver.model.antecedent_scorer.rest[-1].bias.data.fill_(5.0)
        output = resolver.model(**resolver.tensors(resolver.instances))
        resolver.model.get_metrics(reset=True)
        assert any(output["clusters"])
        mine = [
            resolver.reader.text_to_instance(
                instance["metadata"].metadata["sentences"], clusters=clusters
            )
            for instance, clusters in zip(resolver.instances, output["clusters"], strict=True)
        ]
        for instance, old in zip(mine, resolver.instances, strict=True):
            instance["metadata"].metadata.update(
                {k: old["metadata"].metadata[k] for k in ("genre", "speakers")}
            )
        resolver.model(**resolver.tensors(mine))
        metrics = resolver.model.get_metrics(reset=True)
        assert metrics == pytest.approx(dict.fromkeys(metrics, 1.0))
        assert set(resolver.model.get_metrics().values()) == {0.0}
