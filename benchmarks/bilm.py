"""
Speed of our biLM and of AllenNLP's, on the same sentences and weights: `python benchmarks/bilm.py`.

Both run in one process, by turns, so that a busy machine slows both; what counts is the ratio.
"""

import argparse
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from allennlp.modules.elmo import _ElmoBiLm
from allennlp.nn.util import remove_sentence_boundaries

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.characters import sentences_to_character_ids

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def seconds(bilm: torch.nn.Module, batches: list[torch.Tensor]) -> float:
    start = time.perf_counter()
    for character_ids in batches:
        bilm(character_ids)
    return time.perf_counter() - start


def sentences() -> list[list[str]]:
    """The sentences of the NER data that ships."""
    words = [line.split()[:1] for line in (FIXTURES / "ner" / "train.txt").read_text().splitlines()[2:]]
    found: list[list[str]] = [[]]
    for word in words:
        if word:
            found[-1] += word
        else:
            found.append([])
    return [sentence for sentence in found if sentence]


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bilm", type=Path, default=FIXTURES / "bilm", help="folder of options.json and weights.hdf5")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()

    ours = Bilm.from_files(arguments.bilm / "options.json", arguments.bilm / "weights.hdf5").eval()
    with TemporaryDirectory() as folder:
        # AllenNLP adds the 1 of the forget gate to the bias in the precision of the file, and loses some of it where
        # that is float16: the same weights in float32 make the two comparable.
        files = f"{folder}/options.json", f"{folder}/weights.hdf5"
        ours.save(*files)
        theirs = _ElmoBiLm(*files).eval()
    print("batch size   AllenNLP tokens/s   ours tokens/s   ratio (min to max)   largest difference")
    for batch_size in (1, 8, 32, 64):
        batch = sentences()[: max(batch_size, 8)]
        batches = [
            sentences_to_character_ids(batch[start : start + batch_size]) for start in range(0, len(batch), batch_size)
        ]
        n_tokens = sum(map(len, batch))
        times = []
        for _ in range(arguments.repeats + 1):
            # The layers of a stateful biLM depend on what came before: AllenNLP's starts anew each time.
            theirs._elmo_lstm.reset_states()
            times.append((seconds(theirs, batches), seconds(ours, batches)))
        times = times[1:]  # The first round warms up.
        ratios = [their_time / our_time for their_time, our_time in times]
        their_speed, our_speed = (n_tokens / statistics.median(column) for column in zip(*times, strict=True))
        theirs._elmo_lstm.reset_states()
        their_output, our_output = theirs(batches[0]), ours(batches[0])
        difference = max(
            (remove_sentence_boundaries(their_layer, their_output["mask"])[0] - our_layer).abs().max().item()
            for their_layer, our_layer in zip(their_output["activations"], our_output.layers, strict=True)
        )
        print(
            f"{batch_size:10}   {their_speed:17,.0f}   {our_speed:13,.0f}   {statistics.median(ratios):5.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f})   {difference:.1e}"
        )


if __name__ == "__main__":
    main()
