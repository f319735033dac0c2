"""All that the demo computes, without the page that shows it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from elmo_tasks.analysis import LanguageModel, StaticVectors
from elmo_tasks.demo.languages import EXAMPLES, Example, language_of
from elmo_tasks.demo.projection import Method
from elmo_tasks.demo.task_archive import TaskArchive, compared_archives, grouped
from elmo_tasks.demo.texts import Texts
from elmo_tasks.demo.word_indexes import build_indexes, open_indexes
from elmo_tasks.demo.words_in_context import WordsInContext
from elmo_tasks.shipped import DEFAULT_BILM, FIXTURES
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["Demo", "loaded_demo"]


@dataclass(frozen=True, kw_only=True)
class Demo:
    """
    The functions of the demo. One computes at a time, whoever calls: more at once would be slower on a CPU, and use
    more memory. All results are made of what JSON has.

    # Parameters

    words
        Computes the vectors of words.
    archives
        The models of each task, by its name.
    language_model
        The biLM with its softmax, or why there is none.
    bilm
        The name of the biLM.
    """

    words: WordsInContext
    archives: dict[str, list[TaskArchive]]
    language_model: LanguageModel | str
    bilm: str
    lock: Lock

    @property
    def examples(self) -> Sequence[Example]:
        """Words in sentences, one or more senses of each."""
        return EXAMPLES.get(self.words.texts.language, ())

    def similarity(self, sentences: list[str], word: str) -> dict[str, Any]:
        """The vectors of a word in each sentence and layer, and their cosines: see `WordsInContext.similarity`."""
        with self.lock:
            return self.words.similarity(sentences, word)

    def neighbors(self, sentences: list[str], word: str, k: int = 8) -> dict[str, Any]:
        """The nearest neighbours of a word in each sentence, by layer: see `WordsInContext.neighbors`."""
        with self.lock:
            return self.words.neighbors(sentences, word, k)

    def map(self, sentences: list[str], word: str, method: Method = "pca") -> dict[str, Any]:
        """The occurrences of a word as points, by layer: see `WordsInContext.map`."""
        with self.lock:
            return self.words.map(sentences, word, method)

    def predict(self, task: str, *texts: str) -> dict[str, Any]:
        """
        The predictions of all archives of a task.

        # Parameters

        task
            The name of a task that has an archive.
        *texts
            See `TaskArchive.predict`.

        # Returns

        `Dict[str, Any]`
            `predictions`: of each archive of the task its name as `archive`, and its `prediction`.
        """
        with self.lock:
            predictions = [
                {"archive": archive.name, "prediction": archive.predict(*texts)} for archive in self.archives[task]
            ]
        return {"predictions": predictions}

    def layer_weights(self) -> dict[str, Any]:
        """
        The mix of layers that each archive has learnt.

        # Returns

        `Dict[str, Any]`
            `archives`: of each its name as `archive`, its `task`, and its `mixes`: see `TaskArchive.mixes`.
        """
        return {
            "archives": [
                {"archive": archive.name, "task": archive.task.name, "mixes": archive.mixes()}
                for archives in self.archives.values()
                for archive in archives
            ]
        }

    def likelihood(self, sentence: str) -> dict[str, Any]:
        """
        The log-likelihood of each word of a sentence, forward and backward.

        # Returns

        `Dict[str, Any]`
            The fields of `WordLikelihoods`.

        # Raises

        `ValueError`
            If the biLM has no softmax, or the sentence is refused.
        """
        if isinstance(self.language_model, str):
            raise ValueError(self.language_model)
        words = self.words.texts.words("the sentence", sentence)
        with self.lock:
            return asdict(self.language_model.score_words(words))


@contextmanager
def loaded_demo(
    archives: Sequence[Path],
    *,
    compared: Sequence[tuple[Path, Path]] = (),
    bilm: str = DEFAULT_BILM,
    indexes: Sequence[Path] = (),
    glove: Path | None = None,
    language: str | None = None,
) -> Iterator[Demo]:
    """
    # Parameters

    archives
        Of trained models.
    compared
        Pairs of further archives, each of one task.
    bilm
        See `Elmo.from_pretrained`.
    indexes
        Of different layers. None: the small text that ships is indexed.
    glove
        See `StaticVectors.from_file`. `None`: the vectors that ship, for English.
    language
        spaCy's code. `None`: see `language_of`.

    # Raises

    `ValueError`, `OSError`
        If one of them is not there or damaged, or they do not belong together.
    """
    options_file, _ = pretrained_files(bilm)
    word_file = options_file.with_name("vocab.txt")
    language = language or ("ko" if bilm == "small-ko-open" else language_of(word_file, None))
    loaded = [TaskArchive.load(path, language) for path in archives]
    for pair in compared:
        loaded += compared_archives(*pair, language)
    elmo = Elmo.from_pretrained(bilm)
    if glove is None and language == "en":
        (glove,) = (FIXTURES / "glove").glob("*.txt.gz")
    with TemporaryDirectory(prefix="elmo-demo-") as folder:
        of_layers = open_indexes(indexes, elmo, str(bilm)) if indexes else build_indexes(elmo, Path(folder, "index"))
        yield Demo(
            words=WordsInContext(
                elmo=elmo,
                texts=Texts(language),
                indexes=of_layers,
                static=None if glove is None else StaticVectors.from_file(glove),
            ),
            archives=grouped(loaded),
            language_model=_language_model(word_file),
            bilm=bilm,
            lock=Lock(),
        )


def _language_model(word_file: Path) -> LanguageModel | str:
    folder = word_file.parent
    if not word_file.is_file():
        return (
            f"a biLM must have its softmax and {word_file.name} to say how probable a word is, but '{folder.name}' "
            "has none: name one as `allennlp elmo-export` writes it with --bilm"
        )
    try:
        return LanguageModel(folder)
    except ValueError as error:
        return str(error)
