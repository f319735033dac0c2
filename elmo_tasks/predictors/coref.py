"""Coreference for documents in JSON lines, and English texts with pronouns replaced."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, ClassVar, NamedTuple

from allennlp.common.util import JsonDict
from allennlp.data import Instance, Token
from allennlp.predictors import Predictor

from elmo_tasks.predictors.parts_of_speech import PosTagger
from elmo_tasks.predictors.results import Chains
from elmo_tasks.predictors.sentence import SentencePredictor
from elmo_tasks.predictors.task import Input, as_tokens, place_of, span_in, tokens_of
from elmo_tasks.text import Word, located_sentences, pieces, sentence_ranges

__all__ = ["CorefPredictor", "resolved_text"]

_PERSONAL = frozenset({"he", "him", "she", "her", "it", "they", "them", "'em"})
_POSSESSIVE = frozenset({"his", "hers", "its", "their", "theirs"})
# Neither replaced nor a replacement: with a name for "I", the verb would not agree, and "this" may
# mean a sentence.
_OTHERS = (
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves himself herself itself themselves "
    "themself oneself who whom whose which that this these those what one each other another both all some any none "
    "of everyone everybody someone somebody anyone anybody nobody everything something anything nothing"
)
_PRONOUNS = _PERSONAL | _POSSESSIVE | frozenset(_OTHERS.split())
# "Every student lost his book" is not about the book of every student.
_FOR_ANY = frozenset({"every", "each", "no", "any", "either", "neither"})
_ARTICLES = frozenset({"the", "a", "an"})
_AFTER_POSSESSIVES = frozenset({"ADJ", "NOUN", "NUM", "PROPN"})


@Predictor.register("elmo_coref")
class CorefPredictor(SentencePredictor):
    """
    Takes lines like `{"document": "Ann sang. She was tired."}`, which it splits into sentences and
    words with spaCy's rules, or
    `{"sentences": [["Ann", "sang", "."], ["She", "was", "tired", "."]]}`. Either may have a
    `genre`, two letters as in OntoNotes; lines with `sentences` may also have `speakers`: per
    sentence one, or a list of one per word.

    In a prediction, `document` is the list of words, as in AllenNLP; `document_name` and `part`
    identify a document in CoNLL's files. For a text, `places` has the character offsets of the
    mentions, in the order of `clusters`.

    A sentence of a text with more than 96 words is read in pieces, which are then the `sentences`
    of the prediction.
    """

    title = "Coreference"
    about = (
        "Which expressions in a text mean the same person or thing: `chains` of mentions (`text`, `start`, `end`), and "
        "`resolved`, the text with pronouns replaced."
    )
    examples = (
        ("Ann met her brother at the station. She was tired, and he carried her bag.",),
        (
            "The old captain told his crew to wait. He would go ashore alone, and they should keep the ship ready.",
        ),
        ("Mr. Darcy wrote a letter to Elizabeth. She read it twice before she could believe him.",),
    )
    result_type = Chains
    keys: ClassVar[dict[str, str]] = {"text": "document"}

    @cached_property
    def _tagger(self) -> PosTagger:
        return PosTagger(next(self._model.parameters()).device, self._precision)

    def predict_tokenized(self, tokenized_document: list[str]) -> JsonDict:
        sentences = [
            tokenized_document[each.start : each.stop]
            for each in sentence_ranges(tokenized_document)
        ]
        return self.predict_json({"sentences": sentences})

    def read_words(self, text: str, sentences: list[list[Word]]) -> Input:
        return Input((text,), [[self._dataset_reader.text_to_instance(_short(sentences))]])

    def read_line(self, line: JsonDict) -> Input:
        if "sentences" in line:
            sentences = list(map(as_tokens, line["sentences"]))
        else:
            sentences = _short(located_sentences(self.text_in(line, "text"), self._language))
        speakers = line.get("speakers")
        if speakers is not None:
            pairs = zip(speakers, sentences, strict=False)
            rows = [
                each if isinstance(each, list) else [each] * len(words) for each, words in pairs
            ]
            if len(speakers) != len(sentences) or list(map(len, rows)) != list(map(len, sentences)):
                raise ValueError(
                    f"expected one speaker per sentence, or one per word, got {speakers}"
                )
            speakers = rows
        return Input(
            (),
            [[self._dataset_reader.text_to_instance(sentences, speakers, genre=line.get("genre"))]],
        )

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        output["document_name"] = output["document"]
        output["document"] = list(chain.from_iterable(output["sentences"]))
        tokens = tokens_of(instance["tokens"])
        if tokens and tokens[0].idx is not None:
            output["places"] = [
                [place_of(tokens, *mention) for mention in each] for each in output["clusters"]
            ]
        return output

    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: JsonDict
    ) -> list[Instance]:
        """One instance per cluster, as in AllenNLP."""
        return [self._with_clusters(instance, [cluster]) for cluster in outputs["clusters"]] or [
            self._with_clusters(instance, [])
        ]

    def labeled_for_each(self, instance: Instance, outputs: JsonDict) -> list[Instance]:
        """All clusters except one, as for names."""
        clusters = outputs["clusters"]
        return [
            self._with_clusters(instance, [each for each in clusters if each != cluster])
            for cluster in clusters
        ]

    def _with_clusters(self, instance: Instance, clusters: list[Any]) -> Instance:
        copied = self.labeled(instance)
        copied["metadata"].metadata["clusters"] = [
            [tuple(mention) for mention in each] for each in clusters
        ]
        return copied

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        ((output,), (text,)) = outputs, texts
        chains = [[span_in(text, place) for place in each] for each in output.get("places", ())]
        mentions = [
            list(zip(*each, strict=True)) for each in zip(output["clusters"], chains, strict=True)
        ]
        resolved = resolved_text(
            text, output["sentences"], mentions, lambda sentences: self._tagger(sentences)
        )
        return {"chains": chains, "resolved": resolved}

    def coref_resolved(self, document: str) -> str:
        """
        The document with pronouns replaced by the first name or noun phrase of their chain: see
        `resolved_text`.
        """
        resolved: str = next(self.results([self.read(document)]))["resolved"]
        return resolved


def _short(sentences: list[list[Word]]) -> list[list[Token]]:
    """Sentences in pieces, because they are padded to the longest."""
    short: list[list[Token]] = []
    for words in sentences:
        short += [
            as_tokens(words[part.start : part.stop])
            for part in pieces([word.text for word in words])
        ]
    return short


class _Mention(NamedTuple):
    first: int
    last: int
    text: str
    start: int
    end: int


def resolved_text(
    text: str,
    sentences: Sequence[Sequence[str]],
    chains: Iterable[Sequence[tuple[Sequence[int], JsonDict]]],
    tag: Callable[[list[list[str]]], list[list[str]]],
) -> str:
    """
    Replaces personal and possessive pronouns of the third person by the first name or noun phrase
    of their chain. A mention of a chain has its first and last word, and its place in the text.
    `tag`, which finds the universal parts of speech of sentences, is called only if words are
    unclear.
    """
    words = list(chain.from_iterable(sentences))
    firsts = set(accumulate(map(len, sentences), initial=0))
    replaced: list[tuple[_Mention, list[_Mention]]] = []
    unclear: set[int] = set()
    for each in chains:
        mentions = [_Mention(first, last, *place.values()) for (first, last), place in each]
        heads = [
            mention for mention in mentions if _is_head(words[mention.first : mention.last + 1])
        ]
        pronouns = [
            mention for mention in mentions if mention.text.lower() in _PERSONAL | _POSSESSIVE
        ]
        replaced += ((pronoun, heads) for pronoun in pronouns if heads)
        unclear |= {
            pronoun.first for pronoun in pronouns if heads and pronoun.text.lower() == "her"
        }
        # A word in lower case may be a verb, and a sentence's first word a name.
        unclear |= {
            head.first
            for head in heads[:1]
            if pronouns and (head.first == head.last or head.first in firsts)
        }
    tags = _tags(
        sentences,
        {position for position in unclear if words[position].lower() not in _ARTICLES},
        tag,
    )
    characters = list(text)
    for pronoun, (head, *others) in replaced:
        if head.first == head.last and tags.get(head.first) in ("AUX", "VERB"):
            (head,) = others[:1] or [pronoun]
        if not head.first <= pronoun.first <= head.last:
            found = head.text.removesuffix("'").removesuffix("'s").removesuffix("\u2019s")
            if pronoun.text[0].isupper():
                found = found[0].upper() + found[1:]
            elif (
                head.first in firsts
                and tags.get(head.first) != "PROPN"
                and words[head.first].istitle()
            ):
                found = found[0].lower() + found[1:]
            if _is_possessive(pronoun, tags):
                found += (
                    "'"
                    if found.endswith("s") and pronoun.text.lower().startswith("their")
                    else "'s"
                )
            characters[pronoun.start : pronoun.end] = [found] + [""] * (
                pronoun.end - pronoun.start - 1
            )
    return "".join(characters)


def _is_head(words: Sequence[str]) -> bool:
    """Whether a mention is a name or a noun phrase."""
    lower = [word.lower() for word in words]
    return lower[0] not in _FOR_ANY and not _PRONOUNS.issuperset(lower)


def _is_possessive(pronoun: _Mention, tags: dict[int, str]) -> bool:
    # "her" may be an object, too.
    is_her = pronoun.text.lower() == "her"
    return (
        tags.get(pronoun.first + 1) in _AFTER_POSSESSIVES
        if is_her
        else pronoun.text.lower() in _POSSESSIVE
    )


def _tags(
    sentences: Sequence[Sequence[str]],
    positions: set[int],
    tag: Callable[[list[list[str]]], list[list[str]]],
) -> dict[int, str]:
    """The tags of all words in the sentences that have one of these positions."""
    chosen, first = {}, 0
    for sentence in sentences:
        if not positions.isdisjoint(range(first, first + len(sentence))):
            chosen[first] = list(sentence)
        first += len(sentence)
    found: dict[int, str] = {}
    for first, tags in zip(chosen, tag(list(chosen.values())) if chosen else (), strict=True):
        found.update(enumerate(tags, start=first))
    return found
