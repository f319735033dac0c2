import pytest
import spacy
from allennlp.data.tokenizers import SpacyTokenizer
from hypothesis import example, given
from hypothesis import strategies as st

from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.text import in_nfc

TEXTS = [
    "Jordan beat Chelsea .",
    "Mr. O'Neill doesn't live in the U.K., he said (twice).",
    "  two  spaces, a\ttab\nand a new line  ",
    "e.g. 3.5km, $5bn; don't!",
    "",
    "   ",
]

CHARACTERS = st.sampled_from(" \t\n.,'-()abcZ19é😀$") | st.characters(exclude_categories=["Cs"])
TEXT = st.text(CHARACTERS, max_size=30)


@pytest.fixture(scope="module")
def tokenizer() -> SpacyBlankTokenizer:
    return SpacyBlankTokenizer()


class TestSpacyBlankTokenizer:
    @pytest.mark.parametrize("text", TEXTS)
    @pytest.mark.parametrize("language", ["en", "de"])
    def test_the_tokens_match_allennlp(self, text, language, monkeypatch):
        from allennlp.data.tokenizers import spacy_tokenizer

        monkeypatch.setattr(spacy_tokenizer, "get_spacy_model", lambda *args: spacy.blank(language))
        tokens = SpacyBlankTokenizer(language).tokenize(text)
        all_expected = SpacyTokenizer(f"{language}_of_the_test").tokenize(text)
        # AllenNLP's tokenizer keeps white space between words as a token.
        expected = [token for token in all_expected if not token.text.isspace()]
        for token, expected_token in zip(tokens, expected, strict=True):
            assert token.text == expected_token.text
            assert token.idx == expected_token.idx
            assert token.idx_end == expected_token.idx_end

    @given(TEXT)
    @example("a  b")
    def test_the_offsets_match_the_tokens(self, tokenizer, text):
        tokens = tokenizer.tokenize(text)
        for token in tokens:
            assert in_nfc(text[token.idx : token.idx_end]) == token.text
            assert not token.text.isspace()
        remaining = text
        for token in reversed(tokens):
            remaining = remaining[: token.idx] + remaining[token.idx_end :]
        assert not remaining.strip()
