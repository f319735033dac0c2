import re
from itertools import chain

import pytest

from elmo_tasks.predictors.pos_tagger import PosTagger
from elmo_tasks.predictors.pronouns import LocatedMention, resolved_text
from elmo_tasks.text import located_sentences

# Mentions are marked with the number of their chain.
TEXTS = {
    # A chain needs a name or a noun phrase.
    "[1 His] mother called [1 him]. [1 He] answered.": None,
    "[1 My] sister lost [1 my] keys. [1 I] was angry.": None,
    "[2 [1 Their] dog] ran away. [1 They] followed [2 [1 their] dog].": None,
    "[1 He] washed [1 himself].": None,
    "[1 Nobody] likes [1 his] boss.": None,
    "[1 Every student] lost [1 his] book.": None,
    "[1 They] all left. [1 They] were late.": None,
    # Which pronouns are replaced.
    "[1 The boys] washed [1 themselves].": None,
    "[1 Ann], [1 who] sings, is tired.": None,
    "[1 Ann] said: \u201c[1 I] am tired.\u201d": None,
    "[1 The road] was wet. [1 This] annoyed us.": None,
    "[1 The woman who sold [1 her] car] left.": None,
    "[1 Angela Merkel] spoke. [1 Merkel] was tired.": None,
    "[1 Ann] sang. [1 She] was tired.": "Ann sang. Ann was tired.",
    "[1 Ann] sang, and Bob heard [1 her].": "Ann sang, and Bob heard Ann.",
    "[1 Ann] sang. [1 Her] hat fell.": "Ann sang. Ann's hat fell.",
    "[1 Ann] lost [1 her] old hat, not [1 hers].": "Ann lost Ann's old hat, not Ann's.",
    "When [1 she] arrived, [1 Ann] sat down.": "When Ann arrived, Ann sat down.",
    "[1 His] phone rang, so [1 Bob] answered.": "Bob's phone rang, so Bob answered.",
    # The first name or noun phrase that is not a pronoun replaces them.
    "[1 She] slept. [1 The nurse] was tired, and [1 she] snored.": (
        "The nurse slept. The nurse was tired, and the nurse snored."
    ),
    "Sales [1 grew], and [1 the growth] lasted. [1 It] was strong.": (
        "Sales grew, and the growth lasted. The growth was strong."
    ),
    "Sales [1 grew]. [1 It] surprised us.": None,
    # Capitals.
    "[1 The boys] sang. Ann saw [1 them].": "The boys sang. Ann saw the boys.",
    "[1 Young people] complained, but nobody heard [1 them].": (
        "Young people complained, but nobody heard young people."
    ),
    "Ann saw [1 the boys]. [1 They] sang.": "Ann saw the boys. The boys sang.",
    "[1 NASA] was proud. We heard [1 it].": "NASA was proud. We heard NASA.",
    "[1 Berlin] is big, and I like [1 it].": "Berlin is big, and I like Berlin.",
    # Possessives.
    "[1 The boys] lost [1 their] ball.": "The boys lost the boys' ball.",
    "[1 The boss] lost [1 his] keys.": "The boss lost the boss's keys.",
    "[1 Ann's] dog barked at [1 her].": "Ann's dog barked at Ann.",
    "[1 The boys'] dog barked at [1 them].": "The boys' dog barked at the boys.",
    "[1 Ann] met [2 [1 her] brother]. [2 He] had [1 her] bag and [2 his] hat.": (
        "Ann met Ann's brother. Her brother had Ann's bag and her brother's hat."
    ),
    # White space and characters of two parts are kept.
    "[1 Jose\u0301]  sang.\n[1 He] left.": "Jose\u0301  sang.\nJose\u0301 left.",
}


def parsed(marked: str) -> tuple[str, list[list[str]], list[list[LocatedMention]]]:
    """
    The text, its sentences, and its chains of the first and last word of each mention, and its
    place.
    """
    text = ""
    opened = []
    spans = []
    for token in re.findall(r"\[\d |\]|[^][]+", marked):
        if token == "]":
            number, start = opened.pop()
            spans.append((number, start, len(text)))
        elif token.startswith("["):
            opened.append((int(token[1]), len(text)))
        else:
            text += token
    located = located_sentences(text)
    words = list(chain.from_iterable(located))
    chains: dict[int, list[LocatedMention]] = {}
    for number, start, end in sorted(spans):
        positions = []
        for position, word in enumerate(words):
            if start <= word.start and word.end <= end:
                positions.append(position)
        mention = LocatedMention(positions[0], positions[-1], text[start:end], start, end)
        chains.setdefault(number, []).append(mention)
    sentences = []
    for located_words in located:
        sentences.append([word.text for word in located_words])
    return text, sentences, list(chains.values())


@pytest.fixture(scope="module")
def tagger() -> PosTagger:
    return PosTagger()


@pytest.mark.parametrize(("marked", "expected"), TEXTS.items())
def test_pronouns_are_replaced_by_the_head_of_their_chain(tagger, marked, expected):
    text, sentences, chains = parsed(marked)
    assert resolved_text(text, sentences, chains, tagger) == (expected or text)
