"""The bidirectional language model, which computes the layers of each word in a sentence."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import get_args

import numpy as np
import torch
from torch import nn
from torch.nn.functional import dropout as dropped_out

from elmo_tasks.bilm.character_encoder import CharacterEncoder, distinct_rows
from elmo_tasks.bilm.character_ids import NumberedWords
from elmo_tasks.bilm.formats import read_any_options, read_any_weights
from elmo_tasks.bilm.lstm.bidirectional_layer import BidirectionalLayer
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm
from elmo_tasks.bilm.lstm.triton_steps import has_triton_steps
from elmo_tasks.bilm.many_langs import DictionaryEncoder
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.outputs import BilmContexts, BilmOutput
from elmo_tasks.bilm.packed_linear import IS_GPU, kernel_name
from elmo_tasks.bilm.packing import PackedSentences, mask_of, on_device, pack_sentences
from elmo_tasks.bilm.precision import Precision, has_paper_size, precision_on
from elmo_tasks.bilm.process import use_one_thread_after_fork
from elmo_tasks.bilm.weights import write_weights

__all__ = ["Bilm", "Precision"]

Inputs = torch.Tensor | Sequence[Sequence[str]] | NumberedWords


class Bilm(nn.Module):
    """
    The biLM of the paper (section 3): a character CNN and, on top of it in each direction, LSTMs
    with projected outputs and residual connections between the layers. Every sentence starts from
    the zero state, so its vectors depend only on the sentence.

    # Parameters

    options
        The biLM's shape. The weights are random; `from_files` reads trained ones.
    precision
        The precision of matrix products: `"float32"`, `"bf16"`, `"int8"` (see `Int8Linear`) for a
        frozen biLM on a CPU, or `"auto"`, the fastest of them on this device
        (docs/internals/engine.md); a warning is logged for one that is slower than float32.
        Parameters, memory cells and layers stay float32. While the biLM is trained, `"auto"` is
        float32 and autocast's type takes precedence; a frozen biLM ignores autocast.
    """

    # Differs from the paper: its code (bilm-tf) carries the LSTM state from batch to batch, in
    # training and in use.

    def __init__(self, options: BilmOptions, *, precision: Precision = "float32") -> None:
        super().__init__()
        use_one_thread_after_fork()
        self.options = options
        self.precision = precision
        encoder_class = CharacterEncoder if options.dictionaries is None else DictionaryEncoder
        self.character_encoder = encoder_class(options)
        self.word_rows = self.character_encoder.word_rows
        self.forward_layers = nn.ModuleList(ProjectedLstm(options) for _ in range(options.n_layers))
        self.backward_layers = nn.ModuleList(
            ProjectedLstm(options) for _ in range(options.n_layers)
        )
        self._layers = [
            BidirectionalLayer(directions)  # type: ignore[arg-type]
            for directions in zip(self.forward_layers, self.backward_layers, strict=True)
        ]
        # Shape: (2, width)
        boundary_ids = self.word_rows.batch([self.word_rows.boundaries])[0]
        self.register_buffer("_boundary_ids", boundary_ids, persistent=False)
        self._boundary_ids: torch.Tensor

    @classmethod
    def from_files(
        cls,
        options_file: str | PathLike[str],
        weight_file: str | PathLike[str],
        *,
        precision: Precision = "float32",
    ) -> "Bilm":
        """
        Reads a biLM from local files: in the public format, its `options.json` and its HDF5 or
        safetensors file; for ELMoForManyLangs, the `config.json` and the `encoder.pkl` in a model's
        folder. Raises `ValueError` if a file has a different format or the two do not match. For
        the others, see the class.
        """
        bilm = cls(read_any_options(options_file), precision=precision)
        bilm.load_weights(weight_file)
        return bilm

    def load_weights(self, weight_file: str | PathLike[str]) -> None:
        """Loads the weights of a biLM with the same options. `from_files` lists the formats."""
        self.load_state_dict(read_any_weights(weight_file, self.options))

    def save(
        self,
        options_file: str | PathLike[str],
        weight_file: str | PathLike[str],
        *,
        softmax: Mapping[str, torch.Tensor] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """
        Writes options and weights in the public format, which bilm-tf and AllenNLP can read; only
        this package can read a biLM with dictionaries. `softmax` is the state of an `LmSoftmax`,
        written to the same file for `read_softmax`; other readers ignore it. `dtype` is float32, or
        float16 for half the size.
        """
        write_weights(weight_file, self.state_dict(), self.options, softmax=softmax, dtype=dtype)
        self.options.save(options_file)

    @property
    def num_layers(self) -> int:
        """The number of LSTMs, plus one for the context-insensitive layer below them."""
        return self.options.n_layers + 1

    def get_output_dim(self) -> int:
        """Units of each layer."""
        return self.options.output_dim

    @property
    def precision(self) -> Precision:
        """
        The precision of products without gradients, where `"auto"` is resolved for the current
        device.
        """
        return precision_on(
            self._boundary_ids.device, has_paper_size(self.options), self._precision
        )

    @precision.setter
    def precision(self, precision: Precision) -> None:
        if precision not in get_args(Precision):
            raise ValueError(
                f"expected the precision {', '.join(get_args(Precision))}, got {precision!r}"
            )
        self._precision = precision

    @property
    def kernel(self) -> str:
        """
        The precision of products without gradients, and the library that computes them:
        `int8 by fbgemm`; on a GPU also whether Triton computes the cell:
        `bf16 by torch and triton`.
        """
        device = self._boundary_ids.device
        name = kernel_name(device.type, self.precision)
        return f"{name} and triton" if device.type == "cuda" and has_triton_steps(device) else name

    def forward(self, inputs: Inputs) -> BilmOutput:
        """
        # Parameters

        inputs
            Sentences as lists of words, as `NumberedWords`, or their ids, of shape
            `(batch_size, timesteps, 50)`, padded with zeros on the right. The method adds the
            sentence boundaries.

        # Returns

        `BilmOutput`
            The layers and the mask, on the biLM's device.
        """
        words, numbers, is_word = self._words(inputs)
        weight = self.character_encoder.projection.weight
        # Shape: (batch_size, timesteps, 2 * projection_dim), each
        shape = (*is_word.shape, self.get_output_dim())
        layers = [weight.new_zeros(shape) for _ in range(self.num_layers)]
        if len(is_word):
            sentences, vectors = self._packed(words, numbers, is_word)
            packed_layers = self._packed_layers(sentences, vectors)
            for layer, packed_layer in zip(layers, packed_layers, strict=True):
                sentences.fill_in(layer, packed_layer)
        return BilmOutput(tuple(layers), on_device(torch.from_numpy(is_word), weight.device))

    def contexts(self, inputs: Inputs, *, dropout: float = 0.0) -> BilmContexts:
        """
        The vectors from which the words of a batch are predicted, for training and for perplexity,
        in the order of `PackedSentences`.

        # Parameters

        inputs
            As in `forward`, with at least one sentence.
        dropout
            As in bilm-tf, applied to the contexts and to the input of each LSTM, including its
            residual connection.
        """
        sentences, vectors = self._packed(*self._words(inputs))
        layers = tuple(self._packed_layers(sentences, vectors, dropout))
        # All but the first word of each sentence, which has no word before it.
        n_sentences = sentences.n_sentences
        return BilmContexts(
            dropped_out(layers[-1][:, sentences.before[n_sentences:]], dropout),
            sentences.words[:, n_sentences:],
            sentences.rows[sentences.sentences[n_sentences:]],
            layers,
            sentences,
        )

    def _words(self, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        """
        The ids of distinct words, including the two boundaries; for each word of the batch and the
        boundaries, its row there; and the mask, of shape `(batch_size, timesteps)`.
        """
        use_one_thread_after_fork()
        if isinstance(inputs, torch.Tensor):
            is_word = mask_of(inputs, self.word_rows)
            # Shape: (n_words, width)
            words = inputs.flatten(0, 1)[
                torch.from_numpy(np.flatnonzero(is_word)).to(inputs.device)
            ]
            device = self._boundary_ids.device
            return *distinct_rows(torch.cat([words.to(device), self._boundary_ids])), is_word
        numbered = inputs if isinstance(inputs, NumberedWords) else self.word_rows.numbered(inputs)
        is_word, n_distinct = numbered.numbers >= 0, len(numbered.rows)
        boundaries = self.word_rows.batch([self.word_rows.boundaries])[0]
        # On the CPU: the order of the words and the copies to a GPU do not wait for it.
        words = torch.cat([torch.from_numpy(numbered.rows), boundaries])
        numbers = torch.from_numpy(
            np.append(numbered.numbers[is_word], [n_distinct, n_distinct + 1])
        )
        if not IS_GPU.get(self._boundary_ids.device.type):
            # In the order of a batch of ids, so that all is rounded in the same way.
            words, positions = distinct_rows(words)
            numbers = positions[numbers]
        return words, numbers, is_word

    def _packed(
        self, words: torch.Tensor, numbers: torch.Tensor, is_word: np.ndarray
    ) -> tuple[PackedSentences, torch.Tensor]:
        """
        The packed batch and the vectors of its words, followed by the vectors of the two
        boundaries.
        """
        device = self._boundary_ids.device
        dtype = self._type_of_products()
        with torch.autocast(device.type, enabled=False):
            # Shape: (n_words + 2, projection_dim)
            vectors = self.character_encoder.encode(words, numbers, dtype)
        return pack_sentences(is_word).to(device), vectors

    def _packed_layers(
        self, sentences: PackedSentences, vectors: torch.Tensor, dropout: float = 0.0
    ) -> Iterator[torch.Tensor]:
        """Yields the packed layers, each of shape `(2, n_packed_words, projection_dim)`."""
        dtype = self._type_of_products()
        current = vectors[sentences.words]
        yield current
        for index, layer in enumerate(self._layers):
            inputs = dropped_out(current, dropout)
            with torch.autocast(inputs.device.type, enabled=False):
                outputs = layer(inputs, sentences.batch_sizes, dtype=dtype)
            # The lowest LSTM, which reads the character encoder's vectors, has no residual
            # connection.
            current = outputs + inputs if self.options.residual and index > 0 else outputs
            yield current

    def _type_of_products(self) -> torch.dtype:
        """
        Autocast's type while the biLM is trained under autocast; otherwise `precision` decides.
        """
        parameter = self.character_encoder.projection.weight
        device = parameter.device.type
        is_trained = torch.is_grad_enabled() and parameter.requires_grad
        precision = "float32" if is_trained and self._precision == "auto" else self.precision
        if precision == "int8" and (is_trained or device != "cpu"):
            state = "trained" if is_trained else "frozen"
            raise ValueError(
                "expected a frozen biLM on a CPU for the precision int8, "
                f"got a {state} one on {device}"
            )
        if is_trained and torch.is_autocast_enabled(device):
            return torch.get_autocast_dtype(device)
        return {"bf16": torch.bfloat16, "int8": torch.int8}.get(precision, parameter.dtype)
