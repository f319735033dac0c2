"""
The kinds of plain results: names, words, roles, chains, a label, an answer, JSON. A task names its kind, and tables,
pictures, files and spaCy's documents get from it what they need. Your own kind is a subclass of one of these.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NotRequired, TypedDict, get_type_hints

from elmo_tasks.text.lines import is_cell

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["Answer", "Chains", "Entailment", "Group", "Json", "Kind", "Label", "Names", "Place"]
__all__ += ["Places", "Roles", "Standoff", "Stars", "Words", "check_labels", "table"]


# Makes types with the labels of a model as keys.
_TYPED: Any = TypedDict


class Place(TypedDict):
    """A part of a text, with the offsets of its first character and of the one after its last."""

    text: str
    start: int
    end: int


class Labeled(Place):
    label: str


class Name(Labeled):
    probability: float


class Tagged(Labeled):
    xpos: NotRequired[str]
    probability: float


class Predicate(TypedDict):
    verb: str
    start: int
    end: int
    roles: list[Labeled]


class Resolved(TypedDict):
    chains: list[list[Place]]
    resolved: str


class Answered(TypedDict):
    """`None`: of a text without words."""

    text: str
    start: int | None
    end: int | None
    probability: float | None


class Group(NamedTuple):
    """Spans with labels, and the place that they belong to: a verb, or the first mention of a chain."""

    head: Any
    spans: list[Any]


class Standoff(NamedTuple):
    """Marked places with labels, links between two of them (label, from, to), and places that mean the same thing."""

    marks: list[tuple[str, Any]]
    links: list[tuple[str, int, int]]
    chains: list[list[int]]


class Kind:
    """What is different for results of one kind. `labels` are the model's."""

    result: Any = Any
    """The type of a plain result: JSON lines have its values, and Parquet its types."""
    row: Any = None
    """The type of a row in a table, a `TypedDict`. `None`: it depends on the result."""
    has_places: ClassVar[bool] = False
    """Whether there are `groups` and `standoff`."""
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

    def things(self, result: Any) -> list[Any]:
        """What was found in a text, one by one."""
        return result if isinstance(result, list) else [result]

    @property
    def columns(self) -> dict[str, Any]:
        """The names and the types of the columns of a table, also of one without rows."""
        return get_type_hints(self.row) if self.row else {}

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        """The rows of a result: of each name, role, mention or word, else of the text."""
        yield from result if isinstance(result, list) else [result]

    def groups(self, result: Any) -> list[Group]:
        """The places in a result, with their labels."""
        raise NotImplementedError

    def picture(self, text: str, result: Any, language: str) -> str:
        """The result of a text as HTML."""
        return f"<pre>{escape(json.dumps(result, ensure_ascii=False, indent=2))}</pre>"

    def standoff(self, result: Any) -> Standoff:
        """The result for brat."""
        raise NotImplementedError

    def tags(self, words: Sequence[tuple[int, int]], result: Any) -> list[dict[str, str]]:
        """For CoNLL's files, a `tag` of each word, or the columns that CoNLL-U has for it. A word is its offsets."""
        raise NotImplementedError

    def set_in(self, doc: "Doc", result: Any) -> None:
        """Sets what spaCy has a place for."""
        raise NotImplementedError


class Json(Kind):
    """Any content."""


class Places(Kind):
    """The base class of results with places in one text: a subclass has `groups`."""

    has_places = True

    def picture(self, text: str, result: Any, language: str) -> str:
        """Marked places, or a line under the text for each group, with the head if it has a label."""
        groups = self.groups(result)
        if any(head is None for head, _ in groups):
            return _marked(text, chain.from_iterable(spans for _, spans in groups))
        lines = [[head, *spans] if "label" in head else spans for head, spans in groups]
        return _lines(text, lines or [[]], language)

    def standoff(self, result: Any) -> Standoff:
        found = Standoff([], [], [])
        for head, spans in self.groups(result):
            if head is None:
                found.marks.extend((span["label"], span) for span in spans)
                continue
            first = len(found.marks)
            found.marks.append((head.get("label", "predicate"), head))
            for span in spans:
                found.links.append((span["label"], first, len(found.marks)))
                found.marks.append((span.get("type", "argument"), span))
        return found


class Names(Places):
    """Places with a label and a probability."""

    result = list[Name]
    row = Name
    has_tags = True
    has_threshold = True

    def above(self, result: Any, threshold: float) -> Any:
        return [each for each in result if each["probability"] >= threshold]

    def groups(self, result: Any) -> list[Group]:
        return [Group(None, result)]

    def tags(self, words: Sequence[tuple[int, int]], result: Any) -> list[dict[str, str]]:
        """BIO tags."""
        tags = ["O"] * len(words)
        for each in result:
            for number, word in enumerate(_words_at(words, each)):
                tags[word] = f"{'I' if number else 'B'}-{each['label']}"
        return [{"tag": tag} for tag in tags]

    def set_in(self, doc: "Doc", result: Any) -> None:
        """Adds entities where neither an entity nor a blocked token is set, as spaCy's `ner`."""
        from elmo_tasks.span_groups import tokens_at

        entities = list(doc.ents)
        blocked = [doc[token.i : token.i + 1] for token in doc if token.ent_iob_ == "B" and not token.ent_type]
        taken = set(chain.from_iterable(range(span.start, span.end) for span in [*entities, *blocked]))
        for name in result:
            span = tokens_at(doc, name["start"], name["end"], name["label"])
            if taken.isdisjoint(range(span.start, span.end)):
                span._.probability = name["probability"]
                entities.append(span)
        doc.set_ents(entities, blocked=blocked)


class Words(Places):
    """All words with a label, of two columns of labels also with `xpos`."""

    result = list[Tagged]
    row = Tagged
    has_tags = True

    def things(self, result: Any) -> list[Any]:
        return [result]

    def groups(self, result: Any) -> list[Group]:
        return [Group(None, result)]

    def tags(self, words: Sequence[tuple[int, int]], result: Any) -> list[dict[str, str]]:
        tags = [{"upos": "_", "xpos": "_"} for _ in words]
        for each in result:
            for word in _words_at(words, each):
                upos = each["label"] if _is_universal(each["label"]) else "_"
                tags[word] = {"upos": upos, "xpos": each.get("xpos", each["label"])}
        return tags

    def set_in(self, doc: "Doc", result: Any) -> None:
        tags = self.tags([(token.idx, token.idx + len(token)) for token in doc], result)
        for token, tag in zip(doc, tags, strict=True):
            token.tag_ = "_SP" if token.is_space else tag["xpos"]
            if token.is_space or tag["upos"] != "_":
                token.pos_ = "SPACE" if token.is_space else tag["upos"]


class Roles(Places):
    """Predicates, each with its roles."""

    result = list[Predicate]
    row = _TYPED("Role", {"verb": str, "verb_start": int, "verb_end": int, **get_type_hints(Labeled)})
    attribute: ClassVar[str] = "elmo_srl"
    """Of a verb in a `Doc`: see `set_groups`."""

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        for each in result:
            about = {"verb": each["verb"], "verb_start": each["start"], "verb_end": each["end"]}
            yield from (about | role for role in each["roles"])

    def groups(self, result: Any) -> list[Group]:
        return [Group({"start": each["start"], "end": each["end"]}, each["roles"]) for each in result]

    def standoff(self, result: Any) -> Standoff:
        arguments = [{**each, "roles": [role for role in each["roles"] if role["label"] != "V"]} for each in result]
        return super().standoff(arguments)

    def set_in(self, doc: "Doc", result: Any) -> None:
        from elmo_tasks.span_groups import set_groups

        set_groups(doc, self.attribute, "srl_predicates_", self.groups(result))


class Chains(Places):
    """Chains of mentions that mean the same thing."""

    result = Resolved
    row = _TYPED("Mention", {"chain": int, **get_type_hints(Place)})
    texts = ("resolved",)
    attribute: ClassVar[str] = "elmo_coref"
    """Of the first mention of a chain in a `Doc`."""

    def things(self, result: Any) -> list[Any]:
        return list(result["chains"])

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        for number, mentions in enumerate(result["chains"], start=1):
            yield from ({"chain": number, **mention} for mention in mentions)

    def groups(self, result: Any) -> list[Group]:
        chains = enumerate(result["chains"], start=1)
        labeled = ([{**mention, "label": str(number)} for mention in mentions] for number, mentions in chains)
        return [Group(mentions[0], mentions) for mentions in labeled]

    def picture(self, text: str, result: Any, language: str) -> str:
        """One line for all chains."""
        return _lines(text, [list(chain.from_iterable(spans for _, spans in self.groups(result)))], language)

    def standoff(self, result: Any) -> Standoff:
        found = Standoff([], [], [])
        for mentions in result["chains"]:
            found.chains.append(list(range(len(found.marks), len(found.marks) + len(mentions))))
            found.marks.extend(("mention", mention) for mention in mentions)
        return found

    def set_in(self, doc: "Doc", result: Any) -> None:
        from elmo_tasks.span_groups import set_groups

        set_groups(doc, self.attribute, "coref_clusters_", self.groups(result))
        doc._.resolved = result["resolved"]


class Answer(Places):
    """The part of a text that answers a question."""

    result = Answered
    row = Answered

    def groups(self, result: Any) -> list[Group]:
        return [Group(None, [] if result["start"] is None else [{"label": "answer", **result}])]


class Label(Kind):
    """The probabilities of labels; one label is right. None for a text without words."""

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
        """A label in a picture."""
        return label

    def rows(self, result: Any) -> Iterator[dict[str, Any]]:
        yield self.probabilities(result)

    def picture(self, text: str, result: Any, language: str) -> str:
        bars = "".join(_bar(self.shown(label), share) for label, share in self.probabilities(result).items())
        return f'<div style="display: grid; grid-template-columns: auto 1fr; gap: 0.3em 1em">{bars}</div>'

    def set_in(self, doc: "Doc", result: Any) -> None:
        doc.cats |= self.probabilities(result)


class Entailment(Label):
    """A label of two texts, also with the weights of the words of one for the words of the other."""

    def probabilities(self, result: Any) -> dict[str, float]:
        return dict(result.get("probabilities", result))

    def picture(self, text: str, result: Any, language: str) -> str:
        tables = (table(**each) for each in result.get("attention", ()))
        return "".join([super().picture(text, result, language), *tables])


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
        columns = {f"probabilities.{stars}": share for stars, share in self.probabilities(result).items()}
        yield {"stars": result["stars"], **columns}


def _is_universal(tag: str) -> bool:
    from spacy.parts_of_speech import IDS

    return tag in IDS


def _words_at(words: Sequence[tuple[int, int]], place: Any) -> range:
    """The numbers of the words that have characters of a place."""
    first = bisect_right(words, place["start"], key=lambda word: word[1])
    return range(first, bisect_left(words, place["end"], key=lambda word: word[0]))


def check_labels(labels: Iterable[str], model: object) -> None:
    """Raises an error if a label of a model could not be in one cell of a file with columns."""
    for label in labels:
        is_tag = label[:1] in "BILUES" and label[1:2] == "-"
        if not is_cell(label[2:] if is_tag else label):
            expected = "labels in one line without tabs, which are not empty"
            raise ValueError(f"expected {expected}, got {label!r:.80}: {model}")


# HTML. Texts of displaCy are escaped by it, labels are not.

# displaCy's own form of an entity, with the probability after the label.
_ENTITY = """<mark class="entity" style="background: {bg}; padding: 0.45em 0.6em; margin: 0 0.25em; line-height: 1;
border-radius: 0.35em;">{text}<span style="font-size: 0.8em; font-weight: bold; margin-left: 0.5rem;">{label}
{probability}</span></mark>"""
# In the word where a span begins, so the word is as wide as the label under it.
_SPACE_FOR_LABEL = """<span style="display: block; visibility: hidden; height: 0; contain: layout;
padding: 0 7px; font-size: 0.6em; white-space: nowrap;">{label}</span>"""
_COLORS = ("#7aecec", "#ffd966", "#bfeeb7", "#feca74", "#c887fb", "#e4e7d2", "#ff9561", "#aa9cfc")


def _marked(text: str, spans: Iterable[Any]) -> str:
    """A text with marked spans."""
    from spacy import displacy

    entities = []
    for span in sorted(spans, key=lambda span: span["start"]):
        probability = f"{span['probability']:.2f}" if "probability" in span else ""
        entities.append({**span, "label": escape(span["label"]), "params": {"probability": probability}})
    drawn = {"text": text, "ents": entities}
    return displacy.render(drawn, style="ent", manual=True, jupyter=False, options={"template": _ENTITY})


def _lines(text: str, lines: list[list[Any]], language: str) -> str:
    """A text for each line of spans under it."""
    from spacy import displacy
    from spacy.displacy.templates import TPL_SPAN, TPL_SPAN_SLICE, TPL_SPAN_START

    from elmo_tasks.text import located_words

    words = located_words(text, language)
    places = [(word.start, word.end) for word in words]
    tokens, drawn, labels = [word.text for word in words], [], set()
    for spans in lines:
        placed = []
        for span in spans:
            at, label = _words_at(places, span), escape(span["label"])
            placed.append({"start_token": at.start, "end_token": at.stop, "label": label})
            labels.add(label)
        drawn.append({"text": text, "spans": placed, "tokens": tokens})
    colors = {label: _COLORS[number % len(_COLORS)] for number, label in enumerate(sorted(labels))}
    template = {"span": TPL_SPAN, "slice": TPL_SPAN_SLICE, "start": TPL_SPAN_START + _SPACE_FOR_LABEL}
    options = {"colors": colors, "template": template}
    return displacy.render(drawn, style="span", manual=True, jupyter=False, options=options)


def _bar(label: str, share: float) -> str:
    bar = f'<div style="background: {_COLORS[0]}; width: {80 * share:.1f}%">&nbsp;</div>'
    return f'<div>{escape(label)}</div><div style="display: flex; gap: 0.5em">{bar}{share:.2f}</div>'


def table(rows: Sequence[str], columns: Sequence[str], weights: Sequence[Sequence[float]]) -> str:
    """Weights of the columns for each row, as HTML."""
    lines = ["".join(f"<th>{escape(column)}</th>" for column in ["", *columns])]
    for row, of_row in zip(rows, weights, strict=True):
        cells = (f'<td style="background: rgb(122 236 236 / {weight:.2f})">{weight:.2f}</td>' for weight in of_row)
        lines.append(f"<th>{escape(row)}</th>{''.join(cells)}")
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
