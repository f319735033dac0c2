"""
Speed of our biLM and of AllenNLP's, on the same sentences and weights: `python benchmarks/bilm.py`.

Both run in one process, alternating, so that other load slows both; the ratio is what counts. The weights are random,
in the public format. Peak memory is measured in a separate process for each. Where AllenNLP is not installed, its biLM
is stated again in `gpu/plain_elmo.py`. With `--output FILE.jsonl`, what is in the file is not measured again.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from gpu.plain_elmo import PlainElmo
from gpu.records import Records

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.bilm import supports_bf16
from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.bilm.lstm.packed_linear import PackedLinear

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
SHIPPED = FIXTURES.parent / "elmo_tasks" / "pretrained" / "small-open"
ORIGINAL = BilmOptions()
SMALL = replace(ORIGINAL, cell_dim=1024, projection_dim=128, filters=ORIGINAL.filters[:-1], n_highway=1)
SIZES = {
    # To try the script out.
    "tiny": replace(ORIGINAL, cell_dim=16, projection_dim=8, filters=ORIGINAL.filters[:3], n_highway=1),
    "small": SMALL,
    "original": ORIGINAL,
}
DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16}


def sentences(text: Path | None = None) -> list[list[str]]:
    """Sentences of 15 to 35 words from a file with a sentence a line; by default pairs of sentences of the NER data."""
    if text is not None:
        lines = (line.split() for line in text.read_text(encoding="utf-8").splitlines())
        return [words for words in lines if 15 <= len(words) <= 35]
    found: list[list[str]] = [[]]
    for line in (FIXTURES / "ner" / "train.txt").read_text(encoding="utf-8").splitlines()[2:]:
        if line.strip():
            found[-1].append(line.split()[0])
        elif found[-1]:
            found.append([])
    return [first + second for first, second in zip(found[::2], found[1::2], strict=False)]


def make_bilms(size: str, device: str) -> dict[str, Callable[[torch.Tensor], list[torch.Tensor]]]:
    """AllenNLP's biLM, if it is installed, and ours in each precision of the device, as functions to layers."""
    torch.manual_seed(0)
    ours = Bilm(SIZES[size])
    precisions = ["float32"]
    precisions += ["bf16"] if supports_bf16(torch.device(device)) else []
    made = {}
    with TemporaryDirectory() as folder:
        files = f"{folder}/options.json", f"{folder}/weights.hdf5"
        ours.save(*files)
        try:
            from allennlp.modules.elmo import _ElmoBiLm
            from allennlp.nn.util import remove_sentence_boundaries
        except ImportError:
            print("AllenNLP is not installed: its biLM is stated again in plain torch", file=sys.stderr)
            made["AllenNLP"] = PlainElmo(ours).eval().to(device)
        else:
            theirs = _ElmoBiLm(*files).eval().to(device)

            def run_theirs(character_ids: torch.Tensor) -> list[torch.Tensor]:
                # AllenNLP's biLM is stateful: without a reset its layers would depend on the batches before.
                theirs._elmo_lstm.reset_states()
                output = theirs(character_ids)
                return [remove_sentence_boundaries(layer, output["mask"])[0] for layer in output["activations"]]

            made["AllenNLP"] = run_theirs
        for precision in precisions:
            bilm = Bilm.from_files(*files, precision=precision).requires_grad_(False).to(device)
            made[precision] = lambda character_ids, bilm=bilm: list(bilm(character_ids).layers)
    return made


def run_all(bilm: Callable[[torch.Tensor], object], batches: list[torch.Tensor]) -> None:
    for batch in batches:
        bilm(batch)


def seconds(run: Callable[[], object]) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def flops(options: BilmOptions, batch: list[list[str]]) -> float:
    """Of the products that a batch needs: the LSTMs for each word and boundary, the rest for each distinct word."""
    n_tokens = sum(len(sentence) + 2 for sentence in batch)
    cell, dim = options.cell_dim, options.projection_dim
    of_lstms = 2 * options.n_layers * n_tokens * (2 * dim * 4 * cell + cell * dim)
    words = {word for sentence in batch for word in sentence}
    windows = sum(min(len(word.encode()), 48) + 3 for word in words)
    of_filters = windows * sum(width * number for width, number in options.filters) * options.character_dim
    n_filters = options.n_filters
    of_words = len(words) * (2 * options.n_highway * n_filters**2 + n_filters * dim)
    return 2.0 * (of_lstms + of_filters + of_words)


def peak(device: str, dtype: torch.dtype) -> float:
    """The highest speed of products here, in operations a second: the best of several shapes and two libraries."""
    best = 0.0
    for n_rows, inner, columns in ((64, 4096, 512), (256, 1024, 1024), (1024, 2048, 2048), (8192, 8192, 8192)):
        if device == "cpu" and n_rows > 1024:
            continue
        factors = torch.randn(n_rows, inner).to(device, dtype), torch.randn(columns, inner).to(device, dtype)
        for multiply in (PackedLinear(factors[1]), partial(torch.nn.functional.linear, weight=factors[1])):
            times = [seconds(lambda: [multiply(factors[0]) for _ in range(10)]) / 10 for _ in range(6)]  # noqa: B023
            best = max(best, 2 * n_rows * inner * columns / min(times))
    return best


def compare(records: Records, size: str, device: str, batch_sizes: list[int], repeats: int, text: Path | None) -> None:
    @cache
    def made() -> tuple[dict[str, Callable[[torch.Tensor], list[torch.Tensor]]], dict[str, float]]:
        bilms = make_bilms(size, device)
        print(f"\n{size}: {SIZES[size].cell_dim} cells, projected to {SIZES[size].projection_dim}")
        print("batch  what        tokens/s   ratio (min to max)      share of peak   difference, cosine to float32")
        return bilms, {name: peak(device, DTYPES[name]) for name in bilms if name in DTYPES}

    all_sentences = sentences(text)
    for batch_size in batch_sizes:
        used = all_sentences[: max(batch_size, 8)]
        parts = [used[start : start + batch_size] for start in range(0, len(used), batch_size)]
        records.measure(
            f"biLM, {size}, batches of {batch_size}, {device}",
            lambda parts=parts, batch_size=batch_size: compare_batches(
                *made(), size, device, parts, batch_size, repeats
            ),
        )


def compare_batches(
    bilms: dict[str, Callable[[torch.Tensor], list[torch.Tensor]]],
    peaks: dict[str, float],
    size: str,
    device: str,
    parts: list[list[list[str]]],
    batch_size: int,
    repeats: int,
) -> dict[str, object]:
    """Prints a row for each biLM; and their numbers."""
    batches = [sentences_to_character_ids(part).to(device) for part in parts]
    n_tokens = sum(len(sentence) for part in parts for sentence in part)
    times = {name: [] for name in bilms}
    for _ in range(repeats + 1):
        for name, bilm in bilms.items():
            times[name].append(seconds(partial(run_all, bilm, batches)))
    expected = bilms["AllenNLP"](batches[0])
    exact = bilms["float32"](batches[0])
    is_word = (batches[0] > 0).any(-1)
    numbers: dict[str, object] = {"words": n_tokens}
    for name, bilm in bilms.items():
        measured = times[name][1:]  # The first round warms up.
        speed = n_tokens / statistics.median(measured)
        numbers[f"{name}, tokens/s"] = round(speed)
        row = f"{batch_size:5}  {name:9} {speed:10,.0f}"
        if name in DTYPES:
            ratios = [theirs / ours for theirs, ours in zip(times["AllenNLP"][1:], measured, strict=True)]
            needed = sum(flops(SIZES[size], part) for part in parts)
            layers = bilm(batches[0])
            difference = max((a - b).abs().max().item() for a, b in zip(layers, expected, strict=True))
            cosine = min(
                torch.cosine_similarity(a, b, -1)[is_word].min().item() for a, b in zip(layers, exact, strict=True)
            )
            numbers[f"{name}, ratio"] = round(statistics.median(ratios), 2)
            numbers[f"{name}, difference"], numbers[f"{name}, lowest cosine"] = difference, cosine
            row += f"   {statistics.median(ratios):5.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            row += f"{needed / min(measured) / peaks[name]:16.0%}         {difference:.1e}   {cosine:.5f}"
        print(row, flush=True)
    return numbers


def measure_memory(records: Records, size: str, device: str, text: Path | None) -> None:
    """Peak memory of a batch of 64, each biLM in a process of its own."""
    for name in ("AllenNLP", "float32", "bf16"):
        command = [sys.executable, __file__, "--sizes", size, "--memory-of", name, "--device", device]
        command += [] if text is None else ["--text", str(text)]

        def run(command: list[str] = command) -> dict[str, object]:
            process = subprocess.run(command, capture_output=True, text=True, check=False)
            if process.returncode:
                raise RuntimeError(process.stderr.strip().splitlines()[-1])
            return {"memory": process.stdout.strip().splitlines()[-1]}

        records.measure(f"peak memory, {size}, batches of 64, {name}, {device}", run)


def memory_of(name: str, size: str, device: str, text: Path | None) -> str:
    bilms = make_bilms(size, device)
    if name not in bilms:
        return "not on this device"
    bilm = bilms.pop(name)
    bilms.clear()
    batch = sentences_to_character_ids(sentences(text)[:64]).to(device)
    if device == "cuda":
        bilm(batch)
        return f"{torch.cuda.max_memory_allocated() / 2**20:,.0f} MiB on the GPU"
    # Making the weights took memory too: Linux counts the peak again from here.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    bilm(batch)
    return f"{resident('VmHWM') - before:,.0f} MiB for the batch, {resident('VmHWM'):,.0f} MiB in all"


def resident(which: str) -> float:
    """MiB of memory that this process has (`VmRSS`) or had at most (`VmHWM`)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(which)) / 1024


@torch.no_grad()
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "original"])
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--text", type=Path, help="file with a tokenised sentence a line; default: the data that ships")
    parser.add_argument("--output", type=Path, help="JSON lines; what is there is not measured again")
    parser.add_argument("--minutes", type=float, default=inf, help="nothing is begun after this time")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(memory_of(arguments.memory_of, arguments.sizes[0], arguments.device, arguments.text))
        return 0
    records = Records(arguments.output, arguments.minutes)
    for size in arguments.sizes:
        compare(records, size, arguments.device, arguments.batch_sizes, arguments.repeats, arguments.text)
        measure_memory(records, size, arguments.device, arguments.text)
    return records.status()


if __name__ == "__main__":
    sys.exit(main())
