"""
Speed of our recurrent layers and of torch's own, on the same sentences and weights:
`python benchmarks/torch_layers.py`.

- The LSTMs of the biLM, without its character encoder, and `torch.nn.LSTM(proj_size=...)`: layers
  without gradients, and a step of training (forward and backward).
- `elmo_lstm` and `elmo_gru` of the task models, and `torch.nn.LSTM` and `torch.nn.GRU`: a step of
  training. Without gradients, ours call torch's.

All take turns in one process, so other load slows all; the ratio counts, and it is to the faster of
torch's layer with packed sentences and with padded ones. (A bidirectional layer of torch needs
packed ones, unless all sentences are equally long.) With one thread, times are CPU time. The
differences of results are of the outputs, and with gradients of the gradients of the inputs, each
relative to the largest value.

Torch's projected LSTM has no clips, so by default ours has none. `--clips` uses the paper's, which
the trained biLMs need: then results differ if a value exceeds them.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.bilm.lstm.bidirectional_layer import BidirectionalLayer
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm
from elmo_tasks.bilm.packing import pack

ORIGINAL = BilmOptions()
SIZES = {
    # To try the script out.
    "tiny": replace(ORIGINAL, cell_dim=16, projection_dim=8),
    "small": replace(ORIGINAL, cell_dim=1024, projection_dim=128),
    "original": ORIGINAL,
}


class TorchLstms(nn.Module):
    """
    The LSTMs of a biLM as `torch.nn.LSTM(proj_size=...)`, with the weights of ours. They read the
    sentences as they are packed, or `is_padded`.
    """

    def __init__(
        self,
        pairs: Sequence[Sequence[ProjectedLstm]],
        residual: bool,
        *,
        is_padded: bool = False,
    ) -> None:
        super().__init__()
        self._residual = residual
        self._is_padded = is_padded
        self._pairs = nn.ModuleList(nn.ModuleList(map(_torch_lstm, pair)) for pair in pairs)

    def forward(self, inputs: torch.Tensor, batch_sizes: Sequence[int]) -> list[torch.Tensor]:
        """
        The packed outputs of each layer: from and to shape `(2, n_packed_words, projection_dim)`,
        as in `BidirectionalLayer`, where the backward direction reads each sentence from its end.
        """
        layers = []
        for number, pair in enumerate(self._pairs):
            outputs = []
            for lstm, words in zip(pair, inputs, strict=True):
                packed = PackedSequence(words, torch.tensor(list(batch_sizes)))
                outputs.append(self._run(lstm, packed))
            layer = torch.stack(outputs)
            if self._residual and number > 0:
                layer = layer + inputs
            layers.append(layer)
            inputs = layer
        return layers

    def _run(self, lstm: nn.LSTM, packed: PackedSequence) -> torch.Tensor:
        if not self._is_padded:
            return lstm(packed)[0].data
        padded, lengths = pad_packed_sequence(packed)
        return pack_padded_sequence(lstm(padded)[0], lengths).data


def _torch_lstm(ours: ProjectedLstm) -> nn.LSTM:
    cell_dim, dim = ours.projection.shape
    lstm = nn.LSTM(dim, cell_dim, proj_size=dim).to(ours.kernel.device)
    with torch.no_grad():
        kernel = _in_torchs_order(ours.kernel).t()
        lstm.weight_ih_l0.copy_(kernel[:, :dim])
        lstm.weight_hh_l0.copy_(kernel[:, dim:])
        bias = ours.bias.clone()
        # The forget gate's 1, which is the third quarter in our order.
        bias[2 * cell_dim : 3 * cell_dim] += 1
        lstm.bias_ih_l0.copy_(_in_torchs_order(bias))
        lstm.bias_hh_l0.zero_()
        lstm.weight_hr_l0.copy_(ours.projection.t())
    return lstm


def _in_torchs_order(parameter: torch.Tensor) -> torch.Tensor:
    """From the gates i, g, f, o to i, f, g, o."""
    i, g, f, o = parameter.chunk(4, -1)
    return torch.cat([i, f, g, o], -1)


class OurLstms(nn.Module):
    """The same in our code."""

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        self._residual = options.residual
        lstms = [ProjectedLstm(options) for _ in range(2 * options.n_layers)]
        self._lstms = nn.ModuleList(lstms)
        self.pairs = list(zip(lstms[::2], lstms[1::2], strict=True))
        self._layers = [BidirectionalLayer(pair) for pair in self.pairs]

    def forward(self, inputs: torch.Tensor, batch_sizes: Sequence[int]) -> list[torch.Tensor]:
        layers = []
        for number, layer in enumerate(self._layers):
            outputs = layer(inputs, batch_sizes)
            if self._residual and number > 0:
                outputs = outputs + inputs
            layers.append(outputs)
            inputs = outputs
        return layers


@dataclass
class Result:
    """The outputs of a call, and the gradient of the inputs if it has one."""

    outputs: torch.Tensor
    gradient: torch.Tensor | None = None

    def difference(self, other: "Result") -> float:
        differences = [_relative(self.outputs, other.outputs)]
        if self.gradient is not None and other.gradient is not None:
            differences.append(_relative(self.gradient, other.gradient))
        return max(differences)


def _relative(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return float((ours - theirs).abs().max() / theirs.abs().max())


def lengths_of(n_sentences: int, shortest: int, longest: int) -> np.ndarray:
    return np.random.default_rng(0).integers(shortest, longest + 1, n_sentences)


def bilm_calls(
    size: str, n_sentences: int, device: str, *, is_training: bool, has_clips: bool
) -> dict[str, Callable[[], Result]]:
    options = SIZES[size]
    if not has_clips:
        options = replace(options, cell_clip=None, projection_clip=None)
    torch.manual_seed(0)
    ours = OurLstms(options).to(device).requires_grad_(is_training)
    packed = TorchLstms(ours.pairs, options.residual).requires_grad_(is_training)
    padded = TorchLstms(ours.pairs, options.residual, is_padded=True).requires_grad_(is_training)
    batch = pack(lengths_of(n_sentences, 15, 35))
    words = torch.randn(2, len(batch.steps), options.projection_dim, device=device)

    def call(lstms: nn.Module) -> Result:
        inputs = words.clone().requires_grad_(is_training)
        outputs = lstms(inputs, batch.batch_sizes)[-1]
        if is_training:
            outputs.square().sum().backward()
        return Result(outputs.detach(), inputs.grad)

    return {
        "ours": lambda: call(ours),
        "packed": lambda: call(packed),
        "padded": lambda: call(padded),
    }


@dataclass
class Encoder:
    """An encoder of a task model, and the shape of its batches in the plan `open`."""

    kind: str
    input_size: int
    hidden_size: int
    n_sentences: int
    lengths: tuple[int, int]


ENCODERS = {
    "names, first": Encoder("lstm", 228, 200, 32, (5, 40)),
    "names, second": Encoder("lstm", 400, 100, 32, (5, 40)),
    "entailment": Encoder("lstm", 100, 150, 32, (4, 30)),
    "sentiment": Encoder("lstm", 150, 150, 50, (4, 40)),
    "chains, one document": Encoder("lstm", 250, 200, 50, (5, 60)),
    "questions, passages": Encoder("gru", 200, 90, 20, (60, 250)),
    "questions, equal lengths": Encoder("gru", 200, 90, 20, (120, 120)),
}


def encoder_calls(encoder: Encoder, device: str) -> dict[str, Callable[[], Result]]:
    from elmo_tasks.modules.recurrent.encoders import GruEncoder, LstmEncoder

    torch.manual_seed(0)
    ours_class = LstmEncoder
    theirs_class = nn.LSTM
    if encoder.kind == "gru":
        ours_class = GruEncoder
        theirs_class = nn.GRU
    shape = {"input_size": encoder.input_size, "hidden_size": encoder.hidden_size}
    ours = ours_class(**shape, bidirectional=True).to(device)
    theirs = theirs_class(**shape, bidirectional=True, batch_first=True).to(device)
    state = {name.removeprefix("_module."): value for name, value in ours.state_dict().items()}
    theirs.load_state_dict(state)
    lengths = torch.from_numpy(lengths_of(encoder.n_sentences, *encoder.lengths))
    mask = (torch.arange(int(lengths.max())) < lengths[:, None]).to(device)
    words = torch.randn(*mask.shape, encoder.input_size, device=device) * mask[..., None]
    is_equal = bool((lengths == lengths[0]).all())

    def run_torch(inputs: torch.Tensor) -> torch.Tensor:
        if is_equal:
            return theirs(inputs)[0]
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(theirs(packed)[0], batch_first=True)[0]

    def call(run: Callable[[torch.Tensor], torch.Tensor]) -> Result:
        inputs = words.clone().requires_grad_()
        outputs = run(inputs)
        outputs.square().sum().backward()
        return Result(outputs.detach(), inputs.grad)

    def run_ours(inputs: torch.Tensor) -> torch.Tensor:
        return ours(inputs, mask)

    layout = "padded" if is_equal else "packed"
    return {"ours": lambda: call(run_ours), layout: lambda: call(run_torch)}


def seconds(run: Callable[[], object]) -> float:
    is_on_gpu = torch.cuda.is_available()
    clock = time.perf_counter
    if torch.get_num_threads() == 1 and not is_on_gpu:
        # Without the time that other processes take.
        clock = time.process_time
    if is_on_gpu:
        torch.cuda.synchronize()
    start = clock()
    run()
    if is_on_gpu:
        torch.cuda.synchronize()
    return clock() - start


def compare(name: str, calls: dict[str, Callable[[], Result]], repeats: int) -> None:
    """Prints how many times as long torch's layer takes as ours, in its faster layout."""
    # These also warm up.
    results = {key: call() for key, call in calls.items()}
    ours = results.pop("ours")
    difference = max(ours.difference(theirs) for theirs in results.values())
    times: dict[str, list[float]] = {key: [] for key in calls}
    for _ in range(repeats):
        for key, call in calls.items():
            times[key].append(seconds(call))
    medians = {key: 1000 * statistics.median(measured) for key, measured in times.items()}
    fastest = min(results, key=medians.__getitem__)
    ratios = [other / own for own, other in zip(times["ours"], times[fastest], strict=True)]
    cells = [f"{name:42}"]
    for key in ("ours", "packed", "padded"):
        cells.append(f"{medians[key]:9.1f}" if key in medians else f"{'':9}")
    spread = f"({min(ratios):.2f} to {max(ratios):.2f})"
    cells.append(f"  {statistics.median(ratios):5.2f} {spread:16} {difference:.1e}")
    print(" ".join(cells), flush=True)


def processor() -> str:
    """The name of the processor and the instructions that decide which kernels are used."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    lines = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in lines.items()}
    flags = set(fields.get("flags", "").split())
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")
    present = [name for name in wanted if name in flags]
    return f"{fields.get('model name', 'unknown')}: {', '.join(present)}"


def gflops() -> float:
    """The speed of `torch.addmm`, which torch's layers use: 10^9 operations per second."""
    n_rows, input_dim, output_dim = 1000, 300, 1200
    rows = torch.randn(n_rows, input_dim)
    weight = torch.randn(input_dim, output_dim)
    bias = torch.zeros(output_dim)
    fastest = min(seconds(lambda: torch.addmm(bias, rows, weight)) for _ in range(50))
    return 2e-9 * n_rows * input_dim * output_dim / fastest


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=["small", "original"])
    parser.add_argument("--batch-sizes", nargs="*", type=int, default=[1, 8, 64])
    parser.add_argument("--training-batch-sizes", nargs="*", type=int, default=[8, 64])
    parser.add_argument("--encoders", nargs="*", choices=ENCODERS, default=list(ENCODERS))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--clips", action="store_true", help="ours with the clips of the paper")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    # torch warns once that oneDNN does not support such LSTMs.
    warnings.filterwarnings("ignore", "LSTM with projections")
    print(f"torch {torch.__version__}, {arguments.threads} threads, {processor()}")
    print(f"torch.addmm on the CPU: {gflops():.0f} GFLOP/s")
    head = f"{'':42} {'ours, ms':>9} {'packed':>9} {'padded':>9}"
    print(f"{head}   {'torch / ours':22} difference")
    for size in arguments.sizes:
        batch_sizes = {False: arguments.batch_sizes, True: arguments.training_batch_sizes}
        for is_training in (False, True):
            for n_sentences in batch_sizes[is_training]:
                mode = {"is_training": is_training, "has_clips": arguments.clips}
                calls = bilm_calls(size, n_sentences, arguments.device, **mode)
                what = "a step" if is_training else "layers"
                name = f"biLM, {size}, {what} of {n_sentences} sentences"
                compare(name, calls, arguments.repeats)
    for name in arguments.encoders:
        encoder = ENCODERS[name]
        calls = encoder_calls(encoder, arguments.device)
        compare(f"{encoder.kind}, {name}, a step", calls, arguments.repeats)


if __name__ == "__main__":
    main()
