"""Tests of `allennlp elmo-tables --plan`."""

import argparse
import functools
import io
import json
import re
import shutil
import tarfile
from collections.abc import Callable

import pytest
import torch

from elmo_tasks.commands import Tables
from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from elmo_tasks.replication import make, replicate, run_here
from elmo_tasks.replication.__main__ import main as write_pages
from elmo_tasks.replication.evidence import evidence
from elmo_tasks.replication.report.pages import BEGIN, END
from tests.paths import BILM_RESULTS

# As `allennlp train CONFIG -s FOLDER` does; what a test lets fail ends with an error.
FAKE = """
mkdir -p "$4"
case "$2" in {fails}) echo nan loss; exit 1;; esac
cp "{archive}" "$4/model.tar.gz"
cd "$4"
echo '{{"best_epoch": 0, "best_validation_f1-measure-overall": 0.5, "test_f1-measure-overall": 0.25}}' > metrics.json
echo '{{"validation_f1-measure-overall": 0.5}}' > metrics_epoch_0.json
"""
# Of one sentence the right, predicted and gold names, whose F1 is that of the runs.
SENTENCES = [(1, 4, 4)]
TASK = {"task": "ner", "data": "names", "seeds": {"table 1": 2, "figure 2": 2}}
OTHERS = [
    {"task": "sst", "data": "reviews", "seeds": {"table 1": 1}},
    {"task": "pos", "data": "tags", "seeds": {"table 6": 1}},
]


@pytest.fixture
def plan(environment: pytest.MonkeyPatch, tmp_path, fixtures_root, evaluated_once) -> Callable[..., None]:
    """
    Runs the command with `allennlp train` and the test of single sentences replaced: `plan(*arguments,
    fails="nothing", data=True, draws=False)`.
    """
    environment.setattr(evidence, "scores_by_sentence", lambda task, archive: SENTENCES)
    content = {"format": 1, "bilm": "small-open", "glove": "glove.open.100d.txt.gz", "tasks": [TASK]}
    (tmp_path / "small.jsonnet").write_text(json.dumps(content))
    weights = io.BytesIO()
    torch.save({"elmo.mix.layer_weights": torch.zeros(3), "elmo.mix.gamma": torch.ones(())}, weights)
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("weights.th")
        info.size = len(weights.getvalue())
        archive.addfile(info, io.BytesIO(weights.getvalue()))
    parser = argparse.ArgumentParser()
    Tables().add_subparser(parser.add_subparsers())
    environment.chdir(tmp_path)

    def fake_draw(exhibit, runs, total, results):
        return [results / "figures" / f"figure2.{kind}" for kind in ("png", "svg", "csv")]

    def run(*arguments: str, fails: str = "nothing", data: bool = True, draws: bool = False) -> None:
        environment.setattr(replicate, "draw", make.draw if draws else fake_draw)
        (tmp_path / "fake").write_text(FAKE.format(fails=fails, archive=tmp_path / "model.tar.gz"))
        command = ("/bin/sh", str(tmp_path / "fake"))
        environment.setattr(make, "run_here", functools.partial(run_here, command=command))
        root = ("--data", str(fixtures_root)) if data else ()
        given = parser.parse_args(["elmo-tables", "--plan", "small.jsonnet", *root, *arguments])
        given.func(given)

    return run


def states(capsys: pytest.CaptureFixture) -> dict[str, str]:
    """The runs of a dry run and their states."""
    lines = capsys.readouterr().out.splitlines()
    return {line.split(":")[0].split()[-1]: line[:12].strip() for line in lines[:-1]}


class TestMakePlan:
    def test_another_machine_takes_the_files_of_runs_and_trains_nothing(self, plan, tmp_path, capsys):
        """
        Oracle: what is printed is the same without the folders of the runs, without data, and with no training; and
        the pages of the results have these runs, or refuse a damaged one.
        """
        plan(draws=True)
        first = capsys.readouterr().out
        shutil.rmtree(tmp_path / "results" / "runs" / "ner" / "baseline")
        # Its training is over, and is not repeated.
        plan(fails="*")
        assert capsys.readouterr().out == first
        assert "| NER | F1, test | 25.00 ± 0.00 (2) | 25.00 ± 0.00 (2) |" in " ".join(first.split())
        assert "permutation test, two-sided: NER p = 1.000 (1, seed 1)." in first
        figures = [tmp_path / "output" / "small" / "figures" / f"figure2.{kind}" for kind in ("png", "svg", "csv")]
        assert all(str(figure) in first and figure.is_file() for figure in figures)
        shutil.rmtree(tmp_path / "output")
        plan("--dry-run")
        runs = [f"ner/{variant}/{seed}" for variant in ("baseline", "input") for seed in (1, 2)]
        assert states(capsys) == dict.fromkeys(runs, "finished")
        plan(fails="*", data=False)
        captured = capsys.readouterr()
        assert captured.out == first
        assert "digests of the data are not compared for ner" in captured.err
        readme = tmp_path / "README.md"
        findings = tmp_path / "docs" / "replication" / "findings.md"
        findings.parent.mkdir(parents=True)
        for page in (readme, findings):
            page.write_text(f"{BEGIN}\n{END}\n")
        (tmp_path / "results" / "table5.json").write_bytes((BILM_RESULTS / "table5.json").read_bytes())
        pages = [str(readme), "results", "--plan", "small.jsonnet"]
        assert write_pages(pages) is None and write_pages([*pages, "--check"]) is None
        assert "| NER | F1, test | 25.00 ± 0.00 (2) | 25.00 ± 0.00 (2) | +0.00 | +2.06 |" in " ".join(
            readme.read_text().split()
        )
        (tmp_path / "results" / "runs" / "ner" / "input" / "2.json").write_text("{")
        assert re.search(r"README\.md: .*input/2\.json", write_pages([*pages, "--check"]))

    def test_a_failed_run_is_trained_again_only_if_that_is_asked_for(self, plan, tmp_path, capsys):
        """Oracle: the messages and the states; the others are finished."""
        with pytest.raises(SystemExit, match=r"1 runs are not finished.*: ner/baseline/1"):
            plan(fails="*baseline/1/*")
        captured = capsys.readouterr()
        assert "| 25.00 (1) | 25.00 ± 0.00 (2) |" in " ".join(captured.out.split())
        assert "ner/baseline/1: ended with status 1: nan loss" in captured.err
        with pytest.raises(SystemExit, match=r"1 runs are not finished"):
            plan()
        assert "has failed, and is trained again with --retry-failed: ended with status 1: nan loss" in (
            capsys.readouterr().err
        )
        plan("--dry-run")
        assert states(capsys)["ner/baseline/1"] == "failed"
        plan("--retry-failed")
        assert "25.00 ± 0.00 (2) | 25.00 ± 0.00 (2)" in " ".join(capsys.readouterr().out.split())

    def test_one_table_and_some_tasks_may_be_asked_for(self, plan, capsys):
        """Oracle: the runs by hand."""
        plan("--table", "1", "--tasks", "ner", "--dry-run")
        assert len(states(capsys)) == 4

    def test_tables_of_the_bilm_are_made_once(self, plan, environment, tmp_path, capsys):
        """Oracle: the file that ships in place of the measurement, with and without data, and as its table alone."""
        content = json.loads((tmp_path / "small.jsonnet").read_text())
        (tmp_path / "small.jsonnet").write_text(json.dumps({**content, "measurements": ["table 5"]}))
        numbers = {key: v for key, v in read_sealed(BILM_RESULTS / "table5.json").items() if key != "digests"}

        def measure(run):
            run.scores.parent.mkdir(parents=True)
            write_sealed(run.scores, {**numbers, "identity": run.identity()})

        environment.setattr("elmo_tasks.replication.train.wsd_run.WordSenseRun.measure", measure)
        with pytest.raises(SystemExit, match="missing above: bilm/table5"):
            plan("--table", "5", data=False)
        assert "bilm/table5: the data of the plan must be there" in capsys.readouterr().err
        plan("--table", "5")
        table = capsys.readouterr().out
        assert "| biLM, second layer" in table
        plan("--dry-run", "--table", "5")
        assert "finished     bilm/table5" in capsys.readouterr().out
        plan()
        assert table in capsys.readouterr().out
        plan("--table", "5", data=False)
        assert capsys.readouterr().out == table
        plan("--tasks", "ner")
        assert "| biLM, second layer" not in capsys.readouterr().out
        file = tmp_path / "results" / "runs" / "bilm" / "table5.json"
        file.write_text("{")
        with pytest.raises(SystemExit, match="missing above: bilm/table5"):
            plan("--table", "5")
        assert re.search("bilm/table5: .*table5.json must be JSON", capsys.readouterr().err)

    def test_a_table_of_some_tasks_has_these_alone(self, plan, tmp_path, fixtures_root, capsys):
        """
        Oracle: the rows, and the message where a table has nothing of the tasks; a task with a part of its data is as
        one without data, and the others are trained.
        """
        content = json.loads((tmp_path / "small.jsonnet").read_text())
        (tmp_path / "small.jsonnet").write_text(json.dumps({**content, "tasks": [TASK, *OTHERS]}))
        root = tmp_path / "data"
        (root / "sst").mkdir(parents=True)
        for name in ("ner", "glove", "pos"):
            (root / name).symlink_to(fixtures_root / name)
        data = ("--data", str(root))
        with pytest.raises(SystemExit, match=r"2 runs are not finished, .*: sst/baseline/1, sst/both/1"):
            plan("--table", "1", *data, data=False)
        captured = capsys.readouterr()
        assert re.search("not compared for sst: .*/sst/[a-z]+.txt must be there", captured.err)
        assert "| NER" in captured.out
        with pytest.raises(SystemExit, match="2 runs are not finished"):
            plan("--table", "1", "--tasks", "sst", *data, data=False)
        assert "table 1: no run is finished yet" in capsys.readouterr().out
        with pytest.raises(SystemExit, match="has nothing of pos for table 1"):
            plan("--table", "1", "--tasks", "pos", *data, data=False)

    def test_a_refused_file_is_named_and_the_table_is_made_without_it(self, plan, tmp_path, capsys):
        """Oracle: the messages and the number of seeds."""
        plan()
        file = tmp_path / "results" / "runs" / "ner" / "input" / "2.json"
        file.write_text(file.read_text().replace("50.0", "55.0"))
        capsys.readouterr()
        with pytest.raises(SystemExit, match=r"1 runs are not finished, .*: ner/input/2"):
            plan()
        captured = capsys.readouterr()
        assert re.search(r"ner/input/2: .*2\.json is damaged or was changed", captured.err)
        assert "| 25.00 ± 0.00 (2) | 25.00 (1) |" in " ".join(captured.out.split())

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--seeds", "3"), "the plan says what --seeds would"),
            (("--overrides", "{}"), "the plan says what --overrides would"),
            (("--bilm", "small-open"), "the plan says what --bilm would"),
            (("--table", "2"), "is for table 1, figure 2, but not for table 2"),
            (("--tasks", "sst"), "is about ner, but not about 'sst'"),
            (("--plan", "nowhere"), "a plan must be `open`"),
            (("--figure", "2", "--format", "markdown"), "omit --format, which is for tables"),
        ],
    )
    def test_an_error_is_one_line(self, plan, arguments, message):
        """Oracle: the message with which the command ends."""
        with pytest.raises(SystemExit, match=message) as ended:
            plan(*arguments)
        assert "\n" not in ended.value.code

    @pytest.mark.parametrize("size", [90, 91])
    def test_a_part_must_be_smaller_than_the_whole(self, plan, tmp_path, fixtures_root, size):
        """Oracle: the message; the training set that ships has 90 pairs. A smaller part, and a plan without data."""
        task = {"task": "snli", "data": "pairs", "seeds": {"figure 1": 1}}
        content = {"format": 1, "bilm": "small-open", "glove": "glove.open.100d.txt.gz"}
        for name, sizes in (("large", [10, size]), ("right", [10, 89])):
            (tmp_path / f"{name}.jsonnet").write_text(json.dumps({**content, "tasks": [{**task, "sizes": sizes}]}))
        message = f"large.jsonnet must be a plan, but: 'sizes' of snli must be below 90, .* but one is {size}"
        with pytest.raises(SystemExit, match=message):
            plan("--plan", "large.jsonnet", "--dry-run")
        plan("--plan", "large.jsonnet", "--dry-run", data=False)
        plan("--plan", "right.jsonnet", "--dry-run")

    def test_without_data_nothing_is_trained(self, plan, capsys):
        """Oracle: the messages."""
        with pytest.raises(SystemExit, match="4 runs are not finished"):
            plan(data=False)
        captured = capsys.readouterr()
        assert "ELMO_TASKS_DATA is not set" in captured.err
        assert "table 1: no run is finished yet" in captured.out
