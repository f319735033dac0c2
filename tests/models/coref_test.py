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
    n_words = 3 * n_sentences
    clusters = []
    for words in (range(0, n_words, 3), range(4, n_words, 6), range(5, n_words, 6)):
        clusters.append([(word, word) for word in words])
    return {"sentences": sentences, "clusters": clusters}


def sentences_of(resolver: TaskModel) -> list[list[str]]:
    """The sentences of all its documents."""
    sentences = []
    for instance in resolver.instances:
        sentences += instance["metadata"].metadata["sentences"]
    return sentences


def sentence_of(resolver: TaskModel, words: list[str]) -> dict[str, dict[str, torch.Tensor]]:
    """The tensors of a sentence as a text, not as a document."""
    sentence = {}
    for indexer, tensors in batch_of(resolver, [words])["tokens"].items():
        sentence[indexer] = {name: tensor[0] for name, tensor in tensors.items()}
    return sentence


def is_coreferent(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return any(one in cluster and other in cluster for cluster in CLUSTERS)


class TestCorefResolver:
    @pytest.mark.parametrize("place", ["input", "output"])
    def test_the_bilm_runs_sentence_by_sentence(self, make_model, place):
        resolver = make_model("coref", PLACES[place])
        passes: list[torch.Size] = []
        bilm = resolver.elmo_embedders()[0].bilm.bilm
        bilm.register_forward_pre_hook(lambda module, args: passes.append(args[0].shape))
        resolver.model(**resolver.tensors(resolver.instances))
        sentences = sentences_of(resolver)
        n_timesteps = max(len(words) for words in sentences)
        assert passes == [(len(sentences), n_timesteps, 50)]

    def test_loss_and_antecedents_match_the_parts(self, make_model):
        """
        Oracle: the parts of the model, which have tests, composed for one document, with a loop
        over the pairs.
        """
        resolver = make_model("coref", ["input"], SMALL)
        model = resolver.model
        speakers = [["Ann"] * 6, ["Bob"] * 4, ["Ann"] * 3]
        output = model(**batch_of(resolver, SENTENCES, speakers, CLUSTERS, genre="bc"))

        embedded = []
        hidden = []
        for words in SENTENCES:
            embedded_words = model.text_field_embedder(sentence_of(resolver, words))
            mask = torch.ones(1, len(words), dtype=torch.bool)
            embedded.append(embedded_words[0])
            hidden.append(model.encoder(embedded_words, mask)[0])
        sentences = torch.tensor([0] * 6 + [1] * 4 + [2] * 3)
        spans = model.span_embedder.spans(sentences)
        vectors = model.span_embedder(torch.cat(embedded), torch.cat(hidden), spans)
        scores = model.mention_scorer(vectors)[:, 0]
        # 0.4 spans per word.
        kept = spans_without_crossings(spans, scores, 5)
        spans = spans[kept]
        assert len(kept) == 5
        speaker_of_word = list(chain.from_iterable(speakers))
        ids = [["Ann", "Bob"].index(speaker_of_word[first]) for first, _ in spans.tolist()]
        pairs = model.antecedent_scorer(vectors[kept], scores[kept], torch.tensor(ids), 0)
        total = 0.0
        antecedents = []
        mentions = [tuple(span) for span in spans.tolist()]
        for i, mention in enumerate(mentions):
            # Of each antecedent; 1 is the weight of having none.
            weights = {j: pairs[i, i - 1 - j].exp().item() for j in range(max(0, i - 3), i)}
            right = [weight for j, weight in weights.items() if is_coreferent(mention, mentions[j])]
            likelihood = sum(right) if right else 1.0
            total -= math.log(likelihood / (1.0 + sum(weights.values())))
            weights[-1] = 1.0
            antecedents.append(max(weights, key=lambda j: weights[j]))
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
        tensors = batch_of(resolver, sentences, clusters=CLUSTERS)
        monkeypatch.setattr("elmo_tasks.models.coref.MAX_WORDS", 350)
        monkeypatch.setattr("elmo_tasks.models.span_ranking.WORDS_AT_ONCE", 20)
        batches = []
        resolver.model.encoder.register_forward_pre_hook(
            lambda module, args: batches.append(tuple(args[1].shape))
        )
        outputs = []
        size_with_gradients = largest_tensor(lambda: outputs.append(resolver.model(**tensors)))
        with torch.no_grad():
            size = largest_tensor(lambda: outputs.append(resolver.model(**tensors)))
        assert batches == [(35, 50)] + [(7, 50)] * 5
        expected, output = outputs
        for name in ("spans", "antecedents"):
            assert torch.equal(output[name][0], expected[name][0])
        torch.testing.assert_close(output["loss"], expected["loss"], rtol=1e-4, atol=0)
        assert size < size_with_gradients / 2

    def test_the_loss_is_the_mean_of_the_documents(self, make_model):
        resolver = make_model("coref", BOTH)
        losses = []
        for instance in resolver.instances:
            losses.append(resolver.model(**resolver.tensors([instance]))["loss"].item())
        together = resolver.model(**resolver.tensors(resolver.instances))["loss"].item()
        assert together == pytest.approx(sum(losses) / 3, rel=1e-4)

    def test_kept_spans_have_at_most_ten_words_of_one_sentence_and_do_not_cross(self, make_model):
        resolver = make_model("coref", [])
        sentences = [[f"w{word}" for word in range(30)], ["x", "y"]] * 4
        (spans,) = resolver.model(**batch_of(resolver, sentences))["spans"]
        assert len(spans) == int(0.4 * 32 * 4)
        sentence_numbers = []
        for number, words in enumerate(sentences):
            sentence_numbers += [number] * len(words)
        mentions = spans.tolist()
        assert mentions == sorted(mentions)
        for first, last in mentions:
            assert last - first < 10
            assert sentence_numbers[first] == sentence_numbers[last]
            assert not any(first < other <= last < other_last for other, other_last in mentions)

    def test_a_cut_document_equals_a_document_of_the_same_sentences(self, make_model):
        resolver = make_model(
            "coref",
            [],
            "{ model+: { max_sentences: 4, spans_per_word: 2.0, lexical_dropout: 0, dropout: 0 } }",
        )
        document = long_document(6)
        resolver.model.train()
        offsets = set()
        for seed in range(10):
            torch.manual_seed(seed)
            cut = resolver.model(**batch_of(resolver, **document, genre="nw"))
            # All single words are kept, because they cross nothing.
            offset = int(cut["spans"][0].min())
            clusters = []
            for cluster in document["clusters"]:
                words = [word - offset for word, _ in cluster if offset <= word < offset + 12]
                clusters.append([(word, word) for word in words])
            sentences = document["sentences"][offset // 3 : offset // 3 + 4]
            short = resolver.model(**batch_of(resolver, sentences, clusters=clusters, genre="nw"))
            assert (short["spans"][0] + offset).tolist() == cut["spans"][0].tolist()
            assert cut["loss"].item() == pytest.approx(short["loss"].item(), rel=1e-4)
            offsets.add(offset)
        assert len(offsets) > 1

    def test_genres_make_a_difference(self, make_model):
        loss_of = self.losses_of_all_spans(make_model)
        losses = [loss_of(genre=genre) for genre in ("bc", "nw", "12")]
        assert len(set(losses)) == 3
        # All others share one genre.
        assert loss_of(genre="??") == losses[2]

    def test_speakers_make_a_difference(self, make_model):
        loss_of = self.losses_of_all_spans(make_model)
        losses = {}
        for names in ("AAA", "ABA", "BAB", "ABC"):
            speakers = [[name] * len(words) for name, words in zip(names, SENTENCES, strict=True)]
            losses[names] = loss_of(speakers=speakers)
        # Only whether two speakers are the same.
        assert losses.pop("BAB") == losses["ABA"]
        assert len(set(losses.values())) == 3

    def losses_of_all_spans(self, make_model):
        """
        From arguments of the reader to the loss of a document with all spans of all sentences,
        regardless of their scores.
        """
        all_spans = "{ model+: { spans_per_word: 2.0, max_antecedents: 50 } }"
        resolver = make_model("coref", [], f"{SMALL} + {all_spans}")

        def loss_of(**arguments):
            tensors = batch_of(resolver, SENTENCES, clusters=CLUSTERS, **arguments)
            return resolver.model(**tensors)["loss"].item()

        return loss_of

    def test_a_document_without_words_has_no_clusters(self, make_model):
        resolver = make_model("coref", BOTH)
        for sentences in ([], [[]]):
            output = resolver.model(**batch_of(resolver, sentences, clusters=[]))
            assert (output["clusters"], output["loss"].item()) == ([[]], 0.0)
            assert resolver.model.make_output_human_readable(output)["texts"] == [[]]

    def test_the_output_is_words_and_clusters(self, make_model):
        resolver = make_model("coref", [])
        instance = resolver.reader.text_to_instance(SENTENCES, name="nw/x", part=2)
        output = {
            "metadata": [instance["metadata"].metadata],
            "clusters": [[[(0, 1), (6, 6)]]],
        }
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
        instances = []
        for instance, clusters in zip(resolver.instances, output["clusters"], strict=True):
            metadata = instance["metadata"].metadata
            predicted = resolver.reader.text_to_instance(metadata["sentences"], clusters=clusters)
            for key in ("genre", "speakers"):
                predicted["metadata"].metadata[key] = metadata[key]
            instances.append(predicted)
        resolver.model(**resolver.tensors(instances))
        metrics = resolver.model.get_metrics(reset=True)
        assert metrics == pytest.approx(dict.fromkeys(metrics, 1.0))
        assert set(resolver.model.get_metrics().values()) == {0.0}
