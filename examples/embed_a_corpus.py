"""
How do I write the vectors of a text into a file, and read them again?

`python -m elmo_tasks embed` does it from the command line; `embed_file` is the same from Python.
After an interruption the same call computes only what is missing. Here one vector for each sentence
goes into HDF5.
"""

import tempfile
from pathlib import Path

import h5py
import numpy as np

from elmo_tasks.corpora.embed import EmbedOptions, embed_file
from elmo_tasks.files.shipped import FIXTURES


def main() -> None:
    """Embeds the included sample text, and finds the sentence that is nearest to the first."""
    text = FIXTURES / "lm" / "test.txt"
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "vectors.h5")
        n_lines = embed_file(text, output, EmbedOptions(pool="mean", dtype="float16"))
        print(f"{n_lines} sentences, {output.stat().st_size:,} bytes")

        with h5py.File(output) as file:
            # One dataset per line, named by its number.
            vectors = np.stack([file[str(line)][()] for line in range(n_lines)]).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors[0]
    lines = text.read_text(encoding="utf-8").splitlines()
    print(f"a matrix of {vectors.shape[0]} x {vectors.shape[1]}")
    print(f"nearest to {lines[0]!r}:")
    for line in np.argsort(-cosines)[1:4]:
        print(f"  {cosines[line]:.2f}  {lines[line]}")


if __name__ == "__main__":
    main()
