import copy
import json
import re
from pathlib import Path

import pytest

from elmo_tasks.data.formats.squad_json import Answer, Question, read_questions

PARAGRAPH = "Jordan beat Chelsea in Paris in 1998."
CONTENT = {
    "version": "1.1",
    "data": [
        {
            "title": "Games",
            "paragraphs": [
                {
                    "context": PARAGRAPH,
                    "qas": [
                        {
                            "id": "q1",
                            "question": "Who beat Chelsea?",
                            "answers": [{"text": "Jordan", "answer_start": 0}],
                        },
                        {
                            "id": "q2",
                            "question": "When?",
                            "answers": [
                                {"text": "1998", "answer_start": 32},
                                {"text": "in 1998", "answer_start": 29},
                            ],
                        },
                    ],
                }
            ],
        },
    ],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.json"


def changed(place: str, value: object = None) -> dict:
    """The content with another value, or without the key."""
    content = copy.deepcopy(CONTENT)
    *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    entry = content
    for part in path:
        entry = entry[part]
    if value is None:
        del entry[last]
    else:
        entry[last] = value
    return content


QAS = "data.0.paragraphs.0.qas"


class TestReadQuestions:
    def test_a_file(self, path):
        """Oracle: by hand; the paragraph is one object."""
        path.write_text(json.dumps(CONTENT))
        questions = list(read_questions(str(path)))
        assert questions == [
            Question("q1", "Who beat Chelsea?", PARAGRAPH, (Answer("Jordan", 0),)),
            Question("q2", "When?", PARAGRAPH, (Answer("1998", 32), Answer("in 1998", 29))),
        ]
        assert questions[0].paragraph is questions[1].paragraph

    def test_without_answers_it_is_for_prediction(self, path):
        """Oracle: by hand."""
        content = changed(f"{QAS}.0.answers")
        del content["data"][0]["paragraphs"][0]["qas"][1]["answers"]
        path.write_text("\ufeff" + json.dumps(content))
        assert [question.answers for question in read_questions(str(path))] == [None, None]

    @pytest.mark.parametrize("name", ["train", "dev"])
    def test_the_data_that_ships_is_what_the_reader_of_allennlp_reads(self, fixtures_root, name):
        """Oracle: ids, questions and answers of AllenNLP's `squad1`."""
        from allennlp_models.rc.dataset_readers import SquadReader

        from elmo_tasks.data import SpacyBlankTokenizer

        file = str(fixtures_root / "squad" / f"{name}.json")
        theirs = [
            (instance["metadata"]["id"], instance["metadata"]["original_passage"], instance["metadata"]["answer_texts"])
            for instance in SquadReader.squad1(tokenizer=SpacyBlankTokenizer()).read(file)
        ]
        ours = [(q.id, q.paragraph, [answer.text for answer in q.answers]) for q in read_questions(file)]
        assert ours == theirs
        assert len(ours) == {"train": 60, "dev": 18}[name]

    @pytest.mark.parametrize(
        ("place", "value", "message"),
        [
            ("data", None, r"file.json must have the key 'data', as in .*, but has 'version'"),
            ("data", {}, r"file.json: 'data' must be a list, but is \{\}"),
            ("data.0", "x", r"file.json: data\[0\] must be an object, but is \"x\""),
            ("data.0.paragraphs", None, r"data\[0\] must have the key 'paragraphs'.* but has 'title'"),
            ("data.0.paragraphs.0.context", None, r"data\[0\].paragraphs\[0\] must have the key 'context'"),
            ("data.0.paragraphs.0.context", " ", r"paragraphs\[0\].context must hold at least one word"),
            ("data.0.paragraphs.0.qas", None, r"paragraphs\[0\] must have the key 'qas'"),
            (f"{QAS}.1.id", None, r"qas\[1\] must have the key 'id'"),
            (f"{QAS}.1.id", "q1", r"qas\[1\]: the id of a question must be its own, .* 'q1' is that of .*qas\[0\] too"),
            (f"{QAS}.1.id", " ", r"qas\[1\]: 'id' must name the question, but is ' '"),
            (
                f"{QAS}.1.question",
                "a\ud800",
                r"qas\[1\]: 'question': a text must be Unicode, .*2 is half .* \\ud800 al",
            ),
            (f"{QAS}.1.id", 7, r"qas\[1\]: 'id' must be a text, but is 7"),
            (f"{QAS}.1.question", " \n", r"qas\[1\] \(question q2\) must have a text, but has ' \\n': drop it"),
            (f"{QAS}.1.answers", [], r"\(question q2\): a question must have an answer.*SQuAD 2.0 has such"),
            (f"{QAS}.1.is_impossible", True, r"\(question q2\): a question must have an answer.*SQuAD 2.0 has such"),
            (f"{QAS}.1.answers", None, r"\(question q2\): either all .* this one has none and those before have some"),
            (f"{QAS}.0.answers", None, r"\(question q2\): either all .* this one has some and those before have none"),
            (f"{QAS}.1.answers.0.answer_start", None, r"answers\[0\] must have the key 'answer_start'.* has 'text'"),
            (f"{QAS}.1.answers.0.answer_start", True, r"'answer_start' must be a number, but is true"),
            (f"{QAS}.1.answers.0.answer_start", "3", r"'answer_start' must be a number, but is \"3\""),
            (
                f"{QAS}.1.answers.1.answer_start",
                30,
                r"answers\[1\] \(question q2\): .* the answer 'in 1998' at character 30, but has 'n 1998.' there: "
                r"set 'answer_start' to 29",
            ),
            (f"{QAS}.1.answers.0.answer_start", -5, r"'1998' at character -5, but has 'Jord' there: .* to 32"),
            (
                f"{QAS}.1.answers.0.text",
                "1999",
                r"'1999' at character 32, but has '1998' there: the paragraph does not have it",
            ),
            (f"{QAS}.1.answers.0.text", " ", r"answers\[0\] \(question q2\): an answer must have at least one word"),
            ("data", [], r"must hold at least one question, as in .*, but holds none"),
            (QAS, [], r"must hold at least one question, as in .*, but holds none"),
        ],
    )
    def test_a_broken_value_is_named(self, path, place, value, message):
        """Oracle: the message, with file, place, question, value and remedy."""
        path.write_text(json.dumps(changed(place, value)))
        with pytest.raises(ValueError, match=f"{re.escape(str(path.parent))}.*{message}"):
            list(read_questions(str(path)))

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"{", r"file.json, line 1: the file must be one JSON object like \{\"data\""),
            (b'{\n"data": [,]}', r"file.json, line 2: the file must be one JSON object"),
            (b"", r"file.json, line 1: "),
            (b"[]", r"must be one JSON object like .*, but is not: it is a list"),
            (b"null", r"must be one JSON object like .*, but is not: it is one value"),
            (b'{\r\n"data": "\xff"}', r"file.json, line 2: the file must be UTF-8, but byte 10 .* iconv"),
            ('{"data": 0}'.encode("utf-16-le"), r"file.json, line 1: .* character NUL, .* UTF-16"),
            (b'{"data": [], "data": []}', r"file.json: .* but is not: an object has the key 'data' twice"),
            (b'{"data": ' + b"[" * 100_000, r"file.json: .* but is not: its brackets are nested too deeply"),
            (b'{"data": [' + b"[" * 900 + b"]" * 901 + b"}", r"file.json: data\[0\] must be an object, but is"),
            (b'{"data": ' + b"1" * 5000 + b"}", r"file.json: the file must be one JSON object like .* digits"),
        ],
    )
    def test_a_file_that_is_not_a_json_object_is_named(self, path, content, message):
        """Oracle: the message, with the file."""
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            list(read_questions(str(path)))
