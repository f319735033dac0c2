"""A trained model for people who think in texts: a text in, plain results out."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from itertools import groupby
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import import_module_and_submodules
from allennlp.models import Model
from allennlp.predictors import Predictor
from tqdm import tqdm

from allennlp_today import load_archive
from allennlp_today.trust import read_config
from elmo_tasks.files.atomic_files import atomic_folder
from elmo_tasks.models.elmo_model import labels_of
from elmo_tasks.modules import ContextualModel
from elmo_tasks.modules.contextual.contextual_bilm import ContextualBilm
from elmo_tasks.predictors import coref, pairs, sentence, srl  # noqa: F401
from elmo_tasks.predictors.json_lines_predictor import BATCH_WORDS, JsonLinesPredictor, Stop
from elmo_tasks.predictors.pictures import picture, table
from elmo_tasks.predictors.results import check_labels
from elmo_tasks.predictors.task import Input
from elmo_tasks.predictors.trained_models import copy_model, local_model, name_of, trained_model
from elmo_tasks.text import Word, readable
from elmo_tasks.vectors.devices import Device, device_of
from elmo_tasks.vectors.docs import is_doc
from elmo_tasks.vectors.elmo import CARD_FIELDS, Precision

if TYPE_CHECKING:
    import pandas

__all__ = ["PACKAGES", "TrainedTask", "predictor_of"]

_CARD = """# {title}

{about}

```python
from elmo_tasks import TrainedTask

task = TrainedTask("ORG/{name}")
print(task({texts}))
```
"""

PACKAGES = "ELMO_TASKS_PACKAGES"
"""The variable with packages of custom classes, which every `TrainedTask` imports."""
# Shorter lists get no progress bar.
_MANY = 32


class TrainedTask:
    """
    A trained model of a task. Call it with a text, or with a list of texts for a list of results,
    which `predictor.about` describes; `start` and `end` are character offsets in the text. Several
    threads may call it at once. Pickled, it is only the place of its model.

    Named entities, semantic roles and parts of speech are found sentence by sentence, and a
    sentence of more than 96 words in pieces. The other tasks read the whole text.

    # Parameters

    model
        The name of a model in `models/`; an archive, the folder of a run, or the address of an
        archive; or `org/name` on the Hugging Face hub. Your own model works, too, if its
        `default_predictor` is one of this package, or a subclass. Its classes are in a plugin, in a
        package that this process has imported, or in one of `packages`.
    packages
        Packages with custom classes, which are imported before, like those in the variable
        `ELMO_TASKS_PACKAGES`.
    trusted
        Whether the model's config may name any class, file or address. By default, only what is
        listed as harmless, and classes of your own code.
    device
        See `Elmo.from_pretrained`.
    precision
        Of the biLM's products: `"float32"`, `"auto"` for the fastest on this device, `"bf16"` or
        `"int8"`. `None`: what the model's config says, which is float32 if it does not say
        anything.
    language
        spaCy's code for the rules that split a text into words.
    threshold
        The lowest probability of a name that is found: the others are left out. Only for names.
    batch_words
        The number of words per batch, including padding: fewer take less memory.
    progress
        Whether lists of texts show a progress bar; by default long ones in a terminal.
    """

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        packages: str | Iterable[str] = (),
        trusted: bool = False,
        device: Device = None,
        precision: Precision | None = None,
        language: str = "en",
        threshold: float = 0.0,
        batch_words: int = BATCH_WORDS,
        progress: bool | None = None,
    ) -> None:
        self.path = trained_model(model)
        """The archive or the folder of the model."""
        self._options = {
            "language": language,
            "batch_words": int(batch_words),
            "precision": precision,
        }
        self._settings: dict[str, Any] = {
            "device": device,
            "packages": _import_packages(packages),
            "progress": progress,
            "trusted": trusted,
        }
        place = device_of(device)
        if place.type not in ("cpu", "cuda"):
            raise ValueError(
                f"expected cpu or cuda for a trained task, got '{place}', which AllenNLP cannot use"
            )
        try:
            device_number = place.index if place.type == "cuda" else -1
            archive = load_archive(str(self.path), cuda_device=device_number, trusted=trusted)
        except ConfigurationError as error:
            if "registered" in str(error):
                error.message += (
                    f" For your own classes, set {PACKAGES} (--include-package) to their package."
                )
            raise
        for parameter_name, parameter in archive.model.named_parameters():
            # Of a training that went wrong: a label would be the first one, or any.
            if parameter.isnan().any():
                raise ValueError(
                    f"expected numbers as weights, got NaN in {parameter_name}: {self.path}"
                )
        # With `torch.set_default_dtype(torch.float64)`, only the biLM would have this type.
        archive.model.float()
        name = archive.model.default_predictor
        if name is None or not issubclass(Predictor.by_name(name), JsonLinesPredictor):
            found = type(archive.model).__name__
            raise ValueError(
                f"expected a model with a predictor of elmo_tasks, got {found}: {self.path}"
            )
        check_labels(labels_of(archive.model.vocab), self.path)
        predictor: Any = Predictor.from_archive(archive, name, extra_args=self._options)
        self.predictor: JsonLinesPredictor = predictor
        self.task = name.removeprefix("elmo_")
        """Names the task: `ner` and so on, or what a predictor is registered as."""
        self.result_type = predictor.result_type(predictor.labels)
        """What the results are: see `elmo_tasks.predictors.results`."""
        self._set_threshold(threshold)
        for module in list(archive.model.modules()):
            if isinstance(module, ContextualBilm):
                module.share()

    def _set_threshold(self, threshold: float) -> None:
        try:
            number = float(threshold)
        except (TypeError, ValueError):
            number = math.nan
        if not 0.0 <= number <= 1.0:
            raise ValueError(f"expected a threshold from 0 to 1, got {threshold!r}")
        if number and not self.result_type.has_threshold:
            raise ValueError(
                f"expected a model of names for a threshold, got one of {self.task}: {self.path}"
            )
        self._settings["threshold"] = number

    def __call__(
        self, *texts: str | Iterable[str], stop: Stop = None, **named: str | Iterable[str]
    ) -> Any:
        """
        The result for a text (or a pair of texts), or a list of results for a list of texts (or two
        lists, or a list of pairs). Texts may be named: `task(question=..., passage=...)`. A text
        next to a list belongs to each of its texts. `stop`, such as the `is_set` of a
        `threading.Event`, is asked before each batch: if it returns true, this call raises
        `concurrent.futures.CancelledError`.
        """
        inputs, is_one = self._inputs(texts, named)
        progress = self._settings["progress"]
        hidden = (None if len(inputs) > _MANY else True) if progress is None else not progress
        results = tqdm(self.stream(inputs, stop), total=len(inputs), disable=hidden)
        return next(iter(results)) if is_one else list(results)

    def stream(
        self, inputs: Iterable[tuple[str, ...]], stop: Stop = None, batch_size: int | None = None
    ) -> Iterator[Any]:
        """
        The results for many inputs, each a tuple of the task's texts, as they come; `stop` as in a
        call. By default, up to 128 sentences are read before the first result; with
        `batch_size=1`, each input has its result before the next one is read.
        """
        read = (self.predictor.read(*map(readable, texts)) for texts in inputs)
        return self.results(read, stop, batch_size)

    def read_words(self, text: str, sentences: list[list[Word]]) -> Input:
        """A text with known words and sentences, for `results` of a task of single texts."""
        predictor: Any = self.predictor
        read: Input = predictor.read_words(readable(text), sentences)
        return read

    def results(
        self, inputs: Iterable[Input], stop: Stop = None, batch_size: int | None = None
    ) -> Iterator[Any]:
        """The results for what `read_words` or the predictor has read; see `stream`."""
        threshold = self._settings["threshold"]
        for result in self.predictor.results(inputs, stop, batch_size):
            yield self.result_type.above(result, threshold) if threshold else result

    def frame(
        self, *texts: str | Iterable[str], **named: str | Iterable[str]
    ) -> "pandas.DataFrame":
        """
        The results for texts, given as in a call, as a table with a row for each name, role,
        mention or tagged word, or for each text. `document` is the number of the text, from 0. The
        columns and their types do not depend on the results, except if a task has its own form of
        results.
        """
        import pandas

        inputs, _ = self._inputs(texts, named)
        rows = []
        for number, result in enumerate(self.stream(inputs)):
            rows += [{"document": number, **row} for row in self.result_type.rows(result)]
        if not self.result_type.columns:
            return pandas.json_normalize(rows)
        text: Any = pandas.Series([""]).dtype
        # A whole number may be missing.
        types: dict[Any, Any] = {int: "int64", int | None: "Int64", str: text}
        columns = {
            name: pandas.Series([row.get(name) for row in rows], dtype=types.get(kind, "float64"))
            for name, kind in {"document": int, **self.result_type.columns}.items()
        }
        return pandas.DataFrame(columns)

    def render(self, *texts: str, **named: str) -> str:
        """A picture of the result for a text, as HTML: places in the text, or labels as bars."""
        inputs, _ = self._inputs(texts, named)
        ((*_, text),) = inputs
        language = str(self._options["language"])
        return picture(self.result_type, text, next(self.stream(inputs)), language)

    def explain(
        self, *texts: str, interpreter: str = "simple-gradient", **named: str
    ) -> list[dict[str, Any]]:
        """
        How much each word of a text (or a pair) matters for what is found: a list of `found`, which
        is a name, a predicate, a chain, or else the result, and `words` with `text`, `start`, `end`
        and `weight`. The weights of a text sum to 1. `interpreter` is AllenNLP's: also
        `"integrated-gradient"` or `"smooth-gradient"`.
        """
        ((*read,), *_), _ = self._inputs(texts, named)
        return list(self.predictor.explain(*read, interpreter=interpreter))

    def render_explanation(self, *texts: str, **options: str) -> str:
        """
        The weights of `explain` as an HTML table of each sentence, with a row for each thing that
        is found.
        """
        tables = []
        for places, group in groupby(
            self.explain(*texts, **options), lambda each: list(map(_place, each["words"]))
        ):
            explained = list(group)
            rows = [_title(each["found"]) for each in explained]
            weights = [[word["weight"] for word in each["words"]] for each in explained]
            tables.append(table(rows, [text for text, _ in places], weights))
        return "".join(tables)

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """
        Writes the model to a new folder, with its card or a new one for the Hugging Face hub.
        `TrainedTask` loads the folder, and, after `hf upload org/name FOLDER`, also `"org/name"`.
        `force` replaces an existing folder. Of the model's folder or archive, nothing is copied but
        the config, the weights, the vocabulary and the card.
        """
        with atomic_folder(folder, ["*"] if force else ()) as made:
            copy_model(self.path, made)
            name, predictor = Path(folder).absolute().name, self.predictor
            texts = ", ".join(
                json.dumps(text, ensure_ascii=False) for text in [*predictor.examples, ()][0]
            )
            title = predictor.title or self.task
            card = _CARD.format(name=name, title=title, about=predictor.about, texts=texts or "...")
            if not (made / "README.md").exists():
                (made / "README.md").write_text(CARD_FIELDS + card, "utf-8")

    def _inputs(
        self, texts: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[list[tuple[str, ...]], bool]:
        """The texts of each input, and whether only one was given, not a list."""
        names = self.predictor.inputs
        if len(texts) == 1 < len(names) and not named and _is_list(texts[0]):
            # A list of pairs.
            pairs = list(texts[0])
            if all(isinstance(pair, tuple | list) and len(pair) == len(names) for pair in pairs):
                texts = tuple(zip(*pairs, strict=True)) or ((),) * len(names)
        given = dict(zip(names, texts, strict=False)) | named
        if len(texts) + len(named) != len(names) or given.keys() != set(names):
            found = ", ".join(
                [*(f"{text!r:.40}" for text in texts), *(f"{name}=..." for name in named)]
            )
            raise TypeError(f"expected {' and '.join(names)}, got {found or 'nothing'}")
        columns = {name: _column(name, given[name]) for name in names}
        lists = {name: column for name, column in columns.items() if not isinstance(column, str)}
        if not lists:
            return [tuple(columns.values())], True
        if len({*map(len, lists.values())}) > 1:
            counts = ", ".join(f"{len(column)} as {name}" for name, column in lists.items())
            raise ValueError(f"expected as many texts for each input, got {counts}")
        n_inputs = len(next(iter(lists.values())))
        return list(
            zip(*(lists.get(name, [columns[name]] * n_inputs) for name in names), strict=True)
        ), False

    @property
    def name(self) -> str:
        """The name of its folder or archive: a key of `annotate`, and a path of the service."""
        return name_of(self.path)

    @classmethod
    def by_name(
        cls, models: Iterable[str | PathLike[str]], *, threshold: float = 0.0, **options: Any
    ) -> dict[str, "TrainedTask"]:
        """
        Several tasks by their `name`. Two with the same name are an error. `threshold` is for
        models of names.
        """
        tasks: dict[str, TrainedTask] = {}
        for task in (cls(model, **options) for model in models):
            if task.name in tasks:
                found = f"{tasks[task.name].path} and {task.path}"
                raise ValueError(
                    f"expected models with different names, got two named {task.name}: {found}"
                )
            tasks[task.name] = task
        if threshold:
            for task in [task for task in tasks.values() if task.result_type.has_threshold] or list(
                tasks.values()
            ):
                task._set_threshold(threshold)
        return tasks

    @property
    def summary(self) -> dict[str, str]:
        """
        What the model is: `task`, `model` (the class), `bilm` with its precision, and `size` in
        memory.
        """
        model = self.predictor._model
        n_bytes = sum(tensor.nbytes for tensor in model.state_dict().values())
        contextual = next(
            (module for module in model.modules() if isinstance(module, ContextualModel)), None
        )
        bilm = contextual.summary if contextual else "no biLM"
        return {
            "task": self.task,
            "model": type(model).__name__,
            "bilm": bilm,
            "size": f"{n_bytes / 1e6:.0f} MB",
        }

    def __repr__(self) -> str:
        _, *parts = self.summary.values()
        return f"TrainedTask({fspath(self.path)!r}: {', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        options = tuple((self._options | self._settings).items())
        return _loaded, (type(self), fspath(self.path.absolute()), options)


def predictor_of(
    model: str | PathLike[str], packages: str | Iterable[str] = ()
) -> type[Predictor] | None:
    """
    The class of a model's predictor, from its config. `None`: the model is not a local file, or not
    registered.
    """
    # Registers the models.
    import_module("elmo_tasks.models")
    _import_packages(packages)
    if (path := local_model(model)) is None:
        return None
    with suppress(
        AttributeError,  # Of a model of type "from_archive", which is not a class.
        ConfigurationError,
        KeyError,
        OSError,
        TypeError,
        ValueError,
    ):
        name = read_config(path)["model"]["type"]
        # `by_name` would import the module of any other name.
        predictor = (
            Model.by_name(name).default_predictor if name in Model.list_available() else None
        )
        return None if predictor is None else Predictor.by_name(predictor)
    return None


def _import_packages(packages: str | Iterable[str]) -> tuple[str, ...]:
    """
    Imports packages of the user, and those that the environment names, and returns the names of
    all.
    """
    if isinstance(packages, str):
        packages = [packages]
    names = [*packages, *os.environ.get(PACKAGES, "").replace(",", " ").split()]
    for name in names:
        import_module_and_submodules(name)
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=8)
def _loaded(
    cls: type[TrainedTask], model: str, options: tuple[tuple[str, Any], ...]
) -> TrainedTask:
    """Kept, because joblib sends a task to its workers with each call, and a job with each part."""
    return cls(model, **dict(options))


def _place(word: dict[str, Any]) -> tuple[str, int | None]:
    return word["text"], word.get("start")


def _title(found: Any) -> str:
    """The first text of what is found, with its label, or else all of it."""
    if isinstance(found, list):
        return _title(found[0])
    text = found.get("text", found.get("verb", json.dumps(found, ensure_ascii=False)))
    return f"{text} ({found['label']})" if "label" in found else text


def _is_list(given: Any) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str) and not is_doc(given)


def _column(name: str, given: Any) -> Any:
    """A text, or a list of texts."""
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping) or hasattr(given, "columns"):
        raise TypeError("expected texts, got a table: give one of its columns")
    column = list(given) if _is_list(given) else [given]
    wrong = [number for number, text in enumerate(column) if not isinstance(text, str)]
    if wrong and is_doc(column[wrong[0]]):
        hint = "give doc.text, or add a component such as elmo_ner to its pipeline"
        raise TypeError(f"expected texts, got a {type(column[wrong[0]]).__name__} of spaCy: {hint}")
    if wrong:
        raise TypeError(f"expected texts, got {column[wrong[0]]!r:.40} ({name} {wrong[0]})")
    return column
