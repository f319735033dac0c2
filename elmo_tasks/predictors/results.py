"""
The types of plain results: names, tagged words, roles, chains, a label, an answer, JSON.

A predictor names its result type, which says what a result is: its Python type, the rows of a
table, and where its spans are in the text. What others make of that is theirs: `pictures` draws
HTML, `elmo_tasks.spacy.documents` writes into a `Doc`, and `elmo_tasks.corpora.outputs` writes
files. Your own type is a subclass of one of these, usually of `Spans`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, NotRequired, TypedDict, get_type_hints

from elmo_tasks.files.lines import is_cell

__all__ = [
    "Answer",
    "Chains",
    "Entailment",
    "Group",
    "Json",
    "Label",
    "Names",
    "ResultType",
    "Roles",
    "Spans",
    "Stars",
    "TaggedWords",
    "TextSpan",
    "check_labels",
    "words_at",
]


# Makes types with the labels of a model as keys.
_TYPED: Any = TypedDict


class TextSpan(TypedDict):
    """A part of a text, with the offsets of its first character and of the one after its last."""

    text: str
    start: int
    end: int


class LabeledSpan(TextSpan):
    label: str


class NameSpan(LabeledSpan):
    probability: float


class TaggedWord(LabeledSpan):
    xpos: NotRequired[str]
    probability: float


class VerbWithRoles(TypedDict):
    verb: str
    start: int
    end: int
    roles: list[LabeledSpan]


class Resolved(TypedDict):
    chains: list[list[TextSpan]]
    resolved: str


class Answered(TypedDict):
    """An answer. All but `text` are `None` if a text has no words."""

    text: str
    start: int | None
    end: int | None
    probability: float | None


class Group(NamedTuple):
    """Spans with labels, and the span that they belong to: a verb, or the first of a chain."""

    head: Any
    """`None`: each span is by itself."""
    spans: list[Any]


class ResultType:
    """What is different for results of one type. `labels` are the model's."""

    result: Any = Any
    """The Python type of a result: JSON lines have its values, and Parquet its types."""
    row: Any = None
    """The type of a row in a table, a `TypedDict`. `None`: it depends on the result."""
    has_spans: ClassVar[bool] = False
    """Whether there are `groups`."""
    has_tags: ClassVar[bool] = False
    """Whether there are `tags`."""
    has_threshold: ClassVar[bool] = False
    """Whether parts of a result with a low probability can be left out."""
    texts: ClassVar[tuple[str, ...]] = ()
    """The keys of whole texts in a result."""

    def __init__(self, labels: Sequence[str] = ()) -> None:
        self.labels = list(labels)

    @staticmethod
    def from_output(output: dict[str, Any]) -> Any:
        """The result that a model's output contains."""
        return output

    def above(self, result: Any, threshold: float) -> Any:
        """The result without the parts of a lower probability."""
        raise NotImplementedError

    def parts(self, result: Any) -> list[Any]:
        """What the model decided in a text, one by one: each name, predicate or chain."""
        if isinstance(result, list):
            return result
        return [result]

    @property
    def columns(self) -> dict[str, Any]:
        """The names and the types of the columns of a table, also of one without rows."""
        if self.row is None:
            return {}
        return get_type_hints(self.row)

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        """The rows of a result: of each name, role, mention or word, else of the text."""
        if isinstance(result, list):
            yield from result
        else:
            yield result

    def groups(self, result: Any) -> list[Group]:
        """The spans in a result, with their labels."""
        raise NotImplementedError

    def tags(self, words: Sequence[tuple[int, int]], result: Any) -> list[dict[str, str]]:
        """
        For each word, given by its offsets: a `tag` in the BIO scheme, or the columns `upos` and
        `xpos` of CoNLL-U.
        """
        raise NotImplementedError


class Json(ResultType):
    """Any content."""


class Spans(ResultType):
    """The base class of results with spans in one text: a subclass has `groups`."""

    has_spans = True


class Names(Spans):
    """Spans with a label and a probability."""

    result = list[NameSpan]
    row = NameSpan
    has_tags = True
    has_threshold = True

    def above(self, result: Any, threshold: float) -> Any:
        return [name for name in result if name["probability"] >= threshold]

    def groups(self, result: Any) -> list[Group]:
        return [Group(None, result)]

    def tags(self, words: Sequence[tuple[int, int]], result: Any) -> list[dict[str, str]]:
        """BIO tags."""
        tags = ["O"] * len(words)
        for name in result:
            prefix = "B"
            for word in words_at(words, name):
                tags[word] = f"{prefix}-{name['label']}"
                prefix = "I"
        return [{"tag": tag} for tag in tags]


class TaggedWords(Spans):
    """All words with a label, of two columns of labels also with `xpos`."""

    result = list[TaggedWord]
    row = TaggedWord
    has_tags = True

    def parts(self, result: Any) -> list[Any]:
        return [result]

    def groups(self, result: Any) -> list[Group]:
        return [Group(None, result)]

    def tags(self, words: Sequence[tuple[int, int]], result: Any) -> list[dict[str, str]]:
        tags = [{"upos": "_", "xpos": "_"} for _ in words]
        for tagged in result:
            label = tagged["label"]
            columns = {
                "upos": label if _is_universal(label) else "_",
                "xpos": tagged.get("xpos", label),
            }
            for word in words_at(words, tagged):
                tags[word] = columns
        return tags


class Roles(Spans):
    """Predicates, each with its roles."""

    result = list[VerbWithRoles]
    row = _TYPED(
        "Role", {"verb": str, "verb_start": int, "verb_end": int, **get_type_hints(LabeledSpan)}
    )

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        for predicate in result:
            verb = {
                "verb": predicate["verb"],
                "verb_start": predicate["start"],
                "verb_end": predicate["end"],
            }
            for role in predicate["roles"]:
                yield {**verb, **role}

    def groups(self, result: Any) -> list[Group]:
        groups = []
        for predicate in result:
            verb = {"start": predicate["start"], "end": predicate["end"]}
            groups.append(Group(verb, predicate["roles"]))
        return groups


class Chains(Spans):
    """Chains of mentions that mean the same thing."""

    result = Resolved
    row = _TYPED("Mention", {"chain": int, **get_type_hints(TextSpan)})
    texts = ("resolved",)

    def parts(self, result: Any) -> list[Any]:
        return list(result["chains"])

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        for number, mentions in enumerate(result["chains"], start=1):
            for mention in mentions:
                yield {"chain": number, **mention}

    def groups(self, result: Any) -> list[Group]:
        """The label of a mention is the number of its chain."""
        groups = []
        for number, mentions in enumerate(result["chains"], start=1):
            labeled = [{**mention, "label": str(number)} for mention in mentions]
            groups.append(Group(labeled[0], labeled))
        return groups


class Answer(Spans):
    """The part of a text that answers a question."""

    result = Answered
    row = Answered

    def groups(self, result: Any) -> list[Group]:
        spans = []
        if result["start"] is not None:
            spans.append({"label": "answer", **result})
        return [Group(None, spans)]


class Label(ResultType):
    """The probabilities of labels, of which one is right. Empty for a text without words."""

    @staticmethod
    def from_output(output: dict[str, Any]) -> Any:
        return output["probabilities"]

    @property
    def result(self) -> Any:
        return _TYPED("Probabilities", dict.fromkeys(sorted(self.labels), float))

    @property
    def row(self) -> Any:
        return self.result

    def probabilities(self, result: Any) -> dict[str, float]:
        return dict(result)

    def shown(self, label: str) -> str:
        """A label as people read it."""
        return label

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        yield self.probabilities(result)


class Entailment(Label):
    """
    A label of two texts, also with the weights of the words of one for the words of the other.
    """

    def probabilities(self, result: Any) -> dict[str, float]:
        return dict(result.get("probabilities", result))


class Stars(Label):
    """A number of stars, and the probability of each number."""

    @property
    def result(self) -> Any:
        return _TYPED("Rated", {"stars": int | None, "probabilities": super().result})

    @property
    def row(self) -> Any:
        columns: dict[str, Any] = {f"probabilities.{label}": float for label in sorted(self.labels)}
        return _TYPED("Rating", {"stars": int | None, **columns})

    def probabilities(self, result: Any) -> dict[str, float]:
        return {str(stars): share for stars, share in result["probabilities"].items()}

    def shown(self, label: str) -> str:
        return "★" * int(label)

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        row = {"stars": result["stars"]}
        for stars, probability in self.probabilities(result).items():
            row[f"probabilities.{stars}"] = probability
        yield row


def words_at(words: Sequence[tuple[int, int]], span: Any) -> range:
    """The numbers of the words, given by their offsets, that have characters of a span."""
    first = bisect_right(words, span["start"], key=lambda word: word[1])
    end = bisect_left(words, span["end"], key=lambda word: word[0])
    return range(first, end)


def _is_universal(tag: str) -> bool:
    from spacy.parts_of_speech import IDS

    return tag in IDS


def check_labels(labels: Iterable[str], model: object) -> None:
    """Raises an error if a label of a model could not be in one cell of a file with columns."""
    for label in labels:
        is_tag = label[:1] in "BILUES" and label[1:2] == "-"
        if not is_cell(label[2:] if is_tag else label):
            expected = "labels in one line without tabs, which are not empty"
            raise ValueError(f"expected {expected}, got {label!r:.80}: {model}")
