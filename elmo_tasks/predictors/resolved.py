"""English texts with the pronouns of coreference chains replaced."""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from allennlp.common.util import JsonDict

__all__ = ["resolved_text"]

_PERSONAL = frozenset({"he", "him", "she", "her", "it", "they", "them", "'em"})
_POSSESSIVE = frozenset({"his", "hers", "its", "their", "theirs"})
# Neither replaced nor a replacement: with a name for "I", the verb would not agree, and "this" may mean a sentence.
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


class _Mention(NamedTuple):
    first: int
    last: int
    text: str
    start: int
    end: int

    def words_in(self, words: Sequence[str]) -> Sequence[str]:
        return words[self.first : self.last + 1]


def resolved_text(
    text: str,
    sentences: Sequence[Sequence[str]],
    chains: Iterable[Sequence[tuple[Sequence[int], JsonDict]]],
    tag: Callable[[list[list[str]]], list[list[str]]],
) -> str:
    """
    Replaces personal and possessive pronouns of the third person by the first name or noun phrase of their chain.
    A mention of a chain has its first and last word, and its place in the text. `tag`, which finds the universal
    parts of speech of sentences, is called only if words are unclear.
    """
    words = list(chain.from_iterable(sentences))
    firsts = set(accumulate(map(len, sentences), initial=0))
    replaced: list[tuple[_Mention, list[_Mention]]] = []
    unclear: set[int] = set()
    for each in chains:
        mentions = [_Mention(first, last, *place.values()) for (first, last), place in each]
        heads = [mention for mention in mentions if _is_head(mention.words_in(words))]
        pronouns = [mention for mention in mentions if mention.text.lower() in _PERSONAL | _POSSESSIVE]
        replaced += ((pronoun, heads) for pronoun in pronouns if heads)
        unclear |= {pronoun.first for pronoun in pronouns if heads and pronoun.text.lower() == "her"}
        # A word in lower case may be a verb, and a sentence's first word a name.
        unclear |= {head.first for head in heads[:1] if pronouns and (head.first == head.last or head.first in firsts)}
    tags = _tags(sentences, {position for position in unclear if words[position].lower() not in _ARTICLES}, tag)
    characters = list(text)
    for pronoun, (head, *others) in replaced:
        if head.first == head.last and tags.get(head.first) in ("AUX", "VERB"):
            (head,) = others[:1] or [pronoun]
        if not head.first <= pronoun.first <= head.last:
            found = head.text.removesuffix("'").removesuffix("'s").removesuffix("\u2019s")
            if pronoun.text[0].isupper():
                found = found[0].upper() + found[1:]
            elif head.first in firsts and tags.get(head.first) != "PROPN" and words[head.first].istitle():
                found = found[0].lower() + found[1:]
            if _is_possessive(pronoun, tags):
                found += "'" if found.endswith("s") and pronoun.text.lower().startswith("their") else "'s"
            characters[pronoun.start : pronoun.end] = [found] + [""] * (pronoun.end - pronoun.start - 1)
    return "".join(characters)


def _is_head(words: Sequence[str]) -> bool:
    """Whether a mention is a name or a noun phrase."""
    lower = [word.lower() for word in words]
    return lower[0] not in _FOR_ANY and not _PRONOUNS.issuperset(lower)


def _is_possessive(pronoun: _Mention, tags: dict[int, str]) -> bool:
    # "her" may be an object, too.
    is_her = pronoun.text.lower() == "her"
    return tags.get(pronoun.first + 1) in _AFTER_POSSESSIVES if is_her else pronoun.text.lower() in _POSSESSIVE


def _tags(
    sentences: Sequence[Sequence[str]], positions: set[int], tag: Callable[[list[list[str]]], list[list[str]]]
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
