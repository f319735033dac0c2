"""
Speed of our biLM, of AllenNLP's, and of torch's LSTMs with projections in our biLM, on the same
sentences and weights: `python benchmarks/bilm.py`.

All take turns in one process, so other load slows all; the ratio is what counts. The weights are
random, in the public format. If AllenNLP is not installed, ours are compared with torch's.
`torch_layers.py` compares the LSTMs alone, and a step of training.

Torch's LSTMs do not clip the memory and the output, which matters for trained biLMs. With random
weights, no value is that large.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch_layers import TorchLstms

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.files.shipped import FIXTURES

ORIGINAL = BilmOptions()
SIZES = {
    # To try the script out.
    "tiny": replace(
        ORIGINAL, cell_dim=16, projection_dim=8, filters=ORIGINAL.filters[:3], n_highway=1
    ),
    "small": replace(
        ORIGINAL, cell_dim=1024, projection_dim=128, filters=ORIGINAL.filters[:-1], n_highway=1
    ),
    "original": ORIGINAL,
}
# What is compared on a device. TF32 is a setting of torch for products of a float32 biLM.
PRECISIONS = {"cpu": ("float32", "bf16", "int8"), "cuda": ("float32", "tf32", "bf16")}
Layers = Callable[[torch.Tensor], list[torch.Tensor]]


def sentences(text: Path | None = None) -> list[list[str]]:
    """
    Sentences of 15 to 35 words from a file with one sentence per line; by default pairs of NER
    sentences.
    """
    if text is not None:
        all_lines = [line.split() for line in text.read_text(encoding="utf-8").splitlines()]
        return [words for words in all_lines if 15 <= len(words) <= 35]
    blocks = (FIXTURES / "ner" / "train.txt").read_text(encoding="utf-8").split("\n\n")[1:]
    ner_sentences = []
    for block in blocks:
        ner_sentences.append([line.split()[0] for line in block.splitlines() if line.strip()])
    pairs = zip(ner_sentences[::2], ner_sentences[1::2], strict=False)
    return [left + right for left, right in pairs]


def parts_of(all_sentences: list[list[str]], batch_size: int) -> list[list[list[str]]]:
    """Batches of at least eight sentences together."""
    used = all_sentences[: max(batch_size, 8)]
    return [used[start : start + batch_size] for start in range(0, len(used), batch_size)]


def make_bilms(size: str, device: str, precisions: Sequence[str]) -> dict[str, Layers]:
    """AllenNLP's biLM, torch's, and ours in each precision, as functions that return layers."""
    torch.manual_seed(0)
    ours = Bilm(SIZES[size])
    bilms: dict[str, Layers] = {}
    with TemporaryDirectory() as folder:
        options_file = f"{folder}/options.json"
        weight_file = f"{folder}/weights.hdf5"
        ours.save(options_file, weight_file)
        if find_spec("allennlp"):
            bilms["AllenNLP"] = allennlp_bilm(options_file, weight_file, device)
        bilms["torch"] = torch_bilm(ours, device)
        for name in precisions:
            # TF32 is torch's setting "high" for products of float32.
            product_precision = "highest"
            precision = name
            if name == "tf32":
                product_precision = "high"
                precision = "float32"
            bilm = Bilm.from_files(options_file, weight_file, precision=precision)
            bilm.requires_grad_(False).to(device)
            try:
                bilm(BYTES.batch([["word"]]).to(device))
            except (ValueError, RuntimeError) as error:
                # bfloat16 needs special processor instructions.
                print(f"{size} without {name}: {error}")
                continue
            bilms[name] = partial(our_layers, bilm, product_precision)
    return bilms


def our_layers(
    bilm: Bilm, product_precision: str, character_ids: torch.Tensor
) -> list[torch.Tensor]:
    torch.set_float32_matmul_precision(product_precision)
    layers = list(bilm(character_ids).layers)
    torch.set_float32_matmul_precision("highest")
    return layers


def torch_bilm(ours: Bilm, device: str) -> Layers:
    """Our character encoder, and torch's LSTMs."""
    encoder = Bilm(replace(ours.options, n_layers=0)).requires_grad_(False).to(device)
    encoder.load_state_dict(ours.state_dict(), strict=False)
    pairs = list(zip(ours.forward_layers, ours.backward_layers, strict=True))
    lstms = TorchLstms(pairs, ours.options.residual).requires_grad_(False).to(device)

    def run(character_ids: torch.Tensor) -> list[torch.Tensor]:
        contexts = encoder.contexts(character_ids)
        sentences = contexts.sentences
        words = contexts.layers[0]
        layers = []
        for packed in [words, *lstms(words, sentences.batch_sizes)]:
            layer = packed.new_zeros(*character_ids.shape[:2], ours.get_output_dim())
            sentences.fill_in(layer, packed)
            layers.append(layer)
        return layers

    return run


def allennlp_bilm(options_file: str, weight_file: str, device: str) -> Layers:
    from allennlp.modules.elmo import _ElmoBiLm
    from allennlp.nn.util import remove_sentence_boundaries

    theirs = _ElmoBiLm(options_file, weight_file).eval().to(device)

    def run(character_ids: torch.Tensor) -> list[torch.Tensor]:
        # AllenNLP's biLM is stateful: without a reset, its layers would depend on earlier batches.
        theirs._elmo_lstm.reset_states()
        output = theirs(character_ids)
        layers = []
        for layer_with_boundaries in output["activations"]:
            layer, _ = remove_sentence_boundaries(layer_with_boundaries, output["mask"])
            layers.append(layer)
        return layers

    return run


def seconds(run: Callable[[], object]) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def compare(
    device: str, bilms: dict[str, Layers], parts: list[list[list[str]]], repeats: int
) -> dict[str, float]:
    """
    Prints a row for each biLM, with ratios to the first; the result is their tokens per second.
    """
    reference = next(iter(bilms))
    batches = [BYTES.batch(part).to(device) for part in parts]
    n_tokens = sum(len(sentence) for part in parts for sentence in part)
    times = seconds_by_turn(bilms, batches, repeats)
    expected = bilms[reference](batches[0])
    exact = bilms["float32"](batches[0])
    is_word = (batches[0] > 0).any(-1)
    speeds = {}
    for name, bilm in bilms.items():
        speeds[name] = n_tokens / statistics.median(times[name])
        row = f"{len(parts[0]):5}  {name:9} {speeds[name]:10,.0f}"
        if name != reference:
            ratios = []
            for reference_time, time_of_turn in zip(times[reference], times[name], strict=True):
                ratios.append(reference_time / time_of_turn)
            layers = bilm(batches[0])
            difference = largest_difference(layers, expected)
            cosine = smallest_cosine(layers, exact, is_word)
            row += f"   {statistics.median(ratios):5.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            row += f"         {difference:.1e}   {cosine:.5f}"
        print(row, flush=True)
    return speeds


def seconds_by_turn(
    bilms: dict[str, Layers], batches: list[torch.Tensor], repeats: int
) -> dict[str, list[float]]:
    """The seconds of each biLM for all batches, in each turn but the first, which warms up."""
    times: dict[str, list[float]] = {name: [] for name in bilms}
    for turn in range(repeats + 1):
        for name, bilm in bilms.items():
            elapsed = seconds(partial(run_batches, bilm, batches))
            if turn > 0:
                times[name].append(elapsed)
    return times


def run_batches(bilm: Layers, batches: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    return [bilm(batch) for batch in batches]


def largest_difference(layers: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    pairs = zip(layers, expected, strict=True)
    return max((layer - other).abs().max().item() for layer, other in pairs)


def smallest_cosine(
    layers: list[torch.Tensor], exact: list[torch.Tensor], is_word: torch.Tensor
) -> float:
    cosines = []
    for layer, exact_layer in zip(layers, exact, strict=True):
        word_cosines = torch.cosine_similarity(layer, exact_layer, -1)[is_word]
        cosines.append(word_cosines.min().item())
    return min(cosines)


def draw(speeds: dict[str, dict[int, dict[str, float]]], file: Path) -> None:
    """Draws tokens per second: a panel for each size, a group of bars for each batch size."""
    # Not installed where only torch is.
    import pandas
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(speeds), 3), layout="constrained")
    panels = figure.subplots(1, len(speeds), squeeze=False)[0]
    for panel, (size, speeds_by_batch_size) in zip(panels, speeds.items(), strict=True):
        # A row for each batch size, a column for each biLM.
        table = pandas.DataFrame(speeds_by_batch_size).T
        table.plot.bar(
            ax=panel, title=size, xlabel="sentences", ylabel="tokens per second", rot=0, width=0.8
        )
        for bars, name in zip(panel.containers, table, strict=True):
            ratios = table[name] / table.iloc[:, 0]
            panel.bar_label(bars, [f"{ratio:.1f}" for ratio in ratios], fontsize=7)
        panel.legend(fontsize=7)
    figure.savefig(file)


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "original"])
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument(
        "--figure", type=Path, help="an SVG file for a picture, with ratios on the bars"
    )
    parser.add_argument(
        "--text", type=Path, help="one tokenised sentence per line; default: the data that ships"
    )
    arguments = parser.parse_args()
    all_sentences = sentences(arguments.text)
    speeds: dict[str, dict[int, dict[str, float]]] = {}
    for size in arguments.sizes:
        bilms = make_bilms(size, arguments.device, PRECISIONS[arguments.device])
        print(f"\n{size}: {SIZES[size].cell_dim} cells, projected to {SIZES[size].projection_dim}")
        print("batch  what        tokens/s   ratio (min to max)      difference, cosine to float32")
        speeds[size] = {}
        for batch_size in arguments.batch_sizes:
            parts = parts_of(all_sentences, batch_size)
            speeds[size][batch_size] = compare(arguments.device, bilms, parts, arguments.repeats)
    if arguments.figure is not None:
        draw(speeds, arguments.figure)


if __name__ == "__main__":
    main()
