"""
Ten sentences embedded twice, in different batches, by AllenNLP's ELMo and by ours:
`python benchmarks/determinism.py`.

Both use the included biLM. First, all sentences are one batch; then the same object gets them in
batches of three, the last sentence first. The output is the largest difference between the two
vectors of a word.
"""

from collections.abc import Callable

import torch
from allennlp.modules.elmo import Elmo

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.files.shipped import PRETRAINED
from elmo_tasks.modules import ContextualBilm, ElmoTokenEmbedder

BILM = PRETRAINED / "small-open"

SENTENCES = [
    "Washington crossed the river before dawn .",
    "The train to Washington was late again .",
    "Washington scored twice in the last minute .",
    "She reads the paper at breakfast .",
    "The bank raised its rates on Tuesday .",
    "We sat on the bank and fished .",
    "He has a part in the new play .",
    "They play on Saturday afternoons .",
    "Yes .",
    "Nobody in the village had ever seen so much snow fall in a single night .",
]

Embed = Callable[[torch.Tensor], torch.Tensor]


@torch.no_grad()
def embedded(embed: Embed, sentences: list[str], batch_size: int) -> dict[str, torch.Tensor]:
    """The vectors of each sentence's words, shape `(n_words, dim)`."""
    vectors = {}
    for start in range(0, len(sentences), batch_size):
        batch = sentences[start : start + batch_size]
        # Shape: (batch_size, timesteps, dim)
        output = embed(BYTES.batch([sentence.split() for sentence in batch]))
        vectors |= {
            sentence: row[: len(sentence.split())]
            for sentence, row in zip(batch, output, strict=True)
        }
    return vectors


def main() -> None:
    files = str(BILM / "options.json"), str(BILM / "weights.hdf5")
    theirs = Elmo(*files, num_output_representations=1, dropout=0.0).eval()
    ours = ElmoTokenEmbedder(
        ContextualBilm(BilmOptions.from_file(files[0]).to_dict(), files[1])
    ).eval()
    embedders: dict[str, Embed] = {
        "AllenNLP's Elmo": lambda ids: theirs(ids)["elmo_representations"][0],
        "elmo_tasks": ours,
    }
    differences = {}
    for name, embed in embedders.items():
        first = embedded(embed, SENTENCES, batch_size=len(SENTENCES))
        second = embedded(embed, SENTENCES[::-1], batch_size=3)
        differences[name] = [(first[s] - second[s]).abs().max().item() for s in SENTENCES]
    print("  ".join(f"{name:>15}" for name in differences), " sentence")
    for row, sentence in zip(zip(*differences.values(), strict=True), SENTENCES, strict=True):
        print("  ".join(f"{difference:15.1e}" for difference in row), f" {sentence}")


if __name__ == "__main__":
    main()
