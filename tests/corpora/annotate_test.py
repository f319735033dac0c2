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
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return [json.loads(line) for line in content.decode().splitlines()]


def test_each_text_has_the_results_of_its_tasks(models, corpus, tmp_path):
    output = tmp_path / "out.jsonl"
    assert annotate_file([models["ner"], models["srl"]], corpus, output, part_texts=3) == 4
    rows = rows_of(output)
    assert [row["document"] for row in rows] == ["1", "2", "3", "4"]
    for task in ("ner", "srl"):
        # The same batches as in the parts, so the same numbers.
        trained = TrainedTask(models[task])
        assert [row[task] for row in rows] == trained(TEXTS[:3]) + trained(TEXTS[3:])
    assert not (tmp_path / "out.jsonl.parts").exists()


class TestInputs:
    def test_offsets_are_those_of_the_file(self, models, tmp_path):
        path = tmp_path / "texts" / "a.txt"
        path.parent.mkdir()
        path.write_bytes("\ufeffAnn met\r\nRen\u00e9.\r\nHe sang.\r\n".encode())
        annotate_file([models["srl"]], tmp_path / "texts", tmp_path / "out.jsonl")
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        (row,) = rows_of(tmp_path / "out.jsonl")
        assert row["srl"]
        for predicate in row["srl"]:
            assert predicate["roles"]
            for role in predicate["roles"]:
                assert text[role["start"] : role["end"]] == role["text"]

    def test_columns_and_their_names_are_options_of_the_command(self, models, tmp_path, capsys):
        corpus = tmp_path / "a.csv"
        corpus.write_text("nr,title,body\nx,One,Ann sang.\n")
        output = tmp_path / "out.jsonl"
        command = ["annotate", str(models["ner"]), str(corpus), str(output)]
        command += ["--id-column=nr", "--text-column=body"]
        assert main([*command, "--keep=title,ner"]) == 1
        assert "expected one of the columns nr, title, body, got 'ner'" in capsys.readouterr().err
        assert main([*command, "--keep=title"]) == 0
        (row,) = rows_of(output)
        assert list(row) == ["document", "title", "ner"]
        assert row["document"] == "x" and row["title"] == "One"

    def test_json_lines_and_parquet_have_several_inputs(self, models, tmp_path):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        pairs = []
        for number, text in enumerate(TEXTS):
            pair = {"id": f"p{number}", "premise": text or "No.", "hypothesis": "Ann sang."}
            pairs.append(pair)
        lines = tmp_path / "pairs.jsonl"
        lines.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
        table = tmp_path / "pairs.parquet"
        parquet.write_table(pyarrow.Table.from_pylist(pairs), table)
        output = tmp_path / "lines.jsonl"
        output_of_table = tmp_path / "table.jsonl"
        annotate_file([models["snli"]], lines, output, part_texts=2)
        annotate_file([models["snli"]], table, output_of_table, part_texts=2)
        assert output.read_bytes() == output_of_table.read_bytes()
        output_table = tmp_path / "lines.parquet"
        annotate_file([models["snli"]], lines, output_table, part_texts=2)
        assert parquet.read_table(output_table).to_pylist() == rows_of(output)

    def test_what_an_output_cannot_have_is_known_before_a_model_is_loaded(
        self, models, tmp_path, monkeypatch
    ):
        document = tmp_path / "document" / "model.tar.gz"
        document.parent.mkdir()
        shutil.copy(models["ner"], document)
        corpus = tmp_path / "a.jsonl"
        corpus.write_text('{"text": "Ann", "ner": [[0, 8, "PER"]]}\n')
        monkeypatch.setattr(TrainedTask, "__init__", None)
        expected = r"what .conllu has a place for, got the results of srl: .jsonl"
        with pytest.raises(ValueError, match=expected):
            annotate_file([models["ner"], models["srl"]], corpus, tmp_path / "out.conllu")
        with pytest.raises(ValueError, match="got 2 columns document"):
            annotate_file([document], corpus, tmp_path / "out.jsonl")
        with pytest.raises(ValueError, match="got 2 columns ner"):
            annotate_file([models["ner"]], corpus, tmp_path / "out.jsonl", keep="all")
        with pytest.raises(ValueError, match="columns to keep"):
            annotate_file([document], corpus, tmp_path / "out.conll", keep="ner")


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
    form = tmp_path / "form.txt"
    form.write_text("Name: Ann\n______\n__\n[WORD] [WORD]\n")
    output = tmp_path / "out.jsonl"
    assert annotate_file([models["ner"], models["srl"]], form, output) == 4
    assert len(rows_of(output)) == 4


def first_words(self: TrainedTask, inputs: Iterable[tuple[str, ...]]) -> Iterator[list[dict]]:
    """The first word of each text, with a probability as from weights that are not finite."""
    for (text,) in inputs:
        word = text.partition(" ")[0]
        name = {"text": word, "start": 0, "end": len(word), "label": "x", "probability": math.nan}
        yield [name] if word else []


@pytest.mark.parametrize(
    "ending", [".jsonl.gz", ".parquet", ".csv", ".spacy", ".conllu", ".conll", "/"]
)
def test_parts_make_no_difference(models, corpus, tmp_path, monkeypatch, ending):
    """A text without names is in a part of its own."""
    monkeypatch.setattr(TrainedTask, "stream", first_words)
    of_four_parts = f"{tmp_path}/4{ending}"
    of_one_part = f"{tmp_path}/1{ending}"
    assert annotate_file([models["ner"]], corpus, of_four_parts, part_texts=1) == 4
    assert annotate_file([models["ner"]], corpus, of_one_part, part_texts=4) == 4
    if ending == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        assert parquet.read_table(of_four_parts) == parquet.read_table(of_one_part)
    elif ending == "/":
        assert bytes_in(of_four_parts) == bytes_in(of_one_part)
        assert len(bytes_in(of_one_part)) == 10
    else:
        assert Path(of_four_parts).read_bytes() == Path(of_one_part).read_bytes()
    assert not list(tmp_path.glob("*.parts"))


def bytes_in(folder: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def test_a_probability_that_is_not_finite_is_null(models, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(TrainedTask, "stream", first_words)
    annotate_file([models["ner"]], corpus, tmp_path / "out.jsonl.gz")
    first, empty, _, _ = rows_of(tmp_path / "out.jsonl.gz")
    assert first["ner"][0]["probability"] is None
    assert empty["ner"] == []


def test_only_a_folder_of_its_own_is_replaced(models, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(TrainedTask, "stream", first_words)
    output = f"{tmp_path}/out/"
    annotate_file([models["ner"]], corpus, output)
    expected = bytes_in(output)
    annotate_file([models["ner"]], corpus, output, part_texts=2, force=True)
    assert bytes_in(output) == expected
    with pytest.raises(FileExistsError, match="contains other files"):
        annotate_file([models["ner"]], corpus, f"{tmp_path}/", force=True)
    assert corpus.exists()


def test_a_part_does_not_depend_on_what_was_computed_before(models, corpus, tmp_path):
    """Products may be rounded differently in a batch of a different size."""
    output = tmp_path / "out.jsonl"
    annotate_file([models["ner"]], corpus, output)
    expected = output.read_bytes()
    # Shares its biLM, and the layers of sentences, with the model of the job.
    trained = TrainedTask(models["ner"])
    for text in TEXTS:
        trained([text])
    annotate_file([models["ner"]], corpus, output, force=True)
    assert output.read_bytes() == expected


@pytest.mark.weekly
def test_an_interrupted_job_continues_to_the_same_bytes(
    models, corpus, tmp_path, monkeypatch, capsys, caplog
):
    output = tmp_path / "out.jsonl"
    command = ["annotate", str(models["ner"]), str(corpus), str(output), "--part-texts", "1"]
    assert main([*command, "--workers", "2"]) == 0
    expected = output.read_bytes()
    assert main(command) == 1 and "use --force" in capsys.readouterr().err
    output.unlink()

    written = []
    stream = TrainedTask.stream

    def interrupted(self, inputs):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(inputs)
        return stream(self, inputs)

    monkeypatch.setattr(TrainedTask, "stream", interrupted)
    assert main(command) == 130
    assert len(list(tmp_path.glob("out.jsonl.parts/part-*"))) == 2
    monkeypatch.undo()
    caplog.set_level("INFO", "elmo_tasks.files.jobs")
    assert main(command) == 0
    assert output.read_bytes() == expected
    assert "4 texts; 2 of 4 parts exist" in caplog.text and "computed 2 texts in" in caplog.text
