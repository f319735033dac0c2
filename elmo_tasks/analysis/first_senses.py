"""First senses from WordNet: the back-off for lemmas that were not in the training data."""

from os import PathLike
from pathlib import Path

from elmo_tasks.analysis.wsd_corpus import WsdInstance
from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["FirstSenses", "wordnet_index"]

_INDEX = "index.sense"
# The parts of speech by the numbers in sense keys; WordNet numbers the senses of an adjective with its satellites.
_PARTS_OF_SPEECH = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}


def wordnet_index(folder: str | PathLike[str]) -> Path:
    """
    # Returns

    `Path`
        The file `index.sense` of a folder of WordNet, or of the folder `dict` in it.

    # Raises

    `FileNotFoundError`
        If the folder has no such file.
    """
    for file in (Path(folder, _INDEX), Path(folder, "dict", _INDEX)):
        if file.is_file():
            return file
    raise FileNotFoundError(
        f"the folder of WordNet must have {_INDEX}, as NLTK's corpora/wordnet has, but '{folder}' has no such file"
    )


class FirstSenses:
    """
    The first sense of each lemma and part of speech.

    # Parameters

    senses
        From lemma and part of speech (`NOUN`, `VERB`, `ADJ`, `ADV`) to the key of the sense.
    source
        Their source, for readers of a result.
    known
        All senses of the source, where it is WordNet.
    """

    def __init__(self, senses: dict[tuple[str, str], str], source: str, known: set[str] | None = None) -> None:
        self._senses = senses
        self.source = source
        self.known = known

    @classmethod
    def from_wordnet(cls, folder: str | PathLike[str]) -> "FirstSenses":
        """
        Those of WordNet.

        # Parameters

        folder
            With WordNet's `index.sense`, or with a folder `dict` in which it is. The keys of the framework are those
            of WordNet 3.0, which NLTK has too, in its data's `corpora/wordnet`.

        # Raises

        `FileNotFoundError`
            If it is not there.
        `ValueError`
            If a line is not as it should be; the message names file and line.
        """
        path = wordnet_index(folder)
        senses = {}
        known = set()
        for number, line in numbered_lines(path):
            columns = line.split()
            key = columns[0] if len(columns) == 4 else ""
            lemma, _, rest = key.partition("%")
            if not lemma or rest[:1] not in _PARTS_OF_SPEECH or not columns[2].isdecimal():
                raise ValueError(
                    f"{path}, line {number}: a line must have a sense key, an offset, the number of the sense and a "
                    f"count, like 'play%1:10:01:: 07018526 1 35', but is {line!r:.100}"
                )
            known.add(key)
            if int(columns[2]) == 1:
                senses[lemma, _PARTS_OF_SPEECH[rest[0]]] = key
        if not senses:
            raise ValueError(f"{path} must hold first senses, but holds not one")
        return cls(senses, f"WordNet ({path})", known)

    def __call__(self, instance: WsdInstance) -> str | None:
        """The key of the first sense, `None` if the lemma is not known as this part of speech."""
        return self._senses.get((instance.lemma, instance.pos))
