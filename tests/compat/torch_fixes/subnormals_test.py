"""Tests of elmo_tasks.compat.torch_fixes.subnormals."""

import importlib
from types import SimpleNamespace

import pytest
import torch

from elmo_tasks.compat.torch_fixes import subnormals
from elmo_tasks.compat.torch_fixes.subnormals import flushed_subnormals


class TestFlushedSubnormals:
    @staticmethod
    def subnormal() -> float:
        return float(torch.full((1,), 2e-38) * 0.5)

    @pytest.mark.skipif(not torch.set_flush_denormal(False), reason="the processor has no such mode")
    def test_they_are_zero_in_the_block_alone(self):
        """Oracle: half of 2e-38 is below the smallest normal number, 1.18e-38, and 2e-38 itself is not."""
        assert self.subnormal() == pytest.approx(1e-38, rel=1e-3)
        with flushed_subnormals():
            assert self.subnormal() == 0.0
            assert float(torch.full((1,), 4e-38) * 0.5) > 0.0
            with flushed_subnormals():
                assert self.subnormal() == 0.0
            assert self.subnormal() == 0.0
        assert self.subnormal() > 0.0

    def test_they_are_back_after_an_error(self):
        """Oracle: the number before the block."""
        before = self.subnormal()
        with pytest.raises(ValueError, match=r"^wrong$"), flushed_subnormals():
            raise ValueError("wrong")
        assert self.subnormal() == before

    @pytest.mark.skipif(not torch.set_flush_denormal(False), reason="the processor has no such mode")
    @pytest.mark.parametrize(
        ("fix", "name"),
        [
            ("flush_subnormals_in_training", "_train_worker"),
            ("flush_subnormals_in_evaluation", "evaluate_from_args"),
        ],
    )
    def test_training_and_evaluation_are_such_blocks(self, fix, name):
        """Oracle: what a stand-in for AllenNLP's function sees, and what holds after it."""
        module = SimpleNamespace(**{name: lambda factor, *, times: factor * times * self.subnormal()})
        getattr(subnormals, fix)(module)
        assert getattr(module, name)(2, times=3) == 0.0
        assert self.subnormal() > 0.0

    def test_the_commands_of_allennlp_have_the_fix(self):
        """Oracle: the original, which the fix keeps."""
        assert hasattr(importlib.import_module("allennlp.commands.train")._train_worker, "__wrapped__")
        assert hasattr(importlib.import_module("allennlp.commands.evaluate").evaluate_from_args, "__wrapped__")
