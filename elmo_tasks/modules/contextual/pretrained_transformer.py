"""The transformer of an AllenNLP model: made from a config, and run once a batch for all its embedders."""

from typing import Any, ClassVar, Literal, Optional

import torch
from allennlp.common.checks import ConfigurationError

from elmo_tasks.bilm import BilmOutput
from elmo_tasks.modules.contextual.contextual_model import ContextualModel, layer_cache
from elmo_tasks.modules.contextual.shared_pass import SharedPass
from elmo_tasks.transformer.cached_transformer import CachedTransformer
from elmo_tasks.transformer.checkpoint import UNTRAINED, load_network, make_network, read_config, read_pieces
from elmo_tasks.transformer.transformer import Transformer
from elmo_tasks.transformer.word_pieces import SpecialPieces

__all__ = ["PretrainedTransformer"]


@ContextualModel.register("transformer")
class PretrainedTransformer(ContextualModel):
    """
    An encoder or decoder of the library `transformers` where the biLM is: BERT, RoBERTa, GPT, XLNet, ALBERT, ELECTRA,
    the encoder of T5, and others. Its layers are mixed as the biLM's are, and by default it is frozen. The words come
    from the token indexer "elmo_transformer" of the same model.

    Registered as a `ContextualModel` with name "transformer". AllenNLP's `pretrained_transformer_mismatched` gives one
    vector a word from one pass for each embedder; it shares no pass between two places, mixes with another class, and
    keeps no layers on disk.

    `allennlp train` writes the content of `config.json` and of the tokenizer into the config of the run, so that its
    archive needs neither the checkpoint nor a network. There the weights come from the archive itself: AllenNLP drops
    the key `pretrained_file` when it loads one.

    # Parameters

    model_name : `str`, optional
        A folder with a checkpoint; or a name on the Hugging Face hub, which may begin with `hf://`. Required unless a
        `config` is there.
    config : `Dict[str, Any]`, optional
        The content of its `config.json`; by default that of `model_name`, with its weights.
    special_pieces : `Dict[str, Any]`, optional
        The pieces around those of a sentence: see `SpecialPieces`. Required with a `config`.
    pretrained_file : `str`, optional
        With a `config`: where the weights come from, as `model_name`. `None` only where they come from elsewhere before
        the first batch (an archive, a checkpoint, an initializer "pretrained"), or are trained from random ones.
    requires_grad : `bool`
        Whether the transformer is trained with the model. A learning rate of its own is a group of parameters of the
        optimizer, with the expression `\\.transformer\\.network\\.`.
    pooling : `Literal["first", "mean"]`
        The vector of a word: that of its first piece, or the mean of its pieces.
    max_pieces, overlap : `int`, optional
        The windows in which long sentences are read: see `Transformer`.
    max_pieces_per_batch : `int`
        How many pieces are computed at once.
    cache_folder, cache_dtype, cache_max_bytes : optional
        See `PretrainedBilm`.

    # Raises

    `ConfigurationError`
        If the checkpoint cannot be had, or a value is out of its range.
    """

    weights_key: ClassVar[str] = "transformer.network."

    def __init__(
        self,
        model_name: Optional[str] = None,
        config: Optional[dict[str, Any]] = None,
        special_pieces: Optional[dict[str, Any]] = None,
        pretrained_file: Optional[str] = None,
        requires_grad: bool = False,
        pooling: Literal["first", "mean"] = "mean",
        max_pieces: Optional[int] = None,
        overlap: Optional[int] = None,
        max_pieces_per_batch: int = 16384,
        cache_folder: Optional[str] = None,
        cache_dtype: Literal["float32", "float16"] = "float32",
        cache_max_bytes: Optional[int] = None,
    ) -> None:
        super().__init__()
        try:
            if config is None:
                if model_name is None:
                    raise ValueError("it must have a 'model_name', a folder or a name on the Hugging Face hub")
                config, special_pieces = read_config(model_name), read_pieces(model_name)[1].to_dict()
                pretrained_file = model_name
            self.transformer = Transformer(
                make_network(config) if pretrained_file is None else load_network(pretrained_file, config),
                config,
                SpecialPieces.from_dict(special_pieces or {}),
                pooling=pooling,
                max_pieces=max_pieces,
                overlap=overlap,
                max_pieces_per_batch=max_pieces_per_batch,
            )
            cache = layer_cache(cache_folder, cache_dtype, cache_max_bytes)
        except (ValueError, OSError) as error:
            raise ConfigurationError(f"the transformer of this model cannot be made: {error}") from error
        for name, weight in self.transformer.named_parameters():
            weight.requires_grad_(requires_grad and name.rpartition(".")[2] not in UNTRAINED)
        self.has_weights = pretrained_file is not None
        self._pass = SharedPass()
        self._cached = CachedTransformer(self.transformer, cache) if cache is not None else None

    @property
    def num_layers(self) -> int:
        """The number of layers, including that of the embeddings."""
        return self.transformer.num_layers

    def get_output_dim(self) -> int:
        """Units of each layer."""
        return self.transformer.get_output_dim()

    def forward(self, pieces: torch.Tensor) -> BilmOutput:
        """
        # Parameters

        pieces : `torch.Tensor`
            Shape `(batch_size, timesteps, max_pieces)`, as the token indexer "elmo_transformer" gives it.

        # Returns

        `BilmOutput`
            All layers and the mask.

        # Raises

        `ConfigurationError`
            If the transformer is frozen and its weights were never loaded.
        """
        weights = list(self.transformer.parameters())
        is_trained = self.note_training(weights)
        if not (self.has_weights or is_trained):
            raise ConfigurationError(
                "this transformer is frozen and its weights were never loaded: set 'pretrained_file' to a folder with "
                "a checkpoint or a name on the Hugging Face hub, or 'requires_grad' to true, without 'no_grad' in the "
                "trainer, to train it from random weights"
            )
        # A frozen one is the same function in training, without dropout.
        is_training = self.training and is_trained
        if self.transformer.training != is_training:
            self.transformer.train(is_training)
        if is_trained and self._cached is not None:
            self._cached.forget()
        with torch.set_grad_enabled(is_trained and torch.is_grad_enabled()):
            mode = is_training, torch.is_grad_enabled()
            compute = self.transformer if is_trained else self._frozen
            return self._pass.output(pieces, weights, mode, lambda: compute(pieces))

    def _frozen(self, pieces: torch.Tensor) -> BilmOutput:
        # As a frozen biLM it ignores autocast: its layers are those of the cache.
        with torch.autocast(next(self.transformer.parameters()).device.type, enabled=False):
            output: BilmOutput = (self._cached or self.transformer)(pieces)
            return output
