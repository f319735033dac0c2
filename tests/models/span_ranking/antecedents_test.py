import math
from typing import Any

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


def inputs(
    n_mentions: int, span_dim: int = 6
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    torch.manual_seed(1)
    double = torch.double
    vectors, scores = (
        torch.randn(n_mentions, span_dim, dtype=double),
        torch.randn(n_mentions, dtype=double),
    )
    return vectors, scores, torch.randint(3, (n_mentions,)), 2


def pair_score(
    module: AntecedentScorer, vectors, scores, speakers, genre, i: int, j: int
) -> torch.Tensor:
    """Lee et al.'s formula for one pair, on the concatenated parts."""
    bucket = next((number for number, bucket in enumerate(BUCKETS) if i - j in bucket), 8)
    parts = [
        vectors[i],
        vectors[j],
        vectors[i] * vectors[j],
        module.speaker_embedding.weight[int(speakers[i] == speakers[j])],
        module.genre_embedding.weight[genre],
        module.distance_embedding.weight[bucket],
    ]
    return scores[i] + scores[j] + module.rest(module.first_layer(torch.cat(parts))).squeeze()


class TestAntecedentScorer:
    @pytest.mark.parametrize("n_mentions", [1, 2, 5, 90])
    @pytest.mark.parametrize("max_antecedents", [1, 4, 70, 250])
    def test_scores_match_the_pairs(self, n_mentions, max_antecedents):
        module = scorer(max_antecedents=max_antecedents)
        data = inputs(n_mentions)
        found = module(*data)
        assert found.shape == (n_mentions, min(max_antecedents, n_mentions - 1))
        for i in range(n_mentions):
            for column in range(found.size(1)):
                j = i - 1 - column
                if j < 0:
                    assert found[i, column] == -math.inf
                elif i < 8 or i > 80:
                    torch.testing.assert_close(found[i, column], pair_score(module, *data, i, j))

    def test_gradients_match_the_pairs(self):
        # Four chunks of two mentions each.
        module, data = scorer(max_antecedents=3000), inputs(8)
        is_right = antecedents_in_clusters(data[2], 7)
        rows = [
            [
                pair_score(module, *data, i, i - 1 - a) if a < i else torch.tensor(-math.inf)
                for a in range(7)
            ]
            for i in range(8)
        ]
        gradients = []
        for scores in (
            module(*data),
            torch.stack([torch.stack([score.double() for score in row]) for row in rows]),
        ):
            module.zero_grad()
            negative_log_likelihood(scores, is_right).backward()
            gradients.append(
                {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
            )
        assert all(gradient.abs().max() > 0 for gradient in gradients[0].values())
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-8)

    def test_without_pairs_there_are_no_scores_and_the_loss_is_zero(self):
        vectors, scores, speakers, genre = inputs(1)
        found = scorer()(vectors, scores.requires_grad_(), speakers, genre)
        assert found.shape == (1, 0)
        assert best_antecedents(found).tolist() == [-1]
        loss = negative_log_likelihood(found, antecedents_in_clusters(speakers, 0))
        assert loss == 0
        loss.backward()

    def test_features_and_hidden_layers_are_dropped_out(self):
        module, data = scorer(), inputs(5)
        assert torch.equal(module(*data), module(*data))
        assert not torch.equal(module.train()(*data), module(*data))


class TestLoss:
    @pytest.mark.parametrize("n_antecedents", [1, 3, 7])
    def test_it_is_the_marginal_likelihood_of_all_right_antecedents(self, n_antecedents):
        torch.manual_seed(2)
        clusters = [0, -1, 0, 1, -1, 1, 0, 2]
        scores = torch.randn(8, n_antecedents)
        total = 0.0
        for i in range(8):
            columns = [c for c in range(n_antecedents) if i - 1 - c >= 0]
            for column in set(range(n_antecedents)) - set(columns):
                scores[i, column] = -math.inf
            weights = {column: math.exp(scores[i, column]) for column in columns}
            right = [c for c in columns if clusters[i] >= 0 and clusters[i] == clusters[i - 1 - c]]
            likelihood = sum(weights[c] for c in right) if right else 1.0
            total -= math.log(likelihood / (1.0 + sum(weights.values())))
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
        own, reference = tensors(*sizes), tensors(*sizes)
        # Shape: (n_mentions, n_antecedents, 1)
        is_before = (
            torch.arange(sizes[1]) < n_before + torch.arange(sizes[0]).unsqueeze(1)
        ).unsqueeze(-1)
        found = pair_products(*own, n_before) * is_before
        expected = torch.einsum("ms,as,hs->mah", *reference) * is_before
        torch.testing.assert_close(found, expected)
        weights = torch.randn(expected.shape, dtype=torch.double)
        for tensor, value in ((found, weights), (expected, weights)):
            (tensor * value).sum().backward()
        for ours, theirs in zip(own, reference, strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad)
