"""The model for questions and answers."""

from typing import Any

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask, min_value_of_dtype
from allennlp_models.rc.metrics import SquadEmAndF1
from torch.nn.functional import nll_loss

from elmo_tasks.models.elmo_model import ElmoModel, concat_texts
from elmo_tasks.models.squad_attention import BidafAttention, ResidualAttention, best_span

__all__ = ["SquadModel"]


@Model.register("elmo_squad")
class SquadModel(ElmoModel):
    """
    Answers questions with spans of a paragraph, as in the paper (section A.4, a simplification of Clark and
    Gardner 2017): one biGRU over question and paragraph, BiDAF's attention between them, a linear layer with
    ReLU, residual self-attention of the paragraph, and a biGRU and a linear layer each for the first and the
    last word of the answer. ELMo is concatenated with the words, with the output of the first biGRU, or with
    both; question and paragraph share the two mixes and go through the biLM and the first biGRU as one batch.

    # Parameters

    self_encoder : `Seq2SeqEncoder`
        The encoder of the residual self-attention; its input is as wide as the linear layer below it.
    end_encoder : `Seq2SeqEncoder`
        Reads the output of the self-attention and of the `start_encoder`.
    dropout : `float`
        Applied to the input of each encoder and each linear layer, with the same units at all words of a text.
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
        self.start_encoder, self.end_encoder = start_encoder, end_encoder
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
    ) -> dict[str, Any]:
        """
        Each text has at least one word. `span_start` and `span_end`, the first and the last word of the
        answers, have shape `(batch_size, 1)`; answers in `metadata`, as `SquadReader` makes it, are scored.
        The output has `start_log_probs` and `end_log_probs`, of shape `(batch_size, n_passage)`; `best_span`,
        the first and the last word of the answer, of shape `(batch_size, 2)`, and `score`, its probability;
        with metadata, `metadata` and the answers as `best_span_str`; and the `loss` per question, the sum of
        the cross entropies of the first and the last word, if these are given.
        """
        # Shape: (batch_size, n_passage)
        passage_mask = get_text_field_mask(passage)
        hidden = self._hidden(question, passage, passage_mask)
        # Shape: (batch_size, n_passage, start_dim)
        of_start = self.start_encoder(self.dropout(hidden), passage_mask)
        # Shape: (batch_size, n_passage, end_dim)
        of_end = self.end_encoder(self.dropout(torch.cat([hidden, of_start], -1)), passage_mask)
        # Shape: (batch_size, n_passage)
        start = self._log_probs(self.start_projection(self.dropout(of_start)), passage_mask)
        end = self._log_probs(self.end_projection(self.dropout(of_end)), passage_mask)
        span, score = best_span(start.detach(), end.detach(), self._max_span_tokens)
        output: dict[str, Any] = {"start_log_probs": start, "end_log_probs": end}
        output |= {"best_span": span, "score": score.exp()}
        if span_start is not None and span_end is not None:
            output["loss"] = nll_loss(start, span_start[:, 0]) + nll_loss(end, span_end[:, 0])
        if metadata is not None:
            output["metadata"] = metadata
            output["best_span_str"] = [_text(row, *bounds) for row, bounds in zip(metadata, span.tolist(), strict=True)]
            if all("answer_texts" in row for row in metadata):
                self._em_f1(output["best_span_str"], [row["answer_texts"] for row in metadata])
        return output

    def _hidden(
        self, question: TextFieldTensors, passage: TextFieldTensors, passage_mask: torch.Tensor
    ) -> torch.Tensor:
        """The words of the paragraph, after attention to the question: shape `(batch_size, n_passage, hidden_dim)`."""
        tokens, question_mask = concat_texts(question, passage), get_text_field_mask(question)
        # Questions first. Shape: (2 * batch_size, timesteps, dim)
        embedded = self.dropout(self.text_field_embedder(tokens))
        encoded = self.with_elmo(self.contextual_encoder(embedded, get_text_field_mask(tokens)), tokens)
        questions, passages = encoded.chunk(2)
        (_, n_question), (_, n_passage) = question_mask.shape, passage_mask.shape
        # Shape: (batch_size, n_passage, 4 * dim)
        attended = self.attention(passages[:, :n_passage], passage_mask, questions[:, :n_question], question_mask)
        # Shape: (batch_size, n_passage, hidden_dim)
        hidden = self.attention_projection(self.dropout(attended)).relu()
        return self.self_attention(hidden, passage_mask)

    def _log_probs(self, logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The log-probability of each word: shape `(batch_size, timesteps)`, at least float32."""
        logits = logits.squeeze(-1).float()
        return logits.masked_fill(~mask, min_value_of_dtype(logits.dtype)).log_softmax(-1)

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        `id` of the question, or an empty string; `best_span_str`, the answer; `best_span`, its first and last
        token; `score`, its probability; `question_tokens` and `passage_tokens`.
        """
        rows, answers = output_dict["metadata"], ("best_span_str", "best_span", "score")
        texts = {key: [row[key] for row in rows] for key in ("question_tokens", "passage_tokens")}
        # AllenNLP would write `None` as the text "None".
        return {"id": [row["id"] or "" for row in rows], **texts, **{key: output_dict[key] for key in answers}}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """`em` and `f1`, from 0 to 1."""
        return dict(zip(("em", "f1"), self._em_f1.get_metric(reset), strict=True))

    default_predictor = "elmo_squad"


def _text(metadata: dict[str, Any], first: int, last: int) -> str:
    """The answer as written in the paragraph, including white space."""
    passage: str = metadata["original_passage"]
    return passage[metadata["token_offsets"][first][0] : metadata["token_offsets"][last][1]]
