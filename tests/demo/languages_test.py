from elmo_tasks.demo.languages import EXAMPLES, language_of
from elmo_tasks.demo.texts import Texts
from elmo_tasks.vectors.pretrained import NAMED_BILMS


class TestLanguageOf:
    def test_a_korean_bilm_is_known_by_its_words(self, tmp_path):
        """Oracle: by hand; no file is English."""
        path = tmp_path / "vocab.txt"
        assert language_of(path) == "en"
        path.write_text("<S>\n</S>\n<UNK>\n.\n있다\n수\n그\n이\n것\n")
        assert language_of(path) == "ko"
        path.write_text("<S>\n</S>\n<UNK>\n.\nthe\n김치\n")
        assert language_of(path) == "en"

    def test_a_named_one_is_known_by_what_it_has_read(self, tmp_path):
        """Oracle: by hand, of both that ship; that of Korean has no file of words."""
        for name, language in (("small-ko-open", "ko"), ("small-open", "en")):
            assert language_of(tmp_path / "vocab.txt", NAMED_BILMS[name].scripts) == language


class TestExamples:
    def test_each_word_is_in_its_sentences(self):
        """Oracle: the words, as the rules of the language split them; the examples that there must be."""
        assert [example.word for example in EXAMPLES["en"]] == ["play", "bank", "gift"]
        assert [example.word[0] for example in EXAMPLES["ko"]] == ["눈", "사"]
        for language, examples in EXAMPLES.items():
            for word, sentences in examples:
                assert len(sentences) > 1
                assert all(word in words for words in Texts(language).sentences(list(sentences)))
