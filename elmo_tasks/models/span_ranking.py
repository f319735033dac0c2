"""Modules of the coreference model: spans and their choice, and the antecedents of mentions."""

from collections.abc import Iterator
from dataclasses import dataclass
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
    "negative_log_likelihood",
    "pair_products",
    "spans_without_crossings",
]

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
        self._dims = [hidden_dim, hidden_dim, width_dim, embedded_dim]

    def get_output_dim(self) -> int:
        return sum(self._dims)

    def spans(self, sentences: torch.Tensor) -> torch.Tensor:
        """
        The first and the last word of each span in text order, of shape `(n_spans, 2)`, from the
        number of each word's sentence, of shape `(n_words,)`.
        """
        n_words = len(sentences)
        # Shape: (n_words, 1)
        starts = torch.arange(n_words, device=sentences.device).unsqueeze(1)
        # Shape: (n_words, max_width)
        ends = starts + torch.arange(self._max_width, device=sentences.device)
        is_in_document = ends < n_words
        sentence_of_end = sentences[ends.clamp(max=n_words - 1)]
        is_span = is_in_document & (sentence_of_end == sentences.unsqueeze(1))
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
        embedded_widths = self._dropout(self.width_embedding(widths))
        # Shape: (n_spans, hidden_dim)
        first_words = hidden[starts]
        last_words = hidden[ends]
        # Shape: (n_spans, embedded_dim)
        heads = self._heads(embedded, hidden)[starts, widths]
        return torch.cat([first_words, last_words, embedded_widths, heads], -1)

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
        start_weight, end_weight, width_weight, head_weight = layer.weight.split(self._dims, 1)
        starts, ends = spans.unbind(-1)
        widths = ends - starts
        # Shape: (max_width, output_dim)
        all_widths = linear(self.width_embedding.weight, width_weight, layer.bias)
        # Shape: (n_spans, output_dim)
        projected_starts = linear(hidden, start_weight)[starts]
        projected_ends = linear(hidden, end_weight)[ends]
        heads = self._heads(linear(embedded, head_weight), hidden)[starts, widths]
        return projected_starts + projected_ends + all_widths[widths] + heads

    def blocks(self, n_words: int, spans: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
        """
        Divides spans, which are in text order, into blocks of bounded size: the words of each
        block, and its spans, counted from the block's first word.
        """
        block_starts = range(0, n_words, WORDS_AT_ONCE)
        block_of_span = spans[:, 0].div(WORDS_AT_ONCE, rounding_mode="floor")
        sizes = block_of_span.bincount(minlength=len(block_starts)).tolist()
        for start, block_spans in zip(block_starts, spans.split(sizes), strict=True):
            # The last spans may end in the next block.
            end = start + WORDS_AT_ONCE + self._max_width - 1
            yield slice(start, end), block_spans - start

    def _heads(self, embedded: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """
        The weighted mean of each span by first word and width: shape
        `(n_words, max_width, embedded_dim)`.
        """
        n_more = self._max_width - 1
        # For each word, a view of the words that start there, which the spans of all widths share.
        # Shape: (n_words, embedded_dim, max_width)
        windows = pad(embedded, (0, 0, 0, n_more)).unfold(0, self._max_width, 1)
        # Shape: (n_words,)
        word_scores = self.head(hidden).squeeze(-1)
        # Shape: (n_words, max_width)
        scores = pad(word_scores, (0, n_more)).unfold(0, self._max_width, 1)
        # One row per width, true for the words inside. Shape: (max_width, max_width)
        is_inside = scores.new_ones(self._max_width, self._max_width, dtype=torch.bool).tril()
        # Shape: (n_words, max_width, max_width)
        attention = scores.unsqueeze(1).masked_fill(~is_inside, float("-inf")).softmax(-1)
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
    order = scores.detach().float().argsort(descending=True, stable=True)
    for row in order.tolist():
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


@dataclass
class _Mentions:
    """
    The mentions of one document: their `vectors`, of shape `(n_mentions, span_dim)`; the part of
    the first layer for them as antecedents, of shape `(n_mentions, hidden_dim)`; their speakers, of
    shape `(n_mentions,)`; the genre of the document; and the numbers of the antecedents of each, as
    `_nearest_first` returns them.
    """

    vectors: torch.Tensor
    projected_antecedents: torch.Tensor
    speakers: torch.Tensor
    genre: int
    antecedents: torch.Tensor


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
        self._dims = [span_dim, span_dim, span_dim, 3 * feature_dim]
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
        antecedents = _nearest_first(vectors, min(self._max_antecedents, len(vectors) - 1))
        _, antecedent_weight, _, _ = self.first_layer.weight.split(self._dims, 1)
        mentions = _Mentions(
            vectors=vectors,
            projected_antecedents=linear(vectors, antecedent_weight),
            speakers=speakers,
            genre=genre,
            antecedents=antecedents,
        )
        pair_scores = []
        for start in range(0, len(vectors), self._rows_at_once):
            end = min(start + self._rows_at_once, len(vectors))
            pair_scores.append(self._pair_scores(mentions, start, end))
        both = mention_scores.unsqueeze(1) + mention_scores[antecedents.clamp(min=0)]
        return (torch.cat(pair_scores) + both).masked_fill(antecedents < 0, float("-inf"))

    def _pair_scores(self, mentions: _Mentions, start: int, end: int) -> torch.Tensor:
        """
        The network's scores for the mentions from `start` to before `end`: shape
        `(n_rows, n_antecedents)`, with arbitrary values if the antecedent does not exist.
        """
        mention_weight, _, product_weight, feature_weight = self.first_layer.weight.split(
            self._dims, 1
        )
        # Neighbours have nearly the same antecedents, so all rows share one slice and no vector is
        # copied.
        lowest = max(0, start - mentions.antecedents.size(1))
        rows = slice(start, end)
        columns = slice(lowest, end)
        vectors = mentions.vectors
        # Shape: (n_rows, n_columns, 3 * feature_dim)
        features = self._features(mentions, rows, columns)
        # Shape: (n_rows, n_columns, hidden_dim)
        hidden = linear(self._dropout(features), feature_weight, self.first_layer.bias)
        products = pair_products(
            vectors[rows], vectors[columns], product_weight, n_before=start - lowest
        )
        hidden = hidden + products
        # Shape: (n_rows, 1, hidden_dim)
        projected_mentions = linear(vectors[rows], mention_weight).unsqueeze(1)
        hidden = hidden + projected_mentions + mentions.projected_antecedents[columns]
        # Shape: (n_rows, n_columns)
        scores = self.rest(hidden).squeeze(-1)
        # Shape: (n_rows, n_antecedents)
        return scores.gather(1, (mentions.antecedents[rows] - lowest).clamp(min=0))

    def _features(self, mentions: _Mentions, rows: slice, columns: slice) -> torch.Tensor:
        """The embedded features of pairs: shape `(n_rows, n_columns, 3 * feature_dim)`."""
        device = mentions.vectors.device
        # Shape: (n_rows, 1)
        row_numbers = torch.arange(rows.start, rows.stop, device=device).unsqueeze(1)
        # Shape: (n_columns,)
        column_numbers = torch.arange(columns.start, columns.stop, device=device)
        # Shape: (n_rows, n_columns)
        is_same_speaker = mentions.speakers[rows].unsqueeze(1) == mentions.speakers[columns]
        distances = row_numbers - column_numbers
        buckets = torch.bucketize(distances, self._distances, right=True)
        # Shape: (n_rows, n_columns, feature_dim)
        speaker = self.speaker_embedding(is_same_speaker.long())
        genre = self.genre_embedding.weight[mentions.genre].expand_as(speaker)
        distance = self.distance_embedding(buckets)
        return torch.cat([speaker, genre, distance], -1)


def antecedents_in_clusters(clusters: torch.Tensor, n_antecedents: int) -> torch.Tensor:
    """
    Whether the mentions `i` and `i - 1 - a` (row `i`, column `a`) are in the same cluster: shape
    `(n_mentions, n_antecedents)`, from the number of each mention's cluster, or -1 for mentions
    without a cluster.
    """
    antecedents = _nearest_first(clusters, n_antecedents)
    cluster_of_antecedent = clusters[antecedents.clamp(min=0)]
    cluster_of_mention = clusters.unsqueeze(1)
    is_same = cluster_of_antecedent == cluster_of_mention
    return (antecedents >= 0) & (cluster_of_mention >= 0) & is_same


def negative_log_likelihood(scores: torch.Tensor, is_right: torch.Tensor) -> torch.Tensor:
    """
    The negative log-probability that a mention has any of its right antecedents, or no antecedent
    if none is right (Lee et al. 2017, section 5), summed over all mentions. The score of having no
    antecedent is 0. Both tensors have the shape `(n_mentions, n_antecedents)`.
    """
    # Shape: (n_mentions, 1 + n_antecedents)
    with_none = pad(scores.float(), (1, 0))
    has_none = ~is_right.any(-1, keepdim=True)
    right = torch.cat([has_none, is_right], -1)
    # Shape: (n_mentions,)
    log_right = with_none.masked_fill(~right, float("-inf")).logsumexp(-1)
    likelihood = log_right - with_none.logsumexp(-1)
    return -likelihood.sum()


def best_antecedents(scores: torch.Tensor) -> torch.Tensor:
    """
    The most probable antecedent of each mention, or -1 if having none is more probable: shape
    `(n_mentions,)`.
    """
    # 0 for no antecedent, 1 for the nearest, and so on. Shape: (n_mentions,)
    distances = pad(scores, (1, 0)).argmax(-1)
    rows = torch.arange(len(scores), device=scores.device)
    return torch.where(distances > 0, rows - distances, -1)


def clusters_of(spans: list[list[int]], antecedents: list[int]) -> list[list[tuple[int, int]]]:
    """
    The clusters of spans that are connected by their antecedents; a single span is not a cluster.
    """
    clusters: dict[int, list[tuple[int, int]]] = {}
    cluster_of: list[int] = []
    for (first, last), antecedent in zip(spans, antecedents, strict=True):
        # A new cluster has the number of its first span.
        cluster = len(cluster_of)
        if antecedent >= 0:
            cluster = cluster_of[antecedent]
        cluster_of.append(cluster)
        clusters.setdefault(cluster, []).append((first, last))
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
        elementwise = torch.empty_like(antecedents)
        rows = zip(mentions, products, strict=True)
        for n, (mention, product) in enumerate(rows, n_before):
            torch.mul(antecedents[:n], mention, out=elementwise[:n])
            torch.mm(elementwise[:n], by_dim, out=product[:n])
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_products: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        mentions, antecedents, weight = ctx.saved_tensors
        d_mentions = torch.empty_like(mentions)
        d_antecedents = torch.zeros_like(antecedents)
        d_weight = torch.zeros_like(weight)
        # The weight times the mention. Shape: (hidden_dim, dim)
        scaled = torch.empty_like(weight)
        d_scaled = torch.empty_like(weight)
        rows = zip(mentions, d_mentions, d_products, strict=True)
        for n, (mention, d_mention, d_product) in enumerate(rows, ctx.n_before):
            torch.mul(weight, mention, out=scaled)
            d_antecedents[:n].addmm_(d_product[:n], scaled)
            torch.mm(d_product[:n].t(), antecedents[:n], out=d_scaled)
            d_weight.addcmul_(d_scaled, mention)
            torch.sum(d_scaled.mul_(weight), 0, out=d_mention)
        return d_mentions, d_antecedents, d_weight, None
