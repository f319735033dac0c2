import json
from pathlib import Path
from unicodedata import normalize

import pytest
from allennlp.data import Instance

from elmo_tasks.data import SquadReader

PASSAGE = "Built in 1854-1855 (by Ann Lee),  the U.S. hall\nhas 30%\u00a0of Europe's 2,000 seats. "


def squad(path: Path, *passages: tuple[str, list[list[str]]]) -> str:
    """A file of passages and questions; each answer points to its first occurrence."""
    paragraphs = []
    for number, (passage, questions) in enumerate(passages):
        qas = [
            {
                "id": f"{number}-{index}",
                "question": f"What is {index}?",
                "answers": [
                    {"text": text, "answer_start": passage.index(text)} for text in answers
                ],
            }
            for index, answers in enumerate(questions)
        ]
        paragraphs.append({"context": passage, "qas": qas})
    path.write_text(json.dumps({"data": [{"title": "x", "paragraphs": paragraphs}]}))
    return str(path)


def answer_of(instance: Instance) -> str:
    """The text of the passage from the first to the last token of the gold span."""
    metadata = instance["metadata"].metadata
    first, last = instance["span_start"].sequence_index, instance["span_end"].sequence_index
    return metadata["original_passage"][
        metadata["token_offsets"][first][0] : metadata["token_offsets"][last][1]
    ]


class TestSquadReader:
    def test_an_instance(self, path):
        (instance,) = SquadReader().read(squad(path, ("Ann Lee won.", [["Lee"]])))
        assert [token.text for token in instance["question"].tokens] == ["What", "is", "0", "?"]
        assert [token.text for token in instance["passage"].tokens] == ["Ann", "Lee", "won", "."]
        assert (instance["span_start"].sequence_index, instance["span_end"].sequence_index) == (
            1,
            1,
        )
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

    @pytest.mark.parametrize("answer", ["Çelik Müller", "Zürich", "Zoë", "in Zürich."])
    def test_the_places_are_in_the_text_as_it_was_given(self, path, answer):
        """NFD has more characters than the words, which are in NFC."""
        passage, answer = (
            normalize("NFD", text) for text in ("Zoë met Çelik Müller in Zürich.", answer)
        )
        (instance,) = SquadReader().read(squad(path, (passage, [[answer]])))
        assert answer_of(instance) == answer and instance["metadata"]["original_passage"] == passage
        words = ["Zoë", "met", "Çelik", "Müller", "in", "Zürich", "."]
        assert (
            [token.text for token in instance["passage"].tokens]
            == instance["metadata"]["passage_tokens"]
            == words
        )
        (cut,) = SquadReader(max_passage_tokens=6).read(
            squad(path, (passage, [[answer.removesuffix(".")]]))
        )
        assert answer_of(cut) == answer.removesuffix(".") and len(cut["passage"]) == 6

    def test_the_most_common_answer_is_the_target_and_all_answers_are_right(self, path):
        answers = [["Ann", "Ann Lee", "Ann Lee"], ["Lee", "Ann"]]
        instances = list(SquadReader().read(squad(path, (PASSAGE, answers))))
        assert [answer_of(instance) for instance in instances] == ["Ann Lee", "Lee"]
        assert [instance["metadata"]["answer_texts"] for instance in instances] == answers

    def test_a_part_of_questions_without_ids(self, path):
        file = squad(path, (PASSAGE, [["Ann"], ["Lee"]]))
        path.write_text(path.read_text().replace('"id"', '"number"'))
        parts = [list(SquadReader().read(f"{file}[{part}]")) for part in (":50%", "50%:")]
        assert [[answer_of(instance) for instance in part] for part in parts] == [["Ann"], ["Lee"]]

    def test_long_passages_are_cut_and_questions_without_answers_dropped(self, path):
        """With a limit of four tokens: answers in the third token and around the cut."""
        file = squad(
            path, ("one two three four five six", [["three"], ["five"], ["four five"], ["four"]])
        )
        instances = list(SquadReader(max_passage_tokens=4).read(file))
        assert [answer_of(instance) for instance in instances] == ["three", "four"]
        assert all(len(instance["passage"].tokens) == 4 for instance in instances)
        assert len(list(SquadReader().read(file))) == 4

    def test_the_spans_match_allennlps(self, fixtures_root):
        from allennlp_models.rc.dataset_readers import SquadReader as Theirs

        from elmo_tasks.data import SpacyBlankTokenizer

        for name in ("train", "dev"):
            file = str(fixtures_root / "squad" / f"{name}.json")
            ours, theirs = (
                list(SquadReader().read(file)),
                list(Theirs.squad1(SpacyBlankTokenizer()).read(file)),
            )
            assert len(ours) == len(theirs) > 10
            for one, other in zip(ours, theirs, strict=True):
                for field in ("span_start", "span_end"):
                    assert one[field].sequence_index == other[field].sequence_index
                for field in ("question", "passage"):
                    assert [t.text for t in one[field].tokens] == [
                        t.text for t in other[field].tokens
                    ]

    def test_without_answers_there_is_no_span(self):
        instance = SquadReader().text_to_instance("Who?", "Ann.")
        assert set(instance.fields) == {"question", "passage", "metadata"}
        assert "answer_texts" not in instance["metadata"].metadata
        assert instance["metadata"]["id"] is None
