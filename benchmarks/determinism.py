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
        words = [sentence.split() for sentence in batch]
        # Shape: (batch_size, timesteps, dim)
        output = embed(BYTES.batch(words))
        for row, sentence in enumerate(batch):
            vectors[sentence] = output[row, : len(words[row])]
    return vectors


def differences(embed: Embed) -> dict[str, float]:
    """The largest difference of a vector between one batch and batches of three."""
    in_one_batch = embedded(embed, SENTENCES, batch_size=len(SENTENCES))
    in_batches = embedded(embed, SENTENCES[::-1], batch_size=3)
    by_sentence = {}
    for sentence in SENTENCES:
        difference = in_one_batch[sentence] - in_batches[sentence]
        by_sentence[sentence] = difference.abs().max().item()
    return by_sentence


def main() -> None:
    options_file = str(BILM / "options.json")
    weight_file = str(BILM / "weights.hdf5")
    theirs = Elmo(options_file, weight_file, num_output_representations=1, dropout=0.0).eval()
    bilm = ContextualBilm(BilmOptions.from_file(options_file).to_dict(), weight_file)
    ours = ElmoTokenEmbedder(bilm).eval()
    their_differences = differences(lambda ids: theirs(ids)["elmo_representations"][0])
    our_differences = differences(ours)
    print("AllenNLP's Elmo       elmo_tasks  sentence")
    for sentence in SENTENCES:
        print(f"{their_differences[sentence]:15.1e}  {our_differences[sentence]:15.1e}  {sentence}")


if __name__ == "__main__":
    main()
