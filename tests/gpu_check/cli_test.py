import json

import pytest
import torch

from elmo_tasks.__main__ import main
from elmo_tasks.files.sealed_json import read_sealed
from elmo_tasks.gpu_check import device, graphs, layers, memory, speed
from elmo_tasks.gpu_check import gradients as gradients_module
from elmo_tasks.gpu_check.part import NotApplicable, Part, PartFailed


def passing(setting):
    return {"case": {"largest difference": 1e-5, "lowest cosine": 0.99999}, "n": 3}


def failing(setting):
    raise PartFailed("it differs", {"difference": float("nan"), "list": [float("inf")]})


def unfit(setting):
    raise NotApplicable("there is one GPU")


def interrupted(setting):
    raise KeyboardInterrupt


@pytest.fixture
def parts(monkeypatch):
    """The parts of the check, which a test replaces by its own."""
    monkeypatch.setattr(
        device, "describe", lambda setting: {"packages": {"torch": "2"}, "device": "cpu", "python": "3"}
    )
    found = []
    monkeypatch.setattr(graphs, "graph_parts", lambda: found)
    monkeypatch.setattr(memory, "memory_parts", lambda: [])
    for module, name in ((layers, "layers_parts"), (gradients_module, "gradient_parts"), (speed, "speed_parts")):
        monkeypatch.setattr(module, name, lambda setting: [])
    return found


class TestCheckGpu:
    @pytest.mark.parametrize(("runs", "status"), [((passing, unfit), 0), ((failing, passing, unfit), 1)])
    def test_each_part_is_a_line_and_a_failure_the_status(self, parts, capsys, tmp_path, runs, status):
        """Oracle: the lines and the report by hand; the report has a checksum, and is JSON without NaN."""
        parts += [Part(run.__name__, run) for run in runs]
        report = tmp_path / "report.json"
        assert main(["check-gpu", "--device", "cpu", "--quick", "--report", str(report)]) == status
        lines = capsys.readouterr().out.splitlines()
        assert [line[:14].strip() for line in lines[:-2]] == [
            "passed",
            *{0: ["passed"], 1: ["failed", "passed"]}[status],
            "not applicable",
        ]
        assert f"{len(runs) - status} parts passed, {status} failed, 1 are not applicable" in lines[-2]
        assert "largest difference 1.0e-05, lowest cosine 0.99999" in "".join(lines)
        json.loads(report.read_text(), parse_constant=lambda name: pytest.fail(name))
        content = read_sealed(report)
        assert content["verdict"] == ("failed" if status else "passed") and content["quick"]
        assert [part["name"] for part in content["parts"]] == ["versions and device", *(run.__name__ for run in runs)]
        if status:
            assert content["parts"][1] == {
                "name": "failing",
                "verdict": "failed",
                "reason": "it differs",
                "seconds": content["parts"][1]["seconds"],
                "numbers": {"difference": "nan", "list": ["inf"]},
            }

    def test_without_cuda_it_is_one_line_and_status_2(self, parts, capsys, monkeypatch):
        """Oracle: by hand."""
        monkeypatch.setattr(torch.version, "cuda", None)
        assert main(["check-gpu"]) == 2
        output = capsys.readouterr()
        (line,) = output.err.splitlines()
        assert line.startswith("error: torch") and "--device cpu" in line and not output.out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--device", "tpu"], "the device must be cpu, cuda or cuda:N, but is 'tpu'"),
            (["--report", "report.txt"], "must have a name that ends with .json"),
            (["--report", "nowhere/report.json"], "nowhere must be a folder, for the report, but is not"),
            (["--report", "."], "must have a name that ends with .json"),
        ],
    )
    def test_a_wrong_argument_is_one_line_before_any_work(
        self, parts, capsys, monkeypatch, tmp_path, arguments, message
    ):
        """Oracle: by hand."""
        monkeypatch.chdir(tmp_path)
        parts.append(Part("never", lambda setting: pytest.fail("it must not run")))
        assert main(["check-gpu", "--device", "cpu", *arguments]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ") and message in line

    def test_an_interrupt_says_how_far_it_came(self, parts, capsys):
        """Oracle: by hand."""
        parts += [Part("first", passing), Part("second", interrupted)]
        assert main(["check-gpu", "--device", "cpu"]) == 130
        assert capsys.readouterr().err == "interrupted after 2 of 3 parts; no report is written\n"
