import json
import logging
import random
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Token, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.data.tokenizers import Tokenizer, WhitespaceTokenizer

from elmo_tasks.data import ElmoTokenIndexer, SquadReader

PASSAGE = "Built in 1854-1855 (by Ann Lee),  the U.S. hall\nhas 30%\u00a0of Europe's 2,000 seats. "


def squad(path: Path, *passages: tuple[str, list[list[str]]]) -> str:
    """A file of passages with the answers to their questions, each where it first occurs."""
    paragraphs = []
    for number, (passage, questions) in enumerate(passages):
        qas = [
            {
                "id": f"{number}-{index}",
                "question": f"What is {index}?",
                "answers": [{"text": text, "answer_start": passage.index(text)} for text in answers],
            }
            for index, answers in enumerate(questions)
        ]
        paragraphs.append({"context": passage, "qas": qas})
    path.write_text(json.dumps({"data": [{"title": "x", "paragraphs": paragraphs}]}))
    return str(path)


def answer_of(instance: Instance) -> str:
    """The tokens of the gold span, as the passage has them."""
    metadata = instance["metadata"].metadata
    first, last = instance["span_start"].sequence_index, instance["span_end"].sequence_index
    return metadata["passage"][metadata["offsets"][first][0] : metadata["offsets"][last][1]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.json"


class TestSquadReader:
    def test_an_instance(self, path):
        """Oracle: by hand."""
        (instance,) = SquadReader().read(squad(path, ("Ann Lee won.", [["Lee"]])))
        assert [token.text for token in instance["question"].tokens] == ["What", "is", "0", "?"]
        assert [token.text for token in instance["passage"].tokens] == ["Ann", "Lee", "won", "."]
        assert (instance["span_start"].sequence_index, instance["span_end"].sequence_index) == (1, 1)
        assert instance["metadata"].metadata == {
            "id": "0-0",
            "question_tokens": ["What", "is", "0", "?"],
            "passage": "Ann Lee won.",
            "passage_tokens": ["Ann", "Lee", "won", "."],
            "offsets": [(0, 3), (4, 7), (8, 11), (11, 12)],
            "answers": ["Lee"],
        }

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            ("1854", "1854"),
            ("1855", "1855"),
            ("185", "1854"),
            ("by Ann Lee", "by Ann Lee"),
            ("(by", "(by"),
            ("Lee),  the", "Lee),  the"),
            ("U.S", "U.S."),
            (" hall\n", "hall"),
            ("\u00a0of ", "of"),
            ("urop", "Europe"),
            ("000 seats. ", "2,000 seats."),
        ],
    )
    def test_the_span_has_all_tokens_of_the_answer(self, path, answer, expected):
        """Oracle: by hand: an answer within a token is all of it, and white space is no part of an answer."""
        (instance,) = SquadReader().read(squad(path, (PASSAGE, [[answer]])))
        assert answer_of(instance) == expected

    @pytest.mark.parametrize("seed", range(20))
    def test_random_spans(self, path, seed):
        """Oracle: the characters one after another: each token that has one of the answer, and no other."""
        generator = random.Random(seed)
        text = "".join(generator.choices("ab.,-( )1\n", k=60)) + "a"
        start = generator.randrange(len(text))
        answer = text[start : generator.randrange(start, len(text)) + 1]
        if not answer.strip():
            return
        instance = SquadReader().text_to_instance("Why?", text, [(answer, start)])
        offsets = instance["metadata"]["offsets"]
        characters = range(start, start + len(answer))
        tokens = [t for t, (first, end) in enumerate(offsets) if any(first <= c < end for c in characters)]
        assert (instance["span_start"].sequence_index, instance["span_end"].sequence_index) == (tokens[0], tokens[-1])

    def test_answers_within_tokens_are_counted(self, path, caplog):
        """Oracle: two of five, by hand."""
        answers = [["1854"], ["U.S"], ["\u00a0of "], ["urop"], ["Ann Lee"]]
        with caplog.at_level(logging.INFO):
            list(SquadReader().read(squad(path, (PASSAGE, answers))))
        assert "5 questions; 2 answers begin or end within a token" in caplog.text

    def test_the_answer_of_most_people_is_learnt_and_all_are_right(self, path):
        """Oracle: by hand; the first of two that are equally frequent."""
        answers = [["Ann", "Ann Lee", "Ann Lee"], ["Lee", "Ann"]]
        instances = list(SquadReader().read(squad(path, (PASSAGE, answers))))
        assert [answer_of(instance) for instance in instances] == ["Ann Lee", "Lee"]
        assert [instance["metadata"]["answers"] for instance in instances] == answers

    def test_long_passages_are_cut_and_questions_without_answers_dropped(self, path, caplog):
        """Oracle: by hand: of four tokens the answers in the third and around the cut, and the log."""
        file = squad(path, ("one two three four five six", [["three"], ["five"], ["four five"], ["four"]]))
        with caplog.at_level(logging.WARNING):
            instances = list(SquadReader(max_passage_tokens=4).read(file))
        assert [answer_of(instance) for instance in instances] == ["three", "four"]
        assert all(len(instance["passage"].tokens) == 4 for instance in instances)
        assert "2 of 4 questions are dropped: their answers are beyond the first 4 tokens" in caplog.text
        caplog.clear()
        assert len(list(SquadReader().read(file))) == 4
        assert "dropped" not in caplog.text

    def test_answers_that_are_cut_off_are_not_the_same(self, path):
        """Oracle: by hand: each answer is there once, so that the first is trained on; two that are the same win."""
        answers = [["one", "three", "four"], ["one", "four", "four"]]
        file = squad(path, ("one two three four", answers))
        instances = list(SquadReader(max_passage_tokens=2).read(file))
        assert [answer_of(instance) for instance in instances] == ["one"]

    def test_the_spans_are_those_of_the_reader_of_allennlp(self, fixtures_root):
        """Oracle: AllenNLP's `squad1` on the data that ships."""
        from allennlp_models.rc.dataset_readers import SquadReader as Theirs

        from elmo_tasks.data import SpacyBlankTokenizer

        for name in ("train", "dev"):
            file = str(fixtures_root / "squad" / f"{name}.json")
            ours, theirs = list(SquadReader().read(file)), list(Theirs.squad1(SpacyBlankTokenizer()).read(file))
            assert len(ours) == len(theirs) > 10
            for one, other in zip(ours, theirs, strict=True):
                for field in ("span_start", "span_end"):
                    assert one[field].sequence_index == other[field].sequence_index
                for field in ("question", "passage"):
                    assert [t.text for t in one[field].tokens] == [t.text for t in other[field].tokens]

    def test_without_answers_there_is_no_span(self):
        """Oracle: the names of the fields."""
        instance = SquadReader().text_to_instance("Who?", "Ann.")
        assert set(instance.fields) == {"question", "passage", "metadata"}
        assert "answers" not in instance["metadata"].metadata
        assert instance["metadata"]["id"] is None

    def test_questions_on_a_passage_share_its_field(self, path):
        """Oracle: the identity of the objects, which keeps the indexed words in memory once."""
        instances = list(SquadReader().read(squad(path, (PASSAGE, [["Ann"], ["Lee"]]), (PASSAGE, [["Ann"]]))))
        fields = [instance["passage"] for instance in instances]
        assert fields[0] is fields[1] is not fields[2]

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_workers_read_each_question_once(self, path, num_workers):
        """Oracle: the ids, by hand; the tensors of a batch."""
        file = squad(path, *[(PASSAGE, [["Ann"], ["hall"], ["Built"]])] * 3)
        indexers = {"tokens": SingleIdTokenIndexer(), "elmo": ElmoTokenIndexer()}
        loader = MultiProcessDataLoader(
            SquadReader(token_indexers=indexers), file, batch_size=2, num_workers=num_workers
        )
        vocab = Vocabulary.from_instances(loader.iter_instances())
        loader.index_with(vocab)
        batches = list(loader)
        ids = sorted(row["id"] for batch in batches for row in batch["metadata"])
        assert ids == [f"{passage}-{question}" for passage in range(3) for question in range(3)]
        assert all(batch["passage"]["elmo"]["character_ids"].shape[-1] == 50 for batch in batches)

    @pytest.mark.parametrize("texts", [("", PASSAGE), (" \n", PASSAGE), ("Who?", ""), ("Who?", "\t")])
    def test_texts_without_words_are_errors(self, texts):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=r"a (question|passage) must have at least one word, but is"):
            SquadReader().text_to_instance(*texts)

    def test_a_tokenizer_must_say_where_its_tokens_begin(self):
        """Oracle: the message names the tokenizer and one that does."""
        with pytest.raises(ConfigurationError, match="WhitespaceTokenizer does not: use 'spacy_blank'"):
            SquadReader(tokenizer=WhitespaceTokenizer()).text_to_instance("Who ?", "Ann .")

    def test_an_answer_of_which_there_is_no_token_is_an_error(self):
        """Oracle: the message names answer, question and tokenizer."""

        class Letters(Tokenizer):
            def tokenize(self, text: str) -> list[Token]:
                return [Token(letter, idx) for idx, letter in enumerate(text) if letter.isalpha()]

        with pytest.raises(ValueError, match=r"the answer '7' of question q1 must have a token, but Letters makes"):
            SquadReader(tokenizer=Letters()).text_to_instance("Who?", "Ann 7 Lee", [("7", 4)], "q1")

    @pytest.mark.parametrize("answer", [("Lee", 5), ("Bob", 0), ("Ann", -9), (" ", 3), ("Lee", 90)])
    def test_an_answer_must_be_at_its_place(self, answer):
        """Oracle: the message says answer and place; those of files are checked where they are read."""
        with pytest.raises(ValueError, match=f"at its place, but '{answer[0]}' is not at {answer[1]}$"):
            SquadReader().text_to_instance("Who?", "Ann 7 Lee", [("7", 4), answer])

    def test_a_wrong_limit_is_an_error(self):
        """Oracle: the message."""
        with pytest.raises(ConfigurationError, match="max_passage_tokens must be at least 1, but is 0"):
            SquadReader(max_passage_tokens=0)
