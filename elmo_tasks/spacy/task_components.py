"""
Components for spaCy pipelines with trained models of tasks: `nlp.add_pipe("elmo_ner")`, and so on.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example

from elmo_tasks.spacy.pipeline import (
    ModelInPipeline,
    device_in_spacy,
    is_called_by_the_user,
    loading,
    refuse_settings,
    sentences_in,
)
from elmo_tasks.spacy.span_groups import CHAINS, PREDICATES, groups_in
from elmo_tasks.vectors.elmo import Precision

if TYPE_CHECKING:
    from elmo_tasks.predictors.task_predictor import TaskInput
    from elmo_tasks.predictors.trained_task import TrainedTask

__all__ = [
    "CorefComponent",
    "NerComponent",
    "PosComponent",
    "Predicate",
    "SrlComponent",
    "SstComponent",
    "TaskComponent",
]


class TaskComponent(ModelInPipeline, Pipe):
    """
    Adds what a trained model predicts to the documents of a pipeline. This class, the component
    `elmo_task`, is for your own tasks: `doc._.results[name]` is the plain result of the model's
    predictor.

    The tokens of a `Doc` are used as they are, normalised to NFC, without white space. So are its
    sentences; a `Doc` without sentence boundaries is split by the rule of spaCy's `sentencizer`, as
    a text is, and not changed.

    # Parameters

    nlp, name
        The pipeline and the name in it, which spaCy passes to every factory.
    model
        See `TrainedTask`. The model is loaded on first use.
    device
        `None`: the GPU of `spacy.require_gpu` or `prefer_gpu`, or else the CPU.
    precision, threshold
        See `TrainedTask`.
    save_weights
        Whether `nlp.to_disk` and `nlp.to_bytes` write the model, which `spacy.load` then needs.
        `False`: they write only the name, `model`. A biLM that is included in this package is not
        written.
    """

    reads: ClassVar[str] = "elmo_sentence"
    """The registered name of the predictor that the model must have, or a subclass of it."""
    sets: ClassVar[str] = ""
    """What a second component with a different model would replace."""

    def __init__(
        self,
        nlp: Language | None = None,
        name: str = "elmo_task",
        *,
        model: str,
        device: str | None = None,
        precision: Precision | None = None,
        threshold: float = 0.0,
        save_weights: bool = True,
    ) -> None:
        # Not earlier: spaCy imports this module for each pipeline, also where AllenNLP is not
        # installed.
        from elmo_tasks import TrainedTask
        from elmo_tasks.predictors.trained_models import licence_of, local_model
        from elmo_tasks.predictors.trained_task import predictor_of

        if _TAKEN:
            names = ", ".join(_TAKEN)
            raise ValueError(
                f"{names} was set by other code: remove it before 'elmo_tasks' is imported"
            )
        self._load = partial(
            TrainedTask, device=device_in_spacy(device), precision=precision, threshold=threshold
        )
        self._task: TrainedTask | None = None
        self.name = name
        self.model = model
        self.user_chose_model = is_called_by_the_user()
        self.save_weights = save_weights
        self._check_predictor(predictor_of(model))
        if nlp is None:
            return
        path = local_model(model)
        licence = licence_of(path) if path else None
        if licence:
            sources = list(nlp.meta.get("sources") or ())
            sources.append({"name": f"elmo_tasks {model}", "license": licence})
            nlp.meta["sources"] = sources
        if self.sets and any(type(component) is type(self) for _, component in nlp.pipeline):
            warnings.warn(
                f"a pipeline with two components like '{name}': {self.sets} is of the last",
                stacklevel=2,
            )

    def _check_predictor(self, predictor: Any) -> None:
        """`None`: a model that is known only when it is loaded."""
        from allennlp.predictors import Predictor

        expected: Any = Predictor.by_name(self.reads)
        if predictor is not None and not issubclass(predictor, expected):
            needed = expected.title.lower() or "single texts"
            got = predictor.title.lower() or "single texts"
            raise ValueError(f"{self.name} needs a model of {needed}, got {self.model} ({got})")

    @property
    def task(self) -> "TrainedTask":
        # Not earlier: a saved pipeline includes the model, and the original may be gone.
        with loading:
            if self._task is None:
                # A name alone is not looked for on the hub.
                is_name = "/" not in self.model.removeprefix("models/")
                is_ready = is_name or self._is_local
                task = self._load(self.check_name(self.model, is_ready=is_ready))
                self._check_predictor(type(task.predictor))
                self._task = task
        return self._task

    @property
    def _is_local(self) -> bool:
        from elmo_tasks.predictors.trained_models import local_model

        return local_model(self.model) is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of a model that is loaded, or on this machine."""
        if self._task is None and not self._is_local:
            return ()
        return tuple(self.task.result_type.labels)

    def __call__(self, doc: Doc, **settings: Any) -> Doc:
        refuse_settings(self.name, settings)
        self._annotate([(doc, self._read(doc))])
        return doc

    def pipe(
        self, stream: Iterable[Doc], *, batch_size: int | None = None, **settings: Any
    ) -> Iterator[Doc]:
        """
        Annotates documents as they come, with batches of their sentences. At most `batch_size`
        documents are read before the first one is annotated. If a batch has a document that cannot
        be annotated, only this one is given to spaCy's error handler.
        """
        refuse_settings(self.name, settings)
        # Not earlier: it imports AllenNLP.
        from elmo_tasks.predictors.json_lines_predictor import predicted_together

        for batch in predicted_together(self._inputs(stream), itemgetter(1), batch_size):
            docs: Iterable[Doc] = [doc for doc, _ in batch]
            try:
                self._annotate(batch)
            except Exception:
                # One by one, to find which.
                docs = super().pipe(docs)
            yield from docs

    def _inputs(self, stream: Iterable[Doc]) -> Iterator[tuple[Doc, "TaskInput"]]:
        for doc in stream:
            try:
                yield doc, self._read(doc)
            except Exception as error:
                self.get_error_handler()(self.name, self, [doc], error)

    def _read(self, doc: Doc) -> "TaskInput":
        sentences = [sentence for sentence in sentences_in(doc, by_rule=True) if sentence]
        return self.task.read_words(doc.text, sentences)

    def _annotate(self, batch: Sequence[tuple[Doc, "TaskInput"]]) -> None:
        inputs = [task_input for _, task_input in batch]
        results = list(self.task.results(inputs))
        for (doc, _), result in zip(batch, results, strict=True):
            self.annotate(doc, result)

    def annotate(self, doc: Doc, result: Any) -> None:
        """Adds a plain result, which has the characters of the document."""
        from elmo_tasks.spacy.documents import keep_result

        keep_result(doc, self.name, result)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        target = Path(path).resolve() / "model"
        if self.save_weights and self.task.path.resolve() != target:
            self.task.save(target, force=True)
            self.write_name(target, self.model)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        self.user_chose_model = False
        if self.save_weights:
            self._task = self._load(self.check_saved(Path(path) / "model", self.model))
        return self


class _StandardComponent(TaskComponent):
    """Sets what spaCy has for the type of the results."""

    def annotate(self, doc: Doc, result: Any) -> None:
        from elmo_tasks.spacy.documents import set_result

        set_result(doc, self.name, self.task.result_type, result)


class NerComponent(_StandardComponent):
    """
    Sets `doc.ents`, each with `ent._.probability`, and keeps entities that are already set, and
    tokens that must not be entities (`doc.set_ents(blocked=...)`), as spaCy's `ner`. Labels are
    escaped for HTML, because displaCy does not escape them: `R&D` becomes `R&amp;D`.
    """

    reads = "elmo_ner"

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        return Scorer.score_spans(
            examples, "ents", has_annotation=lambda doc: doc.has_annotation("ENT_IOB")
        )


class PosComponent(_StandardComponent):
    """
    Sets `token.tag_`, and `token.pos_` if the model has universal tags. White space gets spaCy's
    `_SP`, `SPACE`.
    """

    reads = "elmo_pos"
    sets = "token.tag_"

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        examples = list(examples)
        return Scorer.score_token_attr(examples, "tag") | Scorer.score_token_attr(examples, "pos")


class SstComponent(_StandardComponent):
    """Sets `doc.cats`, the probabilities of `"1"` to `"5"` stars."""

    reads = "elmo_sst"
    sets = "doc.cats"

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        examples = list(examples)
        labels: set[str] = set()
        for example in examples:
            labels.update(example.predicted.cats)
        return Scorer.score_cats(examples, "cats", labels=sorted(labels), multi_label=False)


class Predicate(NamedTuple):
    """A verb, and its roles with their `label_`, among them `V`, the verb itself."""

    verb: Span
    roles: list[Span]


class SrlComponent(_StandardComponent):
    """
    Sets `doc.spans["srl_predicates_1"]` and so on, the roles of each verb, and `doc._.predicates`.
    """

    reads = "elmo_srl"
    sets = "doc._.predicates"


class CorefComponent(_StandardComponent):
    """
    Sets `doc.spans["coref_clusters_1"]` and so on, the mentions of each chain with its number as
    their label; `doc._.chains`, lists of these mentions; and `doc._.resolved`, the text with
    pronouns replaced.
    """

    reads = "elmo_coref"
    sets = "doc._.resolved"


def _predicates(text: Doc | Span) -> list[Predicate]:
    """The predicates of a document, or those with their verb in a span of it."""
    return [Predicate(verb, roles) for verb, roles in groups_in(text, PREDICATES, "V")]


def _chains(text: Doc | Span) -> list[list[Span]]:
    """The chains of a document, or all of those that have a mention in a span of it."""
    return [mentions for _, mentions in groups_in(text, CHAINS, by_head=False)]


def _set_extensions() -> list[str]:
    """Adds the attributes, and returns those that other code had set before."""
    extensions: list[tuple[Any, str, dict[str, Any]]] = [
        (Span, "probability", {"default": None}),
        (Span, PREDICATES, {"default": None}),
        (Span, CHAINS, {"default": None}),
        (Doc, "predicates", {"getter": _predicates}),
        (Doc, "chains", {"getter": _chains}),
        (Span, "predicates", {"getter": _predicates}),
        (Span, "chains", {"getter": _chains}),
        (Doc, "resolved", {"default": None}),
        (Doc, "results", {"default": {}}),
    ]
    taken = []
    for owner, name, options in extensions:
        if owner.has_extension(name):
            taken.append(f"{owner.__name__}._.{name}")
        else:
            owner.set_extension(name, **options)
    return taken


# spaCy imports this module with the first pipeline, so documents from files have these attributes,
# too.
_TAKEN = _set_extensions()


def _register(
    component: type[TaskComponent], name: str, *, model: str | None, assigns: list[str]
) -> None:
    # The entries of the config are the keyword arguments.
    config: dict[str, Any] = {"device": None, "precision": None, "threshold": 0.0}
    config["save_weights"] = True
    if model is not None:
        config["model"] = model
    Language.factory(name, assigns=assigns, default_config=config, func=component)


_register(
    NerComponent,
    "elmo_ner",
    model="ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "span._.probability"],
)
_register(SrlComponent, "elmo_srl", model="srl", assigns=["doc.spans", "doc._.predicates"])
_register(
    CorefComponent,
    "elmo_coref",
    model="coref",
    assigns=["doc.spans", "doc._.chains", "doc._.resolved"],
)
_register(SstComponent, "elmo_sst", model="sst", assigns=["doc.cats"])
_register(PosComponent, "elmo_pos", model="pos", assigns=["token.tag", "token.pos"])
# For your own tasks.
_register(TaskComponent, "elmo_task", model=None, assigns=["doc._.results"])
