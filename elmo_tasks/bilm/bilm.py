"""The bidirectional language model: from sentences to the layers of all their words."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from os import PathLike
from typing import Literal

import numpy as np
import torch
from torch import nn

from elmo_tasks.bilm.character_encoder import CharacterEncoder
from elmo_tasks.bilm.dictionary_encoder import DictionaryEncoder
from elmo_tasks.bilm.lstm.bidirectional_layer import BidirectionalLayer
from elmo_tasks.bilm.lstm.precision import PRECISIONS, computing_dtype, tf32_set_to
from elmo_tasks.bilm.lstm.projected_lstm import LstmState, ProjectedLstm
from elmo_tasks.bilm.lstm.stateful import CarriedStates
from elmo_tasks.bilm.lstm.threads import threads_for
from elmo_tasks.bilm.lstm.weight_cache import WeightCache
from elmo_tasks.bilm.model_files import read_any_options, read_any_weights
from elmo_tasks.bilm.options import BilmOptions, StartState
from elmo_tasks.bilm.outputs import BilmContexts, BilmOutput
from elmo_tasks.bilm.packing import PackedSentences, pack_sentences, pack_windows, sentence_lengths
from elmo_tasks.bilm.weights import write_weights
from elmo_tasks.bilm.word_rows import WordRows

__all__ = ["Bilm"]

logger = logging.getLogger(__name__)

# Of a small biLM that was trained on running text, sixteen gave no lower perplexity.
_EMPTY_SENTENCES = 4


class Bilm(nn.Module):
    """
    The biLM of the paper (section 3): a character CNN, and over it, for each direction, LSTMs with a projected output
    and a residual connection between the layers.

    By default every sentence starts from the same state, zero or settled (see `BilmOptions`): its vectors depend on the
    sentence alone.

    # Parameters

    options
        The biLM's shape and start. The weights are random: see `from_files`.
    stateful
        Whether each row of a batch starts from the final state of that row in the previous batch, as in bilm-tf and in
        AllenNLP. A vector then depends on all batches before it; for comparison only. `reset_states` clears the states.
    precision
        The precision of matrix products. `"tf32"` differs on CUDA only. `"bf16"` needs a device with instructions for
        it; parameters, memory cells and layers stay float32. Autocast's type takes precedence while the biLM is
        trained; a frozen biLM ignores autocast.
    max_tokens_per_batch
        A batch with more words than this (boundaries counted) is computed in parts, to save memory; the result is the
        same. `None`: never. A stateful biLM never divides a batch. If the memory of a GPU is too small for it, it is
        halved from then on, with a warning; not where gradients are computed, since they need the memory of all parts.

    # Raises

    `ValueError`
        If `precision` is unknown, `max_tokens_per_batch` is less than 1, or a stateful biLM is to start settled.
    """

    # Differs from the paper: its code (bilm-tf) carries the LSTM state from batch to batch, in training and in use.

    def __init__(
        self,
        options: BilmOptions,
        *,
        stateful: bool = False,
        precision: Literal["float32", "tf32", "bf16"] = "float32",
        max_tokens_per_batch: int | None = 32768,
    ) -> None:
        super().__init__()
        if precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, but is {precision!r}")
        if max_tokens_per_batch is not None and max_tokens_per_batch < 1:
            raise ValueError(f"max_tokens_per_batch must be at least 1, or None, but is {max_tokens_per_batch}")
        if stateful and options.start_state != "zero":
            raise ValueError(
                f"lstm.start_state must be 'zero' in a stateful biLM, but is {options.start_state!r}: take it out of "
                "the options"
            )
        self.options = options
        self.stateful = stateful
        self.precision = precision
        self.max_tokens_per_batch = max_tokens_per_batch
        self.word_rows = WordRows.of(options)
        self.character_encoder = (CharacterEncoder if options.dictionaries is None else DictionaryEncoder)(options)
        self.forward_layers = nn.ModuleList(ProjectedLstm.from_options(options) for _ in range(options.n_layers))
        self.backward_layers = nn.ModuleList(ProjectedLstm.from_options(options) for _ in range(options.n_layers))
        self._layers = [BidirectionalLayer(pair) for pair in self._pairs()]
        begin, end = self.word_rows.boundary_rows()
        self.register_buffer("_begin_ids", begin, persistent=False)
        self.register_buffer("_end_ids", end, persistent=False)
        self._begin_ids: torch.Tensor
        self._end_ids: torch.Tensor
        self._states = CarriedStates()
        self._settled: WeightCache[list[LstmState]] = WeightCache()

    def _pairs(self) -> list[tuple[ProjectedLstm, ProjectedLstm]]:
        """The LSTMs of each layer, the forward one first."""
        return list(zip(self.forward_layers, self.backward_layers, strict=True))  # type: ignore[arg-type]

    @classmethod
    def from_files(
        cls,
        options_file: str | PathLike[str],
        weight_file: str | PathLike[str],
        *,
        stateful: bool = False,
        precision: Literal["float32", "tf32", "bf16"] = "float32",
        max_tokens_per_batch: int | None = 32768,
        start_state: StartState | None = None,
    ) -> "Bilm":
        """
        Reads a biLM in the public format, or one of ELMoForManyLangs.

        # Parameters

        options_file, weight_file
            Local paths of the `options.json` and of the HDF5 file; resolve a URL with `cached_path` first. For
            ELMoForManyLangs, those of the `config.json` and of the `encoder.pkl` in the folder of a model.
        stateful, precision, max_tokens_per_batch
            See the class.
        start_state
            In place of that in the options, see `BilmOptions`. `None`: as the options say.

        # Raises

        `ValueError`
            If a file has another format, or the two do not match; the message names file, key, expected and found.
        """
        options = read_any_options(options_file)
        if start_state is not None:
            options = replace(options, start_state=start_state)
        # First the weights: options from a stranger may describe a biLM that no memory holds.
        state = read_any_weights(weight_file, options)
        bilm = cls(options, stateful=stateful, precision=precision, max_tokens_per_batch=max_tokens_per_batch)
        bilm.load_state_dict(state)
        return bilm

    def load_weights(self, weight_file: str | PathLike[str]) -> None:
        """
        Replaces the weights by those of a file in the public format (float16 or float32, compressed or not), or by
        those of a model of ELMoForManyLangs, whose `encoder.pkl` it is.

        # Raises

        `ValueError`
            If the file does not hold the weights of a biLM with these options.
        """
        self.load_state_dict(read_any_weights(weight_file, self.options))

    def save(
        self,
        options_file: str | PathLike[str],
        weight_file: str | PathLike[str],
        *,
        softmax: Mapping[str, torch.Tensor] | None = None,
        words: Iterable[str] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """
        Writes options and weights in the public format, which bilm-tf and AllenNLP can read. With dictionaries, which
        are written with the weights, only this package can.

        # Parameters

        options_file, weight_file
            Paths of the files to write.
        softmax
            The state of an `LmSoftmax`, to be written into the same file; `read_softmax` reads it.
        words
            Those that the softmax predicts, in their order, so that `read_softmax` can refuse others.
        dtype
            `torch.float32`, or `torch.float16` for half the size.
        """
        write_weights(weight_file, self.state_dict(), self.options, softmax=softmax, words=words, dtype=dtype)
        self.options.save(options_file)

    @property
    def num_layers(self) -> int:
        """The number of output layers: the LSTMs and the context-insensitive layer below them."""
        return self.options.n_layers + 1

    def get_output_dim(self) -> int:
        """Units of each layer."""
        return self.options.output_dim

    def reset_states(self) -> None:
        """Clears the carried states, so that the next batch starts from zero; no effect unless stateful."""
        self._states = CarriedStates()

    @property
    def carried_states(self) -> CarriedStates:
        """Those of a stateful biLM: another object after each `reset_states`."""
        return self._states

    def forward(self, inputs: torch.Tensor | Sequence[Sequence[str]]) -> BilmOutput:
        """
        # Parameters

        inputs
            Sentences as lists of words; or their ids, of shape `(batch_size, timesteps, 50)` (see `WordRows`), zero
            where there is no word. Neither has sentence boundaries: they are added here.

        # Returns

        `BilmOutput`
            The layers and the mask, on the device of the biLM.

        # Raises

        `ValueError`
            If the ids have another shape or are outside of the public scheme, or a sentence has words after its
            padding; or if the device has no instructions for the precision.
        `torch.OutOfMemoryError`
            If the longest sentence, or what is returned, does not fit into the memory of the GPU.
        """
        character_ids = inputs if isinstance(inputs, torch.Tensor) else self.word_rows.batch(inputs)
        lengths = sentence_lengths(character_ids, self.word_rows)
        while True:
            try:
                return self._output(character_ids, lengths)
            except torch.OutOfMemoryError as error:
                if (smaller := self._smaller_parts(lengths)) is None:
                    raise
                reason = str(error).partition(". ")[0]
            # Outside of the handler, which keeps the tensors of the attempt alive.
            logger.warning(
                "a batch did not fit into the memory of %s (%s): the biLM computes at most %d words at once from now "
                "on, which max_tokens_per_batch sets from the beginning",
                self._begin_ids.device,
                reason,
                smaller,
            )
            self.max_tokens_per_batch = smaller

    def _smaller_parts(self, lengths: np.ndarray) -> int | None:
        """Half of the words of the parts of a batch; `None` if they cannot be smaller."""
        if self.stateful or (torch.is_grad_enabled() and any(each.requires_grad for each in self.parameters())):
            return None
        n_tokens, longest = int(lengths.sum()) + 2 * len(lengths), int(lengths.max(initial=0)) + 2
        now = min(n_tokens, self.max_tokens_per_batch or n_tokens)
        return max(now // 2, longest) if now > longest else None

    def _output(self, character_ids: torch.Tensor, lengths: np.ndarray) -> BilmOutput:
        # Shape: (batch_size, timesteps)
        is_word = np.arange(character_ids.size(1)) < lengths[:, None]
        weight = self.character_encoder.projection.weight
        layers = [weight.new_zeros(*is_word.shape, self.get_output_dim()) for _ in range(self.num_layers)]
        with self._threads(len(character_ids)):
            for sentences, vectors in self._parts(character_ids, lengths):
                for layer, packed in zip(layers, self._packed_layers(sentences, vectors), strict=True):
                    sentences.fill_in(layer, packed)
        return BilmOutput(tuple(layers), torch.from_numpy(is_word).to(weight.device))

    def contexts(self, inputs: torch.Tensor | Sequence[Sequence[str]], *, dropout: float = 0.0) -> BilmContexts:
        """
        The vectors from which the words of a batch are predicted, for training and for perplexity.

        # Parameters

        inputs
            As for `forward`; at least one sentence.
        dropout
            As in bilm-tf: of the input of each LSTM, its residual connection included, and of the contexts.

        # Returns

        `BilmContexts`
            The contexts and their words, not in the order of the batch.
        """
        character_ids = inputs if isinstance(inputs, torch.Tensor) else self.word_rows.batch(inputs)
        hidden, targets, rows = [], [], []
        with self._threads(len(character_ids)):
            for sentences, vectors in self._parts(character_ids, sentence_lengths(character_ids, self.word_rows)):
                *_, highest = self._packed_layers(sentences, vectors, dropout)
                hidden.append(torch.nn.functional.dropout(highest[:, sentences.before], dropout))
                # All but the first word of each sentence, which has no word before it.
                targets.append(sentences.words[:, sentences.batch_sizes[0] :])
                rows.append(sentences.rows_of_words[sentences.batch_sizes[0] :])
        return BilmContexts(torch.cat(hidden, 1), torch.cat(targets, 1), torch.cat(rows))

    def running_contexts(self, character_ids: torch.Tensor, *, dropout: float = 0.0) -> torch.Tensor:
        """
        As `contexts`, for windows of running text: in a stateful biLM each row continues its previous window.

        # Parameters

        character_ids
            Shape `(2, batch_size, timesteps, 50)`: the words of each direction in the order in which it reads them,
            boundaries among them, and no padding.
        dropout
            See `contexts`.

        # Returns

        `torch.Tensor`
            Shape `(2, batch_size, timesteps, projection_dim)`: the vectors from which the next word is predicted.
        """
        _, batch_size, timesteps, _ = character_ids.shape
        dtype = computing_dtype(self.precision, self.character_encoder.projection.weight)
        with self._fixed_precision():
            vectors = self.character_encoder(character_ids.to(self._begin_ids.device), dtype=dtype).flatten(0, 2)
        *_, highest = self._packed_layers(pack_windows(batch_size, timesteps).to(vectors.device), vectors, dropout)
        return torch.nn.functional.dropout(highest.view(2, timesteps, batch_size, -1).transpose(1, 2), dropout)

    def _threads(self, n_sentences: int) -> AbstractContextManager[None]:
        """The threads of the CPU for a batch of so many sentences."""
        if self._begin_ids.device.type != "cpu":
            return nullcontext()
        # Of the gates in one step of one direction.
        return threads_for(n_sentences * 2 * self.options.projection_dim * 4 * self.options.cell_dim)

    def _parts(
        self, character_ids: torch.Tensor, lengths: np.ndarray
    ) -> Iterator[tuple[PackedSentences, torch.Tensor]]:
        """Sentences to be computed together, with the vectors of all words and of the two boundaries."""
        if not len(lengths):
            return
        device = self._begin_ids.device
        is_word = np.arange(character_ids.size(1)) < lengths[:, None]
        # Shape: (n_words, width)
        words = character_ids.flatten(0, 1)[torch.from_numpy(np.flatnonzero(is_word)).to(character_ids.device)]
        words = torch.cat([words.to(device), torch.stack([self._begin_ids, self._end_ids])])
        dtype = computing_dtype(self.precision, self.character_encoder.projection.weight)
        with self._fixed_precision():
            # Shape: (n_words + 2, projection_dim)
            vectors = self.character_encoder(words, dtype=dtype)
        max_tokens = None if self.stateful else self.max_tokens_per_batch
        for sentences in pack_sentences(lengths, character_ids.size(1), max_tokens):
            yield sentences.to(device), vectors

    def _packed_layers(
        self, sentences: PackedSentences, vectors: torch.Tensor, dropout: float = 0.0
    ) -> Iterator[torch.Tensor]:
        """The layers of some sentences, packed, each of shape `(2, n_packed_words, projection_dim)`."""
        n_rows = len(sentences.rows)
        if self.stateful:
            last: list[LstmState] = []
            begin = self._states.of(sentences.rows, self._zero_states(n_rows))
            yield from self._layers_from(begin, sentences, vectors, dropout, last)
            self._states.keep(sentences.rows, last)
        else:
            yield from self._layers_from(self._start_states(n_rows, vectors.dtype), sentences, vectors, dropout)

    def _layers_from(
        self,
        states: Sequence[LstmState] | None,
        sentences: PackedSentences,
        vectors: torch.Tensor,
        dropout: float = 0.0,
        last_states: list[LstmState] | None = None,
    ) -> Iterator[torch.Tensor]:
        """
        As `_packed_layers`, from the states of all LSTMs; `None`: zero. `last_states` receives their states after the
        last words.
        """
        # Forward and backward, with boundaries.
        current = vectors[sentences.words]
        yield current
        for index, pair in enumerate(self._pairs()):
            if self._layers[index].lstms != pair:  # The modules were replaced.
                self._layers[index] = BidirectionalLayer(pair)
            inputs = torch.nn.functional.dropout(current, dropout)
            with self._fixed_precision():
                outputs, last = self._layers[index](
                    inputs,
                    sentences.batch_sizes,
                    states and states[2 * index : 2 * index + 2],
                    dtype=current.dtype,
                    returns_states=last_states is not None,
                )
            # The lowest LSTM reads the character encoder's vectors: no residual connection there.
            current = outputs + inputs if self.options.residual and index > 0 else outputs
            if last_states is not None:
                last_states += last or []
            yield current

    def _zero_states(self, n_rows: int) -> list[LstmState]:
        return [lstm.zero_state(n_rows) for pair in self._pairs() for lstm in pair]

    def _start_states(self, n_rows: int, dtype: torch.dtype) -> list[LstmState] | None:
        """The state of each LSTM before so many sentences; `None`: zero, see `BidirectionalLayer`."""
        if self.options.start_state == "zero":
            return None
        settled = self._settled(list(self.parameters()), dtype, lambda: self._settle(dtype))
        return [(output.expand(n_rows, -1), memory.expand(n_rows, -1)) for output, memory in settled]

    def _settle(self, dtype: torch.dtype) -> list[LstmState]:
        """The state of each LSTM after some empty sentences, of shapes `(1, projection_dim)` and `(1, cell_dim)`."""
        states = self._zero_states(1)
        # Kept for batches that may need gradients.
        with torch.inference_mode(False), torch.no_grad():
            with self._fixed_precision():
                boundaries = self.character_encoder(torch.stack([self._begin_ids, self._end_ids]), dtype=dtype)
            (empty,) = pack_sentences(np.zeros(1, dtype=np.int64), 0, None)
            for _ in range(_EMPTY_SENTENCES):
                begin, states = states, []
                for _layer in self._layers_from(begin, empty.to(boundaries.device), boundaries, last_states=states):
                    pass
        return states

    @contextmanager
    def _fixed_precision(self) -> Iterator[None]:
        """Computes in the precision of the biLM, whatever the settings of the process."""
        device = self._begin_ids.device.type
        with torch.autocast(device, enabled=False), tf32_set_to(self.precision == "tf32"):
            yield
