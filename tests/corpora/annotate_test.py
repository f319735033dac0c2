import gzip
import json
import math
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from elmo_tasks import TrainedTask
from elmo_tasks.__main__ import main
from elmo_tasks.corpora.annotate import annotate_file

TEXTS = [
    "Ann met Rene\u0301 in Rome. He was tired.",
    "",
    "The old man sings.",
    "Chelsea beat Ann, and she sang.",
]


@pytest.fixture(scope="module")
def models(archive) -> dict[str, Path]:
    return {task: archive(task, "both", 3) for task in ("ner", "srl", "snli")}


@pytest.fixture
def corpus(tmp_path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.decode().splitlines()]


def test_each_text_has_the_results_of_its_tasks(models, corpus, tmp_path):
    assert (
        annotate_file([models["ner"], models["srl"]], corpus, tmp_path / "out.jsonl", part_texts=3)
        == 4
    )
    rows = rows_of(tmp_path / "out.jsonl")
    assert [row["document"] for row in rows] == ["1", "2", "3", "4"]
    for task in ("ner", "srl"):
        # The same batches as in the parts, so the same numbers.
        trained = TrainedTask(models[task])
        assert [row[task] for row in rows] == [*trained(TEXTS[:3]), *trained(TEXTS[3:])]
    assert not (tmp_path / "out.jsonl.parts").exists()


class TestInputs:
    def test_offsets_are_those_of_the_file(self, models, tmp_path):
        (tmp_path / "texts").mkdir()
        (tmp_path / "texts" / "a.txt").write_bytes(
            "\ufeffAnn met\r\nRen\u00e9.\r\nHe sang.\r\n".encode()
        )
        annotate_file([models["srl"]], tmp_path / "texts", tmp_path / "out.jsonl")
        with open(tmp_path / "texts" / "a.txt", encoding="utf-8", newline="") as file:
            text = file.read()
        (row,) = rows_of(tmp_path / "out.jsonl")
        roles = [role for predicate in row["srl"] for role in predicate["roles"]]
        assert roles and all(text[role["start"] : role["end"]] == role["text"] for role in roles)

    def test_columns_and_their_names_are_options_of_the_command(self, models, tmp_path, capsys):
        (tmp_path / "a.csv").write_text("nr,title,body\nx,One,Ann sang.\n")
        command = [
            "annotate",
            str(models["ner"]),
            str(tmp_path / "a.csv"),
            str(tmp_path / "out.jsonl"),
            "--id-column=nr",
        ]
        assert main([*command, "--keep=title,ner", "--text-column=body"]) == 1
        assert "expected one of the columns nr, title, body, got 'ner'" in capsys.readouterr().err
        assert main([*command, "--keep=title", "--text-column=body"]) == 0
        (row,) = rows_of(tmp_path / "out.jsonl")
        assert list(row) == ["document", "title", "ner"] and (row["document"], row["title"]) == (
            "x",
            "One",
        )

    def test_json_lines_and_parquet_have_several_inputs(self, models, tmp_path):
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pairs = [
            {"id": f"p{n}", "premise": text or "No.", "hypothesis": "Ann sang."}
            for n, text in enumerate(TEXTS)
        ]
        (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
        parquet.write_table(pyarrow.Table.from_pylist(pairs), tmp_path / "pairs.parquet")
        for kind in ("jsonl", "parquet"):
            annotate_file(
                [models["snli"]],
                tmp_path / f"pairs.{kind}",
                tmp_path / f"out-of-{kind}.jsonl",
                part_texts=2,
            )
        assert (tmp_path / "out-of-jsonl.jsonl").read_bytes() == (
            tmp_path / "out-of-parquet.jsonl"
        ).read_bytes()
        annotate_file(
            [models["snli"]], tmp_path / "pairs.jsonl", tmp_path / "out.parquet", part_texts=2
        )
        assert parquet.read_table(tmp_path / "out.parquet").to_pylist() == rows_of(
            tmp_path / "out-of-jsonl.jsonl"
        )

    def test_what_an_output_cannot_have_is_known_before_a_model_is_loaded(
        self, models, tmp_path, monkeypatch
    ):
        document = tmp_path / "document" / "model.tar.gz"
        document.parent.mkdir()
        shutil.copy(models["ner"], document)
        (tmp_path / "a.jsonl").write_text('{"text": "Ann", "ner": [[0, 8, "PER"]]}\n')
        monkeypatch.setattr(TrainedTask, "__init__", None)
        with pytest.raises(
            ValueError, match=r"what .conllu has a place for, got the results of srl: .jsonl"
        ):
            annotate_file(
                [models["ner"], models["srl"]], tmp_path / "a.jsonl", tmp_path / "out.conllu"
            )
        with pytest.raises(ValueError, match="got 2 columns document"):
            annotate_file([document], tmp_path / "a.jsonl", tmp_path / "out.jsonl")
        with pytest.raises(ValueError, match="got 2 columns ner"):
            annotate_file([models["ner"]], tmp_path / "a.jsonl", tmp_path / "out.jsonl", keep="all")
        with pytest.raises(ValueError, match="columns to keep"):
            annotate_file([document], tmp_path / "a.jsonl", tmp_path / "out.conll", keep="ner")


def test_an_error_names_its_text(models, corpus, tmp_path, monkeypatch):
    def fail(self: TrainedTask, inputs: Iterable[tuple[str, ...]]) -> Iterator[list]:
        for (text,) in inputs:
            if "old" in text:
                raise KeyError("old")
            yield []

    monkeypatch.setattr(TrainedTask, "stream", fail)
    with pytest.raises(RuntimeError, match=r"KeyError: 'old': .*corpus\.txt, text 3$"):
        annotate_file([models["ner"]], corpus, tmp_path / "out.jsonl")


def test_lines_of_a_form_are_annotated(models, tmp_path):
    (tmp_path / "form.txt").write_text("Name: Ann\n______\n__\n[WORD] [WORD]\n")
    assert (
        annotate_file([models["ner"], models["srl"]], tmp_path / "form.txt", tmp_path / "out.jsonl")
        == 4
    )
    assert len(rows_of(tmp_path / "out.jsonl")) == 4


def names(self: TrainedTask, inputs: Iterable[tuple[str, ...]]) -> Iterator[list[dict]]:
    """The first word of each text, with a probability as from weights that are not finite."""
    for (text,) in inputs:
        word = text.partition(" ")[0]
        yield (
            [{"text": word, "start": 0, "end": len(word), "label": "x", "probability": math.nan}]
            if word
            else []
        )


@pytest.mark.parametrize(
    "ending", [".jsonl.gz", ".parquet", ".csv", ".spacy", ".conllu", ".conll", "/"]
)
def test_parts_make_no_difference(models, corpus, tmp_path, monkeypatch, ending):
    """A text without names is in a part of its own."""
    monkeypatch.setattr(TrainedTask, "stream", names)
    outputs = [f"{tmp_path}/{number}{ending}" for number in range(2)]
    for output, part_texts in zip(outputs, (1, 4), strict=True):
        assert annotate_file([models["ner"]], corpus, output, part_texts=part_texts) == 4
    if ending == "/":
        # It replaces its own earlier output.
        annotate_file([models["ner"]], corpus, outputs[0], part_texts=2, force=True)
        files = [
            {file.name: file.read_bytes() for file in Path(output).iterdir()} for output in outputs
        ]
        assert files[0] == files[1] and len(files[0]) == 10
        # But no other folder.
        with pytest.raises(FileExistsError, match="contains other files"):
            annotate_file([models["ner"]], corpus, f"{tmp_path}/", force=True)
        assert corpus.exists()
    elif ending == ".jsonl.gz":
        assert [
            row["ner"] and row["ner"][0]["probability"] for row in rows_of(Path(outputs[0]))
        ] == [
            None,
            [],
            None,
            None,
        ]
        assert Path(outputs[0]).read_bytes() == Path(outputs[1]).read_bytes()
    elif ending == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        assert parquet.read_table(outputs[0]) == parquet.read_table(outputs[1])
    else:
        assert Path(outputs[0]).read_bytes() == Path(outputs[1]).read_bytes()
    assert not list(tmp_path.glob("*.parts"))


@pytest.mark.weekly
def test_an_interrupted_job_continues_to_the_same_bytes(
    models, corpus, tmp_path, monkeypatch, capsys, caplog
):
    command = [
        "annotate",
        str(models["ner"]),
        str(corpus),
        str(tmp_path / "out.jsonl"),
        "--part-texts",
        "1",
    ]
    assert main([*command, "--workers", "2"]) == 0
    expected = (tmp_path / "out.jsonl").read_bytes()
    assert main(command) == 1 and "use --force" in capsys.readouterr().err
    (tmp_path / "out.jsonl").unlink()

    written = []
    stream = TrainedTask.stream

    def interrupted(self, inputs):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(inputs)
        return stream(self, inputs)

    monkeypatch.setattr(TrainedTask, "stream", interrupted)
    assert main(command) == 130 and len(list(tmp_path.glob("out.jsonl.parts/part-*"))) == 2
    monkeypatch.undo()
    caplog.set_level("INFO", "elmo_tasks.files.jobs")
    assert main(command) == 0 and (tmp_path / "out.jsonl").read_bytes() == expected
    assert "4 texts; 2 of 4 parts exist" in caplog.text and "computed 2 texts in" in caplog.text
