"""
How do I get vectors of proteins, whose words are single letters?

A biLM over amino acids, as SeqVec (Heinzinger et al. 2019), has letters as words and sequences as sentences, up to some
thousands long. The vector of a residue is usually the sum of the layers, which is the mix of equal weights times their
number; that of a protein is the mean over its residues. A long sequence is computed by itself, and only the pooled
vectors are kept, so that the memory depends on the longest sequence and not on how many there are.

SeqVec's weights do not ship: this script makes random ones of its shape, scaled down, and shows the calls.
"""

import random
import tempfile
from pathlib import Path

import numpy as np

from elmo_tasks import Elmo, ElmoEmbedder
from elmo_tasks.bilm import Bilm, BilmOptions

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
# SeqVec has 4,096 cells, projections to 512 and filters as the paper's.
OPTIONS = BilmOptions(cell_dim=64, projection_dim=16, character_dim=4, filters=((1, 8), (2, 8)), n_highway=1)


def proteins(lengths: list[int]) -> dict[str, str]:
    """Random sequences by their names."""
    chosen = random.Random(1)
    return {f"protein of {n}": "".join(chosen.choices(RESIDUES, k=n)) for n in lengths}


def main() -> None:
    """Prints shapes, and that the old class has the same vectors."""
    sequences = proteins([60, 350, 3000])
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "options.json"), Path(folder, "weights.hdf5")
        Bilm(OPTIONS).save(*files)
        elmo, embedder = Elmo.from_files(*files), ElmoEmbedder(*files)

    words = [list(sequence) for sequence in sequences.values()]
    # One vector for each residue, sequence by sequence: `elmo.embed` would keep those of all sequences.
    for name, array in zip(sequences, elmo.embed_iter(words, gamma=float(elmo.n_layers)), strict=True):
        vector = array.mean(axis=0)
        print(f"{name}: {array.shape[0]} residues, {array.shape[1]} numbers each; one vector of {vector.shape[0]}")

    # With a pool, the vectors of the residues are not kept at all.
    (of_protein,) = elmo.embed(words[:1], gamma=float(elmo.n_layers), pool="mean")
    # As programs for AllenNLP's class have it, with all layers of all residues in memory.
    layers = embedder.embed_sentence(words[0])
    difference = np.abs(layers.sum(axis=0).mean(axis=0) - of_protein).max()
    print(f"largest difference from ElmoEmbedder: {difference:.0e}")


if __name__ == "__main__":
    main()
