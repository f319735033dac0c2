"""A transformer instead of the biLM, via AllenNLP's own embedder."""

from typing import Any, Literal, Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import PretrainedTransformerMismatchedEmbedder

from elmo_tasks.bilm import BilmOutput
from elmo_tasks.modules.contextual.contextual_model import ContextualModel, SharedPass

__all__ = ["PretrainedTransformer"]


@ContextualModel.register("transformer")
class PretrainedTransformer(ContextualModel):
    """
    The layers of BERT, GPT-1, RoBERTa, XLNet, ALBERT, ELECTRA or T5's encoder for each word: AllenNLP's
    `PretrainedTransformerMismatchedEmbedder` without its mix, because each embedder of a model mixes the layers itself.
    Use the token indexer `pretrained_transformer_mismatched` with the same `model_name` and `max_length`.

    # Parameters

    model_name : `str`
        A folder with a checkpoint, or a name on the Hugging Face hub.
    max_length : `int`, optional
        The largest number of word pieces per segment; longer sentences are split into segments.
    requires_grad : `bool`
        Whether the transformer is trained with the model. A frozen transformer has no dropout, even in training.
    pooling : `Literal["first", "avg"]`
        The vector of a word: its first piece, or the mean of its pieces.
    tokenizer_kwargs : `Dict[str, Any]`, optional
        As in the token indexer, for example `{"add_prefix_space": true}` for RoBERTa.
    """

    def __init__(
        self,
        model_name: str,
        max_length: Optional[int] = None,
        requires_grad: bool = False,
        pooling: Literal["first", "avg"] = "avg",
        tokenizer_kwargs: Optional[dict[str, Any]] = None,
    ) -> None:
        super().__init__()
        # Imported here because it imports torch's compiler, which would slow down every start of `allennlp`.
        from transformers import AutoModel

        # AllenNLP would leave missing weights random.
        loaded, info = AutoModel.from_pretrained(model_name, output_loading_info=True)
        is_encoder_decoder = loaded.config.is_encoder_decoder
        del loaded
        not_needed = ("pooler.", "decoder.") if is_encoder_decoder else "pooler."
        if missing := sorted(name for name in info["missing_keys"] if not name.startswith(not_needed)):
            raise ConfigurationError(f"expected all weights in {model_name}, got a checkpoint without {missing[0]}")
        self._embedder = PretrainedTransformerMismatchedEmbedder(
            model_name,
            max_length=max_length,
            sub_module="encoder" if is_encoder_decoder else None,
            train_parameters=requires_grad,
            last_layer_only=False,
            tokenizer_kwargs=tokenizer_kwargs,
            # T5's encoder has its own copy of the config, which AllenNLP does not set.
            transformer_kwargs={"output_hidden_states": True},
            sub_token_mode=pooling,
        )
        matched = self._embedder._matched_embedder
        matched._scalar_mix = _SideBySide()
        if not matched._num_added_tokens:
            # AllenNLP's method expects special pieces around a segment, which GPT lacks.
            matched._unfold_long_sequences = _unfolded
        network = matched.transformer_model
        # No word uses the pooler, so it would never get a gradient.
        network.pooler = None
        # AllenNLP's mix omits the first layer, the embeddings.
        network.register_forward_hook(_with_a_layer_to_leave_out)
        self.num_layers = matched.config.num_hidden_layers + 1
        self.output_dim = self._embedder.get_output_dim()
        self._requires_grad = requires_grad
        self._pass = SharedPass()

    def train(self, mode: bool = True) -> "PretrainedTransformer":
        super().train(mode and self._requires_grad)
        return self

    def forward(self, token_ids: torch.Tensor, mask: torch.Tensor, **pieces: torch.Tensor) -> BilmOutput:
        """All layers, the embeddings first, and the mask of the words; arguments as in AllenNLP's embedder."""

        def compute() -> BilmOutput:
            with torch.set_grad_enabled(self._requires_grad and torch.is_grad_enabled()):
                # Shape: (batch_size, timesteps, num_layers * dim)
                vectors = self._embedder(token_ids=token_ids, mask=mask, **pieces) * mask.unsqueeze(-1)
            return BilmOutput(tuple(vectors.chunk(self.num_layers, -1)), mask)

        mode = self.training, torch.is_grad_enabled()
        return self._pass.output(token_ids, self._embedder.parameters(), mode, compute)


class _SideBySide(torch.nn.Module):
    """Replaces the mix by all layers, concatenated in the last dimension."""

    def forward(self, layers: tuple[torch.Tensor, ...]) -> torch.Tensor:
        return torch.cat(layers, -1)


def _with_a_layer_to_leave_out(module: torch.nn.Module, inputs: Any, output: Any) -> Any:
    output["hidden_states"] = (output.hidden_states[0], *output.hidden_states)
    return output


def _unfolded(embeddings: torch.Tensor, mask: torch.Tensor, batch_size: int, n_pieces: int) -> torch.Tensor:
    return embeddings.reshape(batch_size, -1, embeddings.size(-1))[:, :n_pieces]
