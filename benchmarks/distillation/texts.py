"""
The unlabelled texts of the students: `python benchmarks/distillation/texts.py ner TEXTS.jsonl --data DATA`
(or `snli`).

`ner`: sentences of 5 to 40 words, as many of the open text that `small-open` was trained on as of the training set of
UD English EWT (reviews, e-mails, weblogs, newsgroups). `snli`: for each labelled pair six that nobody has labelled;
`pairs` says which. The order is random, and the same call writes the same file.
"""

import argparse
import json
import lzma
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

SEED = 1
LENGTHS = range(5, 41)
# Every so many sentences of the open text are read.
STEP = 60


def sentences(data: Path) -> list[dict]:
    """As many sentences of each of the two texts."""
    with lzma.open(data / "lm" / "train-1.txt.xz", "rt", encoding="utf-8") as file:
        running = [line.split() for number, line in enumerate(file) if number % STEP == 0]
    blocks = (data / "pos" / "train.conllu").read_text(encoding="utf-8").split("\n\n")
    rows = ([line.split("\t") for line in block.splitlines() if not line.startswith("#")] for block in blocks)
    # Neither ranges of words nor empty nodes.
    web = [[row[1] for row in block if row[0].isdecimal()] for block in rows]
    chosen = [sorted({tuple(words) for words in text if len(words) in LENGTHS}) for text in (running, web)]
    number = min(map(len, chosen))
    return [{"words": words} for text in chosen for words in random.sample(text, number)]


def pairs(data: Path) -> list[dict]:
    """
    Of a labelled pair: its premise with the hypotheses of the three premises that are most like it (`most_similar`);
    its hypothesis as the premise of its premise; its premise with a part of itself, 3 to 8 neighbouring words; and its
    premise with its hypothesis, in which one word is another of the same place in other hypotheses: after the same
    word, and before the same word.
    """
    with open(data / "snli" / "train.jsonl", encoding="utf-8") as file:
        labelled = [(pair["sentence1"], pair["sentence2"]) for pair in map(json.loads, file)]
    others = {}
    for _, hypothesis in labelled:
        words = ["", *hypothesis.split(), ""]
        for before, word, after in zip(words, words[1:], words[2:], strict=False):
            others.setdefault((before, after), set()).add(word)
    made = []
    for (premise, hypothesis), similar in zip(labelled, most_similar([pair[0] for pair in labelled]), strict=True):
        made += [(premise, labelled[number][1]) for number in similar]
        made.append((hypothesis, premise))
        made.append((premise, part_of(premise.split())))
        made.append((premise, with_another_word(hypothesis.split(), others)))
    unlabelled = sorted(set(made) - set(labelled))
    return [{"sentence1": premise, "sentence2": hypothesis} for premise, hypothesis in unlabelled]


def most_similar(premises: list[str]) -> Iterator[list[int]]:
    """Of each premise the numbers of three others, by the cosine of their words weighted by rarity (tf-idf)."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(word, len(numbers)) for word in premise.lower().split()] for premise in premises]
    ends = np.cumsum([0, *map(len, rows)])
    counts = sparse.csr_array((np.ones(ends[-1]), np.concatenate(rows), ends), (len(rows), len(numbers)))
    counts.sum_duplicates()
    rarity = np.log(len(rows) / (counts > 0).sum(0))
    weighted = counts * rarity[None, :]
    weighted = sparse.csr_array(weighted / np.sqrt((weighted * weighted).sum(1))[:, None])
    for start in range(0, len(rows), 500):
        cosines = (weighted[start : start + 500] @ weighted.T).toarray()
        # Neither the pair itself nor another of the same premise, whose hypotheses are labelled for it.
        for row, premise in zip(cosines, premises[start : start + 500], strict=True):
            best = np.argsort(-row, kind="stable")[:20]
            yield [int(number) for number in best if premises[number] != premise][:3]


def part_of(words: list[str]) -> str:
    length = min(random.randint(3, 8), len(words))
    start = random.randint(0, len(words) - length)
    return " ".join(words[start : start + length])


def with_another_word(words: list[str], others: dict[tuple[str, str], set[str]]) -> str:
    places = ["", *words, ""]
    possible = [
        (place, word)
        for place in range(1, len(places) - 1)
        for word in sorted(others[places[place - 1], places[place + 1]] - {places[place]})
    ]
    if possible:
        # First the place, so that one with many other words is not preferred.
        place = random.choice(sorted({place for place, _ in possible}))
        places[place] = random.choice([word for at, word in possible if at == place])
    return " ".join(places[1:-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("ner", "snli"))
    parser.add_argument("output", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the folder of ELMO_TASKS_DATA")
    arguments = parser.parse_args()

    random.seed(SEED)
    texts = (sentences if arguments.task == "ner" else pairs)(arguments.data)
    random.shuffle(texts)
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(text, ensure_ascii=False) + "\n" for text in texts)
    print(f"{len(texts):,} texts are in {arguments.output}")


if __name__ == "__main__":
    main()
