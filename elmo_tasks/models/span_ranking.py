"""Modules of the coreference model: spans and their choice, and the antecedents of mentions."""

from collections.abc import Iterator
from typing import Any

import torch
from allennlp.modules.token_embedders import Embedding
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear, pad

from elmo_tasks.modules.dropout import Dropout

__all__ = [
    "AntecedentScorer",
    "SpanEmbedder",
    "antecedents_in_clusters",
    "best_antecedents",
    "clusters_of",
]
__all__ += ["negative_log_likelihood", "pair_products", "spans_without_crossings"]

# The number of words with spans that are computed together, without gradients.
WORDS_AT_ONCE = 1024
# The approximate number of pairs that are computed together.
_MAX_PAIRS = 8192
# The first distance of each bucket but the lowest. The buckets are 1, 2, 3, 4, 5-7, 8-15, 16-31,
# 32-63, and 64 or more.
_DISTANCES = (2, 3, 4, 5, 8, 16, 32, 64)


class SpanEmbedder(torch.nn.Module):
    """
    All spans of at most `max_width` words of a document, and a vector for each (Lee et al. 2017,
    section 4): the encoder's vectors of its first and last word, an embedding of its width with
    dropout, and the mean of its word embeddings, weighted by attention.
    """

    def __init__(
        self, *, embedded_dim: int, hidden_dim: int, max_width: int, width_dim: int, dropout: float
    ) -> None:
        super().__init__()
        # No bias, because attention would ignore it.
        self.head = torch.nn.Linear(hidden_dim, 1, bias=False)
        self.width_embedding = Embedding(embedding_dim=width_dim, num_embeddings=max_width)
        self._dropout = torch.nn.Dropout(dropout)
        self._max_width = max_width
        self._parts = [hidden_dim, hidden_dim, width_dim, embedded_dim]

    def get_output_dim(self) -> int:
        return sum(self._parts)

    def spans(self, sentences: torch.Tensor) -> torch.Tensor:
        """
        The first and the last word of each span in text order, of shape `(n_spans, 2)`, from the
        number of each word's sentence, of shape `(n_words,)`.
        """
        n_words = len(sentences)
        # Shape: (n_words, 1), (n_words, max_width), (n_words, max_width)
        starts = torch.arange(n_words, device=sentences.device).unsqueeze(1)
        ends = starts + torch.arange(self._max_width, device=sentences.device)
        is_span = (ends < n_words) & (
            sentences[ends.clamp(max=n_words - 1)] == sentences.unsqueeze(1)
        )
        # Shape: (n_spans,), (n_spans,)
        starts, widths = is_span.nonzero(as_tuple=True)
        return torch.stack([starts, starts + widths], -1)

    def forward(
        self, embedded: torch.Tensor, hidden: torch.Tensor, spans: torch.Tensor
    ) -> torch.Tensor:
        """
        The vectors of some spans, of shape `(n_spans, output_dim)`, from the words of one document,
        of shapes `(n_words, embedded_dim)` and `(n_words, hidden_dim)`.
        """
        starts, ends = spans.unbind(-1)
        widths = ends - starts
        # Shape: (n_spans, width_dim)
        width = self._dropout(self.width_embedding(widths))
        return torch.cat(
            [hidden[starts], hidden[ends], width, self._heads(embedded, hidden)[starts, widths]], -1
        )

    def projected(
        self,
        layer: torch.nn.Linear,
        embedded: torch.Tensor,
        hidden: torch.Tensor,
        spans: torch.Tensor,
    ) -> torch.Tensor:
        """
        `layer` of the result of `forward` without dropout: the products are with the words, about a
        tenth as many as spans.
        """
        of_start, of_end, of_width, of_head = layer.weight.split(self._parts, 1)
        starts, ends = spans.unbind(-1)
        widths = ends - starts
        # Shape: (max_width, output_dim)
        of_widths = linear(self.width_embedding.weight, of_width, layer.bias)
        heads = self._heads(linear(embedded, of_head), hidden)[starts, widths]
        return (
            linear(hidden, of_start)[starts]
            + linear(hidden, of_end)[ends]
            + of_widths[widths]
            + heads
        )

    def in_parts(self, n_words: int, spans: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
        """
        Spans in text order in parts of bounded size: the words of each part, and its spans, counted
        from there.
        """
        firsts = range(0, n_words, WORDS_AT_ONCE)
        sizes = (
            spans[:, 0].div(WORDS_AT_ONCE, rounding_mode="floor").bincount(minlength=len(firsts))
        )
        for first, part in zip(firsts, spans.split(sizes.tolist()), strict=True):
            yield slice(first, first + WORDS_AT_ONCE + self._max_width - 1), part - first

    def _heads(self, embedded: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """
        The weighted mean of each span by first word and width: shape
        `(n_words, max_width, embedded_dim)`.
        """
        n_more = self._max_width - 1
        # For each word, a view of the words that start there, which the spans of all widths share.
        # Shape: (n_words, embedded_dim, max_width), (n_words, 1, max_width)
        windows = pad(embedded, (0, 0, 0, n_more)).unfold(0, self._max_width, 1)
        scores = (
            pad(self.head(hidden).squeeze(-1), (0, n_more))
            .unfold(0, self._max_width, 1)
            .unsqueeze(1)
        )
        # One row per width, true for the words inside. Shape: (max_width, max_width)
        inside = torch.ones(
            self._max_width, self._max_width, dtype=torch.bool, device=hidden.device
        ).tril()
        # Shape: (n_words, max_width, max_width)
        attention = scores.masked_fill(~inside, float("-inf")).softmax(-1)
        return attention.to(embedded.dtype) @ windows.transpose(1, 2)


def spans_without_crossings(spans: torch.Tensor, scores: torch.Tensor, limit: int) -> torch.Tensor:
    """
    The best spans that do not cross: in the order of descending scores, a span is taken unless it
    overlaps a taken span and neither is inside the other (Lee et al. 2017, section 5). AllenNLP's
    `coref` also takes crossing spans.

    From first and last words, of shape `(n_spans, 2)`, to the rows of at most `limit` taken spans,
    in ascending order.
    """
    pairs = spans.tolist()
    # The last end of the taken spans that begin at a word, and the first beginning of the taken
    # spans that end there.
    furthest_end: dict[int, int] = {}
    furthest_start: dict[int, int] = {}
    taken: list[int] = []
    # A Python loop, because each decision depends on all better spans. If scores are equal, the
    # first in the text wins.
    for row in scores.detach().float().argsort(descending=True, stable=True).tolist():
        if len(taken) >= limit:
            break
        start, end = pairs[row]
        if any(furthest_end.get(word, end) > end for word in range(start + 1, end + 1)):
            continue
        if any(furthest_start.get(word, start) < start for word in range(start, end)):
            continue
        taken.append(row)
        furthest_end[start] = max(furthest_end.get(start, end), end)
        furthest_start[end] = min(furthest_start.get(end, start), start)
    return torch.tensor(sorted(taken), dtype=torch.long, device=spans.device)


class AntecedentScorer(torch.nn.Module):
    """
    Scores each mention with at most `max_antecedents` mentions before it (Lee et al. 2017, section
    4): the sum of both mention scores and the output of a network with two hidden layers, which
    reads both vectors, their product, and embeddings of the pair's features: same speaker, genre
    and distance. The features and the hidden layers have dropout.

    The first layer is linear, so only its parts for the product and the features are computed per
    pair, for some mentions at a time. Memory is linear in the length of the document.
    """

    def __init__(
        self,
        *,
        span_dim: int,
        n_genres: int,
        hidden_dim: int,
        feature_dim: int,
        max_antecedents: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.speaker_embedding = Embedding(embedding_dim=feature_dim, num_embeddings=2)
        self.genre_embedding = Embedding(embedding_dim=feature_dim, num_embeddings=n_genres)
        self.distance_embedding = Embedding(
            embedding_dim=feature_dim, num_embeddings=len(_DISTANCES) + 1
        )
        # Its input is the concatenation of a mention, an antecedent, their product and the
        # features.
        self.first_layer = torch.nn.Linear(3 * span_dim + 3 * feature_dim, hidden_dim)
        self.rest = torch.nn.Sequential(
            torch.nn.ReLU(),
            Dropout(dropout),
            torch.nn.Linear(hidden_dim, hidden_dim),
            torch.nn.ReLU(),
            Dropout(dropout),
            torch.nn.Linear(hidden_dim, 1),
        )
        self._dropout = Dropout(dropout)
        self._parts = [span_dim, span_dim, span_dim, 3 * feature_dim]
        self._max_antecedents = max_antecedents
        self._rows_at_once = max(1, _MAX_PAIRS // max_antecedents)
        self._distances: torch.Tensor
        self.register_buffer("_distances", torch.tensor(_DISTANCES), persistent=False)

    def forward(
        self,
        vectors: torch.Tensor,
        mention_scores: torch.Tensor,
        speakers: torch.Tensor,
        genre: int,
    ) -> torch.Tensor:
        """
        From the mentions of one document in text order, with `vectors` of shape
        `(n_mentions, span_dim)`, to shape `(n_mentions, n_antecedents)`: row `i` and column `a`
        have the score of mention `i - 1 - a`, the nearest first, or minus infinity if this mention
        does not exist.
        """
        # Shape: (n_mentions, n_antecedents)
        index = _nearest_first(vectors, min(self._max_antecedents, len(vectors) - 1))
        # Shape: (n_mentions, hidden_dim)
        antecedents = linear(vectors, self.first_layer.weight.split(self._parts, 1)[1])
        scores = [
            self._score(vectors, antecedents, speakers, genre, first, index)
            for first in range(0, len(vectors), self._rows_at_once)
        ]
        both = mention_scores.unsqueeze(1) + mention_scores[index.clamp(min=0)]
        return (torch.cat(scores) + both).masked_fill(index < 0, float("-inf"))

    def _score(
        self,
        vectors: torch.Tensor,
        antecedents: torch.Tensor,
        speakers: torch.Tensor,
        genre: int,
        first: int,
        index: torch.Tensor,
    ) -> torch.Tensor:
        """
        The network's scores for some mentions, starting at `first`: shape
        `(n_rows, n_antecedents)`, with arbitrary values if the antecedent does not exist.
        """
        of_mention, _, of_product, of_features = self.first_layer.weight.split(self._parts, 1)
        last = min(first + self._rows_at_once, len(vectors))
        # Neighbours have nearly the same antecedents, so all rows share one slice and no vector is
        # copied.
        lowest = max(0, first - index.size(1))
        rows, columns = slice(first, last), slice(lowest, last)
        # Shape: (n_rows, 1), (n_columns,)
        row = torch.arange(first, last, device=vectors.device).unsqueeze(1)
        column = torch.arange(lowest, last, device=vectors.device)
        # Shape: (n_rows, n_columns, feature_dim), each
        features = [
            self.speaker_embedding((speakers[rows].unsqueeze(1) == speakers[columns]).long()),
            self.genre_embedding.weight[genre].expand(len(row), len(column), -1),
            self.distance_embedding(torch.bucketize(row - column, self._distances, right=True)),
        ]
        # Shape: (n_rows, n_columns, hidden_dim)
        hidden = linear(self._dropout(torch.cat(features, -1)), of_features, self.first_layer.bias)
        hidden = hidden + pair_products(vectors[rows], vectors[columns], of_product, first - lowest)
        hidden = hidden + linear(vectors[rows], of_mention).unsqueeze(1) + antecedents[columns]
        # Shape: (n_rows, n_columns)
        scores = self.rest(hidden).squeeze(-1)
        # Shape: (n_rows, n_antecedents)
        return scores.gather(1, (index[rows] - lowest).clamp(min=0))


def antecedents_in_clusters(clusters: torch.Tensor, n_antecedents: int) -> torch.Tensor:
    """
    Whether the mentions `i` and `i - 1 - a` (row `i`, column `a`) are in the same cluster: shape
    `(n_mentions, n_antecedents)`, from the number of each mention's cluster, or -1 for mentions
    without a cluster.
    """
    index, mine = _nearest_first(clusters, n_antecedents), clusters.unsqueeze(1)
    return (index >= 0) & (mine >= 0) & (clusters[index.clamp(min=0)] == mine)


def negative_log_likelihood(scores: torch.Tensor, is_right: torch.Tensor) -> torch.Tensor:
    """
    The negative log-probability that a mention has any of its right antecedents, or no antecedent
    if none is right (Lee et al. 2017, section 5), summed over all mentions. The score of having no
    antecedent is 0. Both tensors have the shape `(n_mentions, n_antecedents)`.
    """
    # Shape: (n_mentions, 1 + n_antecedents)
    with_none = torch.nn.functional.pad(scores.float(), (1, 0))
    right = torch.cat([~is_right.any(-1, keepdim=True), is_right], -1)
    likelihood = with_none.masked_fill(~right, float("-inf")).logsumexp(-1) - with_none.logsumexp(
        -1
    )
    return -likelihood.sum()


def best_antecedents(scores: torch.Tensor) -> torch.Tensor:
    """
    The most probable antecedent of each mention, or -1 if having none is more probable: shape
    `(n_mentions,)`.
    """
    # 0 for no antecedent, 1 for the nearest, and so on. Shape: (n_mentions,)
    distances = torch.nn.functional.pad(scores, (1, 0)).argmax(-1)
    rows = torch.arange(len(scores), device=scores.device)
    return torch.where(distances > 0, rows - distances, -1)


def clusters_of(spans: list[list[int]], antecedents: list[int]) -> list[list[tuple[int, int]]]:
    """
    The clusters of spans that are connected by their antecedents; a single span is not a cluster.
    """
    clusters: dict[int, list[tuple[int, int]]] = {}
    cluster_of: list[int] = []
    for number, ((start, end), antecedent) in enumerate(zip(spans, antecedents, strict=True)):
        cluster_of.append(cluster_of[antecedent] if antecedent >= 0 else number)
        clusters.setdefault(cluster_of[number], []).append((start, end))
    return [cluster for cluster in clusters.values() if len(cluster) > 1]


def _nearest_first(mentions: torch.Tensor, n_antecedents: int) -> torch.Tensor:
    """
    The number `i - 1 - a` of antecedent `a` of each mention `i`: shape
    `(n_mentions, n_antecedents)`.
    """
    rows = torch.arange(len(mentions), device=mentions.device).unsqueeze(1)
    return rows - 1 - torch.arange(n_antecedents, device=mentions.device)


def pair_products(
    mentions: torch.Tensor, antecedents: torch.Tensor, weight: torch.Tensor, n_before: int
) -> torch.Tensor:
    """
    Multiplies a matrix by the elementwise product of the two vectors of each pair, without storing
    it. From shapes `(n_mentions, dim)`, `(n_antecedents, dim)` and `(hidden_dim, dim)` to
    `(n_mentions, n_antecedents, hidden_dim)`. Row `i` has arbitrary values after its first
    `n_before + i` antecedents, and no gradient. On the CPU, the result cannot be differentiated
    twice.
    """
    if mentions.device.type == "cpu":
        products: torch.Tensor = _ByMention.apply(mentions, antecedents, weight, n_before)
        return products
    # Shape: (n_mentions * hidden_dim, dim)
    weights = (weight * mentions.unsqueeze(1)).flatten(0, 1)
    return (antecedents @ weights.t()).unflatten(1, (len(mentions), -1)).transpose(0, 1)


class _ByMention(torch.autograd.Function):
    """
    Computes one mention at a time, so its part of each product and gradient stays in the
    processor's cache.
    """

    @staticmethod
    def forward(
        ctx: Any,
        mentions: torch.Tensor,
        antecedents: torch.Tensor,
        weight: torch.Tensor,
        n_before: int,
    ) -> torch.Tensor:
        ctx.save_for_backward(mentions, antecedents, weight)
        ctx.n_before = n_before
        products = mentions.new_zeros(len(mentions), len(antecedents), len(weight))
        # Contiguous, because otherwise each product would copy it. Shape: (dim, hidden_dim)
        by_dim = weight.t().contiguous()
        # Shape: (n_antecedents, dim)
        of_mention = torch.empty_like(antecedents)
        for n, (mention, product) in enumerate(zip(mentions, products, strict=True), n_before):
            torch.mul(antecedents[:n], mention, out=of_mention[:n])
            torch.mm(of_mention[:n], by_dim, out=product[:n])
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_products: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        mentions, antecedents, weight = ctx.saved_tensors
        d_mentions = torch.empty_like(mentions)
        d_antecedents, d_weight = torch.zeros_like(antecedents), torch.zeros_like(weight)
        # Shape: (hidden_dim, dim), each
        of_mention, d_of_mention = torch.empty_like(weight), torch.empty_like(weight)
        for n, (mention, d_mention, d_product) in enumerate(
            zip(mentions, d_mentions, d_products, strict=True), ctx.n_before
        ):
            torch.mul(weight, mention, out=of_mention)
            d_antecedents[:n].addmm_(d_product[:n], of_mention)
            torch.mm(d_product[:n].t(), antecedents[:n], out=d_of_mention)
            d_weight.addcmul_(d_of_mention, mention)
            torch.sum(d_of_mention.mul_(weight), 0, out=d_mention)
        return d_mentions, d_antecedents, d_weight, None
