"""A trained model for people who think in texts: a text in, plain results out."""

import json
import math
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from itertools import groupby
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import import_module_and_submodules
from allennlp.models import Archive, Model
from allennlp.predictors import Predictor
from tqdm import tqdm

from allennlp_today import load_archive
from allennlp_today.trust import read_config
from elmo_tasks.files.atomic_files import atomic_folder
from elmo_tasks.models.labels import labels_of
from elmo_tasks.modules import ContextualModel
from elmo_tasks.modules.contextual.contextual_bilm import ContextualBilm
from elmo_tasks.predictors import coref, ner, pos, snli, squad, srl, sst  # noqa: F401
from elmo_tasks.predictors.interpretation import Explanation
from elmo_tasks.predictors.json_lines_predictor import BATCH_WORDS, JsonLinesPredictor, Stop
from elmo_tasks.predictors.pictures import picture, table
from elmo_tasks.predictors.results import check_labels
from elmo_tasks.predictors.sentence_predictor import SentencePredictor
from elmo_tasks.predictors.task_predictor import TaskInput
from elmo_tasks.predictors.texts import as_columns, is_single, rows_of, texts_by_name
from elmo_tasks.predictors.trained_models import (
    copy_model,
    local_model,
    name_of,
    path_of_trained_model,
)
from elmo_tasks.text import Word, readable
from elmo_tasks.vectors.devices import Device, device_of
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
# The longest list that gets no progress bar.
_MAX_WITHOUT_BAR = 32


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
        self.path = path_of_trained_model(model)
        """The archive or the folder of the model."""
        # The options that the predictor gets, and the others. A copy (`__reduce__`) gets both.
        self._predictor_options = {
            "language": language,
            "batch_words": int(batch_words),
            "precision": precision,
        }
        self._task_options: dict[str, Any] = {
            "device": device,
            "packages": _import_packages(packages),
            "progress": progress,
            "trusted": trusted,
        }
        archive = self._load()
        self._check_weights(archive.model)
        # With `torch.set_default_dtype(torch.float64)`, only the biLM would have this type.
        archive.model.float()
        name = archive.model.default_predictor
        if name is None or not issubclass(Predictor.by_name(name), JsonLinesPredictor):
            model_class = type(archive.model).__name__
            raise ValueError(
                f"expected a model with a predictor of elmo_tasks, got {model_class}: {self.path}"
            )
        check_labels(labels_of(archive.model.vocab), self.path)
        predictor = Predictor.from_archive(archive, name, extra_args=self._predictor_options)
        self.predictor = cast(JsonLinesPredictor, predictor)
        self.task = name.removeprefix("elmo_")
        """Names the task: `ner` and so on, or what a predictor is registered as."""
        self.result_type = self.predictor.result_type(self.predictor.labels)
        """What the results are: see `elmo_tasks.predictors.results`."""
        self._set_threshold(threshold)
        for module in list(archive.model.modules()):
            if isinstance(module, ContextualBilm):
                module.share()

    def _load(self) -> Archive:
        device = device_of(self._task_options["device"])
        if device.type not in ("cpu", "cuda"):
            raise ValueError(
                f"expected cpu or cuda for a trained task, got '{device}', which AllenNLP cannot "
                "use"
            )
        device_number = device.index if device.type == "cuda" else -1
        trusted = self._task_options["trusted"]
        try:
            return load_archive(str(self.path), cuda_device=device_number, trusted=trusted)
        except ConfigurationError as error:
            if "registered" in str(error):
                error.message += (
                    f" For your own classes, set {PACKAGES} (--include-package) to their package."
                )
            raise

    def _check_weights(self, model: Model) -> None:
        """
        Raises an error if a weight is NaN, as after a training that went wrong: the predicted
        labels would mean nothing.
        """
        for name, parameter in model.named_parameters():
            if parameter.isnan().any():
                raise ValueError(f"expected numbers as weights, got NaN in {name}: {self.path}")

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
        self._task_options["threshold"] = number

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
        columns = self._columns(texts, named)
        inputs = rows_of(columns)
        is_hidden = self._hides_progress(len(inputs))
        results = list(tqdm(self.stream(inputs, stop), total=len(inputs), disable=is_hidden))
        if is_single(columns):
            return results[0]
        return results

    def _hides_progress(self, n_inputs: int) -> bool | None:
        """Whether to hide the progress bar. `None`: except in a terminal."""
        progress = self._task_options["progress"]
        if progress is not None:
            return not progress
        if n_inputs <= _MAX_WITHOUT_BAR:
            return True
        return None

    def _columns(self, texts: tuple[Any, ...], named: dict[str, Any]) -> dict[str, str | list[str]]:
        """The texts of a call by the names of the task's inputs."""
        return as_columns(texts_by_name(self.predictor.inputs, texts, named))

    def _rows(self, texts: tuple[Any, ...], named: dict[str, Any]) -> list[tuple[str, ...]]:
        """The texts of each input of a call."""
        return rows_of(self._columns(texts, named))

    def _one_input(self, texts: tuple[Any, ...], named: dict[str, Any]) -> tuple[str, ...]:
        """The texts of a call that takes only one text, or one pair of texts."""
        rows = self._rows(texts, named)
        if len(rows) != 1:
            raise ValueError(f"expected one text, got a list of {len(rows)}")
        return rows[0]

    def stream(
        self, inputs: Iterable[tuple[str, ...]], stop: Stop = None, batch_size: int | None = None
    ) -> Iterator[Any]:
        """
        The results for many inputs, each a tuple of the task's texts, as they come; `stop` as in a
        call. By default, up to 128 sentences are read before the first result; with
        `batch_size=1`, each input has its result before the next one is read.
        """
        return self.results(self._read(inputs), stop, batch_size)

    def _read(self, inputs: Iterable[tuple[str, ...]]) -> Iterator[TaskInput]:
        for texts in inputs:
            readable_texts = [readable(text) for text in texts]
            yield self.predictor.read(*readable_texts)

    def read_words(self, text: str, sentences: list[list[Word]]) -> TaskInput:
        """A text with known words and sentences, for `results` of a task of single texts."""
        predictor = cast(SentencePredictor, self.predictor)
        return predictor.read_words(readable(text), sentences)

    def results(
        self, inputs: Iterable[TaskInput], stop: Stop = None, batch_size: int | None = None
    ) -> Iterator[Any]:
        """The results for what `read_words` or the predictor has read; see `stream`."""
        threshold = self._task_options["threshold"]
        for result in self.predictor.results(inputs, stop, batch_size):
            if threshold:
                result = self.result_type.above(result, threshold)
            yield result

    def frame(
        self, *texts: str | Iterable[str], **named: str | Iterable[str]
    ) -> "pandas.DataFrame":
        """
        The results for texts, given as in a call, as a table with a row for each name, role,
        mention or tagged word, or for each text. `document` is the number of the text, from 0. The
        columns and their types do not depend on the results, unless the task's results have a form
        of their own (`Json`).
        """
        import pandas

        rows = []
        results = self.stream(self._rows(texts, named))
        for number, result in enumerate(results):
            for row in self.result_type.rows(result):
                rows.append({"document": number, **row})
        if not self.result_type.columns:
            return pandas.json_normalize(rows)
        text: Any = pandas.Series([""]).dtype
        # A whole number may be missing.
        dtypes: dict[Any, Any] = {int: "int64", int | None: "Int64", str: text}
        columns = {}
        for name, column_type in {"document": int, **self.result_type.columns}.items():
            values = [row.get(name) for row in rows]
            columns[name] = pandas.Series(values, dtype=dtypes.get(column_type, "float64"))
        return pandas.DataFrame(columns)

    def render(self, *texts: str, **named: str) -> str:
        """A picture of the result for a text, as HTML: places in the text, or labels as bars."""
        texts_of_input = self._one_input(texts, named)
        (result,) = self.stream([texts_of_input])
        language = str(self._predictor_options["language"])
        return picture(self.result_type, texts_of_input[-1], result, language)

    def explain(
        self, *texts: str, interpreter: str = "simple-gradient", **named: str
    ) -> list[Explanation]:
        """
        How much each word of a text (or a pair) matters for what the model finds: a list of
        `found`, which is a name, a predicate, a chain, or else the result, and `words` with `text`,
        `start`, `end` and `weight`. The weights of a text sum to 1. `interpreter` is AllenNLP's:
        also `"integrated-gradient"` or `"smooth-gradient"`.
        """
        texts_of_input = self._one_input(texts, named)
        return list(self.predictor.explain(*texts_of_input, interpreter=interpreter))

    def render_explanation(self, *texts: str, **options: str) -> str:
        """
        The weights of `explain` as an HTML table of each sentence, with a row for each thing that
        the model finds.
        """
        tables = []
        for offsets, explanations in groupby(self.explain(*texts, **options), _offsets_of_words):
            rows = []
            weights = []
            for explanation in explanations:
                rows.append(_title(explanation["found"]))
                weights.append([word["weight"] for word in explanation["words"]])
            words = [text for text, _ in offsets]
            tables.append(table(rows, words, weights))
        return "".join(tables)

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """
        Writes the model to a new folder, with its card or a new one for the Hugging Face hub.
        `TrainedTask` loads the folder, and, after `hf upload org/name FOLDER`, also `"org/name"`.
        `force` replaces an existing folder. Of the model's folder or archive, nothing is copied but
        the config, the weights, the vocabulary and the card.
        """
        with atomic_folder(folder, ["*"] if force else ()) as temporary:
            copy_model(self.path, temporary)
            card = temporary / "README.md"
            if not card.exists():
                name = Path(folder).absolute().name
                card.write_text(self._card(name), "utf-8")

    def _card(self, name: str) -> str:
        """The card of a model that has none."""
        example = next(iter(self.predictor.examples), ())
        texts = ", ".join(json.dumps(text, ensure_ascii=False) for text in example)
        title = self.predictor.title or self.task
        about = self.predictor.about
        return CARD_FIELDS + _CARD.format(name=name, title=title, about=about, texts=texts or "...")

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
        for model in models:
            task = cls(model, **options)
            if task.name in tasks:
                paths = f"{tasks[task.name].path} and {task.path}"
                raise ValueError(
                    f"expected models with different names, got two named {task.name}: {paths}"
                )
            tasks[task.name] = task
        if threshold:
            with_threshold = [task for task in tasks.values() if task.result_type.has_threshold]
            # Without any, setting it is an error.
            for task in with_threshold or tasks.values():
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
        bilm = "no biLM"
        for module in model.modules():
            if isinstance(module, ContextualModel):
                bilm = module.summary
                break
        return {
            "task": self.task,
            "model": type(model).__name__,
            "bilm": bilm,
            "size": f"{n_bytes / 1e6:.0f} MB",
        }

    def __repr__(self) -> str:
        summary = self.summary
        described = ", ".join([summary["model"], summary["bilm"], summary["size"]])
        return f"TrainedTask({fspath(self.path)!r}: {described})"

    def __reduce__(self) -> tuple[Any, ...]:
        options = tuple((self._predictor_options | self._task_options).items())
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
    path = local_model(model)
    if path is None:
        return None
    try:
        model_type = read_config(path)["model"]["type"]
        # `by_name` would import the module of any other name.
        if model_type not in Model.list_available():
            return None
        predictor = Model.by_name(model_type).default_predictor
        if predictor is None:
            return None
        return Predictor.by_name(predictor)
    except (
        AttributeError,  # The type "from_archive" is a method, not a class.
        ConfigurationError,
        KeyError,
        OSError,
        TypeError,
        ValueError,
    ):
        return None


def _import_packages(packages: str | Iterable[str]) -> tuple[str, ...]:
    """
    Imports packages of the user, and those that the environment names, and returns the names of
    all.
    """
    if isinstance(packages, str):
        packages = [packages]
    in_environment = os.environ.get(PACKAGES, "")
    names = list(packages) + in_environment.replace(",", " ").split()
    for name in names:
        import_module_and_submodules(name)
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=8)
def _loaded(
    cls: type[TrainedTask], model: str, options: tuple[tuple[str, Any], ...]
) -> TrainedTask:
    """Kept, because joblib sends a task to its workers with each call, and a job with each part."""
    return cls(model, **dict(options))


def _offsets_of_words(explanation: Explanation) -> list[tuple[str, int | None]]:
    """The words of an explanation, which are the same for all of a sentence."""
    return [(word["text"], word.get("start")) for word in explanation["words"]]


def _title(decision: Any) -> str:
    """The first text of what the model found, with its label, or else all of it."""
    if isinstance(decision, list):
        return _title(decision[0])
    for key in ("text", "verb"):
        if key in decision:
            title = str(decision[key])
            break
    else:
        title = json.dumps(decision, ensure_ascii=False)
    if "label" in decision:
        return f"{title} ({decision['label']})"
    return title
