"""The coreference model."""

from itertools import chain
from typing import Any

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask

from elmo_tasks.metrics import CorefScores
from elmo_tasks.models.elmo_model import ElmoModel
from elmo_tasks.models.span_ranking import (
    AntecedentScorer,
    SpanEmbedder,
    antecedents_in_clusters,
    best_antecedents,
    clusters_of,
    negative_log_likelihood,
    spans_without_crossings,
)

__all__ = ["CorefResolver"]

# OntoNotes' genres; a document's name begins with one. All other documents share one extra genre.
_GENRES = ("bc", "bn", "mz", "nw", "pt", "tc", "wb")
# Words, including padding, that are encoded together without gradients.
MAX_WORDS = 8192

Mention = tuple[int, int]


@Model.register("elmo_coref")
class CorefResolver(ElmoModel):
    """
    Coreference as in the paper (section A.6, after Lee et al. 2017): a biLSTM over each sentence, a
    vector for every span of at most `max_span_width` words, the most probable spans that do not
    cross, and for each of them the most probable antecedent, or none. ELMo is concatenated with the
    words, with the output of the biLSTM, or with both.

    # Parameters

    max_span_width : `int`
        The length of the longest span in words.
    spans_per_word : `float`
        How many spans are kept per word of the document.
    max_antecedents : `int`
        How many of the kept spans before a span are candidates. The nearest are used.
    max_sentences : `int`
        In training, a longer document is cut to this many consecutive sentences, chosen at random
        in each epoch.
    hidden_dim, feature_dim : `int`
        Units of each of the two hidden layers of both scorers, and of the embedding of each
        feature.
    lexical_dropout, dropout : `float`
        Applied to the embedded words; and to the encoder's output, the hidden layers and the
        features.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        encoder: Seq2SeqEncoder,
        max_span_width: int = 10,
        spans_per_word: float = 0.4,
        max_antecedents: int = 250,
        max_sentences: int = 50,
        hidden_dim: int = 150,
        feature_dim: int = 20,
        lexical_dropout: float = 0.5,
        dropout: float = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        self.encoder = encoder
        self.span_embedder = SpanEmbedder(
            embedded_dim=self.text_field_embedder.get_output_dim(),
            hidden_dim=self.width_with_elmo(encoder.get_output_dim()),
            max_width=max_span_width,
            width_dim=feature_dim,
            dropout=dropout,
        )
        span_dim = self.span_embedder.get_output_dim()
        self.mention_scorer = torch.nn.Sequential(
            FeedForward(span_dim, 2, hidden_dim, torch.nn.ReLU(), dropout),
            torch.nn.Linear(hidden_dim, 1),
        )
        self.antecedent_scorer = AntecedentScorer(
            span_dim=span_dim,
            n_genres=len(_GENRES) + 1,
            hidden_dim=hidden_dim,
            feature_dim=feature_dim,
            max_antecedents=max_antecedents,
            dropout=dropout,
        )
        self.lexical_dropout = torch.nn.Dropout(lexical_dropout)
        self.dropout = torch.nn.Dropout(dropout)
        self._spans_per_word = spans_per_word
        self._max_sentences = max_sentences
        self._scores = CorefScores()
        self.initialize()

    def forward(
        self,
        tokens: TextFieldTensors,
        metadata: list[dict[str, Any]],
        **kwargs: Any,
    ) -> dict[str, Any]:
        """
        The tensors of `tokens` have shape `(batch_size, n_sentences, timesteps, ...)`; the
        `metadata` of a document has `sentences`, `speakers`, `genre`, and `clusters` if they are
        known. For each document, the output has the kept `spans`, of shape `(n_spans, 2)`; their
        `antecedents`, of shape `(n_spans,)`: the number of another span, or -1; the `clusters`,
        lists of first and last words; the `metadata`; and the mean `loss`, if all clusters are
        known.
        """
        parts = [self._part(document["sentences"]) for document in metadata]
        # Shape: (batch_size, n_sentences, timesteps)
        mask = get_text_field_mask(tokens, num_wrapping_dims=1).clone()
        for document_mask, part in zip(mask, parts, strict=True):
            document_mask[: part.start] = False
            document_mask[part.stop :] = False
        n_words = mask.sum((1, 2)).tolist()
        # Shape of each document: (n_words, embedded_dim), (n_words, output_dim), (n_words,)
        words = zip(*(tensor.split(n_words) for tensor in self._encode(tokens, mask)), strict=True)
        has_clusters = all(document.get("clusters") is not None for document in metadata)
        output: dict[str, Any] = {
            "metadata": metadata,
            "spans": [],
            "antecedents": [],
            "clusters": [],
        }
        gold, losses = [], []
        for document, part, n, of_document in zip(metadata, parts, n_words, words, strict=True):
            offset = sum(map(len, document["sentences"][: part.start]))
            # Shape: (n_spans, 2) and (n_spans, n_antecedents)
            spans, scores = self._resolve(of_document, offset, document)
            antecedents = best_antecedents(scores)
            output["spans"].append(spans)
            output["antecedents"].append(antecedents)
            output["clusters"].append(clusters_of(spans.tolist(), antecedents.tolist()))
            if has_clusters:
                gold.append(_between(document["clusters"], offset, offset + n))
                losses.append(_loss(spans, scores, gold[-1]))
        if has_clusters:
            output["loss"] = torch.stack(losses).mean()
            self._scores(
                output["clusters"], gold, [map(tuple, spans.tolist()) for spans in output["spans"]]
            )
        return output

    def _part(self, sentences: list[list[str]]) -> slice:
        """
        The sentences to read: all of them, or in training some consecutive ones, chosen at random.
        """
        n_more = len(sentences) - self._max_sentences
        if not self.training or n_more <= 0:
            return slice(0, len(sentences))
        start = int(torch.randint(n_more + 1, ()))
        return slice(start, start + self._max_sentences)

    def _encode(
        self, tokens: TextFieldTensors, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        The embedded and the encoded words of all documents, one document after the other, and the
        number of each word's sentence: shapes `(n_words, embedded_dim)`, `(n_words, output_dim)`
        and `(n_words,)`.
        """
        # Sentences without words are dropped. Shape: (batch_size, n_sentences), (n_rows,)
        has_words, lengths = mask.any(-1), mask.sum(-1)
        lengths = lengths[has_words]
        # Shape: (n_words,)
        sentences = torch.arange(len(lengths), device=mask.device).repeat_interleave(lengths)
        if not len(sentences):
            none = torch.zeros(0, 0, device=mask.device)
            return none, none, sentences
        # Without gradients, a long document is computed in parts.
        n_rows = (
            len(lengths) if torch.is_grad_enabled() else max(1, MAX_WORDS // int(lengths.max()))
        )
        parts = [
            self._encode_sentences(tokens, mask, rows) for rows in has_words.nonzero().split(n_rows)
        ]
        embedded, hidden = map(torch.cat, zip(*parts, strict=True))
        return embedded, hidden, sentences

    def _encode_sentences(
        self, tokens: TextFieldTensors, mask: torch.Tensor, rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        The embedded and the encoded words of some sentences: shapes `(n_words, embedded_dim)` and
        `(n_words, output_dim)`. `rows`, of shape `(n_rows, 2)`, has the numbers of the document and
        the sentence.
        """
        index = rows.unbind(-1)
        # Each sentence is a separate sequence, for the biLM too. Shape: (n_rows, timesteps, ...)
        flat = {
            indexer: {name: t[index] for name, t in tensors.items()}
            for indexer, tensors in tokens.items()
        }
        # Shape: (n_rows, timesteps)
        mask = mask[index]
        # Shape: (n_rows, timesteps, embedded_dim)
        embedded = self.lexical_dropout(self.text_field_embedder(flat))
        # Shape: (n_rows, timesteps, output_dim)
        # Differs from the paper: Lee et al. drop out the state of the LSTM too, which has coupled
        # gates.
        hidden = self.with_elmo(self.dropout(self.encoder(embedded, mask)), flat)
        return embedded[mask], hidden[mask]

    def _resolve(
        self, words: tuple[torch.Tensor, ...], offset: int, document: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        The kept spans of a document and the scores of their antecedents, from its `words` as
        `_encode` returns them: shapes `(n_spans, 2)` and `(n_spans, n_antecedents)`. `offset` is
        the number of the first word.
        """
        embedded, hidden, sentences = words
        if not len(sentences):
            return sentences.new_zeros(0, 2), embedded.new_zeros(0, 0)
        # Shape: (n_kept, 2), (n_kept, span_dim), (n_kept,)
        spans, vectors, mention_scores = self._kept_spans(embedded, hidden, sentences)
        spans = spans + offset
        speakers = list(chain.from_iterable(document["speakers"]))
        numbers = {speaker: number for number, speaker in enumerate(dict.fromkeys(speakers))}
        # Shape: (n_kept,)
        speaker_ids = torch.tensor(
            [numbers[speakers[start]] for start in spans[:, 0].tolist()], device=spans.device
        )
        genre = _GENRES.index(document["genre"]) if document["genre"] in _GENRES else len(_GENRES)
        return spans, self.antecedent_scorer(vectors, mention_scores, speaker_ids, genre)

    def _kept_spans(
        self, embedded: torch.Tensor, hidden: torch.Tensor, sentences: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        The kept spans of the words of a document, their vectors and their mention scores: shapes
        `(n_kept, 2)`, `(n_kept, span_dim)` and `(n_kept,)`.
        """
        # Training needs a gradient for every parameter, so even the shortest document keeps a span.
        limit = max(1, int(self._spans_per_word * len(sentences)))
        # Shape: (n_spans, 2)
        spans = self.span_embedder.spans(sentences)
        if self.training or torch.is_grad_enabled():
            # Shape: (n_spans, span_dim), (n_spans,)
            vectors = self.span_embedder(embedded, hidden, spans)
            scores = self.mention_scorer(vectors).squeeze(-1)
            kept = spans_without_crossings(spans, scores, limit)
            return spans[kept], vectors[kept], scores[kept]
        # A document has about ten spans per word, so only the vectors of the kept spans are
        # computed.
        first_layer, *rest = (
            layer for layer in self.mention_scorer.modules() if isinstance(layer, torch.nn.Linear)
        )
        parts = []
        for words, part in self.span_embedder.in_parts(len(embedded), spans):
            of_spans = self.span_embedder.projected(
                first_layer, embedded[words], hidden[words], part
            )
            for layer in rest:
                of_spans = layer(of_spans.relu_())
            parts.append(of_spans.squeeze(-1))
        scores = torch.cat(parts)
        kept = spans_without_crossings(spans, scores, limit)
        of_kept = self.span_embedder.in_parts(len(embedded), spans[kept])
        vectors = torch.cat(
            [self.span_embedder(embedded[words], hidden[words], part) for words, part in of_kept]
        )
        return spans[kept], vectors, scores[kept]

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        `document` (its name) and `part` (its number); `sentences`; `clusters`, each a list of first
        and last words, counted from the beginning of the document; and the `texts` of their
        mentions.
        """
        metadata = output_dict["metadata"]
        readable = {
            key: [document[key] for document in metadata]
            for key in ("document", "part", "sentences")
        }
        readable |= {"clusters": [], "texts": []}
        for sentences, clusters in zip(readable["sentences"], output_dict["clusters"], strict=True):
            words = list(chain.from_iterable(sentences))
            readable["clusters"].append(
                [[list(mention) for mention in cluster] for cluster in clusters]
            )
            texts = [
                [" ".join(words[start : end + 1]) for start, end in cluster] for cluster in clusters
            ]
            readable["texts"].append(texts)
        return readable

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """See `CorefScores`."""
        return self._scores.get_metric(reset)

    default_predictor = "elmo_coref"


def _between(clusters: list[list[Mention]], first: int, last: int) -> list[list[Mention]]:
    """The mentions between two words; clusters without any are dropped."""
    inside = [
        [(start, end) for start, end in cluster if first <= start and end < last]
        for cluster in clusters
    ]
    return [cluster for cluster in inside if cluster]


def _loss(spans: torch.Tensor, scores: torch.Tensor, clusters: list[list[Mention]]) -> torch.Tensor:
    """The loss of a document: shape `()`."""
    number_of: dict[Mention, int] = {}
    for number, cluster in enumerate(clusters):
        number_of |= dict.fromkeys(cluster, number)
    numbers = [number_of.get((start, end), -1) for start, end in spans.tolist()]
    ids = torch.tensor(numbers, dtype=torch.long, device=spans.device)
    return negative_log_likelihood(scores, antecedents_in_clusters(ids, scores.size(1)))
