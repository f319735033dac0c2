import math
from typing import Any, NamedTuple

import pytest
import torch

from elmo_tasks.models.span_ranking import (
    AntecedentScorer,
    antecedents_in_clusters,
    best_antecedents,
    clusters_of,
    negative_log_likelihood,
    pair_products,
)

BUCKETS = [
    range(1, 2),
    range(2, 3),
    range(3, 4),
    range(4, 5),
    range(5, 8),
    range(8, 16),
    range(16, 32),
    range(32, 64),
]


def scorer(**kwargs: Any) -> AntecedentScorer:
    torch.manual_seed(0)
    sizes = {
        "span_dim": 6,
        "n_genres": 3,
        "hidden_dim": 5,
        "feature_dim": 4,
        "max_antecedents": 70,
        "dropout": 0.2,
    }
    return AntecedentScorer(**{**sizes, **kwargs}).double().eval()


class Mentions(NamedTuple):
    """The arguments of `AntecedentScorer.forward`."""

    vectors: torch.Tensor
    scores: torch.Tensor
    speakers: torch.Tensor
    genre: int


def mentions_of_document(n_mentions: int) -> Mentions:
    torch.manual_seed(1)
    return Mentions(
        vectors=torch.randn(n_mentions, 6, dtype=torch.double),
        scores=torch.randn(n_mentions, dtype=torch.double),
        speakers=torch.randint(3, (n_mentions,)),
        genre=2,
    )


def pair_score(module: AntecedentScorer, mentions: Mentions, i: int, j: int) -> torch.Tensor:
    """Lee et al.'s formula for one pair, on the concatenated parts."""
    bucket = len(BUCKETS)
    for number, distances in enumerate(BUCKETS):
        if i - j in distances:
            bucket = number
    is_same_speaker = mentions.speakers[i] == mentions.speakers[j]
    pair = torch.cat(
        [
            mentions.vectors[i],
            mentions.vectors[j],
            mentions.vectors[i] * mentions.vectors[j],
            module.speaker_embedding.weight[int(is_same_speaker)],
            module.genre_embedding.weight[mentions.genre],
            module.distance_embedding.weight[bucket],
        ]
    )
    score = module.rest(module.first_layer(pair)).squeeze()
    return mentions.scores[i] + mentions.scores[j] + score


class TestAntecedentScorer:
    @pytest.mark.parametrize("n_mentions", [1, 2, 5, 90])
    @pytest.mark.parametrize("max_antecedents", [1, 4, 70, 250])
    def test_scores_match_the_pairs(self, n_mentions, max_antecedents):
        module = scorer(max_antecedents=max_antecedents)
        mentions = mentions_of_document(n_mentions)
        scores = module(*mentions)
        assert scores.shape == (n_mentions, min(max_antecedents, n_mentions - 1))
        for i in range(n_mentions):
            for column in range(scores.size(1)):
                j = i - 1 - column
                if j < 0:
                    assert scores[i, column] == -math.inf
                elif i < 8 or i > 80:
                    torch.testing.assert_close(
                        scores[i, column], pair_score(module, mentions, i, j)
                    )

    def test_gradients_match_the_pairs(self):
        # Four chunks of two mentions each.
        module = scorer(max_antecedents=3000)
        mentions = mentions_of_document(8)
        is_right = antecedents_in_clusters(mentions.speakers, 7)

        def gradients_of(scores: torch.Tensor) -> dict[str, torch.Tensor]:
            module.zero_grad()
            negative_log_likelihood(scores, is_right).backward()
            return {name: weight.grad.clone() for name, weight in module.named_parameters()}

        expected_scores = torch.full((8, 7), -math.inf, dtype=torch.double)
        for i in range(8):
            for column in range(i):
                expected_scores[i, column] = pair_score(module, mentions, i, i - 1 - column)
        gradients = gradients_of(module(*mentions))
        assert all(gradient.abs().max() > 0 for gradient in gradients.values())
        expected = gradients_of(expected_scores)
        torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-8)

    def test_without_pairs_there_are_no_scores_and_the_loss_is_zero(self):
        mentions = mentions_of_document(1)
        mentions.scores.requires_grad_()
        scores = scorer()(*mentions)
        assert scores.shape == (1, 0)
        assert best_antecedents(scores).tolist() == [-1]
        loss = negative_log_likelihood(scores, antecedents_in_clusters(mentions.speakers, 0))
        assert loss == 0
        loss.backward()

    def test_features_and_hidden_layers_are_dropped_out(self):
        module = scorer()
        mentions = mentions_of_document(5)
        assert torch.equal(module(*mentions), module(*mentions))
        module.train()
        assert not torch.equal(module(*mentions), module(*mentions))


class TestLoss:
    @pytest.mark.parametrize("n_antecedents", [1, 3, 7])
    def test_it_is_the_marginal_likelihood_of_all_right_antecedents(self, n_antecedents):
        torch.manual_seed(2)
        clusters = [0, -1, 0, 1, -1, 1, 0, 2]
        scores = torch.randn(8, n_antecedents)
        total = 0.0
        for i in range(8):
            scores[i, i:] = -math.inf
            weights = scores[i].exp().tolist()
            right = []
            for column in range(min(i, n_antecedents)):
                if clusters[i] >= 0 and clusters[i - 1 - column] == clusters[i]:
                    right.append(weights[column])
            # 1 is the weight of having no antecedent.
            likelihood = sum(right) if right else 1.0
            total -= math.log(likelihood / (1.0 + sum(weights)))
        is_right = antecedents_in_clusters(torch.tensor(clusters), n_antecedents)
        assert negative_log_likelihood(scores, is_right).item() == pytest.approx(total, rel=1e-5)


class TestClusters:
    def test_chains_of_antecedents_are_clusters(self):
        """The chains are 0 <- 2 <- 5 and 1 <- 3."""
        spans = [[0, 0], [1, 2], [3, 3], [4, 4], [5, 9], [7, 7]]
        assert clusters_of(spans, [-1, -1, 0, 1, -1, 2]) == [
            [(0, 0), (3, 3), (7, 7)],
            [(1, 2), (4, 4)],
        ]
        assert clusters_of([], []) == []


def tensors(n_mentions: int, n_antecedents: int) -> list[torch.Tensor]:
    torch.manual_seed(3)
    shapes = ((n_mentions, 6), (n_antecedents, 6), (4, 6))
    return [torch.randn(shape, dtype=torch.double, requires_grad=True) for shape in shapes]


class TestPairProducts:
    @pytest.mark.parametrize("sizes", [(3, 5), (1, 1), (2, 0), (0, 2)], ids=str)
    @pytest.mark.parametrize("n_before", [0, 2, 9])
    def test_they_match_each_pair_with_a_mention_before(self, sizes, n_before):
        n_mentions, n_antecedents = sizes
        own = tensors(n_mentions, n_antecedents)
        reference = tensors(n_mentions, n_antecedents)
        # Shape: (n_mentions, 1)
        n_before_mention = n_before + torch.arange(n_mentions).unsqueeze(1)
        # Shape: (n_mentions, n_antecedents, 1)
        is_before = (torch.arange(n_antecedents) < n_before_mention).unsqueeze(-1)
        products = pair_products(*own, n_before) * is_before
        expected = torch.einsum("ms,as,hs->mah", *reference) * is_before
        torch.testing.assert_close(products, expected)
        weights = torch.randn(expected.shape, dtype=torch.double)
        (products * weights).sum().backward()
        (expected * weights).sum().backward()
        for tensor, reference_tensor in zip(own, reference, strict=True):
            torch.testing.assert_close(tensor.grad, reference_tensor.grad)
