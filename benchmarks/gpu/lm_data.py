"""
Text for the training of a biLM in small files, to be carried to a machine with a GPU: `python benchmarks/gpu/lm_data.py
FOLDER --train TEXT --dev TEXT --test TEXT`.

The folder has the distinct words, the most frequent first, and the numbers of the words of the text in parts, each of
which can be carried by itself; a training uses the parts that are there.
them. Packing needs AllenNLP, for its reader of texts; reading does not.
"""

import argparse
import lzma
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from elmo_tasks.bilm.characters import words_to_character_ids
from elmo_tasks.bilm.softmax.word_list import WordList
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import check_listed_file, listed_files, read_sealed, write_sealed

__all__ = ["LmData", "Text", "pack", "read_text"]

_INDEX, _WORDS = "index.json", "words.txt.xz"
# Numbers of words from here on are written apart: few words of a text are so rare.
_RARE = 2**16 - 1
_SPECIAL_WORDS = {"<S>", "</S>", "<UNK>"}


@dataclass(frozen=True)
class Text:
    """
    # Parameters

    tokens
        Shape `(n_tokens,)`, int32: the numbers of all words, sentence after sentence.
    lengths
        Shape `(n_sentences,)`, int64.
    """

    tokens: np.ndarray
    lengths: np.ndarray


def pack(folder: Path, texts: dict[str, Iterable[list[str]]], *, part_tokens: int, min_count: int = 1) -> None:
    """
    Writes texts, of which `train` has parts.

    # Parameters

    folder
        Where to write.
    texts
        Sentences of `train`, `dev` and `test`, which are read twice.
    part_tokens
        The words of a part of `train`.
    min_count
        How often a word of the vocabulary occurs in `train`.
    """
    counts: Counter[str] = Counter()
    for name, sentences in texts.items():
        for sentence in sentences:
            # Words of the other texts have characters, but are no reason to predict a word.
            counts.update(sentence if name == "train" else dict.fromkeys(sentence, 0))
    words = sorted(counts, key=lambda word: (-counts[word], word))
    numbers = {word: number for number, word in enumerate(words)}
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / _WORDS, [np.frombuffer("\n".join(words).encode(), dtype=np.uint8)])
    names = [_WORDS]
    for name, sentences in texts.items():
        for index, (lengths, tokens) in enumerate(_parts(sentences, numbers, part_tokens if name == "train" else None)):
            names.append(f"{name}-{index:02}.xz")
            is_rare = tokens >= _RARE
            low = np.where(is_rare, _RARE, tokens).astype(np.uint16)
            _write(folder / names[-1], [lengths, low, tokens[is_rare]])
            print(f"{names[-1]}: {len(tokens):,} words, {(folder / names[-1]).stat().st_size:,} bytes", flush=True)
    files = {name: sha256_of(folder / name) for name in names}
    n_frequent = sum(count >= min_count for count in counts.values())
    write_sealed(folder / _INDEX, {"format": 1, "frequent_words": n_frequent, "files": files})


def _parts(
    sentences: Iterable[list[str]], numbers: dict[str, int], most_tokens: int | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The lengths of sentences and the numbers of their words, in parts of so many words or a few more."""
    lengths, tokens = array("H"), array("I")
    for sentence in sentences:
        lengths.append(len(sentence))
        # Not the words themselves, which would fill the memory.
        tokens.extend(map(numbers.__getitem__, sentence))
        if most_tokens is not None and len(tokens) >= most_tokens:
            yield np.array(lengths, dtype=np.uint16), np.array(tokens, dtype=np.uint32)
            lengths, tokens = array("H"), array("I")
    if tokens:
        yield np.array(lengths, dtype=np.uint16), np.array(tokens, dtype=np.uint32)


def _write(path: Path, arrays: list[np.ndarray]) -> None:
    with atomic_file(path) as temporary, lzma.open(temporary, "wb", preset=6) as file:
        for array in arrays:
            np.save(file, array)


def _read(path: Path, n_arrays: int) -> list[np.ndarray]:
    with lzma.open(path) as file:
        return [np.load(file, allow_pickle=False) for _ in range(n_arrays)]


def read_text(folder: Path, name: str) -> Text:
    """
    The parts of a text that are in a folder.

    # Raises

    `ValueError`
        If none is there, or one is damaged.
    """
    index = folder / _INDEX
    parts = []
    missing = []
    for file, digest in listed_files(index, read_sealed(index)).items():
        if not file.name.startswith(f"{name}-"):
            continue
        if not file.exists():
            missing.append(file.name)
            continue
        check_listed_file(file, digest, index)
        lengths, low, rare = _read(file, 3)
        tokens = low.astype(np.int32)
        tokens[low == _RARE] = rare
        parts.append((tokens, lengths.astype(np.int64)))
    if not parts:
        raise ValueError(f"{folder} must have a part of the text '{name}', but has none: carry {', '.join(missing)}")
    if missing:
        print(f"without {', '.join(missing)}, which are not there", flush=True)
    return Text(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class LmData:
    """
    A packed folder on a device.

    # Parameters

    folder
        As `pack` has written it, or some of its parts.
    max_words
        Of the vocabulary of the softmax, its three special words included.
    device
        Where words and texts are kept.
    """

    def __init__(self, folder: Path, max_words: int, device: torch.device) -> None:
        index = folder / _INDEX
        content = read_sealed(index)
        check_listed_file(folder / _WORDS, listed_files(index, content)[folder / _WORDS], index)
        words = _read(folder / _WORDS, 1)[0].tobytes().decode().split("\n")
        frequent = [word for word in words[: content["frequent_words"]] if word not in _SPECIAL_WORDS]
        self.folder = folder
        self.vocabulary = WordList(["<S>", "</S>", "<UNK>", *frequent[: max(1, max_words - 3)]])
        self.boundaries = self.vocabulary.indices(["<S>", "</S>"])
        # Shape: (n_distinct, 50)
        self._character_ids = torch.from_numpy(words_to_character_ids(words)).to(device)
        # Shape: (n_distinct,)
        self._numbers = torch.tensor(self.vocabulary.indices(words), dtype=torch.int32).to(device)

    def batch(self, tokens: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor) -> dict[str, torch.Tensor]:
        """
        # Parameters

        tokens
            Shape `(n_tokens,)`: a text, on the device.
        starts, lengths
            Shape `(batch_size,)`: of the sentences of the batch, on the device.

        # Returns

        `Dict[str, torch.Tensor]`
            `character_ids`, of shape `(batch_size, timesteps, 50)`, and `word_ids`, of shape `(n_words,)`: the numbers
            of all words in the vocabulary, row by row.
        """
        steps = torch.arange(int(lengths.max()), device=tokens.device)
        # Shape: (batch_size, timesteps)
        is_word = steps < lengths[:, None]
        distinct = tokens[(starts[:, None] + steps).clamp(max=len(tokens) - 1)].long()
        character_ids = self._character_ids[distinct].long() * is_word.unsqueeze(-1)
        return {"character_ids": character_ids, "word_ids": self._numbers[distinct[is_word]].long()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name in ("train", "dev", "test"):
        parser.add_argument(f"--{name}", required=True, help="tokenised text, a sentence a line; plain, .gz or .xz")
    parser.add_argument("--part-tokens", type=int, default=11_000_000, help="words of a part: about 13 MB")
    parser.add_argument("--min-count", type=int, default=3, help="of a word of the vocabulary in the training text")
    parser.add_argument("--sentences", type=int, help="of each text at most, to try it out")
    arguments = parser.parse_args()
    from elmo_tasks.data.formats.lm_text import LmText

    texts = {}
    for name in ("train", "dev", "test"):
        texts[name] = _First(LmText(getattr(arguments, name)), arguments.sentences)
    pack(arguments.folder, texts, part_tokens=arguments.part_tokens, min_count=arguments.min_count)


class _First:
    """The first sentences of a text; it can be read again."""

    def __init__(self, text: Iterable[list[str]], n_sentences: int | None) -> None:
        self._text = text
        self._n_sentences = n_sentences

    def __iter__(self) -> Iterator[list[str]]:
        return islice(iter(self._text), self._n_sentences)


if __name__ == "__main__":
    main()
