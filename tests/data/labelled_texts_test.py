"""The exports of labelling tools, each with the same texts, spans and sentences."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data import NerReader
from tests.data.dataset_readers.instances import TaggedWords, tagged_words

# A character that UTF-16 counts twice, a name of two words, one that the rules for sentences would
# divide, and a text without names.
TEXTS = ["😀 Ann Lee flew to St. Louis. It rained.", "Nobody sang."]
SPANS = [[("PER", 2, 9), ("LOC", 18, 27)], []]
WORDS = [
    ["😀", "Ann", "Lee", "flew", "to", "St.", "Louis", "."],
    ["It", "rained", "."],
    ["Nobody", "sang", "."],
]
TAGS = [["O", "B-PER", "L-PER", "O", "O", "B-LOC", "L-LOC", "O"], ["O", "O", "O"], ["O", "O", "O"]]
EXPECTED = list(zip(WORDS, TAGS, strict=True))


Span = tuple[str, int, int]


def read(path: Path, **options: Any) -> list[TaggedWords]:
    return list(map(tagged_words, NerReader(**options).read(str(path))))


def rows_of(row_of: Callable[[str, list[Span]], Any]) -> list[Any]:
    """The texts in the form of a tool."""
    return list(map(row_of, TEXTS, SPANS))


def write_json(path: Path, rows: list[Any]) -> Path:
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return path


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def values_of(text: str, spans: list[Span], shift: int = 0) -> list[dict[str, Any]]:
    """Of Label Studio. With a shift of 1, the offsets are those of JavaScript."""
    values = []
    for label, start, end in spans:
        value = {
            "start": start + shift,
            "end": end + shift,
            "text": text[start:end],
            "labels": [label],
        }
        values.append(value)
    return values


def label_studio(text: str, spans: list[Span], shift: int = 0) -> dict[str, Any]:
    result: list[dict[str, Any]] = []
    for value in values_of(text, spans, shift):
        result.append({"type": "labels", "from_name": "label", "value": value})
    result.append({"type": "relation", "from_id": "a", "to_id": "b"})
    return {
        "id": 7,
        "data": {"text": text, "source": "web"},
        "annotations": [{"id": 1, "result": result}],
    }


def studio_json(path: Path) -> Path:
    return write_json(path / "project.json", rows_of(label_studio))


def studio_in_utf16(path: Path) -> Path:
    return write_json(path / "project.json", rows_of(partial(label_studio, shift=1)))


def label_studio_min(text: str, spans: list[Span]) -> dict[str, Any]:
    row = {"id": 1, "text": text, "annotator": 1, "annotation_id": 4, "lead_time": 8.4}
    if spans:
        row["label"] = values_of(text, spans)
    return row


def studio_min(path: Path) -> Path:
    return write_json(path / "project-min.json", rows_of(label_studio_min))


def studio_skipped(path: Path) -> Path:
    """With a skipped text, one that nobody has labelled, and a second annotator."""
    rows = rows_of(label_studio)
    wrong = label_studio(TEXTS[0], [("ORG", 2, 5)])["annotations"][0]
    right = rows[0]["annotations"][0] | {"ground_truth": True}
    rows[0]["annotations"] = [wrong, right, wrong]
    skipped = label_studio("Skipped.", [])
    skipped["annotations"][0]["was_cancelled"] = True
    later = {"data": {"text": "Later."}, "annotations": []}
    return write_json(path / "project.json", [skipped, *rows, later])


def marks_of(spans: list[Span]) -> list[list[Any]]:
    """Of doccano and spaCy."""
    return [[start, end, label] for label, start, end in spans]


def doccano_row(text: str, spans: list[Span]) -> dict[str, Any]:
    return {"id": 1, "text": text, "label": marks_of(spans)}


def doccano(path: Path) -> Path:
    return write_lines(path / "admin.jsonl", rows_of(doccano_row))


def entities_of(spans: list[Span]) -> list[dict[str, Any]]:
    """Of doccano."""
    entities = []
    for label, start, end in spans:
        entities.append({"id": 1, "label": label, "start_offset": start, "end_offset": end})
    return entities


def doccano_with_relations(path: Path) -> Path:
    def row_of(text: str, spans: list[Span]) -> dict[str, Any]:
        entities = entities_of(spans)
        return {"id": 1, "text": text, "entities": entities, "relations": [], "Comments": []}

    return write_lines(path / "admin.jsonl", rows_of(row_of))


def prodigy_row(text: str, spans: list[Span]) -> dict[str, Any]:
    row: dict[str, Any] = {"text": text, "_input_hash": 5, "answer": "accept"}
    for label, start, end in spans:
        mark = {"start": start, "end": end, "token_start": 0, "token_end": 0, "label": label}
        row.setdefault("spans", []).append(mark)
    return row


def prodigy(path: Path) -> Path:
    rejected = {"text": "Rejected.", "answer": "reject", "spans": []}
    return write_lines(path / "annotations.jsonl", [rejected, *rows_of(prodigy_row)])


def spacy_docs(path: Path) -> Path:
    import spacy
    from spacy.tokens import DocBin

    docs = DocBin()
    nlp = spacy.blank("en")
    for text, spans in zip(TEXTS, SPANS, strict=True):
        doc = nlp(text)
        entities = [doc.char_span(start, end, label) for label, start, end in spans]
        doc.set_ents(entities, default="outside")
        docs.add(doc)
    docs.add(nlp("Later."))
    docs.to_disk(path / "train.spacy")
    return path / "train.spacy"


def brat(path: Path) -> Path:
    (path / "part").mkdir()
    (path / "annotation.conf").write_text("[entities]\nPER\nLOC\n")
    for name, text, spans in zip(("part/a", "part/b"), TEXTS, SPANS, strict=True):
        (path / f"{name}.txt").write_text(text, encoding="utf-8")
        with open(path / f"{name}.ann", "w", encoding="utf-8") as file:
            for number, (label, start, end) in enumerate(spans, start=1):
                file.write(f"T{number}\t{label} {start} {end}\t{text[start:end]}\n")
            file.write("#1\tAnnotatorNotes T1\twho?\nR1\tLives Arg1:T1 Arg2:T2\n")
    (path / "later.txt").write_text("Later.")
    return path


def old_doccano(path: Path) -> Path:
    """With fields of earlier releases, and a fourth element."""

    def row_of(text: str, spans: list[Span]) -> dict[str, Any]:
        return {"text": text, "entities": [[*mark, "more"] for mark in marks_of(spans)]}

    return write_lines(path / "a.jsonl", rows_of(row_of))


def doccano_annotations(path: Path) -> Path:
    def row_of(text: str, spans: list[Span]) -> dict[str, Any]:
        return {"id": 1, "text": text, "annotations": entities_of(spans), "meta": {}}

    return write_lines(path / "a.jsonl", rows_of(row_of))


def spacy_pair(text: str, spans: list[Span]) -> list[Any]:
    return [text, {"entities": marks_of(spans)}]


def spacy_pairs(path: Path) -> Path:
    return write_json(path / "train.json", rows_of(spacy_pair))


def lines_of_spacy_pairs(path: Path) -> Path:
    return write_lines(path / "train.jsonl", rows_of(spacy_pair))


def ner_annotator(path: Path) -> Path:
    content = {"classes": ["PER", "LOC"], "annotations": [*rows_of(spacy_pair), None]}
    (path / "annotations.json").write_text(json.dumps(content))
    return path / "annotations.json"


def files_of_users(path: Path) -> Path:
    """Of doccano: each file has all texts, with the labels of one annotator."""
    rows = rows_of(doccano_row)
    write_lines(path / "ann.jsonl", rows[1:])
    write_lines(path / "bob.jsonl", rows)
    write_lines(path / "eve.jsonl", [{"text": text, "label": []} for text in TEXTS])
    write_lines(path / "admin.jsonl", rows[:1])
    return path


def sessions(path: Path) -> Path:
    """Of Prodigy: the texts occur twice, and one of them was rejected by the second annotator."""
    rows = [json.loads(line) for line in prodigy(path).read_text().splitlines()]
    second_rows = [row | {"_session_id": "names-bob"} for row in rows[1:]]
    second_rows[0] |= {"answer": "reject", "spans": []}
    return write_lines(path / "annotations.jsonl", [*rows, *second_rows])


FORMATS = [
    studio_json,
    studio_in_utf16,
    studio_min,
    studio_skipped,
    doccano,
    doccano_with_relations,
    doccano_annotations,
    old_doccano,
    files_of_users,
    prodigy,
    sessions,
    spacy_docs,
    spacy_pairs,
    lines_of_spacy_pairs,
    ner_annotator,
    brat,
]


@pytest.mark.parametrize("write", FORMATS)
def test_each_tool_gives_the_same_tags(tmp_path, write: Callable[[Path], Path]):
    assert read(write(tmp_path)) == EXPECTED


@pytest.mark.parametrize("write", [studio_skipped, prodigy, spacy_docs, brat])
def test_a_prediction_reads_texts_that_nobody_has_labelled(tmp_path, write):
    reader = NerReader()
    reader.reads_gold = False
    instances = list(reader.read(str(write(tmp_path))))
    assert len(instances) > len(EXPECTED)
    assert all("tags" not in instance.fields for instance in instances)


def by_annotators(*spans_of_annotators: list[Span], **values: Any) -> dict[str, Any]:
    """The first text, with values of its first annotation."""
    annotations = []
    for spans in spans_of_annotators:
        annotations += label_studio(TEXTS[0], spans)["annotations"]
    annotations[0] |= values
    return {"data": {"text": TEXTS[0]}, "annotations": annotations}


class TestAnnotators:
    def test_a_later_result_without_labels_removes_no_labels(self, tmp_path, caplog):
        rows = [by_annotators(SPANS[0], []), label_studio(TEXTS[1], [])]
        assert sorted(read(write_json(tmp_path / "a.json", rows))) == sorted(EXPECTED)
        assert "1 of 2 texts have several annotations, which differ in 1: the ground" in caplog.text

    def test_the_last_one_is_used_except_for_a_ground_truth(self, tmp_path):
        wrong = [("X", 2, 5)]
        last = by_annotators(wrong, SPANS[0])
        truth = by_annotators(SPANS[0], wrong, ground_truth=True)
        assert read(write_json(tmp_path / "last.json", [last])) == EXPECTED[:2]
        assert read(write_json(tmp_path / "truth.json", [truth])) == EXPECTED[:2]

    def test_equal_texts_are_in_one_part(self, tmp_path):
        file = sessions(tmp_path)
        assert read(Path(f"{file}[:50%]")) == EXPECTED[:2]
        assert read(Path(f"{file}[50%:]")) == EXPECTED[2:]

    def test_a_text_without_spans_in_all_of_them_is_finished(self, tmp_path):
        rows = [by_annotators(SPANS[0]), label_studio(TEXTS[1], []), label_studio(TEXTS[1], [])]
        assert read(write_json(tmp_path / "a.json", rows)) == EXPECTED


def test_a_group_of_labels_of_label_studio(tmp_path, caplog):
    row = label_studio(TEXTS[0], SPANS[0])
    (mood,) = values_of(TEXTS[0], [("CALM", 29, 38)])
    row["annotations"][0]["result"].append({"from_name": "mood", "value": mood})
    file = write_json(tmp_path / "a.json", [row])
    assert read(file, from_name="label") == EXPECTED[:2]
    assert not caplog.text
    _, (_, tags) = read(file)
    assert tags == ["B-CALM", "L-CALM", "O"]
    assert "reads all groups of labels (label, mood): from_name chooses one" in caplog.text
    message = r"expected label, mood as from_name, got 'names': .*a\.json"
    with pytest.raises(ValueError, match=message):
        read(file, from_name="names")


def test_a_group_of_labels_of_json_min(tmp_path):
    row = {
        "text": TEXTS[0],
        "annotator": 1,
        "label": values_of(TEXTS[0], SPANS[0]),
        "mood": values_of(TEXTS[0], [("CALM", 29, 38)]),
    }
    assert read(write_json(tmp_path / "a.json", [row]), from_name="label") == EXPECTED[:2]


class TestBadSpans:
    def test_spans_are_left_out_and_counted(self, tmp_path, caplog):
        text = "Ann Lee sang in St. Louis."
        spans = [(4, 7, "X"), (0, 7, "PER"), (2, 5, "Y"), (16, 99, "LOC"), (16, 25, "LOC")]
        file = write_lines(tmp_path / "a.jsonl", [{"text": text, "label": spans}])
        ((words, tags),) = read(file, skip_bad_spans=True)
        assert words == ["Ann", "Lee", "sang", "in", "St.", "Louis", "."]
        assert tags == ["B-PER", "L-PER", "O", "O", "B-LOC", "L-LOC", "O"]
        (warning,) = caplog.messages
        assert "3 of 5 spans are left out; the first: expected a span of a text" in warning
        with pytest.raises(ValueError, match=r"skip_bad_spans leaves such spans out.*line 1"):
            read(file)

    def test_of_two_labels_at_one_place_the_first_is_kept(self, tmp_path):
        """Not the one that a hash of strings puts first."""
        labels = [f"LABEL{number}" for number in range(8)]
        row = {"text": "Ann sang.", "label": [[0, 3, label] for label in labels]}
        file = write_lines(tmp_path / "train.jsonl", [row])
        ((_, tags),) = read(file, skip_bad_spans=True)
        assert tags == ["U-LABEL0", "O", "O"]

    def test_a_span_of_brat_with_a_gap(self, tmp_path, caplog):
        brat(tmp_path)
        with open(tmp_path / "part" / "a.ann", "a") as file:
            file.write("T9\tPER 2 5;10 14\tAnn flew\n")
        assert read(tmp_path, skip_bad_spans=True) == EXPECTED
        assert "1 of 3 spans are left out; the first: expected 'Ann flew' from 2" in caplog.text

    def test_offsets_that_count_a_windows_line_end_once(self, tmp_path):
        text = "\U0001f600\r\nAnn Lee sang.\r\n\r\nBob sang in Rome."
        folder = tmp_path / "brat"
        folder.mkdir()
        (folder / "a.txt").write_bytes(text.encode())
        (folder / "a.ann").write_text("T1\tPER 2 9\tAnn Lee\nT2\tPER 17 20\tBob\n")
        tags = [["O", "B-PER", "L-PER", "O", "O"], ["U-PER", "O", "O", "O", "O"]]
        assert [tags_of_sentence for _, tags_of_sentence in read(folder)] == tags


def test_a_span_that_cuts_a_word_is_widened_and_counted(tmp_path, caplog):
    spans = [[4, 6, "PER"], [10, 17, "ORG"], [18, 23, "LOC"]]
    row = {"text": "Mr. Annsen of Acme/Bcme and Co.", "label": spans}
    file = write_lines(tmp_path / "a.jsonl", [row])
    ((words, tags),) = read(file)
    assert words == ["Mr.", "Annsen", "of", "Acme", "/", "Bcme", "and", "Co."]
    assert tags == ["O", "U-PER", "B-ORG", "L-ORG", "B-LOC", "L-LOC", "O", "O"]
    (warning,) = caplog.messages
    assert f"{file}: 2 of 3 spans" in warning


def test_texts_of_doccano_that_may_be_unfinished_are_counted(tmp_path, caplog):
    unfinished = [{"text": text, "label": []} for text in ("Bob sang.", "Eve sang.")]
    read(write_lines(tmp_path / "a.jsonl", [*unfinished, LINE]))
    assert "2 of 3" in caplog.text


def test_the_language_and_the_column_of_the_text(tmp_path):
    row = label_studio("Sie fuhr z.B. nach Ulm.", [("LOC", 19, 22)])
    row["data"]["review"] = row["data"].pop("text")
    file = write_json(tmp_path / "a.json", [row])
    ((words, _),) = read(file, language="de", text_column="review")
    assert "z.B." in words


@pytest.mark.parametrize(
    ("part", "sentences"),
    [("[:50%]", EXPECTED[:2]), ("[49%:]", EXPECTED), ("[50%:]", EXPECTED[2:])],
)
def test_a_part_of_a_file_has_whole_texts(tmp_path, part, sentences):
    assert read(Path(f"{doccano(tmp_path)}{part}")) == sentences


STUDIO = label_studio("Ann sang.", [("PER", 0, 3)])
LINE = {"text": "Ann sang.", "label": [[0, 3, "PER"]]}
# Of HTML, with places in the page.
HYPERTEXT = json.loads(json.dumps(STUDIO).replace('"start": 0', '"start": "/p[1]/text()[1]"'))


@pytest.mark.parametrize(
    ("rows", "place", "message"),
    [
        ([LINE, {**LINE, "label": [[0, 8, "PER"], [4, 8, "X"]]}], "line 2", "X"),
        ([LINE, {**LINE, "label": [[0, 30, "PER"]]}], "line 2", "0 to 30"),
        ([LINE, {**LINE, "label": [[3, 3, "PER"]]}], "line 2", "3 to 3"),
        ([LINE, {**LINE, "label": [["PER", 0, 3]]}], "line 2", r"\[start, .* got \['PER', 0, 3\]"),
        ([LINE, {**LINE, "label": ["GOOD"]}], "line 2", r"\[start, .* got 'GOOD'"),
        (
            [LINE, {**LINE, "label": [[0, 3, "A\nB"]]}],
            "line 2",
            r"one line without tabs, got 'A\\nB'",
        ),
        ([LINE, {**LINE, "label": [[0, 3, ""]]}], "line 2", "one line without tabs, got ''"),
        ([LINE, {"text": "Ann sang.", "mood": 1}], "line 2", "mood"),
        ([["Ann sang.", 3]], "text 1", "a text with its labels, got 'Ann sang.'"),
        ([LINE, {"body": "Ann sang.", "label": []}], "line 2", "body"),
        ([[STUDIO, {**STUDIO, "data": {"review": "a"}}]], "text 2", "review"),
        ([[STUDIO, {**STUDIO, "data": {"text": "Eve sang."}}]], "text 2", "Ann"),
        ([[STUDIO, HYPERTEXT]], "text 2", "expected numbers as start and end, .* got '/p"),
    ],
)
def test_an_error_names_the_place_of_a_mistake(tmp_path, rows, place, message):
    file = write_lines(tmp_path / "a.json", rows)
    with pytest.raises(ValueError, match=message) as error:
        read(file)
    assert str(error.value).endswith(f"{file}, {place}")


def test_lines_of_a_form_are_words(tmp_path):
    rows = [LINE, {"text": "____", "label": []}]
    assert read(write_lines(tmp_path / "a.jsonl", rows))[1] == (["_"] * 4, ["O"] * 4)
    (tmp_path / "a.txt").write_text("Ann U-PER\n\n_ O\n_ O\n")
    assert read(tmp_path / "a.txt")[1] == (["_", "_"], ["O", "O"])


def test_an_empty_file_is_an_error(tmp_path):
    (tmp_path / "a.json").write_text("")
    with pytest.raises(ValueError, match=r"expected JSON: .*a\.json"):
        read(tmp_path / "a.json")


def test_an_export_without_spans_is_an_error(tmp_path):
    """A project for whole texts: Prodigy's `textcat`."""
    row = {"text": "Ann sang.", "label": "GOOD", "answer": "accept"}
    file = write_lines(tmp_path / "a.jsonl", [row])
    message = r"expected texts with labelled spans, got none: .*a\.jsonl"
    with pytest.raises(ValueError, match=message):
        read(file)


def test_spans_of_brat_that_are_elsewhere_or_have_gaps(tmp_path):
    brat(tmp_path)
    for mark, words in (("PER 0 3", "Ann Lee"), ("PER 2 5;10 14", "Ann flew")):
        (tmp_path / "part" / "a.ann").write_text(f"T1\t{mark}\t{words}\n")
        with pytest.raises(ValueError, match=f"'{words}'.*a.ann, line 1"):
            read(tmp_path)
