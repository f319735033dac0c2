"""A transformer instead of the biLM: the layers of each word, from its pieces."""

from typing import Any, Literal

import torch
from allennlp.common.checks import ConfigurationError
from torch.nn.functional import embedding_bag

from allennlp_today.trust import is_untrusted
from allennlp_today.trust.guards import UNTRUSTED_TRANSFORMER
from allennlp_today.trust.repositories import expect_language_model
from elmo_tasks.bilm import BilmOutput
from elmo_tasks.modules.contextual.contextual_model import ContextualModel, SharedPass

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
    """

    def __init__(
        self, model_name: str, requires_grad: bool = False, pooling: Literal["first", "avg"] = "avg"
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

        def compute() -> BilmOutput:
            needs_gradient = self._requires_grad and torch.is_grad_enabled()
            with torch.set_grad_enabled(needs_gradient):
                return self._compute(input_ids, word_numbers, mask, inputs)

        mode = (self.training, torch.is_grad_enabled())
        return self._pass.output(input_ids, self.transformer_model.parameters(), mode, compute)

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
