"""The coreference model."""

from collections.abc import Iterator
from dataclasses import dataclass
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

# The first and the last word, counted from the beginning of the document.
Mention = tuple[int, int]


@dataclass
class _EncodedWords:
    """
    The words of documents, one document after the other: `embedded`, of shape
    `(n_words, embedded_dim)`; `hidden`, the output of the encoder, of shape
    `(n_words, output_dim)`; and the number of each word's sentence, of shape `(n_words,)`.
    """

    embedded: torch.Tensor
    hidden: torch.Tensor
    sentences: torch.Tensor

    def __len__(self) -> int:
        return len(self.sentences)

    def of_documents(self, sizes: list[int]) -> Iterator["_EncodedWords"]:
        """The words of each document, from their numbers."""
        for embedded, hidden, sentences in zip(
            self.embedded.split(sizes),
            self.hidden.split(sizes),
            self.sentences.split(sizes),
            strict=True,
        ):
            yield _EncodedWords(embedded, hidden, sentences)


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
        windows = [self._window(document["sentences"]) for document in metadata]
        # Shape: (batch_size, n_sentences, timesteps)
        mask = get_text_field_mask(tokens, num_wrapping_dims=1).clone()
        for document_mask, window in zip(mask, windows, strict=True):
            document_mask[: window.start] = False
            document_mask[window.stop :] = False
        n_words = mask.sum((1, 2)).tolist()
        words_of_documents = self._encode(tokens, mask).of_documents(n_words)
        has_clusters = all(document.get("clusters") is not None for document in metadata)
        output: dict[str, Any] = {
            "metadata": metadata,
            "spans": [],
            "antecedents": [],
            "clusters": [],
        }
        gold = []
        losses = []
        for document, window, words in zip(metadata, windows, words_of_documents, strict=True):
            offset = sum(len(sentence) for sentence in document["sentences"][: window.start])
            # Shape: (n_spans, 2) and (n_spans, n_antecedents)
            spans, scores = self._resolve(words, offset, document)
            antecedents = best_antecedents(scores)
            output["spans"].append(spans)
            output["antecedents"].append(antecedents)
            output["clusters"].append(clusters_of(spans.tolist(), antecedents.tolist()))
            if has_clusters:
                gold_clusters = _between(document["clusters"], offset, offset + len(words))
                gold.append(gold_clusters)
                losses.append(_loss(spans, scores, gold_clusters))
        if has_clusters:
            output["loss"] = torch.stack(losses).mean()
            kept = [_as_mentions(spans) for spans in output["spans"]]
            self._scores(output["clusters"], gold, kept)
        return output

    def _window(self, sentences: list[list[str]]) -> slice:
        """
        The sentences to read: all of them, or in training some consecutive ones, chosen at random.
        """
        n_more = len(sentences) - self._max_sentences
        if not self.training or n_more <= 0:
            return slice(0, len(sentences))
        start = int(torch.randint(n_more + 1, ()))
        return slice(start, start + self._max_sentences)

    def _encode(self, tokens: TextFieldTensors, mask: torch.Tensor) -> _EncodedWords:
        """The words of all documents; sentences without words are dropped."""
        # Shape: (batch_size, n_sentences)
        has_words = mask.any(-1)
        # Shape: (n_rows,)
        lengths = mask.sum(-1)[has_words]
        # Shape: (n_words,)
        sentences = torch.arange(len(lengths), device=mask.device).repeat_interleave(lengths)
        if not len(sentences):
            none = torch.zeros(0, 0, device=mask.device)
            return _EncodedWords(none, none, sentences)
        n_rows_at_once = len(lengths)
        if not torch.is_grad_enabled():
            # A long document is computed in blocks.
            n_rows_at_once = max(1, MAX_WORDS // int(lengths.max()))
        embedded_blocks = []
        hidden_blocks = []
        for rows in has_words.nonzero().split(n_rows_at_once):
            embedded, hidden = self._encode_sentences(tokens, mask, rows)
            embedded_blocks.append(embedded)
            hidden_blocks.append(hidden)
        return _EncodedWords(torch.cat(embedded_blocks), torch.cat(hidden_blocks), sentences)

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
        flat: TextFieldTensors = {}
        for indexer, tensors in tokens.items():
            flat[indexer] = {name: tensor[index] for name, tensor in tensors.items()}
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
        self, words: _EncodedWords, offset: int, document: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        The kept spans of a document and the scores of their antecedents: shapes `(n_spans, 2)` and
        `(n_spans, n_antecedents)`. `offset` is the number of the first word.
        """
        if not len(words):
            return words.sentences.new_zeros(0, 2), words.embedded.new_zeros(0, 0)
        # Shape: (n_kept, 2), (n_kept, span_dim), (n_kept,)
        spans, vectors, mention_scores = self._kept_spans(words)
        spans = spans + offset
        speakers = list(chain.from_iterable(document["speakers"]))
        number_of_speaker = {name: number for number, name in enumerate(dict.fromkeys(speakers))}
        # The speaker of the first word of each span.
        numbers = [number_of_speaker[speakers[start]] for start in spans[:, 0].tolist()]
        # Shape: (n_kept,)
        speaker_ids = torch.tensor(numbers, device=spans.device)
        genre = len(_GENRES)
        if document["genre"] in _GENRES:
            genre = _GENRES.index(document["genre"])
        return spans, self.antecedent_scorer(vectors, mention_scores, speaker_ids, genre)

    def _kept_spans(self, words: _EncodedWords) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        The kept spans of a document, their vectors and their mention scores: shapes `(n_kept, 2)`,
        `(n_kept, span_dim)` and `(n_kept,)`.
        """
        # Training needs a gradient for every parameter, so even the shortest document keeps a span.
        limit = max(1, int(self._spans_per_word * len(words)))
        # Shape: (n_spans, 2)
        spans = self.span_embedder.spans(words.sentences)
        if self.training or torch.is_grad_enabled():
            # Shape: (n_spans, span_dim), (n_spans,)
            vectors = self.span_embedder(words.embedded, words.hidden, spans)
            scores = self.mention_scorer(vectors).squeeze(-1)
            kept = spans_without_crossings(spans, scores, limit)
            return spans[kept], vectors[kept], scores[kept]
        # A document has about ten spans per word, so only the vectors of the kept spans are
        # computed.
        scores = self._mention_scores(words, spans)
        kept = spans_without_crossings(spans, scores, limit)
        vectors_of_blocks = []
        for block, block_spans in self.span_embedder.blocks(len(words), spans[kept]):
            vectors = self.span_embedder(words.embedded[block], words.hidden[block], block_spans)
            vectors_of_blocks.append(vectors)
        return spans[kept], torch.cat(vectors_of_blocks), scores[kept]

    def _mention_scores(self, words: _EncodedWords, spans: torch.Tensor) -> torch.Tensor:
        """The mention scores of spans, without their vectors and dropout: shape `(n_spans,)`."""
        layers = []
        for module in self.mention_scorer.modules():
            if isinstance(module, torch.nn.Linear):
                layers.append(module)
        scores = []
        for block, block_spans in self.span_embedder.blocks(len(words), spans):
            hidden = self.span_embedder.projected(
                layers[0], words.embedded[block], words.hidden[block], block_spans
            )
            for layer in layers[1:]:
                hidden = layer(hidden.relu_())
            scores.append(hidden.squeeze(-1))
        return torch.cat(scores)

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        `document` (its name) and `part` (its number); `sentences`; `clusters`, each a list of first
        and last words, counted from the beginning of the document; and the `texts` of their
        mentions.
        """
        metadata = output_dict["metadata"]
        readable: dict[str, Any] = {}
        for key in ("document", "part", "sentences"):
            readable[key] = [document[key] for document in metadata]
        readable["clusters"] = []
        readable["texts"] = []
        for document, clusters in zip(metadata, output_dict["clusters"], strict=True):
            words = list(chain.from_iterable(document["sentences"]))
            cluster_lists = []
            texts = []
            for cluster in clusters:
                cluster_lists.append([list(mention) for mention in cluster])
                texts.append([" ".join(words[first : last + 1]) for first, last in cluster])
            readable["clusters"].append(cluster_lists)
            readable["texts"].append(texts)
        return readable

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """See `CorefScores`."""
        return self._scores.get_metric(reset)

    default_predictor = "elmo_coref"


def _between(clusters: list[list[Mention]], start: int, end: int) -> list[list[Mention]]:
    """The mentions in the words from `start` to before `end`; clusters without any are dropped."""
    clusters_inside = []
    for cluster in clusters:
        mentions = [(first, last) for first, last in cluster if start <= first and last < end]
        if mentions:
            clusters_inside.append(mentions)
    return clusters_inside


def _as_mentions(spans: torch.Tensor) -> list[Mention]:
    return [(first, last) for first, last in spans.tolist()]


def _loss(spans: torch.Tensor, scores: torch.Tensor, clusters: list[list[Mention]]) -> torch.Tensor:
    """The loss of a document: shape `()`."""
    cluster_of: dict[Mention, int] = {}
    for number, cluster in enumerate(clusters):
        for mention in cluster:
            cluster_of[mention] = number
    numbers = [cluster_of.get(mention, -1) for mention in _as_mentions(spans)]
    ids = torch.tensor(numbers, dtype=torch.long, device=spans.device)
    return negative_log_likelihood(scores, antecedents_in_clusters(ids, scores.size(1)))
