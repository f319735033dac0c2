"""The spans of a document that may be mentions: their vectors and the choice of the best spans."""

import torch
from allennlp.modules.token_embedders import Embedding
from torch.nn.functional import pad

__all__ = ["SpanEmbedder", "spans_without_crossings"]


class SpanEmbedder(torch.nn.Module):
    """
    All spans of at most `max_width` words of a document, and a vector for each (Lee et al. 2017, section 4): the
    encoder's vectors of its first and last word, an embedding of its width with dropout, and the mean of its word
    embeddings, weighted by attention.
    """

    def __init__(self, *, embedded_dim: int, hidden_dim: int, max_width: int, width_dim: int, dropout: float) -> None:
        super().__init__()
        # No bias, because attention would ignore it.
        self.head = torch.nn.Linear(hidden_dim, 1, bias=False)
        self.width_embedding = Embedding(embedding_dim=width_dim, num_embeddings=max_width)
        self._dropout = torch.nn.Dropout(dropout)
        self._max_width = max_width
        self._output_dim = 2 * hidden_dim + width_dim + embedded_dim

    def get_output_dim(self) -> int:
        return self._output_dim

    def forward(
        self, embedded: torch.Tensor, hidden: torch.Tensor, sentences: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        From the words of one document, of shapes `(n_words, embedded_dim)` and `(n_words, hidden_dim)`, with the number
        of each word's sentence, to the first and last word of each span in text order, of shape `(n_spans, 2)`, and its
        vector, of shape `(n_spans, output_dim)`.
        """
        n_words = len(sentences)
        # Shape: (n_words, 1), (n_words, max_width), (n_words, max_width)
        starts = torch.arange(n_words, device=sentences.device).unsqueeze(1)
        ends = starts + torch.arange(self._max_width, device=sentences.device)
        is_span = (ends < n_words) & (sentences[ends.clamp(max=n_words - 1)] == sentences.unsqueeze(1))
        # Shape: (n_spans,), (n_spans,)
        starts, widths = is_span.nonzero(as_tuple=True)
        ends = starts + widths
        # Shape: (n_spans, width_dim)
        width = self._dropout(self.width_embedding(widths))
        vectors = torch.cat([hidden[starts], hidden[ends], width, self._heads(embedded, hidden)[is_span]], -1)
        return torch.stack([starts, ends], -1), vectors

    def _heads(self, embedded: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """The weighted mean of each span by first word and width: shape `(n_words, max_width, embedded_dim)`."""
        n_more = self._max_width - 1
        # For each word, a view of the words that start there, which the spans of all widths share.
        # Shape: (n_words, embedded_dim, max_width), (n_words, 1, max_width)
        windows = pad(embedded, (0, 0, 0, n_more)).unfold(0, self._max_width, 1)
        scores = pad(self.head(hidden).squeeze(-1), (0, n_more)).unfold(0, self._max_width, 1).unsqueeze(1)
        # One row per width, true for the words inside. Shape: (max_width, max_width)
        inside = torch.ones(self._max_width, self._max_width, dtype=torch.bool, device=hidden.device).tril()
        # Shape: (n_words, max_width, max_width)
        attention = scores.masked_fill(~inside, float("-inf")).softmax(-1)
        return attention.to(embedded.dtype) @ windows.transpose(1, 2)


def spans_without_crossings(spans: torch.Tensor, scores: torch.Tensor, limit: int) -> torch.Tensor:
    """
    The best spans that do not cross: in the order of descending scores, a span is taken unless it overlaps a taken span
    and neither is inside the other (Lee et al. 2017, section 5). AllenNLP's `coref` also takes crossing spans.

    From first and last words, of shape `(n_spans, 2)`, to the rows of at most `limit` taken spans, in ascending order.
    """
    pairs = spans.tolist()
    # The last end of the taken spans that begin at a word, and the first beginning of the taken spans that end there.
    furthest_end: dict[int, int] = {}
    furthest_start: dict[int, int] = {}
    taken: list[int] = []
    # A Python loop, because each decision depends on all better spans. If scores are equal, the first in the text wins.
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
