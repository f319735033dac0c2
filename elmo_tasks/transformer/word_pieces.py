"""Words as the pieces of a transformer's tokenizer."""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["SpecialPieces", "WordPieces"]

# The largest tokenizers have some 10 MB; an archive may come from a stranger.
_MAX_BYTES = 2**27
# That most tokenizers know, in one script or another.
_SHORT_WORDS = ("a", "e", "1", "и", "的")


@dataclass(frozen=True)
class SpecialPieces:
    """
    The pieces that a model expects around those of a sentence, as `[CLS]` and `[SEP]`.

    # Parameters

    before, after
        Their ids.
    types
        The type of each of `before`, of the words, and of each of `after`; `None` if the model takes none.
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    types: tuple[int, ...] | None = None

    @classmethod
    def around(
        cls, ids: Sequence[int], is_special: Sequence[int], types: Sequence[int] | None = None
    ) -> "SpecialPieces":
        """
        From a sentence that a tokenizer has encoded.

        # Parameters

        ids, is_special, types
            Of each piece: its id, whether it is not one of the sentence's own, and its type.
        """
        first = list(is_special).index(0)
        end = len(is_special) - list(is_special)[::-1].index(0)
        of_pieces = None if types is None else (*types[: first + 1], *types[end:])
        return cls(tuple(ids[:first]), tuple(ids[end:]), of_pieces)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "SpecialPieces":
        """
        From what `to_dict` returns.

        # Raises

        `ValueError`
            If it is something else.
        """
        try:
            types = content["types"]
            before, after = (tuple(map(int, content[name])) for name in ("before", "after"))
            special = cls(before, after, None if types is None else tuple(map(int, types)))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"special_pieces must have lists 'before' and 'after' and 'types', but is {content!r:.200}"
            ) from error
        if special.types is not None and len(special.types) != len(before) + 1 + len(after):
            raise ValueError(f"special_pieces must have a type for each piece and the words, but is {content!r:.200}")
        return special

    def to_dict(self) -> dict[str, Any]:
        """JSON of the config of a model."""
        return {name: None if value is None else list(value) for name, value in asdict(self).items()}

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


class WordPieces:
    """
    A tokenizer that splits each word of a sentence into pieces. It holds all that it needs: `to_dict` is its content,
    for the config of an archive.

    # Parameters

    tokenizer
        A tokenizer of the library `tokenizers`.
    unknown
        The piece of a word of which the tokenizer makes nothing; `None` if it has none.
    has_leading_space
        Whether a word is split as it is after a space, where the tokenizer does not add one itself.
    """

    def __init__(self, tokenizer: "Tokenizer", unknown: int | None, has_leading_space: bool = False) -> None:
        self._tokenizer = tokenizer
        self._unknown = unknown
        self._has_leading_space = has_leading_space

    @classmethod
    def of(cls, tokenizer: "Tokenizer", unknown: int | None) -> "WordPieces":
        """A copy of a tokenizer, which neither truncates nor pads, and splits words as they are inside of a text."""
        content = json.loads(tokenizer.to_str())
        content["truncation"] = content["padding"] = None
        copy = _made(json.dumps(content))
        return cls(copy, unknown, _needs_space(copy))

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "WordPieces":
        """
        From what `to_dict` returns.

        # Raises

        `ValueError`
            If it is something else.
        """
        try:
            packed = base64.b64decode(content["packed"], validate=True)
            stream = zlib.decompressobj()
            unpacked = stream.decompress(packed, _MAX_BYTES)
            if not stream.eof:
                raise ValueError(f"it is cut off, or larger than {_MAX_BYTES:,} bytes")
            unknown = content["unknown"]
            return cls(
                _made(unpacked.decode()), None if unknown is None else int(unknown), bool(content["has_leading_space"])
            )
        # The library raises nothing more special than Exception.
        except Exception as error:
            raise ValueError(
                f"a tokenizer must be what a training has written into its config, but is damaged: {error!s:.200}"
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """JSON of the config of a model; the tokenizer itself is compressed, and base64."""
        packed = base64.b64encode(zlib.compress(self._tokenizer.to_str().encode(), 9)).decode()
        return {"packed": packed, "unknown": self._unknown, "has_leading_space": self._has_leading_space}

    def __call__(self, words: Sequence[str]) -> list[list[int]]:
        """
        # Parameters

        words
            A sentence.

        # Returns

        `List[List[int]]`
            The pieces of each word, at least one.

        # Raises

        `ValueError`
            If the tokenizer makes nothing of a word, and has no piece for unknown words.
        """
        space = " " if self._has_leading_space else ""
        # Half of a surrogate pair, which JSON can hold, is no character that a tokenizer takes.
        texts = [space + (word if word.isascii() else word.encode("utf-8", "replace").decode()) for word in words]
        encoding = self._tokenizer.encode(texts, is_pretokenized=True, add_special_tokens=False)
        pieces: list[list[int]] = [[] for _ in words]
        for word, piece in zip(encoding.word_ids, encoding.ids, strict=True):
            pieces[word].append(piece)
        for word, of_word in zip(words, pieces, strict=True):
            if not of_word:
                if self._unknown is None:
                    raise ValueError(
                        f"the tokenizer of a transformer must make a piece of each word, but makes none of {word!r} "
                        f"in {' '.join(words)!r:.200}, and has no piece for unknown words: remove the word"
                    )
                of_word.append(self._unknown)
        return pieces


def _made(content: str) -> "Tokenizer":
    from tokenizers import Tokenizer

    tokenizer: Tokenizer = Tokenizer.from_str(content)
    return tokenizer


def _needs_space(tokenizer: "Tokenizer") -> bool:
    """Whether a word gets the pieces that it has after a space only if it is given with one."""
    for word in _SHORT_WORDS:
        alone, spaced = (
            tokenizer.encode([text], is_pretokenized=True, add_special_tokens=False).ids for text in (word, f" {word}")
        )
        of_text = tokenizer.encode(f"{word} {word}", add_special_tokens=False).ids
        # A space that is a piece of its own belongs to no word.
        if spaced[-len(alone) :] != alone and of_text == alone + spaced:
            return True
    return False
