"""Tests of the digests of what the code computes."""

import pytest

from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from elmo_tasks.replication import TASKS, Variant
from elmo_tasks.replication.plan import computation
from elmo_tasks.replication.plan.computation import COMPUTATION, computation_digest, known_losses


class TestComputationDigest:
    def test_each_task_has_one_without_and_one_with_elmo(self):
        """Oracle: all digests differ; the variants with ELMo share theirs."""
        elmo = {computation_digest(name, Variant(("input",))) for name in TASKS}
        baseline = {computation_digest(name, Variant.baseline()) for name in TASKS if name != "pos"}
        assert len(elmo | baseline) == 2 * len(TASKS) - 1
        assert computation_digest("snli", Variant(("output",), l2=1.0)) in elmo

    def test_other_losses_have_another_digest(self, tmp_path, monkeypatch):
        """Oracle: the digest before the fourth digit of one loss is changed, and that of another task."""
        content = read_sealed(COMPUTATION)
        before, other = (computation_digest(task, Variant.baseline()) for task in ("ner", "sst"))
        content["losses"]["ner"]["baseline"][2] *= 1.001
        write_sealed(tmp_path / "computation.json", content)
        monkeypatch.setattr(computation.known_losses, "__defaults__", (tmp_path / "computation.json",))
        assert computation_digest("ner", Variant.baseline()) != before
        assert computation_digest("sst", Variant.baseline()) == other

    def test_another_format_is_refused(self, tmp_path):
        """Oracle: the message."""
        write_sealed(tmp_path / "computation.json", {"format": 2})
        with pytest.raises(ValueError, match='must have "format": 1, but has 2'):
            known_losses(tmp_path / "computation.json")
