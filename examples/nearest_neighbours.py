"""
Which words are used like this one, in this sentence?

All words of some sentences are embedded with the highest layer and put into one matrix. The nearest
neighbours of a word in a new sentence are then the rows with the largest cosine. For large texts,
`allennlp elmo-neighbors` keeps such a matrix on disk.
"""

import numpy as np

from elmo_tasks import Elmo

TEXT = """
They play football in the park every Sunday .
The team will play against the champions tomorrow .
She wants to play the guitar in a band .
The children run and play behind the house .
He wrote a play about two brothers .
The new play opened in a small theatre in London .
The critics liked the play and its young actors .
We saw a film about a famous singer .
The actors of the film thanked the audience .
The coach was angry after the match .
"""
QUERIES = [
    ("The boys play tennis after school .", "play"),
    ("The author read her new play to the actors .", "play"),
]


def normalised(rows: np.ndarray) -> np.ndarray:
    """The rows with length 1, so that a product is a cosine."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def main() -> None:
    """Prints the nearest words of each query, with their sentences."""
    elmo = Elmo.from_pretrained()
    sentences = [line.split() for line in TEXT.strip().splitlines()]
    # Shape: (n_words, dim)
    matrix = normalised(np.concatenate(elmo.embed(sentences, layers="top")))
    # The sentence of each row, and the position of its word.
    positions = []
    for words in sentences:
        positions += [(words, index) for index in range(len(words))]

    for sentence, word in QUERIES:
        words = sentence.split()
        (vectors,) = elmo.embed([words], layers="top")
        cosines = matrix @ normalised(vectors[words.index(word)])
        print(f"{word!r} in {sentence!r}:")
        for row in np.argsort(-cosines)[:3]:
            context, index = positions[row]
            print(f"  {cosines[row]:.2f}  [{context[index]}] in {' '.join(context)!r}")


if __name__ == "__main__":
    main()
