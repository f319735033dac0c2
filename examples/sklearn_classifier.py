"""
How do I classify texts with scikit-learn?

`ElmoVectorizer` turns texts into a matrix, so that any classifier can follow it in a pipeline. Here sentences of the
small sentiment data that ships are sorted into negative and positive ones, from a few dozen examples.
"""

import re

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from elmo_tasks import ElmoVectorizer
from elmo_tasks.shipped import FIXTURES


def read(name: str) -> tuple[list[str], list[str]]:
    """Sentences and labels of a file of trees: the first number is the sentiment, from 0 to 4, and 2 is neutral."""
    texts, labels = [], []
    for line in (FIXTURES / "sst" / name).read_text(encoding="utf-8").splitlines():
        sentiment = int(line[1])
        if sentiment != 2:
            texts.append(" ".join(re.findall(r"\d ([^()]+)\)", line)))
            labels.append("positive" if sentiment > 2 else "negative")
    return texts, labels


def main() -> None:
    """Fits the classifier and prints its accuracy and some predictions."""
    texts, labels = read("train.txt")
    classifier = make_pipeline(ElmoVectorizer(pool="mean"), LogisticRegression(C=10, max_iter=1000))
    classifier.fit(texts, labels)

    test_texts, test_labels = read("test.txt")
    print(f"trained on {len(texts)} sentences, tested on {len(test_texts)}")
    print(f"accuracy: {classifier.score(test_texts, test_labels):.2f}")
    for text in ["a wonderful , moving film", "a dull waste of time"]:
        print(f"{text!r}: {classifier.predict([text])[0]}")


if __name__ == "__main__":
    main()
