import gzip
import json
from pathlib import Path

import pytest

from elmo_tasks import TrainedTask
from elmo_tasks.__main__ import main
from elmo_tasks.annotate import annotate_file

TEXTS = ["Ann met Rene\u0301 in Rome. He was tired.", "", "The old man sings.", "Chelsea beat Ann, and she sang."]


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
    assert annotate_file([models["ner"], models["srl"]], corpus, tmp_path / "out.jsonl", part_texts=3) == 4
    rows = rows_of(tmp_path / "out.jsonl")
    assert [row["document"] for row in rows] == ["1", "2", "3", "4"]
    for task in ("ner", "srl"):
        # The same batches as in the parts, so the same numbers.
        trained = TrainedTask(models[task])
        assert [row[task] for row in rows] == [*trained(TEXTS[:3]), *trained(TEXTS[3:])]
    assert not (tmp_path / "out.jsonl.parts").exists()


class TestInputs:
    def test_a_folder_has_one_text_per_file(self, models, tmp_path):
        for name, text in {"b.txt": TEXTS[0], "a/c.txt": TEXTS[2]}.items():
            (tmp_path / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "texts" / name).write_text(text, encoding="utf-8")
        annotate_file([models["srl"]], tmp_path / "texts", tmp_path / "out.jsonl.gz")
        assert [row["document"] for row in rows_of(tmp_path / "out.jsonl.gz")] == ["a/c.txt", "b.txt"]

    def test_json_lines_and_parquet_have_several_inputs(self, models, tmp_path):
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pairs = [{"id": f"p{n}", "premise": text or "No.", "hypothesis": "Ann sang."} for n, text in enumerate(TEXTS)]
        (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
        parquet.write_table(pyarrow.Table.from_pylist(pairs), tmp_path / "pairs.parquet")
        for kind in ("jsonl", "parquet"):
            annotate_file([models["snli"]], tmp_path / f"pairs.{kind}", tmp_path / f"out-of-{kind}.jsonl", part_texts=2)
        assert (tmp_path / "out-of-jsonl.jsonl").read_bytes() == (tmp_path / "out-of-parquet.jsonl").read_bytes()
        annotate_file([models["snli"]], tmp_path / "pairs.jsonl", tmp_path / "out.parquet", part_texts=2)
        assert parquet.read_table(tmp_path / "out.parquet").to_pylist() == rows_of(tmp_path / "out-of-jsonl.jsonl")

    def test_a_text_is_not_a_pair(self, models, corpus, tmp_path):
        with pytest.raises(ValueError, match=r"expected texts as premise and hypothesis .*corpus.txt, text 1"):
            annotate_file([models["snli"]], corpus, tmp_path / "out.jsonl")
        with pytest.raises(ValueError, match="expected an output that ends with"):
            annotate_file([models["ner"]], corpus, tmp_path / "out.csv")


@pytest.mark.slow
def test_an_interrupted_job_continues_to_the_same_bytes(models, corpus, tmp_path, monkeypatch, capsys):
    command = ["annotate", str(models["ner"]), str(corpus), str(tmp_path / "out.jsonl"), "--part-texts", "1"]
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
    assert main(command) == 0 and (tmp_path / "out.jsonl").read_bytes() == expected
