"""
How do I turn Wikipedia into text for a biLM?

The input is a folder that wikiextractor wrote: folders with files, which contain `<doc ...>`, a
title and paragraphs. The output are `train.txt`, `dev.txt` and `test.txt` with one tokenised
sentence per line, without duplicates, shuffled. The last folder is only used for `dev.txt` and
`test.txt`.

    python examples/text_from_wikipedia.py wikipedia ~/data/lm --language en
"""

import argparse
import html
import random
import re
from collections.abc import Iterable, Iterator
from functools import partial
from multiprocessing import Pool
from pathlib import Path

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.lines import numbered_lines
from elmo_tasks.text import sentences_of_text

# Shorter paragraphs are headings, shorter sentences are captions, and longer sentences are lists.
MIN_PARAGRAPH = 6
MIN_WORDS = 4
MAX_WORDS = 80


def paragraphs(file: Path) -> Iterator[str]:
    """The paragraphs of all articles in a file, without titles, headings and markup."""
    is_title = False
    for _, line in numbered_lines(file):
        if not is_title and not line.startswith("<doc "):
            # Markup may be escaped twice. Parentheses lose what a template made, such as a
            # pronunciation.
            text = re.sub(r"<[^>]*>", " ", html.unescape(html.unescape(line)))
            text = re.sub(r"\(\s*[,;]\s*", "(", text).replace("()", "")
            if len(text.split()) >= MIN_PARAGRAPH and re.search(r"[.!?。][\"'”’)]*\s*$", text):
                yield text
        is_title = line.startswith("<doc ")


def is_prose(words: list[str]) -> bool:
    """
    Whether a sentence is neither a fragment nor a list of numbers, and has no formula, which
    wikiextractor drops.
    """
    text = "".join(words)
    n_letters = sum(map(str.isalpha, text))
    return (
        MIN_WORDS <= len(words) <= MAX_WORDS
        and 2 * n_letters > len(text)
        and "formula_" not in text
    )


def sentences(folder: Path, language: str) -> list[str]:
    """The tokenised sentences of all files in a folder."""
    prose = []
    for file in sorted(folder.iterdir()):
        for text in paragraphs(file):
            for words in sentences_of_text(text, language):
                if is_prose(words):
                    prose.append(" ".join(words))
    return prose


def write(path: Path, sentences: Iterable[str]) -> None:
    """Writes one sentence per line."""
    with atomic_file(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.writelines(sentence + "\n" for sentence in sentences)


def main() -> None:
    """Writes the three files."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("wikipedia", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument(
        "--language",
        default="en",
        help="spaCy's code; xx separates words at spaces and punctuation",
    )
    parser.add_argument(
        "--more", nargs="*", default=[], help="tokenised text to mix in, one sentence per line"
    )
    parser.add_argument(
        "--held-out", type=int, default=3000, help="sentences in dev.txt and in test.txt"
    )
    arguments = parser.parse_args()

    folders = sorted(folder for folder in arguments.wikipedia.iterdir() if folder.is_dir())
    *for_training, last = folders
    # A dictionary, because it keeps the order.
    seen: dict[str, None] = {}
    for file in arguments.more:
        for _, line in numbered_lines(file):
            seen[line] = None
    read_sentences = partial(sentences, language=arguments.language)
    with Pool() as processes:
        read = processes.imap(read_sentences, for_training)
        for folder, folder_sentences in zip(for_training, read, strict=True):
            n_before = len(seen)
            seen.update(dict.fromkeys(folder_sentences))
            print(f"{folder.name}: {len(seen) - n_before:,} sentences", flush=True)
    generator = random.Random(1)
    distinct = dict.fromkeys(read_sentences(last))
    held_out = [sentence for sentence in distinct if sentence not in seen]
    generator.shuffle(held_out)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in ("test", "dev"):
        write(arguments.output / f"{name}.txt", held_out[: arguments.held_out])
        del held_out[: arguments.held_out]
    train = list(seen)
    generator.shuffle(train)
    write(arguments.output / "train.txt", train)
    print(f"{len(train):,} sentences, {sum(sentence.count(' ') + 1 for sentence in train):,} words")


if __name__ == "__main__":
    main()
