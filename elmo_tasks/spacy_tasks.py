"""Components for spaCy pipelines with trained models of tasks: `nlp.add_pipe("elmo_ner")`, and so on."""

import shutil
from collections.abc import Iterable, Iterator
from itertools import chain, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from spacy.language import Language
from spacy.parts_of_speech import IDS as UNIVERSAL_TAGS
from spacy.pipeline import Sentencizer
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from elmo_tasks.text import Word, in_nfc
from elmo_tasks.vectors.spacy_bilm import FilesAsBytes

if TYPE_CHECKING:
    from elmo_tasks.predictors.trained_task import TrainedTask

__all__ = ["CorefComponent", "NerComponent", "PosComponent", "Predicate", "SrlComponent", "SstComponent"]
__all__ += ["TaskComponent"]

_CLUSTERS, _PREDICATES = "coref_clusters_", "srl_predicates_"
_SENTENCE_RULE = Sentencizer()


class TaskComponent(FilesAsBytes):
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
    save_weights
        Whether `nlp.to_disk` and `nlp.to_bytes` write the model, which `spacy.load` then needs. `False`: they
        write only the name, `model`. A biLM that is included in this package is not written.
    """

    def __init__(
        self, nlp: Language | None = None, name: str = "elmo_task", *, model: str, save_weights: bool = True
    ) -> None:
        # Not earlier: spaCy imports this module for each pipeline, also where AllenNLP is not installed.
        from elmo_tasks import TrainedTask

        self._class = TrainedTask
        self._task: TrainedTask | None = None
        self.name = name
        self.model = model
        self.save_weights = save_weights

    @property
    def task(self) -> "TrainedTask":
        # Not earlier: a saved pipeline includes the model, and the original may be gone.
        if self._task is None:
            self._task = self._class(self.model)
        return self._task

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 0) -> Iterator[Doc]:
        """Annotates documents as they come, with batches of their sentences. `batch_size` is ignored."""
        predictor: Any = self.task.predictor
        docs, ahead = tee(stream)
        results = predictor.results(((doc.text,), predictor.lines_of(_sentences(doc))) for doc in ahead)
        for doc, result in zip(docs, results, strict=True):
            self.annotate(doc, result)
            yield doc

    def annotate(self, doc: Doc, result: Any) -> None:
        """Adds a plain result, which has the characters of the document."""
        doc._.results = {**doc._.results, self.name: result}

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        target = Path(path).resolve() / "model"
        if self.save_weights and self.task.path.resolve() != target:
            # Of an earlier call.
            shutil.rmtree(target, ignore_errors=True)
            self.task.save(target)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        if self.save_weights:
            self._task = self._class(Path(path) / "model")
        return self


class NerComponent(TaskComponent):
    """Sets `doc.ents`, each with `ent._.probability`, and keeps entities that are already set, as spaCy's `ner`."""

    def annotate(self, doc: Doc, result: Any) -> None:
        entities = list(doc.ents)
        taken = set(chain.from_iterable(range(entity.start, entity.end) for entity in entities))
        for entity in result:
            span = _span(doc, entity, entity["label"])
            if taken.isdisjoint(range(span.start, span.end)):
                span._.probability = entity["probability"]
                entities.append(span)
        doc.ents = entities

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        return Scorer.score_spans(examples, "ents", has_annotation=lambda doc: doc.has_annotation("ENT_IOB"))


class PosComponent(TaskComponent):
    """Sets `token.tag_`, and `token.pos_` if the tag is a universal one. White space gets spaCy's `_SP`, `SPACE`."""

    def annotate(self, doc: Doc, result: Any) -> None:
        labels = iter(result)
        for token in doc:
            token.tag_ = "_SP" if token.is_space else next(labels)["label"]
            if token.is_space or token.tag_ in UNIVERSAL_TAGS:
                token.pos_ = "SPACE" if token.is_space else token.tag_

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        examples = list(examples)
        return Scorer.score_token_attr(examples, "tag") | Scorer.score_token_attr(examples, "pos")


class SstComponent(TaskComponent):
    """Sets `doc.cats`, the probabilities of `"1"` to `"5"` stars."""

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

    def annotate(self, doc: Doc, result: Any) -> None:
        groups = [[_span(doc, role, role["label"]) for role in predicate["roles"]] for predicate in result]
        for group, predicate in zip(_set_groups(doc, _PREDICATES, groups), result, strict=True):
            # The model may label a different word with V.
            group.attrs["verb"] = {"start": predicate["start"], "end": predicate["end"]}


class CorefComponent(TaskComponent):
    """
    Sets `doc.spans["coref_clusters_1"]` and so on, the mentions of each chain with its number as their label,
    and `doc._.resolved`, the text with pronouns replaced.
    """

    def annotate(self, doc: Doc, result: Any) -> None:
        chains = enumerate(result["chains"], start=1)
        _set_groups(doc, _CLUSTERS, [[_span(doc, mention, str(n)) for mention in chain] for n, chain in chains])
        doc._.resolved = result["resolved"]


def _predicates(doc: Doc) -> list[Predicate]:
    found = []
    for group in (group for key, group in doc.spans.items() if key.startswith(_PREDICATES)):
        # By their characters, because spaCy does not renumber the tokens of groups when it merges tokens.
        roles = [_span(doc, {"start": role.start_char, "end": role.end_char}, role.label_) for role in group]
        found.append(Predicate(_span(doc, group.attrs["verb"], "V"), roles))
    return found


# spaCy imports this module with the first pipeline, so documents from files have these attributes, too.
Span.set_extension("probability", default=None, force=True)
Doc.set_extension("predicates", getter=_predicates, force=True)
Doc.set_extension("resolved", default=None, force=True)
Doc.set_extension("results", default={}, force=True)

for _name, _model, _class, _assigns in (
    ("elmo_ner", "ner", NerComponent, ["doc.ents", "token.ent_iob", "token.ent_type", "span._.probability"]),
    ("elmo_srl", "srl", SrlComponent, ["doc.spans", "doc._.predicates"]),
    ("elmo_coref", "coref", CorefComponent, ["doc.spans", "doc._.resolved"]),
    ("elmo_sst", "sst", SstComponent, ["doc.cats"]),
    # No trained model of these is included.
    ("elmo_pos", None, PosComponent, ["token.tag", "token.pos"]),
    ("elmo_task", None, TaskComponent, ["doc._.results"]),
):
    # The entries of the config are the keyword arguments.
    _config = {"save_weights": True} | ({"model": _model} if _model else {})
    Language.factory(_name, assigns=_assigns, default_config=_config, func=_class)


def _set_groups(doc: Doc, prefix: str, groups: list[list[Span]]) -> list[SpanGroup]:
    """Replaces the numbered groups of spans with a prefix."""
    for key in [key for key in doc.spans if key.startswith(prefix)]:
        del doc.spans[key]
    doc.spans.update({f"{prefix}{number}": spans for number, spans in enumerate(groups, start=1)})
    return [doc.spans[key] for key in doc.spans if key.startswith(prefix)]


def _span(doc: Doc, place: dict[str, Any], label: str) -> Span:
    span = doc.char_span(place["start"], place["end"], label=label, alignment_mode="expand")
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
