"""
How do I classify texts with scikit-learn?

`ElmoVectorizer` turns texts into a matrix, so that any classifier can follow it in a pipeline. Here
it tells sentences of film reviews from sentences of news, after 120 examples from the included
sample data.
"""

import re

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from elmo_tasks import ElmoVectorizer
from elmo_tasks.files.shipped import FIXTURES


def read(split: str) -> tuple[list[str], list[str]]:
    """Texts and labels: as many reviews as there are trees, and as many sentences of news."""
    trees = (FIXTURES / "sst" / f"{split}.txt").read_text(encoding="utf-8").splitlines()
    reviews = [" ".join(re.findall(r"\d ([^()]+)\)", tree)) for tree in trees]
    all_news = (FIXTURES / "lm" / f"{split}.txt").read_text(encoding="utf-8").splitlines()
    news = all_news[: len(reviews)]
    texts = reviews + news
    labels = ["review"] * len(reviews) + ["news"] * len(news)
    return texts, labels


def main() -> None:
    """Fits the classifier and prints its accuracy and some predictions."""
    texts, labels = read("train")
    classifier = make_pipeline(ElmoVectorizer(pool="mean"), LogisticRegression(max_iter=1000))
    classifier.fit(texts, labels)

    test_texts, test_labels = read("test")
    print(f"trained on {len(texts)} sentences, tested on {len(test_texts)}")
    print(f"accuracy: {classifier.score(test_texts, test_labels):.2f}")
    for text in [
        "A touching story with superb actors .",
        "The mayor of Boston met the governor on Friday .",
    ]:
        print(f"{text!r}: {classifier.predict([text])[0]}")


if __name__ == "__main__":
    main()
