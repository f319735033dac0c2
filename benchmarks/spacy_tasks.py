"""
The trained models as spaCy components and as `TrainedTask`, on the same texts: whether the results are equal, and words
per CPU second, by turns. `python benchmarks/spacy_tasks.py ner srl coref sst --texts 200`
"""

import argparse
import lzma
import time
from pathlib import Path

import spacy
import torch

from elmo_tasks import TrainedTask

TEXT = Path(__file__).resolve().parents[1] / "data" / "open" / "lm" / "heldout.txt.xz"
SENTENCES_PER_TEXT = 3


def of_doc(task: str, doc: spacy.tokens.Doc) -> list:
    """What a component has set, as `of_result` shows a result."""
    if task == "ner":
        return [(span.start_char, span.end_char, span.label_) for span in doc.ents]
    if task == "srl":
        return [[(role.start_char, role.end_char, role.label_) for role in verb.roles] for verb in doc._.predicates]
    if task == "coref":
        return [doc._.resolved] + [[(s.start_char, s.end_char) for s in group] for group in doc.spans.values()]
    return [max(doc.cats, key=doc.cats.get)]


def of_result(task: str, result) -> list:
    if task == "ner":
        return [(span["start"], span["end"], span["label"]) for span in result]
    if task == "srl":
        return [[(role["start"], role["end"], role["label"]) for role in verb["roles"]] for verb in result]
    if task == "coref":
        return [result["resolved"]] + [[(s["start"], s["end"]) for s in chain] for chain in result["chains"]]
    return [str(result["stars"])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--turns", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = lzma.decompress(TEXT.read_bytes()).decode().splitlines()
    starts = range(0, arguments.texts * SENTENCES_PER_TEXT, SENTENCES_PER_TEXT)
    texts = [" ".join(lines[start : start + SENTENCES_PER_TEXT]) for start in starts]
    for name in arguments.tasks:
        nlp, task = spacy.blank("en"), TrainedTask(name)
        nlp.add_pipe(f"elmo_{name}")
        # Loads the model.
        n_words = sum(len(nlp.make_doc(text)) for text in texts)
        assert of_doc(name, nlp(texts[0])) == of_result(name, task(texts[0]))
        seconds: dict[str, list[float]] = {"spaCy": [], "TrainedTask": []}
        for _ in range(arguments.turns):
            start = time.process_time()
            docs = list(nlp.pipe(texts))
            middle = time.process_time()
            results = task(texts)
            seconds["spaCy"].append(middle - start)
            seconds["TrainedTask"].append(time.process_time() - middle)
        equal = sum(of_doc(name, doc) == of_result(name, result) for doc, result in zip(docs, results, strict=True))
        ours, theirs = (n_words / min(each) for each in seconds.values())
        print(
            f"{name}: {equal} of {len(texts)} texts equal; {ours:,.0f} and {theirs:,.0f} words/s: {ours / theirs:.3f}"
        )


if __name__ == "__main__":
    main()
