"""The exports of labelling tools, each with the same texts, spans and sentences."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data import NerReader

# A character that UTF-16 counts twice, a name of two words, one that the rules for sentences would divide, and a text
# without names.
TEXTS = ["😀 Ann Lee flew to St. Louis. It rained.", "Nobody sang."]
SPANS = [[("PER", 2, 9), ("LOC", 18, 27)], []]
WORDS = [["😀", "Ann", "Lee", "flew", "to", "St.", "Louis", "."], ["It", "rained", "."], ["Nobody", "sang", "."]]
TAGS = [["O", "B-PER", "L-PER", "O", "O", "B-LOC", "L-LOC", "O"], ["O", "O", "O"], ["O", "O", "O"]]
EXPECTED = list(zip(WORDS, TAGS, strict=True))


def read(path: Path, **options: Any) -> list[tuple[list[str], list[str]]]:
    instances = list(NerReader(**options).read(str(path)))
    return [([t.text for t in each["tokens"].tokens], list(each["tags"].labels)) for each in instances]


def rows_of(form: Callable[[str, list[tuple[str, int, int]]], dict[str, Any]]) -> list[dict[str, Any]]:
    return [form(text, spans) for text, spans in zip(TEXTS, SPANS, strict=True)]


def write_json(path: Path, rows: list[Any]) -> Path:
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return path


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def values(text: str, spans: list[tuple[str, int, int]], shift: int = 0) -> list[dict[str, Any]]:
    """Of Label Studio. With a shift of 1, the offsets are those of JavaScript."""
    return [{"start": s + shift, "end": e + shift, "text": text[s:e], "labels": [label]} for label, s, e in spans]


def label_studio(text: str, spans: list[tuple[str, int, int]], shift: int = 0) -> dict[str, Any]:
    result = [{"type": "labels", "from_name": "label", "value": value} for value in values(text, spans, shift)]
    result += [{"type": "relation", "from_id": "a", "to_id": "b"}]
    return {"id": 7, "data": {"text": text, "source": "web"}, "annotations": [{"id": 1, "result": result}]}


def studio_json(path: Path) -> Path:
    return write_json(path / "project.json", rows_of(label_studio))


def studio_in_utf16(path: Path) -> Path:
    return write_json(path / "project.json", rows_of(lambda *row: label_studio(*row, shift=1)))


def studio_min(path: Path) -> Path:
    def form(text: str, spans: list[tuple[str, int, int]]) -> dict[str, Any]:
        labels = {"label": values(text, spans)} if spans else {}
        return {"id": 1, "text": text, **labels, "annotator": 1, "annotation_id": 4, "lead_time": 8.4}

    return write_json(path / "project-min.json", rows_of(form))


def studio_skipped(path: Path) -> Path:
    """With a skipped text, one that nobody has labelled, and a second annotator."""
    rows = rows_of(label_studio)
    wrong = label_studio(TEXTS[0], [("ORG", 2, 5)])["annotations"][0]
    rows[0]["annotations"] = [wrong, rows[0]["annotations"][0] | {"ground_truth": True}, wrong]
    skipped = label_studio("Skipped.", [])
    skipped["annotations"][0]["was_cancelled"] = True
    return write_json(path / "project.json", [skipped, *rows, {"data": {"text": "Later."}, "annotations": []}])


def doccano(path: Path) -> Path:
    rows = rows_of(lambda text, spans: {"id": 1, "text": text, "label": [[s, e, label] for label, s, e in spans]})
    return write_lines(path / "admin.jsonl", rows)


def doccano_with_relations(path: Path) -> Path:
    def form(text: str, spans: list[tuple[str, int, int]]) -> dict[str, Any]:
        entities = [{"id": 1, "label": label, "start_offset": s, "end_offset": e} for label, s, e in spans]
        return {"id": 1, "text": text, "entities": entities, "relations": [], "Comments": []}

    return write_lines(path / "admin.jsonl", rows_of(form))


def prodigy(path: Path) -> Path:
    def form(text: str, spans: list[tuple[str, int, int]]) -> dict[str, Any]:
        marks = [{"start": s, "end": e, "token_start": 0, "token_end": 0, "label": label} for label, s, e in spans]
        return {"text": text, "_input_hash": 5, "answer": "accept", **({"spans": marks} if marks else {})}

    rejected = {"text": "Rejected.", "answer": "reject", "spans": []}
    return write_lines(path / "annotations.jsonl", [rejected, *rows_of(form)])


def spacy_docs(path: Path) -> Path:
    import spacy
    from spacy.tokens import DocBin

    docs, nlp = DocBin(), spacy.blank("en")
    for text, spans in zip(TEXTS, SPANS, strict=True):
        doc = nlp(text)
        doc.set_ents([doc.char_span(start, end, label) for label, start, end in spans], default="outside")
        docs.add(doc)
    docs.add(nlp("Later."))
    docs.to_disk(path / "train.spacy")
    return path / "train.spacy"


def brat(path: Path) -> Path:
    (path / "part").mkdir()
    (path / "annotation.conf").write_text("[entities]\nPER\nLOC\n")
    for name, text, spans in zip(("part/a", "part/b"), TEXTS, SPANS, strict=True):
        lines = [f"T{n}\t{label} {s} {e}\t{text[s:e]}\n" for n, (label, s, e) in enumerate(spans, start=1)]
        (path / f"{name}.txt").write_text(text, encoding="utf-8")
        lines.append("#1\tAnnotatorNotes T1\twho?\nR1\tLives Arg1:T1 Arg2:T2\n")
        (path / f"{name}.ann").write_text("".join(lines), encoding="utf-8")
    (path / "later.txt").write_text("Later.")
    return path


FORMATS = [studio_json, studio_in_utf16, studio_min, studio_skipped, doccano, doccano_with_relations, prodigy]
FORMATS += [spacy_docs, brat]


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


def test_a_span_that_cuts_a_word_is_widened_and_counted(tmp_path, caplog):
    spans = [[4, 6, "PER"], [10, 17, "ORG"], [18, 23, "LOC"]]
    file = write_lines(tmp_path / "a.jsonl", [{"text": "Mr. Annsen of Acme/Bcme and Co.", "label": spans}])
    assert read(file) == [
        (
            ["Mr.", "Annsen", "of", "Acme", "/", "Bcme", "and", "Co."],
            ["O", "U-PER", "B-ORG", "L-ORG", "B-LOC", "L-LOC", "O", "O"],
        )
    ]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "2 of 3" in warning and str(file) in warning


def test_texts_of_doccano_that_may_be_unfinished_are_counted(tmp_path, caplog):
    read(write_lines(tmp_path / "a.jsonl", [{"text": "Ann sang.", "label": []}] * 2 + [LINE]))
    assert "2 of 3" in caplog.text


def test_the_language_and_the_column_of_the_text(tmp_path):
    row = label_studio("Sie fuhr z.B. nach Ulm.", [("LOC", 19, 22)])
    row["data"]["review"] = row["data"].pop("text")
    file = write_json(tmp_path / "a.json", [row])
    ((words, _),) = read(file, language="de", text_column="review")
    assert "z.B." in words


@pytest.mark.parametrize(
    ("part", "sentences"), [("[:67%]", slice(2)), ("[67%:]", slice(2, 3)), ("[34%:67%]", slice(1, 2))]
)
def test_a_part_of_a_file(tmp_path, part, sentences):
    assert read(Path(f"{doccano(tmp_path)}{part}")) == EXPECTED[sentences]


STUDIO = label_studio("Ann sang.", [("PER", 0, 3)])
LINE = {"text": "Ann sang.", "label": [[0, 3, "PER"]]}


@pytest.mark.parametrize(
    ("rows", "place", "found"),
    [
        ([LINE, {**LINE, "label": [[0, 8, "PER"], [4, 8, "X"]]}], "line 2", "X"),
        ([LINE, {**LINE, "label": [[0, 30, "PER"]]}], "line 2", "0 to 30"),
        ([LINE, {**LINE, "label": [[3, 3, "PER"]]}], "line 2", "3 to 3"),
        ([LINE, {**LINE, "label": [["PER", 0, 3]]}], "line 2", "str"),
        ([LINE, {"text": "Ann sang.", "mood": 1}], "line 2", "mood"),
        ([[["Ann sang.", {"entities": []}]]], "text 1", "keys Ann sang"),
        ([LINE, {"body": "Ann sang.", "label": []}], "line 2", "body"),
        ([[STUDIO, {**STUDIO, "data": {"review": "a"}}]], "text 2", "review"),
        ([[STUDIO, {**STUDIO, "data": {"text": "Eve sang."}}]], "text 2", "Ann"),
    ],
)
def test_an_error_names_the_place_of_a_mistake(tmp_path, rows, place, found):
    file = write_lines(tmp_path / "a.json", rows)
    with pytest.raises(ValueError, match=found) as error:
        read(file)
    assert str(error.value).endswith(f"{file}, {place}")


def test_an_export_without_spans_is_an_error(tmp_path):
    """A project for whole texts: Prodigy's `textcat`."""
    file = write_lines(tmp_path / "a.jsonl", [{"text": "Ann sang.", "label": "GOOD", "answer": "accept"}])
    with pytest.raises(ValueError, match=r"expected texts with labelled spans, got none: .*a\.jsonl"):
        read(file)


def test_spans_of_brat_that_are_elsewhere_or_have_gaps(tmp_path):
    brat(tmp_path)
    for mark, found in (("PER 0 3", "'Ann Lee'"), ("PER 2 5;10 14", "'Ann flew'")):
        (tmp_path / "part" / "a.ann").write_text(f"T1\t{mark}\t{found.strip(chr(39))}\n")
        with pytest.raises(ValueError, match=f"{found}.*a.ann, line 1"):
            read(tmp_path)
