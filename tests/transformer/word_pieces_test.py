import base64
import json
import pickle
import zlib

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from elmo_tasks.transformer.checkpoint import read_pieces
from elmo_tasks.transformer.word_pieces import SpecialPieces, WordPieces
from tests.transformer.checkpoints import FAMILIES, reference_tokenizer

WORDS = ["The", "can't", "Encyclopædia", "1999", "a-b-c", "x" * 30, ".", "the", "é", "U.S.", "two words"]


@pytest.mark.parametrize("family", FAMILIES)
class TestFamilies:
    def test_words_have_the_pieces_of_the_library(self, checkpoint, family):
        """Oracle: the library's tokenizer with its word_ids."""
        encoding = reference_tokenizer(checkpoint(family))(WORDS, is_split_into_words=True, add_special_tokens=False)
        expected = [[] for _ in WORDS]
        for word, piece in zip(encoding.word_ids(), encoding["input_ids"], strict=True):
            expected[word].append(piece)
        assert read_pieces(str(checkpoint(family)))[0](WORDS) == expected

    def test_its_content_makes_the_same_tokenizer(self, checkpoint, family):
        """Oracle: the pieces before, after a round trip by JSON and by pickle."""
        pieces = read_pieces(str(checkpoint(family)))[0]
        for again in (
            WordPieces.from_dict(json.loads(json.dumps(pieces.to_dict()))),
            pickle.loads(pickle.dumps(pieces)),
        ):
            assert again(WORDS) == pieces(WORDS)
            assert again.to_dict() == pieces.to_dict()

    def test_the_special_pieces_are_those_of_the_library(self, checkpoint, family):
        """Oracle: the library's encoding of a sentence, with ids and types."""
        pieces, special = read_pieces(str(checkpoint(family)))
        encoding = reference_tokenizer(checkpoint(family))(WORDS, is_split_into_words=True)
        own = [piece for word in pieces(WORDS) for piece in word]
        assert [*special.before, *own, *special.after] == encoding["input_ids"]
        types = encoding.get("token_type_ids")
        assert (special.types is None) == (types is None)
        if types is not None:
            n_before = len(special.before)
            by_ours = special.types[:n_before] + special.types[n_before : n_before + 1] * len(own)
            assert [*by_ours, *special.types[n_before + 1 :]] == types

    def test_a_word_that_is_no_text_has_a_piece(self, checkpoint, family):
        """Oracle: at least one piece for each; half of a surrogate pair is the same as a question mark."""
        pieces = read_pieces(str(checkpoint(family)))[0]
        found = pieces(["\u200d", "", "\x00", "\ud83d", "?"])
        assert all(found)
        assert found[3] == found[4]


class TestWordPieces:
    def test_a_word_without_pieces_is_an_error_where_there_is_none_for_unknown_words(self):
        """Oracle: the message names the word."""
        tokenizer = tokenizers.Tokenizer(models.BPE({"a": 0}, []))
        pieces = WordPieces.of(tokenizer, unknown=None)
        assert pieces(["a"]) == [[0]]
        with pytest.raises(ValueError, match="makes none of 'é' in 'a é', and has no piece for unknown words: remove"):
            pieces(["a", "é"])

    @pytest.mark.parametrize(
        ("normalizer", "pre_tokenizer"),
        [
            (None, pre_tokenizers.ByteLevel(add_prefix_space=False)),
            (None, pre_tokenizers.ByteLevel(add_prefix_space=True)),
            (None, pre_tokenizers.Metaspace()),
            (None, pre_tokenizers.Metaspace(prepend_scheme="never")),
            # As Gemma and Llama 2 have it.
            (normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous")),
            (normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None),
        ],
        ids=["bytes", "bytes, space added", "metaspace", "metaspace, none added", "Gemma", "Llama 2"],
    )
    def test_a_word_has_the_pieces_that_it_has_in_a_text(self, normalizer, pre_tokenizer):
        """Oracle: the tokenizer's pieces of the text, after its first word."""
        words = ["the", "then", "other", "heron", "a", "eat"]
        letters = sorted({letter for word in words for letter in word})
        merges = [(space, letter) for space in "▁Ġ" for letter in letters]
        known = [*"▁Ġ", *letters, *("".join(merge) for merge in merges)]
        tokenizer = tokenizers.Tokenizer(models.BPE({piece: number for number, piece in enumerate(known)}, merges))
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        if pre_tokenizer is not None:
            tokenizer.pre_tokenizer = pre_tokenizer
        in_text = tokenizer.encode(" ".join(["the", *words]), add_special_tokens=False).ids
        found = [piece for word in WordPieces.of(tokenizer, unknown=None)(words) for piece in word]
        assert in_text[-len(found) :] == found
        # A space and a letter are one piece.
        assert len(found) == sum(map(len, words))

    def test_truncation_and_padding_are_not_taken_over(self, checkpoint):
        """Oracle: the pieces of all words, although the tokenizer was saved with a length."""
        tokenizer = tokenizers.Tokenizer.from_file(str(checkpoint("bert") / "tokenizer.json"))
        expected = WordPieces.of(tokenizer, 1)(WORDS)
        tokenizer.enable_truncation(3)
        tokenizer.enable_padding(length=90)
        assert WordPieces.of(tokenizer, 1)(WORDS) == expected

    @pytest.mark.parametrize(
        "change",
        [
            {"packed": "%"},
            {"packed": base64.b64encode(zlib.compress(b"{}")).decode()},
            {"packed": base64.b64encode(zlib.compress(b"{}")[:-2]).decode()},
            {"unknown": "x"},
            {"packed": None},
        ],
    )
    def test_damaged_content_is_an_error(self, checkpoint, change):
        """Oracle: one line."""
        content = {**read_pieces(str(checkpoint("bert")))[0].to_dict(), **change}
        with pytest.raises(ValueError, match="a tokenizer must be what a training has written") as error:
            WordPieces.from_dict(content)
        assert "\n" not in str(error.value)

    def test_a_content_that_unpacks_to_too_much_is_an_error(self, checkpoint, monkeypatch):
        """Oracle: the message, with a small limit."""
        monkeypatch.setattr("elmo_tasks.transformer.word_pieces._MAX_BYTES", 100)
        content = read_pieces(str(checkpoint("bert")))[0].to_dict()
        with pytest.raises(ValueError, match="larger than 100 bytes"):
            WordPieces.from_dict(content)


class TestSpecialPieces:
    def test_it_is_found_around_a_sentence(self):
        """Oracle: by hand, as for XLNet."""
        special = SpecialPieces.around([7, 8, 4, 3], [0, 0, 1, 1], [0, 0, 0, 2])
        assert special == SpecialPieces((), (4, 3), (0, 0, 2))
        assert SpecialPieces.from_dict(special.to_dict()) == special

    @pytest.mark.parametrize(
        "content",
        [{}, {"before": 1, "after": [], "types": None}, {"before": ["x"], "after": [], "types": None}],
    )
    def test_another_content_is_an_error(self, content):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="special_pieces must have lists 'before' and 'after' and 'types'"):
            SpecialPieces.from_dict(content)

    def test_types_for_other_pieces_are_an_error(self):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="a type for each piece"):
            SpecialPieces.from_dict({"before": [1], "after": [2], "types": [0]})
