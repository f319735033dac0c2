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


def place(text: str, occurrence: str, label: str = "", **more: Any) -> dict[str, Any]:
    start = text.index(occurrence)
    of_label = {"label": label} if label else {}
    return {"text": occurrence, "start": start, "end": start + len(occurrence), **of_label, **more}


NAMES = [
    place(TEXT, "Ann", "person", probability=0.5),
    place(TEXT, "met\nBob", "event", probability=0.25),
]
TAGS = [
    place(TEXT, word, tag, probability=0.5)
    for word, tag in [("Ann", "PROPN"), ("met", "VERB"), ("sang", "VBD")]
]
TAGS[1]["xpos"] = "VBD"
ROLES = [
    {
        "verb": "met",
        "start": 4,
        "end": 7,
        "roles": [place(TEXT, "Ann", "ARG0"), place(TEXT, "met", "V")],
    }
]
CHAINS = {
    "chains": [[place(TEXT, "Ann"), place(TEXT, "She")]],
    "resolved": "Ann met\nBob Lee. Ann sang.",
}
NO_CHAINS: dict[str, Any] = {"chains": [], "resolved": ""}
TASKS: dict[str, Any] = {
    name: SimpleNamespace(task=task, result_type=kind)
    for name, task, kind in [
        ("ner", "ner", Names()),
        ("pos", "pos", TaggedWords()),
        ("srl", "srl", Roles()),
        ("coref", "coref", Chains()),
        ("2-ner", "ner", Names()),
        ("sst", "sst", Stars(["1", "2"])),
        ("json", "json", Json()),
    ]
}


@pytest.fixture
def output_of(tmp_path: Path):
    """Writes a part for each list of documents, and the output from all parts."""

    def write(ending: str, *parts: list[Annotated]) -> Path:
        tasks = {name: TASKS[name] for name in parts[0][0].results}
        files = [tmp_path / f"part-{number}" for number in range(len(parts))]
        for file, part in zip(files, parts, strict=True):
            file.write_text("".join(json.dumps(each._asdict()) + "\n" for each in part))
        joined = tmp_path / f"joined{ending}"
        if ending == "/":
            joined.mkdir()
        types = {str: "string", int: "int64"}
        kept = {name: types.get(type(value), "json") for name, value in parts[0][0].kept.items()}
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
    places = [(word["misc"]["start_char"], word["misc"]["end_char"]) for word in [*first, *second]]
    assert [TEXT[int(start) : int(end)] for start, end in places] == [
        word["form"] for word in [*first, *second]
    ]
    assert [word["form"] for word in [*first, *second] if "SpaceAfter" in word["misc"]] == [
        "Lee",
        "sang",
    ]


def test_white_space_breaks_no_line_of_conllu(output_of):
    for text, sentences in {
        "I sang.\nBob sang.\t": ["I sang.", "Bob sang."],
        "a\n\nb": ["a", "b"],
        "\u2028": [],
    }.items():
        path = output_of(".conllu", [annotated("a\nb", text, {"no\nte": "a\nb"}, ner=[])])
        assert [
            sentence.metadata.get("text") for sentence in conllu.parse(path.read_text())
        ] == sentences


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
    (first, *_), _ = conllu.parse(path.read_text())
    assert first["misc"]["2-ner"] == "B-person"
    assert [record.getMessage() for record in caplog.records] == [
        "1 texts without words are left out: CoNLL-U has none"
    ]


def test_labels_that_spacy_does_not_read_are_logged(output_of, monkeypatch, caplog):
    name = place(TEXT, "Ann", "人名|B1", probability=0.5)
    monkeypatch.setattr(TASKS["ner"].result_type, "labels", ["person", "人名|B1"])
    (sentence, _) = conllu.parse(
        output_of(".conllu", [annotated("a", TEXT, ner=[name])]).read_text()
    )
    assert sentence[0]["misc"]["name"] == "U-人名_B1"
    assert "reads labels of the letters A to Z and _, not 人名|B1" in caplog.text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\t", "\x85", "\u2028", "\x0b"])
@pytest.mark.parametrize("ending", [".conllu", ".conll", "/"])
def test_a_label_and_a_column_make_no_line(output_of, ending, end):
    forged = f"x{end}1{end}Eve{end}_"
    text = f"Ann{end}Lee sang."
    names = [
        {"text": text[:-6], "start": 0, "end": len(text) - 6, "label": forged, "probability": 0.5}
    ]
    tags = [place(text, "Ann", "NOUN", xpos=forged, probability=0.5)]
    kept = {} if ending == ".conll" else {"title": forged}
    tasks = {"ner": names} if ending == "/" else {"ner": names, "pos": tags}
    path = output_of(ending, [annotated("a", text, kept, **tasks)])
    if ending == ".conllu":
        ((*words, _),) = conllu.parse(path.read_text())
        assert [word["form"] for word in words] == ["Ann", "Lee", "sang"]
        n_lines, n_cells = 8, {1, 10}
    elif ending == ".conll":
        n_lines, n_cells = 7, {1, 3}
    else:
        path = path / "a.ann"
        n_lines, n_cells = 1, {3}
    lines = path.read_text().splitlines()
    assert len(lines) == n_lines
    assert {line.count("\t") + 1 for line in lines} == n_cells


def test_columns_are_those_of_conll_2003(output_of):
    path = output_of(".conll", [annotated("a\tb", TEXT, ner=NAMES)], [annotated("b", "", ner=[])])
    words = "Ann_B-person|met_B-event|Bob_I-event|Lee_O|._O||She_O|sang_O|._O||".replace("_", "\t")
    mark = "-DOCSTART- -X- O O||"
    assert path.read_text() == (mark + words + mark).replace("|", "\n")
    names = [
        (name.text, name.label_) for doc in conll_ner_to_docs(path.read_text()) for name in doc.ents
    ]
    assert names == [("Ann", "person"), ("met Bob", "event")]
    ((_, (words, tags)), *_) = NerReader().rows(str(path))
    assert (words, tags) == (
        ["Ann", "met", "Bob", "Lee", "."],
        ["B-person", "B-event", "I-event", "O", "O"],
    )


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
        lines = [line.split("\t") for line in path.read_text().splitlines() if "\t" in line]
        assert [line[int(ending == ".conllu")] for line in lines] == [
            "Ann",
            "\U0001d15e",
            "\U0001d15e",
            ".",
        ]


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
            assert [*table.columns] == columns and table.to_numpy().tolist() == expected

    def test_several_tasks_have_a_column_with_their_names(self, output_of):
        row = annotated("a", TEXT, srl=ROLES, coref=CHAINS, json={"a": 1})
        table = pandas.read_csv(output_of(".csv", [row]), dtype=str, keep_default_na=False)
        assert [*table.columns] == [
            "document", "task", "verb", "verb_start", "verb_end", "text", "start", "end", "label", "chain", "result",
        ]  # fmt: skip
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
        path = output_of(
            ".csv", [annotated("a", "Good.", sst=result), annotated("b", "", sst=nothing)]
        )
        assert (
            path.read_text()
            == "document,stars,probabilities.1,probabilities.2\na,2,0.25,0.75\nb,,,\n"
        )

    def test_a_table_without_rows_has_columns(self, output_of):
        assert (
            output_of(".csv", [annotated("a", "", ner=[])]).read_text()
            == "document,text,start,end,label,probability\n"
        )


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
    second = annotated(
        "b", decomposed, ner=[place(decomposed, "Rene\u0301", "person", probability=0.5)], **nothing
    )
    docs = list(
        DocBin().from_disk(output_of(".spacy", [first], [second])).get_docs(spacy.blank("en").vocab)
    )
    assert [doc.text for doc in docs] == [TEXT, decomposed]
    assert [doc.user_data["document"] for doc in docs] == ["a", "b"] and docs[0].user_data[
        "year"
    ] == 1999
    assert [(name.text, name.label_) for name in docs[0].ents] == [
        ("Ann", "person"),
        ("met\nBob", "event"),
    ]
    assert [name._.probability for name in docs[0].ents] == [0.5, 0.25]
    assert [(verb.text, [role.text for role in roles]) for verb, roles in docs[0]._.predicates] == [
        ("met", ["Ann", "met"])
    ]
    assert docs[0]._.resolved == CHAINS["resolved"] and [*docs[0]._.results["2-ner"]] == NAMES[:1]
    assert [name.text for name in docs[1].ents] == ["Rene\u0301"]
    assert [sentence.text.strip() for doc in docs for sentence in doc.sents] == [
        "Ann met\nBob Lee.", "She sang.", "Rene\u0301 met", "Ann",
    ]  # fmt: skip


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
    about = [json.loads(line) for line in (folder / "documents.jsonl").read_text().splitlines()]
    assert about[0] == {"file": "x/a", "document": "x/a.txt", "year": 1999}
    assert [row["file"] for row in about[1:]] == [
        "b_c",
        "b_c~2",
        "document",
        "http_/x",
        "\u97d3" * 66,
    ]
    assert all((folder / f"{row['file']}.txt").read_bytes() == b"b \n" for row in about[1:])
    ends = (
        "person|predicate, ".join(f"Arg{n}:argument|event|mention|" for n in (1, 2))
        + "person|predicate"
    )
    assert (folder / "annotation.conf").read_text().splitlines()[6:9] == [
        "[relations]", f"ARG0 {ends}", f"coreference {ends}, <REL-TYPE>:symmetric-transitive"
    ]  # fmt: skip


def test_a_folder_of_brat_and_a_file_never_have_one_name(output_of):
    names = ["x", "x.txt/y", "y.ann/z", "y", "documents.jsonl/a", "annotation.conf/a", "x_txt/y"]
    folder = output_of("/", [annotated(name, "Ann", ner=[]) for name in names])
    about = [json.loads(line) for line in (folder / "documents.jsonl").read_text().splitlines()]
    assert [row["document"] for row in about] == names
    assert [row["file"] for row in about] == [
        "x",
        "x_txt/y",
        "y_ann/z",
        "y",
        "documents_jsonl/a",
        "annotation_conf/a",
        "x_txt/y~2",
    ]
    assert all((folder / f"{row['file']}.txt").read_text() == "Ann" for row in about)


def test_labels_of_two_models_of_names_differ_in_brat(output_of):
    folder = output_of("/", [annotated("a", TEXT, ner=NAMES[:1], **{"2-ner": NAMES[:1]})])
    assert (folder / "a.ann").read_text() == "T1\tner-person 0 3\tAnn\nT2\t2-ner-person 0 3\tAnn\n"


def test_the_types_of_parquet_are_those_of_the_task(output_of, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    nothing = {"srl": [], "coref": {"chains": [], "resolved": ""}}
    schemas = []
    for rows in (
        [annotated("a", "x", ner=[], **nothing)],
        [annotated("a", TEXT, ner=NAMES, srl=ROLES, coref=CHAINS)],
    ):
        table = parquet.read_table(output_of(".parquet", rows))
        assert table.to_pylist() == [{"document": "a", **rows[0].results}]
        schemas.append(table.schema)
    assert schemas[0] == schemas[1] and not any(
        pyarrow.types.is_null(field.type) for field in schemas[0]
    )


def test_parquet_has_columns_that_are_kept(output_of):
    row = annotated("a", TEXT, {"year": 1999, "label": [[0, 3, "PER"]], "title": "x"}, ner=[])
    table = pandas.read_parquet(
        output_of(".parquet", [row], [annotated("b", "", {"year": None, "label": {}}, ner=[])])
    )
    assert [*table.columns] == ["document", "year", "label", "title", "ner"]
    assert table["label"].tolist() == ['[[0, 3, "PER"]]', "{}"]
    assert table["year"].dropna().tolist() == [1999]


def test_parquet_has_the_stars_and_any_json(output_of):
    parquet = pytest.importorskip("pyarrow.parquet")
    result = {"stars": 2, "probabilities": {1: 0.25, 2: 0.75}}
    table = parquet.read_table(
        output_of(".parquet", [annotated("a", "Good.", sst=result, json=[1, "a"])])
    )
    (row,) = table.to_pylist()
    assert row["sst"] == {"stars": 2, "probabilities": {"1": 0.25, "2": 0.75}}
    assert json.loads(row["json"]) == [1, "a"]


def test_label_studio_gets_predictions_that_our_reader_gets_back(output_of, tmp_path):
    from elmo_tasks.data import NerReader

    names = [
        place(TEXT, "Ann", "person", probability=0.5),
        place(TEXT, "Bob Lee", "person", probability=0.25),
    ]
    first = annotated("a", TEXT, {"lang": "en"}, ner=names, srl=ROLES, coref=CHAINS)
    tasks = json.loads(
        output_of(
            ".labelstudio.json", [first], [annotated("b", "", ner=[], srl=[], coref=NO_CHAINS)]
        ).read_text()
    )
    assert [task["data"] for task in tasks] == [
        {"document": "a", "lang": "en", "text": TEXT},
        {"document": "b", "text": ""},
    ]
    ner, srl, coref = tasks[0]["predictions"]
    assert (ner["model_version"], ner["score"]) == ("ner", 0.25)
    assert ner["result"][1] == {
        "id": "ner-1",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "score": 0.25,
        "value": {"start": 8, "end": 15, "text": "Bob Lee", "labels": ["person"]},
    }
    relations = [
        [
            (each["from_id"], each["to_id"], each["labels"])
            for each in of_model["result"]
            if each["type"] == "relation"
        ]
        for of_model in (srl, coref)
    ]
    assert relations == [[("srl-0", "srl-1", ["ARG0"])], [("coref-0", "coref-1", ["coreference"])]]
    # What a person has accepted without a change.
    path = tmp_path / "export.json"
    path.write_text(
        json.dumps([{"data": tasks[0]["data"], "annotations": [{"result": ner["result"]}]}])
    )
    tags = [tag for instance in NerReader().read(str(path)) for tag in instance["tags"].labels]
    assert tags == ["U-person", "O", "B-person", "L-person", "O", "O", "O", "O"]
