"""
The model for questions and answers, with its attention (Clark and Gardner 2017) and its most
probable answer.
"""

from typing import Any

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder
from allennlp.modules.matrix_attention import LinearMatrixAttention
from allennlp.nn.util import get_text_field_mask, min_value_of_dtype
from allennlp_models.rc.metrics import SquadEmAndF1
from torch.nn.functional import nll_loss

from elmo_tasks.models.elmo_model import ElmoModel
from elmo_tasks.models.text_batches import concat_texts
from elmo_tasks.modules.attention import attend_in_blocks

__all__ = ["BidafAttention", "ResidualAttention", "SquadModel", "best_span"]


@Model.register("elmo_squad")
class SquadModel(ElmoModel):
    """
    Answers questions with spans of a paragraph, as in the paper (section A.4, a simplification of
    Clark and Gardner 2017): one biGRU over question and paragraph, BiDAF's attention between them,
    a linear layer with ReLU, residual self-attention of the paragraph, and a biGRU and a linear
    layer each for the first and the last word of the answer. ELMo is concatenated with the words,
    with the output of the first biGRU, or with both; question and paragraph share the two mixes and
    go through the biLM and the first biGRU as one batch.

    # Parameters

    self_encoder : `Seq2SeqEncoder`
        The encoder of the residual self-attention; its input is as wide as the linear layer below
        it.
    end_encoder : `Seq2SeqEncoder`
        Reads the output of the self-attention and of the `start_encoder`.
    dropout : `float`
        Applied to the input of each encoder and each linear layer, with the same units at all words
        of a text.
    max_span_tokens : `int`
        The length of the longest predicted answer; training also accepts longer ones.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        contextual_encoder: Seq2SeqEncoder,
        self_encoder: Seq2SeqEncoder,
        start_encoder: Seq2SeqEncoder,
        end_encoder: Seq2SeqEncoder,
        dropout: float = 0.2,
        max_span_tokens: int = 17,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        self.contextual_encoder = contextual_encoder
        width = self.width_with_elmo(contextual_encoder.get_output_dim())
        self.attention = BidafAttention(width)
        self.attention_projection = torch.nn.Linear(4 * width, self_encoder.get_input_dim())
        self.self_attention = ResidualAttention(self_encoder, dropout)
        self.start_encoder = start_encoder
        self.end_encoder = end_encoder
        # A softmax over the words ignores a bias.
        self.start_projection = torch.nn.Linear(start_encoder.get_output_dim(), 1, bias=False)
        self.end_projection = torch.nn.Linear(end_encoder.get_output_dim(), 1, bias=False)
        self.dropout = InputVariationalDropout(dropout)
        self._max_span_tokens = max_span_tokens
        self._em_f1 = SquadEmAndF1()
        self.initialize()

    def forward(
        self,
        question: TextFieldTensors,
        passage: TextFieldTensors,
        span_start: torch.Tensor | None = None,
        span_end: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """
        Each text has at least one word. `span_start` and `span_end`, the first and the last word of
        the answers, have shape `(batch_size, 1)`; answers in `metadata`, as `SquadReader` makes it,
        are scored. The output has `start_log_probs` and `end_log_probs`, of shape
        `(batch_size, n_passage)`; `best_span`, the first and the last word of the answer, of shape
        `(batch_size, 2)`, and `score`, its probability; with metadata, `metadata` and the answers
        as `best_span_str`; and the `loss` per question, the sum of the cross entropies of the first
        and the last word, if these are given.
        """
        output = self.scores(question, passage, metadata)
        return self.decide(output, span_start, span_end)

    def scores(
        self,
        question: TextFieldTensors,
        passage: TextFieldTensors,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The output without answers and loss."""
        # Shape: (batch_size, n_passage)
        passage_mask = get_text_field_mask(passage)
        hidden = self._hidden(question, passage, passage_mask)
        # Shape: (batch_size, n_passage, start_dim)
        start_hidden = self.start_encoder(self.dropout(hidden), passage_mask)
        end_input = torch.cat([hidden, start_hidden], -1)
        # Shape: (batch_size, n_passage, end_dim)
        end_hidden = self.end_encoder(self.dropout(end_input), passage_mask)
        # Shape: (batch_size, n_passage, 1)
        start_logits = self.start_projection(self.dropout(start_hidden))
        end_logits = self.end_projection(self.dropout(end_hidden))
        output: dict[str, Any] = {
            "start_log_probs": _log_probs(start_logits, passage_mask),
            "end_log_probs": _log_probs(end_logits, passage_mask),
        }
        if metadata is not None:
            output["metadata"] = metadata
        return output

    def decide(
        self,
        output: dict[str, Any],
        span_start: torch.Tensor | None = None,
        span_end: torch.Tensor | None = None,
    ) -> dict[str, Any]:
        """Adds the most probable answers, and the loss."""
        start = output["start_log_probs"]
        end = output["end_log_probs"]
        span, score = best_span(start.detach(), end.detach(), self._max_span_tokens)
        output["best_span"] = span
        output["score"] = score.exp()
        if span_start is not None and span_end is not None:
            output["loss"] = nll_loss(start, span_start[:, 0]) + nll_loss(end, span_end[:, 0])
        if "metadata" in output:
            metadata = output["metadata"]
            answers = []
            for question, (first, last) in zip(metadata, span.tolist(), strict=True):
                answers.append(_text(question, first, last))
            output["best_span_str"] = answers
            if all("answer_texts" in question for question in metadata):
                self._em_f1(answers, [question["answer_texts"] for question in metadata])
        return output

    def _hidden(
        self, question: TextFieldTensors, passage: TextFieldTensors, passage_mask: torch.Tensor
    ) -> torch.Tensor:
        """
        The words of the paragraph, after attention to the question: shape
        `(batch_size, n_passage, hidden_dim)`.
        """
        question_mask = get_text_field_mask(question)
        # Questions first.
        tokens = concat_texts(question, passage)
        # Shape: (2 * batch_size, timesteps, dim)
        embedded = self.dropout(self.text_field_embedder(tokens))
        encoded = self.contextual_encoder(embedded, get_text_field_mask(tokens))
        questions, passages = self.with_elmo(encoded, tokens).chunk(2)
        # Both were padded to the longest text.
        passages = passages[:, : passage_mask.size(1)]
        questions = questions[:, : question_mask.size(1)]
        # Shape: (batch_size, n_passage, 4 * dim)
        attended = self.attention(passages, passage_mask, questions, question_mask)
        # Shape: (batch_size, n_passage, hidden_dim)
        hidden = self.attention_projection(self.dropout(attended)).relu()
        return self.self_attention(hidden, passage_mask)

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        `id` of the question, or an empty string; `best_span_str`, the answer; `best_span`, its
        first and last token; `score`, its probability; `question_tokens` and `passage_tokens`.
        """
        metadata = output_dict["metadata"]
        # AllenNLP would write `None` as the text "None".
        readable: dict[str, Any] = {"id": [question["id"] or "" for question in metadata]}
        for key in ("question_tokens", "passage_tokens"):
            readable[key] = [question[key] for question in metadata]
        for key in ("best_span_str", "best_span", "score"):
            readable[key] = output_dict[key]
        return readable

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """`em` and `f1`, from 0 to 1."""
        em, f1 = self._em_f1.get_metric(reset)
        return {"em": em, "f1": f1}

    default_predictor = "elmo_squad"


def _text(metadata: dict[str, Any], first: int, last: int) -> str:
    """The answer as written in the paragraph, including white space."""
    passage: str = metadata["original_passage"]
    start, _ = metadata["token_offsets"][first]
    _, end = metadata["token_offsets"][last]
    return passage[start:end]


def _log_probs(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The log-probability of each word: shape `(batch_size, timesteps)`, at least float32."""
    return _masked(logits.squeeze(-1).float(), mask).log_softmax(-1)


class BidafAttention(torch.nn.Module):
    """
    The bidirectional attention of BiDAF (Seo et al. 2017), as in Clark and Gardner (2017). With the
    similarity `s_ij = w . [x_i; q_j; x_i * q_j] + b` between word `i` of the context and word `j`
    of the question:

        a_i = sum_j softmax_j(s_ij) q_j                context to question
        c   = sum_i softmax_i(max_j s_ij) x_i          question to context
        y_i = [x_i; a_i; x_i * a_i; x_i * c]
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.similarity = LinearMatrixAttention(dim, dim, combination="x,y,x*y")

    def forward(
        self,
        context: torch.Tensor,
        context_mask: torch.Tensor,
        question: torch.Tensor,
        question_mask: torch.Tensor,
    ) -> torch.Tensor:
        """
        From shapes `(batch_size, n_context, dim)` and `(batch_size, n_question, dim)`, each with
        its mask and with at least one word in each row, to `(batch_size, n_context, 4 * dim)`.
        """
        # Shape: (batch_size, n_context, n_question)
        scores = _masked(self.similarity(context, question), question_mask[:, None])
        # Shape: (batch_size, n_context, dim)
        attended = scores.softmax(-1) @ question
        # The highest score of each word of the context with any word of the question. Shape:
        # (batch_size, n_context)
        highest = _masked(scores.max(-1).values, context_mask)
        # Shape: (batch_size, 1, dim)
        mean_context = highest.softmax(-1)[:, None] @ context
        return torch.cat([context, attended, context * attended, context * mean_context], -1)


class ResidualAttention(torch.nn.Module):
    """
    The residual self-attention of Clark and Gardner (2017). With the encoder's output `h` and the
    similarity `s_ij = w . [h_i; h_j; h_i * h_j] + b`, minus infinity where `i = j`:

        a_i = sum_j softmax_j(s_ij) h_j
        y_i = x_i + ReLU(W [h_i; a_i; h_i * a_i] + b)

    The encoder, a biGRU in the paper, computes `h` from `x`. It and the linear layer have
    variational dropout on their inputs. document-qa adds a constant to the sum of the softmax,
    which is in neither paper and not used here.
    """

    def __init__(self, encoder: Seq2SeqEncoder, dropout: float) -> None:
        super().__init__()
        dim = encoder.get_output_dim()
        self.encoder = encoder
        self.similarity = LinearMatrixAttention(dim, dim, combination="x,y,x*y")
        self.projection = torch.nn.Linear(3 * dim, encoder.get_input_dim())
        self.dropout = InputVariationalDropout(dropout)

    def forward(self, text: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """From `x` to `y`, both of shape `(batch_size, timesteps, dim)`."""
        # Shape: (batch_size, timesteps, encoder_dim)
        hidden = self.encoder(self.dropout(text), mask)
        positions = torch.arange(mask.shape[1], device=mask.device)

        def attend(words: torch.Tensor, first: int) -> torch.Tensor:
            # Shape: (n_words, timesteps)
            is_itself = positions[first : first + words.shape[1], None] == positions
            # Shape: (batch_size, n_words, timesteps)
            similarities = self.similarity(words, hidden)
            scores = _masked(similarities, mask[:, None] & ~is_itself)
            return scores.softmax(-1) @ hidden

        # A text of one word has no other word to attend to. Shape: (batch_size,)
        has_other_words = mask.sum(-1) > 1
        # Shape: (batch_size, timesteps, encoder_dim)
        attended = attend_in_blocks(attend, hidden) * has_other_words[:, None, None]
        # Shape: (batch_size, timesteps, 3 * encoder_dim)
        together = torch.cat([hidden, attended, hidden * attended], -1)
        return text + self.projection(self.dropout(together)).relu()


def best_span(
    start: torch.Tensor, end: torch.Tensor, max_length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The span of at most `max_length` words with the largest sum of the log-probabilities of its
    bounds.

    From the log-probabilities that the answer begins or ends at a word, of shape
    `(batch_size, timesteps)` and very low at padding, to the first and the last word, of shape
    `(batch_size, 2)`, and their log-probability.
    """
    # No span ends after the last word.
    padded = torch.nn.functional.pad(end, (0, max_length - 1), value=-torch.inf)
    # The ends of the spans that start at each word, by length minus 1. Shape: (batch_size,
    # timesteps, max_length)
    ends = padded.unfold(1, max_length, 1)
    scores = start[:, :, None] + ends
    # Shape: (batch_size,)
    score, index = scores.flatten(1).max(-1)
    first = index.div(max_length, rounding_mode="floor")
    return torch.stack([first, first + index % max_length], -1), score


def _masked(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return scores.masked_fill(~mask, min_value_of_dtype(scores.dtype))
