"""English texts with pronouns replaced by what they mean."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

from elmo_tasks.predictors.pos_tagger import TagSentences

__all__ = ["LocatedMention", "resolved_text"]

_PERSONAL = frozenset({"he", "him", "she", "her", "it", "they", "them", "'em"})
_POSSESSIVE = frozenset({"his", "hers", "its", "their", "theirs"})
# Neither replaced nor a replacement: with a name for "I", the verb would not agree, and "this" may
# mean a sentence.
_KEPT = (
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves himself "
    "herself itself themselves themself oneself who whom whose which that this these those what "
    "one each other another both all some any none of everyone everybody someone somebody anyone "
    "anybody nobody everything something anything nothing"
)
_PRONOUNS = _PERSONAL | _POSSESSIVE | frozenset(_KEPT.split())
# "Every student lost his book" is not about the book of every student.
_FOR_ANY = frozenset({"every", "each", "no", "any", "either", "neither"})
_ARTICLES = frozenset({"the", "a", "an"})
_AFTER_POSSESSIVES = frozenset({"ADJ", "NOUN", "NUM", "PROPN"})


class LocatedMention(NamedTuple):
    """A mention: its first and last word, its text, and its offsets."""

    first: int
    last: int
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class _TaggedText:
    words: list[str]
    sentence_starts: set[int]
    tags: dict[int, str]
    """The universal parts of speech of words, by position, in the sentences that need them."""

    def replacement(self, pronoun: LocatedMention, head: LocatedMention) -> str:
        """What is written instead of a pronoun."""
        name = head.text.removesuffix("'").removesuffix("'s").removesuffix("\u2019s")
        if pronoun.text[0].isupper():
            name = name[0].upper() + name[1:]
        elif self._has_capital_of_sentence(head):
            name = name[0].lower() + name[1:]
        if not self._is_possessive(pronoun):
            return name
        is_plural = name.endswith("s") and pronoun.text.lower().startswith("their")
        return name + ("'" if is_plural else "'s")

    def is_verb(self, mention: LocatedMention) -> bool:
        is_word = mention.first == mention.last
        return is_word and self.tags.get(mention.first) in ("AUX", "VERB")

    def _has_capital_of_sentence(self, head: LocatedMention) -> bool:
        """Whether the first word has a capital letter only because it begins a sentence."""
        return (
            head.first in self.sentence_starts
            and self.tags.get(head.first) != "PROPN"
            and self.words[head.first].istitle()
        )

    def _is_possessive(self, pronoun: LocatedMention) -> bool:
        if pronoun.text.lower() == "her":
            # It may be an object, too.
            return self.tags.get(pronoun.first + 1) in _AFTER_POSSESSIVES
        return pronoun.text.lower() in _POSSESSIVE


def resolved_text(
    text: str,
    sentences: Sequence[Sequence[str]],
    chains: Iterable[Sequence[LocatedMention]],
    tag: TagSentences,
) -> str:
    """
    Replaces personal and possessive pronouns of the third person by the first name or noun phrase
    of their chain. `tag`, which finds the universal parts of speech of sentences, is called only if
    words are unclear.
    """
    words = list(chain.from_iterable(sentences))
    sentence_starts = set(accumulate(map(len, sentences), initial=0))
    # Each pronoun with the names and noun phrases of its chain.
    replaced: list[tuple[LocatedMention, list[LocatedMention]]] = []
    unclear: set[int] = set()
    for mentions in chains:
        heads = [mention for mention in mentions if _is_head(words, mention)]
        pronouns = [mention for mention in mentions if _is_replaced(mention)]
        if not heads or not pronouns:
            continue
        for pronoun in pronouns:
            replaced.append((pronoun, heads))
            if pronoun.text.lower() == "her":
                unclear.add(pronoun.first)
        first_word = heads[0].first
        # A word in lower case may be a verb, and a sentence's first word a name.
        is_unclear = first_word == heads[0].last or first_word in sentence_starts
        if is_unclear and words[first_word].lower() not in _ARTICLES:
            unclear.add(first_word)
    tagged = _TaggedText(words, sentence_starts, _tags(sentences, unclear, tag))

    characters = list(text)
    for pronoun, heads in replaced:
        head = heads[0]
        if tagged.is_verb(head):
            if len(heads) == 1:
                continue
            head = heads[1]
        if not head.first <= pronoun.first <= head.last:
            n_more = pronoun.end - pronoun.start - 1
            replacement = tagged.replacement(pronoun, head)
            # One element per character of the text, so the offsets stay right.
            characters[pronoun.start : pronoun.end] = [replacement] + [""] * n_more
    return "".join(characters)


def _is_head(words: Sequence[str], mention: LocatedMention) -> bool:
    """Whether a mention is a name or a noun phrase."""
    lower = [word.lower() for word in words[mention.first : mention.last + 1]]
    return lower[0] not in _FOR_ANY and not _PRONOUNS.issuperset(lower)


def _is_replaced(mention: LocatedMention) -> bool:
    """Whether a mention is a personal or possessive pronoun of the third person."""
    return mention.text.lower() in _PERSONAL | _POSSESSIVE


def _tags(
    sentences: Sequence[Sequence[str]], positions: set[int], tag: TagSentences
) -> dict[int, str]:
    """The tags of all words in the sentences that have one of these positions."""
    starts = []
    untagged = []
    start = 0
    for sentence in sentences:
        end = start + len(sentence)
        if not positions.isdisjoint(range(start, end)):
            starts.append(start)
            untagged.append(list(sentence))
        start = end
    if not untagged:
        return {}
    tags: dict[int, str] = {}
    for start, sentence_tags in zip(starts, tag(untagged), strict=True):
        tags.update(enumerate(sentence_tags, start=start))
    return tags
