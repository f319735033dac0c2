import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from elmo_tasks.text.normal import in_nfc, origins

# Letters, accents, parts of Korean syllables, a sign that NFC splits, one that it replaces, and
# unknown characters.
TEXT = st.text(
    st.sampled_from("ae\u0301\u0323\u0308 \n\u1100\u1161\u11a8가\u0958\u2126\u2000\0\ud83d😀"),
    max_size=20,
)


@pytest.mark.parametrize("unknown", ["\0", "\ud83d", "\ude00"])
def test_what_cannot_be_written_becomes_one_sign(unknown):
    assert in_nfc(f"a{unknown}b é") == "a\ufffdb é"


@given(TEXT)
@example("e\u0323\u0301" + "\u0301" * 50 + "x")
def test_each_character_has_its_place_in_the_given_text(text):
    normal, places = in_nfc(text), origins(text)
    assert len(places) == len(normal) + 1 and places == sorted(places)
    assert places[0] == 0 and places[-1] == len(text)
    for cut, character in enumerate(text):
        before = in_nfc(text[:cut])
        if not unicodedata.combining(character) and before + in_nfc(text[cut:]) == normal:
            assert places[len(before)] == cut


def test_the_work_is_proportional_to_the_length(monkeypatch):
    """
    Counts the characters that are normalised, for many accents on one letter and for Korean
    syllables.
    """
    work = []
    normalize = unicodedata.normalize
    monkeypatch.setattr(
        unicodedata, "normalize", lambda form, text: work.append(len(text)) or normalize(form, text)
    )
    for unit in ("\u0301", "e\u0301", "\u1112\u1161\u11ab"):
        counts = []
        for n in (100, 1000):
            work.clear()
            origins("e" + n * unit)
            counts.append(sum(work))
        assert counts[1] < 11 * counts[0]
