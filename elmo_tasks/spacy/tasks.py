"""Components for spaCy pipelines with trained models of tasks: `nlp.add_pipe("elmo_ner")`, and so on."""

import struct
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import srsly
from spacy.language import Language
from spacy.parts_of_speech import IDS as UNIVERSAL_TAGS
from spacy.pipeline import Pipe, Sentencizer
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from elmo_tasks.spacy.pipeline import FilesAsBytes, device_in_spacy, loading
from elmo_tasks.text import Word, in_nfc

if TYPE_CHECKING:
    from elmo_tasks.predictors.trained_task import TrainedTask

__all__ = ["CorefComponent", "NerComponent", "PosComponent", "Predicate", "SrlComponent", "SstComponent"]
__all__ += ["TaskComponent"]

_CLUSTERS, _PREDICATES = "coref_clusters_", "srl_predicates_"
# Sentences of documents that are annotated together.
_SENTENCES_AT_ONCE = 64
# A span in the bytes of spaCy's groups: its id, the id of a knowledge base, the label, tokens and characters.
_SPAN = struct.Struct(">QQQllll")
_SENTENCE_RULE = Sentencizer()
# The first character, and the one after the last.
_Place = tuple[int, int]


class TaskComponent(FilesAsBytes, Pipe):
    """
    Adds what a trained model predicts to the documents of a pipeline. This class, the component `elmo_task`,
    is for your own tasks: `doc._.results[name]` is the plain result of the model's predictor.

    The tokens of a `Doc` are used as they are, normalised to NFC, without white space. So are its sentences; a `Doc`
    without sentence boundaries is split by the rule of spaCy's `sentencizer`, as a text is, and not changed.

    # Parameters

    nlp, name
        The pipeline and the name in it, which spaCy passes to every factory.
    model
        See `TrainedTask`. The model is loaded on first use.
    device
        `None`: the GPU of `spacy.require_gpu` or `prefer_gpu`, or else the CPU.
    save_weights
        Whether `nlp.to_disk` and `nlp.to_bytes` write the model, which `spacy.load` then needs. `False`: they
        write only the name, `model`. A biLM that is included in this package is not written.
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
        save_weights: bool = True,
    ) -> None:
        # Not earlier: spaCy imports this module for each pipeline, also where AllenNLP is not installed.
        from elmo_tasks import TrainedTask
        from elmo_tasks.predictors.trained_task import predictor_of

        self._load = partial(TrainedTask, device=device_in_spacy(device))
        self._task: TrainedTask | None = None
        self.name = name
        self.model = model
        self.save_weights = save_weights
        self._accept(predictor_of(model))
        if self.sets and nlp is not None and any(type(component) is type(self) for _, component in nlp.pipeline):
            warnings.warn(f"a pipeline with two components like '{name}': {self.sets} is of the last", stacklevel=2)

    def _accept(self, predictor: Any) -> None:
        """`None`: a model that is known only when it is loaded."""
        from allennlp.predictors import Predictor

        expected: Any = Predictor.by_name(self.reads)
        if predictor is not None and not issubclass(predictor, expected):
            of, found = (each.title.lower() or "single texts" for each in (expected, predictor))
            raise ValueError(f"{self.name} needs a model of {of}, got {self.model} ({found})")

    @property
    def task(self) -> "TrainedTask":
        # Not earlier: a saved pipeline includes the model, and the original may be gone.
        with loading:
            if self._task is None:
                task = self._load(self.model)
                self._accept(type(task.predictor))
                self._task = task
        return self._task

    def __call__(self, doc: Doc) -> Doc:
        self._annotate(list(self._rows([doc])))
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 0) -> Iterator[Doc]:
        """
        Annotates documents as they come, with batches of their sentences. `batch_size` is ignored. If a batch has a
        document that cannot be annotated, only this one is given to spaCy's error handler.
        """
        from more_itertools import constrained_batches  # It is installed with AllenNLP.

        rows = self._rows(stream)
        for batch in constrained_batches(rows, _SENTENCES_AT_ONCE, get_len=lambda row: len(row[1]) or 1, strict=False):
            try:
                self._annotate(batch)
                failed = False
            except Exception:
                failed = True
            docs = [doc for doc, _ in batch]
            # One by one, to find which.
            yield from super().pipe(docs) if failed else docs

    def _rows(self, docs: Iterable[Doc]) -> Iterator[tuple[Doc, list[Any]]]:
        predictor: Any = self.task.predictor
        return ((doc, predictor.lines_of(_sentences(doc))) for doc in docs)

    def _annotate(self, rows: Sequence[tuple[Doc, list[Any]]]) -> None:
        results = self.task.predictor.results(((doc.text,), lines) for doc, lines in rows)
        for (doc, _), result in zip(rows, list(results), strict=True):
            self.annotate(doc, result)

    def annotate(self, doc: Doc, result: Any) -> None:
        """Adds a plain result, which has the characters of the document."""
        doc._.results = {**doc._.results, self.name: result}

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        target = Path(path).resolve() / "model"
        if self.save_weights and self.task.path.resolve() != target:
            self.task.save(target, force=True)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        if self.save_weights:
            self._task = self._load(Path(path) / "model")
        return self


class NerComponent(TaskComponent):
    """
    Sets `doc.ents`, each with `ent._.probability`, and keeps entities that are already set, and tokens that must
    not be entities (`doc.set_ents(blocked=...)`), as spaCy's `ner`.
    """

    reads = "elmo_ner"

    def annotate(self, doc: Doc, result: Any) -> None:
        entities = list(doc.ents)
        blocked = [doc[token.i : token.i + 1] for token in doc if token.ent_iob_ == "B" and not token.ent_type]
        taken = set(chain.from_iterable(range(span.start, span.end) for span in [*entities, *blocked]))
        for entity in result:
            span = _span(doc, (entity["start"], entity["end"]), entity["label"])
            if taken.isdisjoint(range(span.start, span.end)):
                span._.probability = entity["probability"]
                entities.append(span)
        doc.set_ents(entities, blocked=blocked)

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        return Scorer.score_spans(examples, "ents", has_annotation=lambda doc: doc.has_annotation("ENT_IOB"))


class PosComponent(TaskComponent):
    """Sets `token.tag_`, and `token.pos_` if the model has universal tags. White space gets spaCy's `_SP`, `SPACE`."""

    reads, sets = "elmo_pos", "token.tag_"

    def annotate(self, doc: Doc, result: Any) -> None:
        labels = iter(result)
        for token in doc:
            word = {"label": "SPACE", "xpos": "_SP"} if token.is_space else next(labels)
            token.tag_ = word.get("xpos", word["label"])
            if word["label"] in UNIVERSAL_TAGS:
                token.pos_ = word["label"]

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        examples = list(examples)
        return Scorer.score_token_attr(examples, "tag") | Scorer.score_token_attr(examples, "pos")


class SstComponent(TaskComponent):
    """Sets `doc.cats`, the probabilities of `"1"` to `"5"` stars."""

    reads, sets = "elmo_sst", "doc.cats"

    def annotate(self, doc: Doc, result: Any) -> None:
        doc.cats |= {str(stars): probability for stars, probability in result["probabilities"].items()}

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        examples = list(examples)
        labels = sorted(set().union(*(example.predicted.cats for example in examples)))
        return Scorer.score_cats(examples, "cats", labels=labels, multi_label=False)


class Predicate(NamedTuple):
    """A verb, and its roles with their `label_`, among them `V`, the verb itself."""

    verb: Span
    roles: list[Span]


class SrlComponent(TaskComponent):
    """Sets `doc.spans["srl_predicates_1"]` and so on, the roles of each verb, and `doc._.predicates` from them."""

    reads, sets = "elmo_srl", "doc._.predicates"

    def annotate(self, doc: Doc, result: Any) -> None:
        _set_groups(doc, _PREDICATES, "roles", result)


class CorefComponent(TaskComponent):
    """
    Sets `doc.spans["coref_clusters_1"]` and so on, the mentions of each chain with its number as their label;
    `doc._.chains`, lists of these mentions; and `doc._.resolved`, the text with pronouns replaced.
    """

    reads, sets = "elmo_coref", "doc._.resolved"

    def annotate(self, doc: Doc, result: Any) -> None:
        _set_groups(doc, _CLUSTERS, "chains", result)
        doc._.resolved = result["resolved"]


class _TextSpans(SpanGroup):
    """A group of spans that finds them by their characters: spaCy does not renumber tokens in groups after a merge."""

    def __iter__(self) -> Iterator[Span]:
        return (span for span, _ in _spans_in(self))

    def __getitem__(self, index: int) -> Span:
        return list(self)[index]

    def to_bytes(self) -> bytes:
        return SpanGroup(self.doc, name=self.name, attrs=self.attrs, spans=list(self)).to_bytes()


def _spans_in(group: SpanGroup) -> Iterator[tuple[Span, _Place | None]]:
    """The spans of a group, and the place of what they belong to: their verb, or the first mention of their chain."""
    for packed in srsly.msgpack_loads(SpanGroup.to_bytes(group))["spans"]:
        id_, kb_id, label, _, _, start, end = _SPAN.unpack(packed)
        span = _span(group.doc, (start, end), label, kb_id=kb_id, span_id=id_)
        distance, _, length = span.id_.partition(":")
        place = (start - int(distance), start - int(distance) + int(length)) if length else None
        yield _relative_to(place, span) if place else span, place


def _groups(doc: Doc, prefix: str) -> list[tuple[_Place | None, list[Span]]]:
    """
    The spans of each predicate or chain in the order of the text. `Doc.from_docs` joins the first ones of all
    documents in one group, and so on; `Doc.from_json` keeps no places of verbs.
    """
    found: dict[tuple[str, _Place | None], list[Span]] = {}
    for key, group in doc.spans.items():
        for span, place in _spans_in(group) if key.startswith(prefix) else ():
            found.setdefault((key, place), []).append(span)
    return sorted(((place, spans) for (_, place), spans in found.items()), key=lambda each: each[0] or (0, 0))


def _predicates(doc: Doc) -> list[Predicate]:
    found = []
    for place, roles in _groups(doc, _PREDICATES):
        verb = next((role for role in roles if role.label_ == "V"), roles[0])
        # The model may label a different word with V.
        found.append(Predicate(_span(doc, place or (verb.start_char, verb.end_char), "V"), roles))
    return found


def _chains(doc: Doc) -> list[list[Span]]:
    return [spans for _, spans in _groups(doc, _CLUSTERS)]


# spaCy imports this module with the first pipeline, so documents from files have these attributes, too.
Span.set_extension("probability", default=None, force=True)
Doc.set_extension("predicates", getter=_predicates, force=True)
Doc.set_extension("chains", getter=_chains, force=True)
Doc.set_extension("resolved", default=None, force=True)
Doc.set_extension("results", default={}, force=True)

for _name, _model, _class, _assigns in (
    ("elmo_ner", "ner", NerComponent, ["doc.ents", "token.ent_iob", "token.ent_type", "span._.probability"]),
    ("elmo_srl", "srl", SrlComponent, ["doc.spans", "doc._.predicates"]),
    ("elmo_coref", "coref", CorefComponent, ["doc.spans", "doc._.chains", "doc._.resolved"]),
    ("elmo_sst", "sst", SstComponent, ["doc.cats"]),
    ("elmo_pos", "pos", PosComponent, ["token.tag", "token.pos"]),
    # Of your own task.
    ("elmo_task", None, TaskComponent, ["doc._.results"]),
):
    # The entries of the config are the keyword arguments.
    _config = {"device": None, "save_weights": True} | ({"model": _model} if _model else {})
    Language.factory(_name, assigns=_assigns, default_config=_config, func=_class)


def _set_groups(doc: Doc, prefix: str, kind: str, result: Any) -> None:
    """Replaces the groups that have names with a prefix by the groups of a plain result, numbered from 1."""
    # Not earlier: see `TaskComponent`.
    from elmo_tasks.predictors.views import groups_of

    for name in list(doc.spans):
        if name.startswith(prefix):
            del doc.spans[name]
    for number, (head, places) in enumerate(groups_of(kind, result), start=1):
        spans = []
        for place in places:
            span = _span(doc, (place["start"], place["end"]), place["label"])
            spans.append(_relative_to((head["start"], head["end"]), span) if head else span)
        name = f"{prefix}{number}"
        doc.spans[name] = _TextSpans(doc, name=name, spans=spans)


def _relative_to(place: _Place, span: Span) -> Span:
    """Writes a place into the id of a span: `Doc.from_docs` keeps ids, but not the attributes of groups."""
    start, end = place
    span.id_ = f"{span.start_char - start}:{end - start}"
    return span


def _span(doc: Doc, place: _Place, label: str | int, **ids: Any) -> Span:
    """The tokens with these characters."""
    span = doc.char_span(*place, label=label, alignment_mode="expand", **ids)
    assert span is not None
    return span


def _sentences(doc: Doc) -> list[list[Word]]:
    split = doc
    if not doc.has_annotation("SENT_START"):
        spaces = [bool(token.whitespace_) for token in doc]
        split = _SENTENCE_RULE(Doc(doc.vocab, words=[token.text for token in doc], spaces=spaces))
    sentences = []
    for sentence in split.sents:
        tokens = [token for token in sentence if not token.is_space]
        sentences.append([Word(in_nfc(token.text), token.idx, token.idx + len(token)) for token in tokens])
    return list(filter(None, sentences))
