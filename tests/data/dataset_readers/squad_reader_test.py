import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from allennlp.data import Instance

from elmo_tasks.data import SquadReader
from tests.data.dataset_readers.instances import words_in

PASSAGE = "Built in 1854-1855 (by Ann Lee),  the U.S. hall\nhas 30%\u00a0of Europe's 2,000 seats. "


def squad(path: Path, *passages: tuple[str, list[list[str]]]) -> str:
    """A file of passages and questions; each answer points to its first occurrence."""
    paragraphs = []
    for passage_number, (passage, answers_of_questions) in enumerate(passages):
        questions = []
        for number, answers in enumerate(answers_of_questions):
            question = {
                "id": f"{passage_number}-{number}",
                "question": f"What is {number}?",
                "answers": [answer_in(passage, text) for text in answers],
            }
            questions.append(question)
        paragraphs.append({"context": passage, "qas": questions})
    path.write_text(json.dumps({"data": [{"title": "x", "paragraphs": paragraphs}]}))
    return str(path)


def answer_in(passage: str, text: str) -> dict[str, Any]:
    return {"text": text, "answer_start": passage.index(text)}


def answer_of(instance: Instance) -> str:
    """The text of the passage from the first to the last token of the gold span."""
    metadata = instance["metadata"].metadata
    start, _ = metadata["token_offsets"][instance["span_start"].sequence_index]
    _, end = metadata["token_offsets"][instance["span_end"].sequence_index]
    return metadata["original_passage"][start:end]


class TestSquadReader:
    def test_an_instance(self, path):
        (instance,) = SquadReader().read(squad(path, ("Ann Lee won.", [["Lee"]])))
        assert words_in(instance["question"]) == ["What", "is", "0", "?"]
        assert words_in(instance["passage"]) == ["Ann", "Lee", "won", "."]
        assert instance["span_start"].sequence_index == 1
        assert instance["span_end"].sequence_index == 1
        assert instance["metadata"].metadata == {
            "id": "0-0",
            "question_tokens": ["What", "is", "0", "?"],
            "original_passage": "Ann Lee won.",
            "passage_tokens": ["Ann", "Lee", "won", "."],
            "token_offsets": [(0, 3), (4, 7), (8, 11), (11, 12)],
            "answer_texts": ["Lee"],
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
            ("urop", "Europe"),
            ("000 seats. ", "2,000 seats."),
        ],
    )
    def test_the_span_has_all_tokens_of_the_answer(self, path, answer, expected):
        (instance,) = SquadReader().read(squad(path, (PASSAGE, [[answer]])))
        assert answer_of(instance) == expected

    @pytest.mark.parametrize(
        ("passage", "answer", "expected"),
        [
            ("So the Denver Broncos won .", " Denver Broncos", (2, 3)),
            ("So the\n\u00a0 Denver Broncos won .", "\n\u00a0 Denver Broncos ", (2, 3)),
            (" Denver Broncos won .", " Denver", (0, 0)),
            ("\n Denver Broncos won .", "\n Denver Broncos ", (0, 1)),
        ],
    )
    def test_white_space_around_an_answer_adds_no_token(self, path, passage, answer, expected):
        (instance,) = SquadReader().read(squad(path, (passage, [[answer]])))
        span = (instance["span_start"].sequence_index, instance["span_end"].sequence_index)
        assert span == expected
        assert instance["metadata"]["answer_texts"] == [answer]

    @pytest.mark.parametrize("answer", ["Çelik Müller", "Zürich", "Zoë", "in Zürich."])
    def test_the_places_are_in_the_text_as_it_was_given(self, path, answer):
        """NFD has more characters than the words, which are in NFC."""
        passage = normalize("NFD", "Zoë met Çelik Müller in Zürich.")
        answer = normalize("NFD", answer)
        (instance,) = SquadReader().read(squad(path, (passage, [[answer]])))
        assert answer_of(instance) == answer
        metadata = instance["metadata"].metadata
        assert metadata["original_passage"] == passage
        words = ["Zoë", "met", "Çelik", "Müller", "in", "Zürich", "."]
        assert words_in(instance["passage"]) == words
        assert metadata["passage_tokens"] == words
        answer = answer.removesuffix(".")
        (instance,) = SquadReader(max_passage_tokens=6).read(squad(path, (passage, [[answer]])))
        assert answer_of(instance) == answer
        assert len(instance["passage"]) == 6

    def test_the_most_common_answer_is_the_target_and_all_answers_are_right(self, path):
        answers = [["Ann", "Ann Lee", "Ann Lee"], ["Lee", "Ann"]]
        instances = list(SquadReader().read(squad(path, (PASSAGE, answers))))
        assert list(map(answer_of, instances)) == ["Ann Lee", "Lee"]
        assert [instance["metadata"]["answer_texts"] for instance in instances] == answers

    def test_a_part_of_questions_without_ids(self, path):
        file = squad(path, (PASSAGE, [["Ann"], ["Lee"]]))
        path.write_text(path.read_text().replace('"id"', '"number"'))
        assert list(map(answer_of, SquadReader().read(f"{file}[:50%]"))) == ["Ann"]
        assert list(map(answer_of, SquadReader().read(f"{file}[50%:]"))) == ["Lee"]

    def test_long_passages_are_cut_and_questions_without_answers_dropped(self, path):
        """With a limit of four tokens: answers in the third token and around the cut."""
        passage = "one two three four five six"
        file = squad(path, (passage, [["three"], ["five"], ["four five"], ["four"]]))
        instances = list(SquadReader(max_passage_tokens=4).read(file))
        assert list(map(answer_of, instances)) == ["three", "four"]
        for instance in instances:
            assert words_in(instance["passage"]) == ["one", "two", "three", "four"]
        assert len(list(SquadReader().read(file))) == 4

    def test_the_spans_match_allennlps(self, fixtures_root):
        from allennlp_models.rc.dataset_readers import SquadReader as AllenNlpSquadReader

        from elmo_tasks.data import SpacyBlankTokenizer

        allennlp_reader = AllenNlpSquadReader.squad1(SpacyBlankTokenizer())
        for name in ("train", "dev"):
            file = str(fixtures_root / "squad" / f"{name}.json")
            instances = list(SquadReader().read(file))
            assert len(instances) > 10
            for instance, expected in zip(instances, allennlp_reader.read(file), strict=True):
                for field in ("span_start", "span_end"):
                    assert instance[field].sequence_index == expected[field].sequence_index
                for field in ("question", "passage"):
                    assert words_in(instance[field]) == words_in(expected[field])

    def test_without_answers_there_is_no_span(self):
        instance = SquadReader().text_to_instance("Who?", "Ann.")
        assert set(instance.fields) == {"question", "passage", "metadata"}
        assert "answer_texts" not in instance["metadata"].metadata
        assert instance["metadata"]["id"] is None
