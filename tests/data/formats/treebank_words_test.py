"""Tests of the treebank's words."""

from nltk.tokenize import TreebankWordTokenizer

from elmo_tasks.data.dataset_readers.sst_reader import TREEBANK_WORDS


class TestTreebankWords:
    def test_each_is_what_the_treebank_s_tokenizer_makes_of_a_character(self):
        """Oracle: NLTK's tokenizer, which writes brackets and quotes as the treebank does."""
        words = TreebankWordTokenizer().tokenize('(a) [b] {c} "d"', convert_parentheses=True)
        assert [TREEBANK_WORDS.get(word, word) for word in words] == list('(a)[b]{c}"d"')
        assert set(TREEBANK_WORDS) <= set(words)
