"""
Speed of our encoder for semantic roles and of AllenNLP's `alternating_lstm`, forward and backward, on the same batches
and weights: `python benchmarks/srl_encoder.py`.

Both run in one process, by turns, so that a busy machine slows both; what counts is the ratio. The shape is the
paper's: 8 layers of 300 units over 200 inputs, with dropout; sentences have 10 to 40 words.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.seq2seq_encoders import StackedAlternatingLstmSeq2SeqEncoder

from elmo_tasks.modules import AlternatingHighwayLstm

INPUT_DIM, DIM, N_LAYERS, DROPOUT = 200, 300, 8, 0.1


def make_encoders(device: str) -> dict[str, Seq2SeqEncoder]:
    torch.manual_seed(0)
    ours = AlternatingHighwayLstm(INPUT_DIM, DIM, N_LAYERS, DROPOUT)
    theirs = StackedAlternatingLstmSeq2SeqEncoder(
        INPUT_DIM, DIM, N_LAYERS, DROPOUT, use_highway=True, use_input_projection_bias=False
    )
    for layer, cell in zip(ours.layers, (layer.cell for layer in theirs._module.lstm_layers), strict=True):
        cell.input_linearity.weight.data.copy_(layer.input_weight.data)
        cell.state_linearity.weight.data.copy_(layer.state_weight.data)
        cell.state_linearity.bias.data.copy_(layer.state_bias.data)
    return {"AllenNLP": theirs.to(device), "ours": ours.to(device)}


def step(encoder: Seq2SeqEncoder, inputs: torch.Tensor, mask: torch.Tensor) -> None:
    encoder.zero_grad()
    inputs.grad = None
    encoder(inputs, mask).sum().backward()


def seconds(run: Callable[[], object]) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def compare(batch_size: int, device: str, repeats: int) -> None:
    encoders = make_encoders(device)
    lengths = torch.randint(10, 41, (batch_size, 1), generator=torch.Generator().manual_seed(0))
    # Shape: (batch_size, timesteps)
    mask = (torch.arange(int(lengths.max())) < lengths).to(device)
    inputs = torch.randn(*mask.shape, INPUT_DIM, device=device, requires_grad=True)
    with torch.no_grad():
        one, other = (encoder.eval()(inputs, mask) for encoder in encoders.values())
        difference = (one - other).abs().max().item()
    for what in ("evaluation", "training"):
        times: dict[str, list[float]] = {name: [] for name in encoders}
        for _ in range(repeats + 1):
            for name, encoder in encoders.items():
                encoder.train(what == "training")
                with torch.set_grad_enabled(what == "training"):
                    run = step if what == "training" else lambda encoder, *arguments: encoder(*arguments)
                    times[name].append(seconds(lambda: run(encoder, inputs, mask)))  # noqa: B023
        # The first round warms up.
        ratios = [theirs / ours for theirs, ours in zip(times["AllenNLP"][1:], times["ours"][1:], strict=True)]
        speeds = {name: int(mask.sum()) / statistics.median(measured[1:]) for name, measured in times.items()}
        print(
            f"{what:10}  batch of {batch_size:3}   AllenNLP {speeds['AllenNLP']:8,.0f} words/s   "
            f"ours {speeds['ours']:8,.0f} words/s   ratio {statistics.median(ratios):5.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f})   difference {difference:.1e}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[32, 80])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    arguments = parser.parse_args()
    for batch_size in arguments.batch_sizes:
        compare(batch_size, arguments.device, arguments.repeats)


if __name__ == "__main__":
    main()
