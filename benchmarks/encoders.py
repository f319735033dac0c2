"""
Speed of `elmo_lstm` and `elmo_gru` and of AllenNLP's `lstm` and `gru`, on the same weights and on batches as those of
the task models: `python benchmarks/encoders.py`.

Each encoder runs by turns with the other in one process. A time is the shortest of all turns, which a busy machine
disturbs least; with one thread it is that of the processor. What counts is the ratio of AllenNLP's time to ours.

`--choice` compares our recurrence with torch in the cases in which `elmo_tasks/modules/recurrent/encoders.py` has to
choose: with and without gradients, and with sentences of one length and of several.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.seq2seq_encoders import GruSeq2SeqEncoder, LstmSeq2SeqEncoder

from elmo_tasks.modules import GruEncoder, LstmEncoder

CLASSES = {"gru": (GruSeq2SeqEncoder, GruEncoder), "lstm": (LstmSeq2SeqEncoder, LstmEncoder)}


class Shape(NamedTuple):
    """An encoder of a task, and the lengths of the sentences of its batches: how many, from, to."""

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
    theirs, ours = (make(shape.input_dim, shape.dim, bidirectional=True) for make in CLASSES[shape.kind])
    ours.load_state_dict(theirs.state_dict())
    return [theirs, ours]


def shortest(runs: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """For each of the functions the shortest time of its turns, in seconds."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times = [float("inf")] * len(runs)
    for _ in range(repeats + 1):
        for number, run in enumerate(runs):
            start = clock()
            run()
            times[number] = min(times[number], clock() - start)
    return times


def compare(shape: Shape, repeats: int, *, with_gradients: bool = True) -> tuple[list[float], float]:
    """The times of AllenNLP and ours, and the largest difference of outputs."""
    inputs, mask = batch_of(shape)
    encoders = encoders_of(shape)
    direction = torch.randn(*mask.shape, encoders[0].get_output_dim())

    def step(encoder: Seq2SeqEncoder) -> None:
        if with_gradients:
            encoder.zero_grad()
            inputs.grad = None
            encoder(inputs, mask).backward(direction)
        else:
            with torch.no_grad():
                encoder(inputs, mask)

    with torch.no_grad():
        difference = (encoders[0](inputs, mask) - encoders[1]._run(inputs, mask, inputs.dtype)).abs().max().item()
    return shortest([lambda encoder=encoder: step(encoder) for encoder in encoders], repeats), difference


def print_tasks(repeats: int) -> None:
    for shape in SHAPES:
        (theirs, ours), difference = compare(shape, repeats)
        print(
            f"{shape.task:22} {shape.kind:5} forward and backward: AllenNLP {1000 * theirs:7.1f} ms   "
            f"ours {1000 * ours:7.1f} ms   ratio {theirs / ours:5.2f}   difference {difference:.1e}",
            flush=True,
        )


def print_choice(repeats: int) -> None:
    # Our recurrence runs in all cases.
    for encoder in (GruEncoder, LstmEncoder):
        encoder._is_left_to_torch = lambda *_: False
    for kind, dim, n_rows, n_steps in itertools.product(("gru", "lstm"), (50, 100, 300), (1, 8, 64), (4, 12, 40)):
        ratios = []
        for shortest_length, with_gradients in itertools.product((n_steps, n_steps // 2), (True, False)):
            shape = Shape("", kind, 200, dim, [(1, n_steps, n_steps), (n_rows - 1, shortest_length, n_steps)])
            (theirs, ours), _ = compare(shape, repeats, with_gradients=with_gradients)
            ratios.append(f"{theirs / ours:5.2f}")
        print(
            f"{kind:5} {dim:3} units, {n_rows:2} sentences of {n_steps:2} words: training {ratios[0]}, evaluation "
            f"{ratios[1]}; of several lengths: {ratios[2]}, {ratios[3]}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--choice", action="store_true", help="compare the cases of the choice instead, in one thread")
    arguments = parser.parse_args()
    if arguments.choice:
        torch.set_num_threads(1)
        print_choice(arguments.repeats)
        return
    for n_threads in arguments.threads:
        print(f"{n_threads} thread{'s' * (n_threads > 1)}")
        torch.set_num_threads(n_threads)
        print_tasks(arguments.repeats)


if __name__ == "__main__":
    main()
