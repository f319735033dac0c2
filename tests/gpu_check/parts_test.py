import gc
from types import SimpleNamespace

import pytest
import torch

from elmo_tasks.gpu_check import device as device_module
from elmo_tasks.gpu_check import graphs, memory, speed
from elmo_tasks.gpu_check.gradients import gradient_parts
from elmo_tasks.gpu_check.graphs import graph_parts
from elmo_tasks.gpu_check.layers import layers_parts
from elmo_tasks.gpu_check.memory import memory_parts
from elmo_tasks.gpu_check.part import NotApplicable, Part, PartFailed, Result, Setting, run_parts
from elmo_tasks.gpu_check.speed import speed_parts
from tests.gpu_check.conftest import CPU, AsIfCuda

TINY = {"device": CPU, "sizes": ["tiny"], "is_quick": True}


def results(parts: list[Part], setting: Setting) -> dict[str, Result]:
    return {result.name: result for result in run_parts(parts, setting)}


def verdicts(found: dict[str, Result]) -> dict[str, str]:
    return {name: f"{result.verdict} {result.reason}".strip() for name, result in found.items()}


class TestRunParts:
    def test_each_part_has_a_verdict_and_a_failure_stops_none(self):
        """Oracle: by hand; every way in which a part can end."""

        def passing(setting):
            return {"a": 1}

        def failing(setting):
            raise PartFailed("too\nlarge", {"b": 2})

        def unfit(setting):
            raise NotApplicable("no GPU")

        def raising(setting):
            raise RuntimeError("CUDA error:\n  an illegal memory access")

        def mute(setting):
            raise ZeroDivisionError

        parts = [Part(run.__name__, run) for run in (failing, raising, unfit, mute, passing)]
        found = results(parts, Setting(**TINY))
        assert verdicts(found) == {
            "failing": "failed too large",
            "raising": "failed RuntimeError: CUDA error: an illegal memory access",
            "unfit": "not applicable no GPU",
            "mute": "failed ZeroDivisionError: without a message",
            "passing": "passed",
        }
        assert found["failing"].numbers == {"b": 2} and found["passing"].numbers == {"a": 1}

    def test_an_error_of_the_gpu_that_comes_late_belongs_to_its_part(self, gpu, monkeypatch):
        """Oracle: by hand; CUDA tells of it where one waits for the GPU."""

        def late(*arguments):
            raise RuntimeError("device-side assert triggered")

        monkeypatch.setattr(torch.cuda, "synchronize", late)
        found = results([Part("late", lambda setting: {})], AsIfCuda(**TINY))
        assert verdicts(found) == {"late": "failed RuntimeError: device-side assert triggered"}


class TestParts:
    def test_all_that_need_no_gpu_pass_on_a_cpu(self):
        """Oracle: the verdicts; those of graphs do not apply."""
        setting = Setting(**TINY)
        found = results([*graph_parts(), *layers_parts(setting), *gradient_parts(setting), memory_parts()[0]], setting)
        by_verdict: dict[str, list[str]] = {}
        for name, result in found.items():
            by_verdict.setdefault(result.verdict, []).append(name)
        assert "failed" not in by_verdict, verdicts(found)
        assert set(by_verdict["not applicable"]) >= {part.name for part in graph_parts()} | {"layers, tiny, tf32"}
        assert {"layers, tiny, float32", "gradients, tiny, float32", "training"} <= set(by_verdict["passed"])

    def test_those_of_graphs_pass_where_graphs_are_right(self, gpu):
        """Oracle: the verdicts; a replay runs the steps again."""
        found = results(graph_parts(), AsIfCuda(**TINY))
        assert verdicts(found) == {
            **{part.name: "passed" for part in graph_parts()},
            "graphs: two GPUs": "not applicable there is one GPU",
        }
        assert found["graphs: recorded and replayed"].numbers["recorded"] > 2

    def test_those_of_graphs_fail_where_graphs_compute_something_else(self, gpu, monkeypatch):
        """Oracle: the verdicts; a replay does nothing."""
        monkeypatch.setattr(gpu, "record", lambda steps: SimpleNamespace(replay=lambda: None))
        found = verdicts(results(graph_parts(), AsIfCuda(**TINY)))
        assert found["graphs: recorded and replayed"].startswith("failed torch.float32: their results differ by")
        for name in ("other shapes", "weights changed", "inference mode", "two threads"):
            assert found[f"graphs: {name}"].startswith("failed") and "differ by" in found[f"graphs: {name}"]
        assert found["graphs: a recording that fails"] == "failed a recording that must fail did not"

    def test_those_of_graphs_fail_where_none_is_recorded(self, gpu, monkeypatch):
        """
        Oracle: the verdict, also when the graphs of the test before go meanwhile; and that the variable which switches
        graphs off is no failure.
        """
        from elmo_tasks.bilm.lstm import bidirectional_layer

        monkeypatch.setattr(bidirectional_layer, "graphs_are_used", lambda inputs: False)
        layers_of, batches = graphs.layers_of, []

        def collecting(bilm, batch):
            batches.append(batch)
            if len(batches) == 2:  # The first one comes before the count.
                gc.collect()
            return layers_of(bilm, batch)

        monkeypatch.setattr(graphs, "layers_of", collecting)
        gc.disable()
        try:
            found = verdicts(results(graph_parts()[1:2], AsIfCuda(**TINY)))
        finally:
            gc.enable()
        assert list(found.values()) == ["failed no graph was recorded: see the warning above"]
        monkeypatch.setenv("ELMO_TASKS_CUDA_GRAPHS", "0")
        found = verdicts(results(graph_parts(), AsIfCuda(**TINY)))
        assert set(found.values()) == {"not applicable ELMO_TASKS_CUDA_GRAPHS is 0"}

    def test_layers_that_differ_fail_in_every_precision(self, gpu, monkeypatch):
        """Oracle: the verdicts; the device forgets the last digit of a word, or all of them."""
        from elmo_tasks.gpu_check import layers

        setting, computed = AsIfCuda(**TINY), layers.layers_of
        expected = results(layers_parts(setting), setting)
        assert {"layers, tiny, tf32", "layers, tiny, plain path"} <= {
            name for name, result in expected.items() if result.verdict == "passed"
        }

        def damaged(bilm, batch):
            found = computed(bilm, batch)
            if found.numel():
                found[-1, -1] = found[-1, 0] * (1.001 if bilm.precision == "float32" else -1.0)
            return found

        monkeypatch.setattr(layers, "layers_of", damaged)
        for name, result in results(layers_parts(setting), setting).items():
            if expected[name].verdict == "passed":
                assert result.verdict == "failed" and result.numbers["empty sentences"]["largest difference"] == 0.0

    def test_those_of_memory(self, gpu, monkeypatch):
        """Oracle: the verdicts and numbers by hand, with the memory that the stand-ins of CUDA tell."""
        setting = AsIfCuda(**TINY)
        found = results(memory_parts()[1:3], setting)
        assert found["memory of graphs"].verdict == found["too little memory"].verdict == "passed"
        assert found["memory of graphs"].numbers["MiB in all"] == 0.0
        used = iter([2**20, 2**28])
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: next(used))
        (growing,) = results(memory_parts()[:1], setting).values()
        assert growing.reason == "the second half of 60 batches has taken 255 MiB"
        reserved = iter([0, 2**32])
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: next(reserved))
        (large,) = results(memory_parts()[1:2], setting).values()
        assert large.reason == "graphs take 4096 MiB, and may 2048"

    def test_a_second_process_is_compared_with_this_one(self, monkeypatch, capsys):
        """Oracle: the verdicts by hand; the other process runs here, prints another sum, or ends with an error."""
        from elmo_tasks.gpu_check import second_process

        def outcome(output: str, errors: str = "", status: int = 0) -> str:
            class Popen:
                returncode = status

                def __init__(self, command, **kwargs):
                    assert command[1:] == ["-m", "elmo_tasks.gpu_check.second_process", "cpu", "tiny"]
                    self.polled = iter([None, status])

                __enter__ = lambda self: self  # noqa: E731
                __exit__ = lambda self, *error: None  # noqa: E731
                kill = lambda self: None  # noqa: E731
                poll = lambda self: next(self.polled)  # noqa: E731
                communicate = lambda self, timeout: (output, errors)  # noqa: E731

            monkeypatch.setattr(memory.subprocess, "Popen", Popen)
            return next(iter(verdicts(results(memory_parts()[3:], Setting(**TINY))).values()))

        monkeypatch.setattr(second_process.sys, "argv", ["", "cpu", "tiny"])
        second_process._main()
        right = capsys.readouterr().out
        assert outcome(right) == "passed"
        assert "while two processes compute" in outcome("[1e6, 0.0, 0.0, 0.0]")
        failed = outcome("", "Traceback\nRuntimeError: all CUDA-capable devices are busy\n", 1)
        assert (
            failed == "failed the second process ended with status 1: RuntimeError: all CUDA-capable devices are busy"
        )

    def test_speed_is_told_for_both(self, gpu, monkeypatch):
        """Oracle: the names of the numbers."""
        monkeypatch.setattr(speed, "_N_ROUNDS", 1)
        monkeypatch.setattr(speed, "_SECONDS_OF_ROUND", 0.0)
        monkeypatch.setattr(speed, "_precisions", lambda setting: ["float32"])
        (one,) = results(speed_parts(Setting(**TINY))[:1], Setting(**TINY)).values()
        assert one.verdict == "passed" and one.numbers["words"] == 28
        assert {"float32, tokens/s", "float32, torch's own, tokens/s"} <= set(one.numbers)


class TestDescribe:
    def test_a_gpu_and_a_cpu(self, gpu, monkeypatch):
        """Oracle: by hand, from the stand-ins of CUDA."""
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 90000)
        found = device_module.describe(AsIfCuda(**TINY))
        assert found["name"] == "GPU" and found["compute capability"] == "9.0"
        assert found["memory in MiB"] == 2**14 and found["free memory in MiB"] == 2**13
        assert found["environment"]["CUDA_VISIBLE_DEVICES"] == "1" and found["packages"]["torch"]
        assert "name" not in device_module.describe(Setting(**TINY))


class TestWhyNoCuda:
    @pytest.mark.parametrize(
        ("cuda", "visible", "error", "expected"),
        [
            (None, None, None, "was built without CUDA: install"),
            ("13.0", "", None, "CUDA_VISIBLE_DEVICES is '', which hides all GPUs: unset it"),
            ("13.0", "-1", "No CUDA GPUs are available", "CUDA_VISIBLE_DEVICES is '-1', which hides all GPUs"),
            (
                "13.0",
                None,
                "The NVIDIA driver on your system is too old (found version 11040).\nPlease update",
                "CUDA cannot be used: The NVIDIA driver on your system is too old (found version 11040). Please update",
            ),
            ("13.0", "7", "No CUDA GPUs are available", "CUDA cannot be used: No CUDA GPUs are available"),
        ],
    )
    def test_the_reason_is_one_line(self, monkeypatch, cuda, visible, error, expected):
        """Oracle: by hand: torch without CUDA, no visible GPU, a driver that is too old, a GPU that is not there."""

        def init():
            if error is not None:
                raise RuntimeError(error)

        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(torch.cuda, "init", init)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        if visible is None:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        else:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        reason = device_module.why_no_cuda()
        assert expected in reason and "\n" not in reason

    def test_with_a_gpu_there_is_none(self, monkeypatch):
        """Oracle: by hand."""
        monkeypatch.setattr(torch.version, "cuda", "13.0")
        monkeypatch.setattr(torch.cuda, "init", lambda: None)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        assert device_module.why_no_cuda() is None


class TestUsableDevice:
    def test_a_gpu_has_a_number(self, monkeypatch):
        """Oracle: by hand."""
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        assert [str(device_module.usable_device(name)) for name in ("cuda", "cuda:1", "cpu")] == [
            "cuda:0",
            "cuda:1",
            "cpu",
        ]

    @pytest.mark.parametrize("name", ["cuda:2", "gpu", "mps", "cuda:x", ""])
    def test_another_is_an_error(self, monkeypatch, name):
        """Oracle: the message, with the name."""
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        with pytest.raises(ValueError, match="the device must be") as error:
            device_module.usable_device(name)
        assert repr(name) in str(error.value)
