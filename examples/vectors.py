"""
How do I get vectors of words in their sentences?

`Elmo.from_pretrained()` loads the small biLM that comes with the package, and `embed` turns
sentences into arrays, one row for each word. The same word has another vector in another sentence:
this script compares *bank* in three of them.
"""

import numpy as np

from elmo_tasks import Elmo

SENTENCES = {
    "river": ["We", "sat", "on", "the", "bank", "of", "the", "river", "and", "fished", "."],
    "other river": ["The", "boat", "drifted", "to", "the", "bank", "of", "the", "lake", "."],
    "money": ["The", "bank", "raised", "its", "interest", "rates", "on", "Tuesday", "."],
}


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    """The cosine of the angle between two vectors."""
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def main() -> None:
    """Prints shapes and similarities."""
    elmo = Elmo.from_pretrained()
    vectors = elmo.embed(SENTENCES.values())
    for words, array in zip(SENTENCES.values(), vectors, strict=True):
        print(f"{' '.join(words)!r}: {array.shape[0]} words, {array.shape[1]} numbers each")

    # The second LSTM tells most about the sense of a word (the paper's Table 5).
    top = elmo.embed(SENTENCES.values(), layers="top")
    bank = {}
    for (name, words), array in zip(SENTENCES.items(), top, strict=True):
        bank[name] = array[words.index("bank")]
    print(f"bank (river) and bank (other river): {cosine(bank['river'], bank['other river']):.2f}")
    print(f"bank (river) and bank (money):       {cosine(bank['river'], bank['money']):.2f}")


if __name__ == "__main__":
    main()
