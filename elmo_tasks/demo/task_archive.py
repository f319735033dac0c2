"""Archives of trained models, with what the demo needs to know of their tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

from allennlp.models import Model, load_archive
from allennlp.predictors import Predictor

from elmo_tasks.demo import views
from elmo_tasks.demo.texts import MAX_WORDS, checked_text, rules_of
from elmo_tasks.demo.views import View
from elmo_tasks.modules import LayerMix
from elmo_tasks.tokenization import blank_tokenizer
from elmo_tasks.unicode_text import in_nfc

__all__ = ["TASKS", "Task", "TaskArchive", "compared_archives", "grouped"]

_MAX_WORDS_OF_TEXT = 1000


@dataclass(frozen=True, kw_only=True)
class Task:
    """
    # Parameters

    name
        The name in paths of the HTTP API.
    title
        For people.
    examples
        Values of the inputs.
    view
        From a prediction to what is shown of it.
    inputs
        The texts that a prediction is made of: the key of the predictor and the most words of each.
    predictor_args
        Further arguments of the predictor.
    """

    name: str
    title: str
    examples: Sequence[tuple[str, ...]]
    view: Callable[[dict[str, Any]], View]
    inputs: Mapping[str, int] = field(default_factory=lambda: {"sentence": MAX_WORDS})
    predictor_args: tuple[tuple[str, Any], ...] = ()


TASKS: dict[str, Task] = {
    "elmo_ner": Task(
        name="ner",
        title="Named entities",
        examples=[("Angela Merkel met Tim Cook of Apple in Berlin .",), ("Jordan beat Chelsea at Wembley .",)],
        view=views.entities,
    ),
    "elmo_srl": Task(
        name="srl",
        title="Semantic roles",
        examples=[("She gave the children a book and they read it in the garden .",)],
        view=views.roles,
    ),
    "elmo_snli": Task(
        name="snli",
        title="Entailment",
        inputs={"premise": MAX_WORDS, "hypothesis": MAX_WORDS},
        examples=[
            ("Two dogs run across a green field .", "Animals are outside ."),
            ("A man plays the piano on a stage .", "A woman sleeps at home ."),
        ],
        view=views.entailment,
        predictor_args=(("attention", True),),
    ),
    "elmo_sst": Task(
        name="sst",
        title="Sentiment",
        examples=[("A warm and funny film with a wonderful cast .",), ("Long , loud and very dull .",)],
        view=views.sentiment,
    ),
    "elmo_squad": Task(
        name="squad",
        title="Questions",
        inputs={"question": MAX_WORDS, "passage": _MAX_WORDS_OF_TEXT},
        examples=[
            (
                "Who designed the bridge ?",
                "The bridge was designed by Anna Keller and opened in 1932 . It crosses the river north of the town .",
            )
        ],
        view=views.answer,
    ),
    "elmo_coref": Task(
        name="coref",
        title="Coreference",
        inputs={"document": _MAX_WORDS_OF_TEXT},
        examples=[("Ann met her brother at the station. She was tired, and he carried her bag.",)],
        view=views.clusters,
    ),
    "elmo_pos": Task(
        name="pos",
        title="Parts of speech",
        examples=[("They play on Saturdays .",), ("The play was a great success .",)],
        view=views.parts_of_speech,
    ),
}
"""By the registered name of the model."""


@dataclass(frozen=True)
class TaskArchive:
    """
    A trained model, ready to predict.

    # Parameters

    path
        The archive.
    task
        Its task.
    predictor
        Its default predictor.
    language
        spaCy's code of the language of its texts, whose rules split them into words, where the task does not have those
        of its data.
    """

    path: Path
    task: Task
    predictor: Predictor
    language: str = "en"

    @classmethod
    def load(cls, path: Path, language: str = "en") -> "TaskArchive":
        """
        # Parameters

        path
            The archive, or the folder of its run.
        language
            See the class.

        # Raises

        `ValueError`
            If it is no archive, or the archive of a model that is not one of the tasks.
        """
        if not path.exists():
            raise FileNotFoundError(
                f"there must be the archive of a model, or the folder of its run, at '{path}', but there is nothing"
            )
        try:
            archive = load_archive(str(path))
        except Exception as error:
            # For a file that is no archive, or is damaged, AllenNLP raises errors of any kind, AttributeError too.
            raise ValueError(
                f"{path} must be the archive of a model, or the folder of its run, but cannot be loaded "
                f"({type(error).__name__}: {error})"
            ) from error
        name = archive.config["model"]["type"]
        if name not in TASKS:
            remedy = ": export it with `allennlp elmo-export`, and name the folder with --bilm"
            raise ValueError(
                f"the model of {path} must be one of {', '.join(TASKS)}, but is '{name}'"
                f"{remedy if name in ('elmo_bilm', 'elmo_bilm_student') else ''}"
            )
        task = TASKS[name]
        arguments = dict(task.predictor_args)
        if "language" in signature(Predictor.by_name(Model.by_name(name).default_predictor)).parameters:
            arguments["language"] = rules_of(language)
        return cls(path, task, Predictor.from_archive(archive, extra_args=arguments), language)

    @property
    def name(self) -> str:
        """For people: the folder of the run, or the file if it has another name than AllenNLP's."""
        path = self.path.resolve()
        return path.parent.name if path.name == "model.tar.gz" else path.name

    def predict(self, *texts: str) -> dict[str, Any]:
        """
        # Parameters

        *texts
            Those of the task's inputs.

        # Returns

        `Dict[str, Any]`
            The prediction, as `allennlp predict` writes it.

        # Raises

        `ValueError`
            If a text is refused: see `checked_text`; or has too many words and punctuation marks.
        """
        inputs = {
            key: in_nfc(checked_text(f"the {key}", text, max_words))
            for (key, max_words), text in zip(self.task.inputs.items(), texts, strict=True)
        }
        for key, max_words in self.task.inputs.items():
            # Of a word with hyphens, say, the task makes many.
            n_words = len(blank_tokenizer(rules_of(self.language))(inputs[key]))
            if n_words > 2 * max_words:
                raise ValueError(
                    f"the {key} must have at most {2 * max_words:,} words and punctuation marks, but has {n_words:,}: "
                    "shorten it"
                )
        prediction: dict[str, Any] = self.predictor.predict_json(inputs)
        return prediction

    def mixes(self) -> list[dict[str, Any]]:
        """
        # Returns

        `List[Dict[str, Any]]`
            Of each place at which the model has ELMo: `place`, "input" or "output" of its encoder; the `weights` of the
            layers, after the softmax; and `gamma`.
        """
        return [
            {
                "place": "output" if name.startswith("output_embedder.") else "input",
                "weights": module.normalized_weights().tolist(),
                "gamma": module.gamma.item(),
            }
            for name, module in self.predictor._model.named_modules()
            if isinstance(module, LayerMix)
        ]


def compared_archives(first: Path, second: Path, language: str = "en") -> list[TaskArchive]:
    """
    Two archives that are to be compared.

    # Parameters

    first, second, language
        See `TaskArchive.load`.

    # Raises

    `ValueError`
        If they are of different tasks; and see `TaskArchive.load`.
    """
    pair = [TaskArchive.load(path, language) for path in (first, second)]
    if pair[0].task.name != pair[1].task.name:
        raise ValueError(
            f"archives that are compared must be of one task, but '{first}' is of {pair[0].task.name} and '{second}' "
            f"of {pair[1].task.name}: name them without --compare, and each has a tab of its own"
        )
    return pair


def grouped(archives: Sequence[TaskArchive]) -> dict[str, list[TaskArchive]]:
    """The archives of each task, by its name, in the order in which they were given."""
    groups: dict[str, list[TaskArchive]] = {}
    for archive in archives:
        groups.setdefault(archive.task.name, []).append(archive)
    return groups
