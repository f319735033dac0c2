"""The exact content of each output, for results that are written out."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import conllu
import pandas
import pytest
import spacy
from spacy.tokens import DocBin
from spacy.training.converters import conll_ner_to_docs, conllu_to_docs

from elmo_tasks.corpora.annotations import Annotated, Annotations
from elmo_tasks.corpora.outputs import OUTPUTS
from elmo_tasks.data import NerReader
from elmo_tasks.predictors.results import Chains, Json, Names, Roles, Stars, TaggedWords

TEXT = "Ann met\nBob Lee. She sang."


def span(text: str, words: str, **properties: Any) -> dict[str, Any]:
    """The words where they are first in a text."""
    start = text.index(words)
    return {"text": words, "start": start, "end": start + len(words), **properties}


NAMES = [
    span(TEXT, "Ann", label="person", probability=0.5),
    span(TEXT, "met\nBob", label="event", probability=0.25),
]
TAGS = [
    span(TEXT, "Ann", label="PROPN", probability=0.5),
    span(TEXT, "met", label="VERB", probability=0.5, xpos="VBD"),
    span(TEXT, "sang", label="VBD", probability=0.5),
]
ROLES = [
    {
        "verb": "met",
        "start": 4,
        "end": 7,
        "roles": [span(TEXT, "Ann", label="ARG0"), span(TEXT, "met", label="V")],
    }
]
CHAINS = {
    "chains": [[span(TEXT, "Ann"), span(TEXT, "She")]],
    "resolved": "Ann met\nBob Lee. Ann sang.",
}
NO_CHAINS: dict[str, Any] = {"chains": [], "resolved": ""}
TASKS: dict[str, Any] = {
    "ner": SimpleNamespace(task="ner", result_type=Names()),
    "pos": SimpleNamespace(task="pos", result_type=TaggedWords()),
    "srl": SimpleNamespace(task="srl", result_type=Roles()),
    "coref": SimpleNamespace(task="coref", result_type=Chains()),
    "2-ner": SimpleNamespace(task="ner", result_type=Names()),
    "sst": SimpleNamespace(task="sst", result_type=Stars(["1", "2"])),
    "json": SimpleNamespace(task="json", result_type=Json()),
}
# The types of the columns that are kept.
COLUMN_TYPES = {str: "string", int: "int64"}


@pytest.fixture
def output_of(tmp_path: Path):
    """Writes a part for each list of documents, and the output from all parts."""

    def write(ending: str, *parts: list[Annotated]) -> Path:
        files = []
        for number, documents in enumerate(parts):
            lines = [json.dumps(document._asdict()) + "\n" for document in documents]
            file = tmp_path / f"part-{number}"
            file.write_text("".join(lines))
            files.append(file)
        first_document = parts[0][0]
        tasks = {name: TASKS[name] for name in first_document.results}
        kept = {}
        for name, value in first_document.kept.items():
            kept[name] = COLUMN_TYPES.get(type(value), "json")
        joined = tmp_path / f"joined{ending}"
        if ending == "/":
            joined.mkdir()
        OUTPUTS[ending].write(Annotations(files, tasks, "en", kept), joined)
        return joined

    return write


def annotated(
    name: str, text: str, kept: dict[str, Any] | None = None, **results: Any
) -> Annotated:
    return Annotated(name, (text,), kept or {}, results)


def test_json_lines_have_columns_that_are_kept(output_of):
    path = output_of(
        ".jsonl",
        [annotated("a", TEXT, {"title": "\ufffd"}, ner=NAMES)],
        [annotated("b", "", {}, ner=[])],
    )
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == [
        {"document": "a", "title": "\ufffd", "ner": NAMES},
        {"document": "b", "ner": []},
    ]


def test_conllu_has_words_tags_names_and_places(output_of):
    row = annotated("a b", TEXT, {"year": 1999}, ner=NAMES, pos=TAGS)
    path = output_of(".conllu", [row], [annotated("c", " ", {"year": None}, ner=[], pos=[])])
    first, second = conllu.parse(path.read_text())
    assert first.metadata == {"newdoc id": "a b", "meta::year": "1999", "text": "Ann met Bob Lee."}
    assert second.metadata == {"text": "She sang."}
    assert [(word["form"], word["upos"], word["xpos"], word["misc"]["name"]) for word in first] == [
        ("Ann", "PROPN", "PROPN", "U-PERSON"),
        ("met", "VERB", "VBD", "B-EVENT"),
        ("Bob", "_", None, "L-EVENT"),
        ("Lee", "_", None, "O"),
        (".", "_", None, "O"),
    ]
    assert second[1]["upos"] == "_" and second[1]["xpos"] == "VBD"
    without_space_after = []
    for word in first + second:
        misc = word["misc"]
        assert TEXT[int(misc["start_char"]) : int(misc["end_char"])] == word["form"]
        if "SpaceAfter" in misc:
            without_space_after.append(word["form"])
    assert without_space_after == ["Lee", "sang"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I sang.\nBob sang.\t", ["I sang.", "Bob sang."]),
        ("a\n\nb", ["a", "b"]),
        ("\u2028", []),
    ],
)
def test_white_space_breaks_no_line_of_conllu(output_of, text, expected):
    path = output_of(".conllu", [annotated("a\nb", text, {"no\nte": "a\nb"}, ner=[])])
    sentences = conllu.parse(path.read_text())
    assert [sentence.metadata.get("text") for sentence in sentences] == expected


def test_spacy_reads_the_names_of_conllu(output_of, tmp_path, caplog):
    rows = [
        annotated("a", TEXT, ner=NAMES, **{"2-ner": NAMES[:1]}),
        annotated("b", " ", ner=[], **{"2-ner": []}),
    ]
    path = output_of(".conllu", rows)
    docs = list(conllu_to_docs(path.read_text(), n_sents=1, no_print=True))
    names = [[(name.text, name.label_) for name in doc.ents] for doc in docs]
    assert names == [[("Ann", "PERSON"), ("met Bob", "EVENT")], []]
    # A second model of names has BIO tags under its name.
    sentence, _ = conllu.parse(path.read_text())
    assert sentence[0]["misc"]["2-ner"] == "B-person"
    (record,) = caplog.records
    assert record.getMessage() == "1 texts without words are left out: CoNLL-U has none"


def test_labels_that_spacy_does_not_read_are_logged(output_of, monkeypatch, caplog):
    name = span(TEXT, "Ann", label="人名|B1", probability=0.5)
    monkeypatch.setattr(TASKS["ner"].result_type, "labels", ["person", "人名|B1"])
    path = output_of(".conllu", [annotated("a", TEXT, ner=[name])])
    sentence, _ = conllu.parse(path.read_text())
    assert sentence[0]["misc"]["name"] == "U-人名_B1"
    assert "reads labels of the letters A to Z and _, not 人名|B1" in caplog.text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\t", "\x85", "\u2028", "\x0b"])
@pytest.mark.parametrize("ending", [".conllu", ".conll", "/"])
def test_a_label_and_a_column_make_no_line(output_of, ending, end):
    forged = f"x{end}1{end}Eve{end}_"
    text = f"Ann{end}Lee sang."
    results = {"ner": [span(text, f"Ann{end}Lee", label=forged, probability=0.5)]}
    if ending != "/":
        results["pos"] = [span(text, "Ann", label="NOUN", xpos=forged, probability=0.5)]
    kept = {} if ending == ".conll" else {"title": forged}
    path = output_of(ending, [annotated("a", text, kept, **results)])
    if ending == ".conllu":
        (sentence,) = conllu.parse(path.read_text())
        assert [word["form"] for word in sentence] == ["Ann", "Lee", "sang", "."]
    if ending == "/":
        path = path / "a.ann"
    lines = path.read_text().splitlines()
    n_lines = {".conllu": 8, ".conll": 7, "/": 1}
    assert len(lines) == n_lines[ending]
    n_cells = {".conllu": {1, 10}, ".conll": {1, 3}, "/": {3}}
    assert {line.count("\t") + 1 for line in lines} == n_cells[ending]


def test_columns_are_those_of_conll_2003(output_of):
    path = output_of(".conll", [annotated("a\tb", TEXT, ner=NAMES)], [annotated("b", "", ner=[])])
    words = "Ann_B-person|met_B-event|Bob_I-event|Lee_O|._O||She_O|sang_O|._O||".replace("_", "\t")
    mark = "-DOCSTART- -X- O O||"
    assert path.read_text() == (mark + words + mark).replace("|", "\n")
    names = []
    for doc in conll_ner_to_docs(path.read_text()):
        names += [(name.text, name.label_) for name in doc.ents]
    assert names == [("Ann", "person"), ("met Bob", "event")]
    _, (words, tags) = next(iter(NerReader().rows(str(path))))
    assert words == ["Ann", "met", "Bob", "Lee", "."]
    assert tags == ["B-person", "B-event", "I-event", "O", "O"]


def test_the_last_column_has_names(output_of):
    path = output_of(".conll", [annotated("a", "Ann", ner=NAMES[:1], pos=TAGS[:1])])
    assert path.read_text().splitlines()[2] == "Ann\tPROPN\tB-person"


@pytest.mark.parametrize("ending", [".conllu", ".conll", ".spacy"])
def test_a_character_that_nfc_divides_is_one_word(output_of, ending):
    text = "Ann \U0001d15e\U0001d15e."
    path = output_of(ending, [annotated("a", text, ner=NAMES[:1])])
    if ending == ".spacy":
        (doc,) = DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)
        assert doc.text == text and [name.text for name in doc.ents] == ["Ann"]
    else:
        column = 1 if ending == ".conllu" else 0
        words = []
        for line in path.read_text().splitlines():
            if "\t" in line:
                words.append(line.split("\t")[column])
        assert words == ["Ann", "\U0001d15e", "\U0001d15e", "."]


class TestTables:
    def test_a_row_for_each_name(self, output_of):
        rows = [
            annotated("a", TEXT, {"text": "=1", "n": [1]}, ner=NAMES),
            annotated("b", "", {"text": "x"}, ner=[]),
        ]
        columns = ["document", "corpus.text", "n", "text", "start", "end", "label", "probability"]
        expected = [
            ["a", "=1", "[1]", "Ann", 0, 3, "person", 0.5],
            ["a", "=1", "[1]", "met\nBob", 4, 11, "event", 0.25],
        ]
        for read, ending in [(pandas.read_csv, ".csv"), (pandas.read_excel, ".xlsx")]:
            table = read(output_of(ending, rows))
            assert list(table.columns) == columns and table.to_numpy().tolist() == expected

    def test_several_tasks_have_a_column_with_their_names(self, output_of):
        row = annotated("a", TEXT, srl=ROLES, coref=CHAINS, json={"a": 1})
        table = pandas.read_csv(output_of(".csv", [row]), dtype=str, keep_default_na=False)
        columns = "document task verb verb_start verb_end text start end label chain result"
        assert list(table.columns) == columns.split()
        assert table.loc[:, ["task", "text", "verb", "chain", "result"]].to_numpy().tolist() == [
            ["srl", "Ann", "met", "", ""],
            ["srl", "met", "met", "", ""],
            ["coref", "Ann", "", "1", ""],
            ["coref", "She", "", "1", ""],
            ["json", "", "", "", '{"a": 1}'],
        ]

    def test_a_text_has_a_row_of_labels(self, output_of):
        result = {"stars": 2, "probabilities": {1: 0.25, 2: 0.75}}
        nothing = {"stars": None, "probabilities": {}}
        documents = [annotated("a", "Good.", sst=result), annotated("b", "", sst=nothing)]
        lines = output_of(".csv", documents).read_text().splitlines()
        header = "document,stars,probabilities.1,probabilities.2"
        assert lines == [header, "a,2,0.25,0.75", "b,,,"]

    def test_a_table_without_rows_has_columns(self, output_of):
        path = output_of(".csv", [annotated("a", "", ner=[])])
        assert path.read_text() == "document,text,start,end,label,probability\n"


def test_a_doc_has_the_results_in_their_places(output_of):
    decomposed = "Rene\u0301 met\r\n\r\nAnn"
    first = annotated(
        "a", TEXT, {"year": 1999}, ner=NAMES, srl=ROLES, coref=CHAINS, **{"2-ner": NAMES[:1]}
    )
    nothing: dict[str, Any] = {
        "srl": [],
        "coref": {"chains": [], "resolved": decomposed},
        "2-ner": [],
    }
    rene = span(decomposed, "Rene\u0301", label="person", probability=0.5)
    second = annotated("b", decomposed, ner=[rene], **nothing)
    path = output_of(".spacy", [first], [second])
    doc, doc_of_second = DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)
    assert doc.text == TEXT
    assert doc.user_data["document"] == "a" and doc.user_data["year"] == 1999
    names = [(name.text, name.label_, name._.probability) for name in doc.ents]
    assert names == [("Ann", "person", 0.5), ("met\nBob", "event", 0.25)]
    (predicate,) = doc._.predicates
    assert predicate.verb.text == "met"
    assert [role.text for role in predicate.roles] == ["Ann", "met"]
    assert doc._.resolved == CHAINS["resolved"]
    assert list(doc._.results["2-ner"]) == NAMES[:1]
    sentences = [sentence.text.strip() for sentence in doc.sents]
    assert sentences == ["Ann met\nBob Lee.", "She sang."]
    assert doc_of_second.text == decomposed
    assert doc_of_second.user_data["document"] == "b"
    assert [name.text for name in doc_of_second.ents] == ["Rene\u0301"]
    sentences = [sentence.text.strip() for sentence in doc_of_second.sents]
    assert sentences == ["Rene\u0301 met", "Ann"]


def test_brat_has_a_text_and_an_annotation_per_document(output_of):
    first = annotated("x/a.txt", TEXT, {"year": 1999}, ner=NAMES, srl=ROLES, coref=CHAINS)
    nothing: dict[str, Any] = {"ner": [], "srl": [], "coref": {"chains": [], "resolved": ""}}
    names = ["../b c", "../b c", "..", "http://x", "\u97d3" * 200]
    folder = output_of("/", [first], [annotated(name, "b\r\n", **nothing) for name in names])
    assert (folder / "x" / "a.txt").read_text() == TEXT
    assert (folder / "x" / "a.ann").read_text().splitlines() == [
        "T1\tperson 0 3\tAnn",
        "T2\tevent 4 7;8 11\tmet Bob",
        "T3\tpredicate 4 7\tmet",
        "T4\targument 0 3\tAnn",
        "T5\tmention 0 3\tAnn",
        "T6\tmention 17 20\tShe",
        "R1\tARG0 Arg1:T3 Arg2:T4",
        "*\tcoreference T5 T6",
    ]
    rows = documents_in(folder)
    assert rows[0] == {"file": "x/a", "document": "x/a.txt", "year": 1999}
    files = [row["file"] for row in rows[1:]]
    assert files == ["b_c", "b_c~2", "document", "http_/x", "\u97d3" * 66]
    for file in files:
        assert (folder / f"{file}.txt").read_bytes() == b"b \n"
    types = "argument|event|mention|person|predicate"
    ends = f"Arg1:{types}, Arg2:{types}"
    lines = (folder / "annotation.conf").read_text().splitlines()
    assert lines[6:8] == ["[relations]", f"ARG0 {ends}"]
    assert lines[8] == f"coreference {ends}, <REL-TYPE>:symmetric-transitive"


def documents_in(folder: Path) -> list[dict[str, Any]]:
    """The documents of a folder for brat."""
    lines = (folder / "documents.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_folder_of_brat_and_a_file_never_have_one_name(output_of):
    names = ["x", "x.txt/y", "y.ann/z", "y", "documents.jsonl/a", "annotation.conf/a", "x_txt/y"]
    folder = output_of("/", [annotated(name, "Ann", ner=[]) for name in names])
    rows = documents_in(folder)
    assert [row["document"] for row in rows] == names
    expected = "x x_txt/y y_ann/z y documents_jsonl/a annotation_conf/a x_txt/y~2"
    assert [row["file"] for row in rows] == expected.split()
    for row in rows:
        assert (folder / f"{row['file']}.txt").read_text() == "Ann"


def test_labels_of_two_models_of_names_differ_in_brat(output_of):
    folder = output_of("/", [annotated("a", TEXT, ner=NAMES[:1], **{"2-ner": NAMES[:1]})])
    assert (folder / "a.ann").read_text() == "T1\tner-person 0 3\tAnn\nT2\t2-ner-person 0 3\tAnn\n"


def test_the_types_of_parquet_are_those_of_the_task(output_of, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    schemas = []
    for document in (
        annotated("a", "x", ner=[], srl=[], coref=NO_CHAINS),
        annotated("a", TEXT, ner=NAMES, srl=ROLES, coref=CHAINS),
    ):
        table = parquet.read_table(output_of(".parquet", [document]))
        assert table.to_pylist() == [{"document": "a", **document.results}]
        schemas.append(table.schema)
    assert schemas[0] == schemas[1]
    for field in schemas[0]:
        assert not pyarrow.types.is_null(field.type)


def test_parquet_has_columns_that_are_kept(output_of):
    first = annotated("a", TEXT, {"year": 1999, "label": [[0, 3, "PER"]], "title": "x"}, ner=[])
    second = annotated("b", "", {"year": None, "label": {}}, ner=[])
    table = pandas.read_parquet(output_of(".parquet", [first], [second]))
    assert list(table.columns) == ["document", "year", "label", "title", "ner"]
    assert table["label"].tolist() == ['[[0, 3, "PER"]]', "{}"]
    assert table["year"].dropna().tolist() == [1999]


def test_parquet_has_the_stars_and_any_json(output_of):
    parquet = pytest.importorskip("pyarrow.parquet")
    result = {"stars": 2, "probabilities": {1: 0.25, 2: 0.75}}
    path = output_of(".parquet", [annotated("a", "Good.", sst=result, json=[1, "a"])])
    (row,) = parquet.read_table(path).to_pylist()
    assert row["sst"] == {"stars": 2, "probabilities": {"1": 0.25, "2": 0.75}}
    assert json.loads(row["json"]) == [1, "a"]


def test_label_studio_gets_predictions_that_our_reader_gets_back(output_of, tmp_path):
    from elmo_tasks.data import NerReader

    names = [
        span(TEXT, "Ann", label="person", probability=0.5),
        span(TEXT, "Bob Lee", label="person", probability=0.25),
    ]
    first = annotated("a", TEXT, {"lang": "en"}, ner=names, srl=ROLES, coref=CHAINS)
    second = annotated("b", "", ner=[], srl=[], coref=NO_CHAINS)
    tasks = json.loads(output_of(".labelstudio.json", [first], [second]).read_text())
    assert [task["data"] for task in tasks] == [
        {"document": "a", "lang": "en", "text": TEXT},
        {"document": "b", "text": ""},
    ]
    ner, srl, coref = tasks[0]["predictions"]
    assert ner["model_version"] == "ner" and ner["score"] == 0.25
    assert ner["result"][1] == {
        "id": "ner-1",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "score": 0.25,
        "value": {"start": 8, "end": 15, "text": "Bob Lee", "labels": ["person"]},
    }
    relations = []
    for region in srl["result"] + coref["result"]:
        if region["type"] == "relation":
            relations.append((region["from_id"], region["to_id"], region["labels"]))
    assert relations == [
        ("srl-0", "srl-1", ["ARG0"]),
        ("coref-0", "coref-1", ["coreference"]),
    ]
    # What a person has accepted without a change.
    accepted = {"data": tasks[0]["data"], "annotations": [{"result": ner["result"]}]}
    path = tmp_path / "export.json"
    path.write_text(json.dumps([accepted]))
    tags = []
    for instance in NerReader().read(str(path)):
        tags += instance["tags"].labels
    assert tags == ["U-person", "O", "B-person", "L-person", "O", "O", "O", "O"]
