"""Scripts that a biLM has seen in its training, and texts of others."""

from itertools import islice
from os import PathLike
from pathlib import Path

from elmo_tasks.files.text_lines import byte_lines
from elmo_tasks.unicode_text import letters_by_script
from elmo_tasks.vectors.pretrained import NAMED_BILMS, pretrained_files

__all__ = ["script_notice", "seen_scripts", "unseen_script_notice"]

# Of the words of a softmax, the most frequent; and the least share of their letters.
_N_WORDS, _SEEN = 20_000, 0.01
# Of the letters of a text.
_MOST = 0.5


def seen_scripts(bilm: str | PathLike[str]) -> frozenset[str] | None:
    """
    The scripts of the text that a biLM was trained on: of a named one as `NamedBilm` says; of a folder with the words
    of its softmax, `vocab.txt`, those of the words.

    # Parameters

    bilm
        See `pretrained_files`.

    # Returns

    `Optional[FrozenSet[str]]`
        Names as in `letters_by_script`; `None` if it is not known.
    """
    named = NAMED_BILMS.get(bilm) if isinstance(bilm, str) else None
    if named is not None:
        return named.scripts
    words = pretrained_files(bilm)[0].parent / "vocab.txt"
    if not words.is_file():
        return None
    # A word may have any character, and a file in another encoding is no reason to stop: its letters are looked at.
    lines = (line.decode(errors="replace") for _, line in islice(byte_lines(words), _N_WORDS))
    letters = letters_by_script("".join(lines))
    n_letters = letters.total()
    return frozenset(script for script, count in letters.items() if count >= _SEEN * n_letters) or None


def unseen_script_notice(sample: str, bilm: str | PathLike[str] | tuple[str, str], what: str | Path) -> str | None:
    """
    A sentence for users whose text is of another script than that of the biLM, so that its vectors mean little.

    # Parameters

    sample
        The beginning of the text.
    bilm
        See `pretrained_files`. Of a pair of files nothing is known.
    what
        The name of the text.

    # Returns

    `Optional[str]`
        `None` if at least half of the letters are of a script that the biLM has seen, or it is not known.
    """
    return None if isinstance(bilm, tuple) else script_notice(sample, seen_scripts(bilm), bilm, what)


def script_notice(sample: str, seen: frozenset[str] | None, bilm: str | PathLike[str], what: str | Path) -> str | None:
    """As `unseen_script_notice`, for a biLM whose scripts, see `seen_scripts`, are known already."""
    letters = letters_by_script(sample)
    if seen is None or not letters:
        return None
    unseen = sum(count for script, count in letters.items() if script not in seen) / letters.total()
    if unseen <= _MOST:
        return None
    script = max((script for script in letters if script not in seen), key=lambda script: letters[script])
    return (
        f"of the letters in {what}, {unseen:.0%} are of scripts that the biLM {str(bilm)!r} has never seen, most of "
        f"them {script.title()}: its vectors of such words mean little. Name a biLM of the language"
    )
