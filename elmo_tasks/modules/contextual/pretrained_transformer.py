"""A transformer instead of the biLM: the layers of each word, from its pieces."""

from typing import Any, Literal, Optional

import numpy as np
import torch
from allennlp.common.checks import ConfigurationError
from torch.nn.functional import embedding_bag

from allennlp_today.trust import is_untrusted
from allennlp_today.trust.guards import UNTRUSTED_TRANSFORMER
from allennlp_today.trust.repositories import expect_language_model
from elmo_tasks.bilm import BilmOutput
from elmo_tasks.bilm.frozen_value import FrozenValue
from elmo_tasks.bilm.layer_cache import digest_of_model, is_cacheable, read_or_compute, sentence_key
from elmo_tasks.modules.contextual.contextual_model import (
    ContextualModel,
    SharedPass,
    configured_cache,
)

__all__ = ["PretrainedTransformer"]


@ContextualModel.register("transformer")
class PretrainedTransformer(ContextualModel):
    """
    The layers of BERT, GPT-1, RoBERTa, XLNet, ALBERT, ELECTRA or T5's encoder for each word, which
    each embedder of a model mixes with its own weights. Use the token indexer `elmo_transformer`
    with the same `model_name`.

    # Parameters

    model_name : `str`
        A folder with a checkpoint, or a name on the Hugging Face hub.
    requires_grad : `bool`
        Whether the transformer is trained with the model. A frozen transformer has no dropout, even
        in training.
    pooling : `Literal["first", "avg"]`
        The vector of a word: its first piece, or the mean of its pieces.
    cache_folder : `str`, optional
        The folder for the layers of sentences, as for a biLM, if the transformer is frozen.
    cache_dtype, cache_max_bytes
        See `elmo_tasks.bilm.LayerCache`.
    """

    def __init__(
        self,
        model_name: str,
        requires_grad: bool = False,
        pooling: Literal["first", "avg"] = "avg",
        cache_folder: Optional[str] = None,
        cache_dtype: Literal["float32", "float16"] = "float32",
        cache_max_bytes: Optional[int] = None,
    ) -> None:
        super().__init__()
        # Imported here because it imports torch's compiler, which would slow down every start of
        # `allennlp`.
        from transformers import AutoConfig, AutoModel

        no_code: dict[str, Any] = {"trust_remote_code": False}
        info: dict[str, Any] = {"missing_keys": []}
        if is_untrusted():
            # The archive has the weights.
            expect_language_model(model_name)
            config = AutoConfig.from_pretrained(model_name, **no_code)
            transformer = AutoModel.from_config(config, **UNTRUSTED_TRANSFORMER)
        else:
            transformer, info = AutoModel.from_pretrained(
                model_name, output_loading_info=True, **no_code
            )
        not_needed = {"pooler"}
        self.transformer_model = transformer
        if transformer.config.is_encoder_decoder:
            not_needed.add("decoder")
            self.transformer_model = transformer.get_encoder()
        for name in sorted(info["missing_keys"]):
            # transformers would leave it random.
            if not_needed.isdisjoint(name.split(".")):
                raise ConfigurationError(
                    f"expected all weights in {model_name}, got a checkpoint without {name}"
                )
        # No word uses the pooler, so it would never get a gradient.
        self.transformer_model.pooler = None
        self.transformer_model.requires_grad_(requires_grad)
        self.num_layers = transformer.config.num_hidden_layers + 1
        self.output_dim = transformer.config.hidden_size
        self._requires_grad = requires_grad
        self._pooling = pooling
        self._pass = SharedPass()
        self._cache = configured_cache(cache_folder, cache_dtype, cache_max_bytes)
        self._digest: FrozenValue[bytes] = FrozenValue()

    def train(self, mode: bool = True) -> "PretrainedTransformer":
        super().train(mode and self._requires_grad)
        return self

    def forward(
        self,
        input_ids: torch.Tensor,
        word_numbers: torch.Tensor,
        mask: torch.Tensor,
        **inputs: torch.Tensor,
    ) -> BilmOutput:
        """
        All layers, the embeddings first, and the mask of the words, of shape
        `(batch_size, timesteps)`. The other tensors come from `TransformerIndexer`, with the batch
        in front. A word without pieces has zero vectors.
        """

        def compute_rows(rows: list[int]) -> BilmOutput:
            inputs_of_rows = {name: tensor[rows] for name, tensor in inputs.items()}
            return self._compute(input_ids[rows], word_numbers[rows], mask[rows], inputs_of_rows)

        def compute() -> BilmOutput:
            if self._cache is None or not self._is_cacheable():
                needs_gradient = self._requires_grad and torch.is_grad_enabled()
                with torch.set_grad_enabled(needs_gradient):
                    return self._compute(input_ids, word_numbers, mask, inputs)
            keys = self._keys(input_ids, word_numbers, mask, inputs["attention_mask"].bool())
            shape = self.num_layers, self.output_dim
            weight = next(self.transformer_model.parameters())
            with torch.no_grad():
                return read_or_compute(self._cache, keys, mask, shape, weight, compute_rows)

        mode = (self.training, torch.is_grad_enabled())
        return self._pass.output(input_ids, self.transformer_model.parameters(), mode, compute)

    def _is_cacheable(self) -> bool:
        """Whether a later pass computes the same layers: without dropout, autocast or training."""
        weights = list(self.transformer_model.parameters())
        uses_autocast = torch.is_autocast_enabled(weights[0].device.type)
        has_dropout = self.transformer_model.training
        return is_cacheable(weights) and not uses_autocast and not has_dropout

    def _keys(
        self,
        input_ids: torch.Tensor,
        word_numbers: torch.Tensor,
        mask: torch.Tensor,
        is_piece: torch.Tensor,
    ) -> list[bytes]:
        """The keys of the sentences in the cache."""
        model = self.transformer_model
        digest = digest_of_model(self._digest, model, model.config.to_json_string(), self._pooling)
        keys = []
        for row, n_words in enumerate(mask.sum(-1).tolist()):
            # Shape: (2, n_pieces_of_sentence)
            pieces = torch.stack([input_ids[row], word_numbers[row]])[:, is_piece[row]]
            n_pieces = is_piece[row].sum(-1)
            segments = n_pieces[n_pieces > 0].tolist()
            # The lengths come first, so that no two sentences have the same numbers.
            numbers = [n_words, len(segments), *segments, *pieces.flatten().tolist()]
            keys.append(sentence_key(digest, np.array(numbers)))
        return keys

    def _compute(
        self,
        input_ids: torch.Tensor,
        word_numbers: torch.Tensor,
        mask: torch.Tensor,
        inputs: dict[str, torch.Tensor],
    ) -> BilmOutput:
        # Shape: (batch_size, n_segments)
        is_segment = inputs["attention_mask"].any(-1)
        # Shape of each: (n_all_segments, n_pieces)
        inputs_of_segments = {name: tensor[is_segment] for name, tensor in inputs.items()}
        # Shape of each: (n_all_segments, n_pieces, dim)
        layers = self.transformer_model(
            input_ids=input_ids[is_segment], **inputs_of_segments, output_hidden_states=True
        ).hidden_states
        # The sentence of each segment. Shape: (n_all_segments, 1)
        sentences = is_segment.nonzero()[:, :1]
        pieces, starts = self._pieces_of_words(word_numbers[is_segment], sentences, mask)
        layers_of_words = []
        for layer in layers:
            # Shape: (batch_size * timesteps, dim)
            vectors = embedding_bag(pieces, layer.flatten(0, 1), starts, mode="mean")
            layers_of_words.append(vectors.unflatten(0, mask.shape))
        return BilmOutput(tuple(layers_of_words), mask)

    def _pieces_of_words(
        self, word_numbers: torch.Tensor, sentences: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        The pieces of all words, from `word_numbers` of shape `(n_all_segments, n_pieces)`, and
        where each begins.
        """
        is_piece = word_numbers > 0
        # Shape: (n_pieces_of_words,), in ascending order
        words = (sentences * mask.size(1) + word_numbers - 1)[is_piece]
        pieces = is_piece.flatten().nonzero().squeeze(1)
        if self._pooling == "first":
            is_first = words.diff(prepend=words.new_tensor([-1])) > 0
            words = words[is_first]
            pieces = pieces[is_first]
        # Shape: (batch_size * timesteps,)
        counts = torch.bincount(words, minlength=mask.numel())
        return pieces, counts.cumsum(0) - counts
