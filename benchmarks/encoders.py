"""
Speed of our encoders and AllenNLP's, forward and backward, with the same weights and batches like those of the task
models: `python benchmarks/encoders.py`. Compares `elmo_lstm` with `lstm`, `elmo_gru` with `gru`, and the highway LSTM
of semantic roles with `alternating_lstm`.

The two encoders take turns in one process. A time is the shortest of all turns, which a busy machine affects least;
with one thread it is CPU time. The ratio of AllenNLP's time to ours is what counts.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.seq2seq_encoders import (
    GruSeq2SeqEncoder,
    LstmSeq2SeqEncoder,
    StackedAlternatingLstmSeq2SeqEncoder,
)

from elmo_tasks.modules import AlternatingHighwayLstm, GruEncoder, LstmEncoder

CLASSES = {"gru": (GruSeq2SeqEncoder, GruEncoder), "lstm": (LstmSeq2SeqEncoder, LstmEncoder)}
N_LAYERS, DROPOUT = 8, 0.1


class Shape(NamedTuple):
    """An encoder of a task, and the sentence lengths of its batches: number of sentences, minimum, maximum."""

    task: str
    kind: str
    input_dim: int
    dim: int
    lengths: Sequence[tuple[int, int, int]]


# The sizes of `training_configs/lib`, with word vectors of 100 dimensions; lengths as the bucket samplers make them.
SHAPES = [
    Shape("SQuAD, texts", "gru", 200, 90, [(20, 100, 130), (20, 6, 20)]),
    Shape("SQuAD, self-attention", "gru", 180, 90, [(20, 100, 130)]),
    Shape("SQuAD, end", "gru", 360, 90, [(20, 100, 130)]),
    Shape("coreference", "lstm", 250, 200, [(30, 3, 50)]),
    Shape("SNLI, sentences", "lstm", 100, 300, [(32, 12, 15), (32, 5, 12)]),
    Shape("SNLI, inference", "lstm", 300, 300, [(32, 12, 15), (32, 5, 12)]),
    Shape("SST-5, encoder", "lstm", 300, 300, [(100, 17, 20)]),
    Shape("SST-5, integrator", "lstm", 1800, 300, [(100, 17, 20)]),
    Shape("SST-5, one length", "lstm", 300, 300, [(100, 18, 18)]),
    Shape("NER, lower", "lstm", 228, 200, [(64, 12, 15)]),
    Shape("NER, upper", "lstm", 400, 100, [(64, 12, 15)]),
    Shape("NER, one length", "lstm", 228, 200, [(64, 13, 13)]),
    Shape("SRL", "highway", 200, 300, [(80, 10, 40)]),
]


def batch_of(shape: Shape) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs of shape `(batch_size, timesteps, input_dim)`, and their mask."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.cat([torch.randint(first, last + 1, (n,), generator=generator) for n, first, last in shape.lengths])
    # Shape: (batch_size, timesteps)
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    return torch.randn(*mask.shape, shape.input_dim, requires_grad=True), mask


def encoders_of(shape: Shape) -> list[Seq2SeqEncoder]:
    """AllenNLP's and ours, with the same weights."""
    if shape.kind != "highway":
        theirs, ours = (make(shape.input_dim, shape.dim, bidirectional=True) for make in CLASSES[shape.kind])
        ours.load_state_dict(theirs.state_dict())
        return [theirs, ours]
    sizes = shape.input_dim, shape.dim, N_LAYERS, DROPOUT
    ours = AlternatingHighwayLstm(*sizes)
    theirs = StackedAlternatingLstmSeq2SeqEncoder(*sizes, use_highway=True, use_input_projection_bias=False)
    for layer, cell in zip(ours.layers, (layer.cell for layer in theirs._module.lstm_layers), strict=True):
        cell.input_linearity.weight.data.copy_(layer.input_weight.data)
        cell.state_linearity.weight.data.copy_(layer.state_weight.data)
        cell.state_linearity.bias.data.copy_(layer.state_bias.data)
    return [theirs, ours]


def shortest(runs: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The shortest time of each function over all turns, in seconds."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times = [float("inf")] * len(runs)
    for _ in range(repeats + 1):
        for number, run in enumerate(runs):
            start = clock()
            run()
            times[number] = min(times[number], clock() - start)
    return times


def compare(shape: Shape, repeats: int) -> None:
    inputs, mask = batch_of(shape)
    encoders = encoders_of(shape)
    # With gradients, because without them ours uses torch for some shapes.
    one, other = (encoder.eval()(inputs, mask).detach() for encoder in encoders)
    difference = (one - other).abs().max().item()
    direction = torch.randn_like(one)

    def step(encoder: Seq2SeqEncoder) -> None:
        encoder.train().zero_grad()
        inputs.grad = None
        encoder(inputs, mask).backward(direction)

    theirs, ours = shortest([partial(step, encoder) for encoder in encoders], repeats)
    print(
        f"{shape.task:22} {shape.kind:7} AllenNLP {1000 * theirs:7.1f} ms   ours {1000 * ours:7.1f} ms   "
        f"ratio {theirs / ours:5.2f}   difference {difference:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    for n_threads in arguments.threads:
        print(f"{n_threads} thread{'s' * (n_threads > 1)}")
        torch.set_num_threads(n_threads)
        for shape in SHAPES:
            compare(shape, arguments.repeats)


if __name__ == "__main__":
    main()
