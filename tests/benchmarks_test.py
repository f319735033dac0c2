"""The programs in `benchmarks/`, which are run by hand."""

import importlib

from tests.paths import CHECKOUT


def test_the_bilms_of_each_device_can_be_made(monkeypatch):
    monkeypatch.syspath_prepend(str(CHECKOUT / "benchmarks"))
    benchmark = importlib.import_module("bilm")
    for precisions in benchmark.PRECISIONS.values():
        bilms = benchmark.make_bilms("tiny", "cpu", precisions)
        assert {"float32", "bf16"} <= {*bilms}
        assert {*precisions} == {*bilms} - {"AllenNLP"}
