from types import SimpleNamespace

import pytest

from elmo_tasks.distillation import run
from elmo_tasks.distillation.run import Distillation, distill
from elmo_tasks.models import Esim


class TestDistill:
    @pytest.mark.parametrize("student", ["elmo_ner", "elmo_srl"])
    def test_a_student_of_another_task_is_an_error(self, monkeypatch, tmp_path, student):
        """Oracle: the message names both classes; nothing is made."""
        monkeypatch.setattr(run, "Teachers", lambda *args: SimpleNamespace(kind=Esim))
        config = {"model": {"type": student}}
        with pytest.raises(
            ValueError, match=r"the teacher is a Esim and the student a (NerTagger|SemanticRoleLabeler)"
        ):
            distill([tmp_path / "a"], tmp_path / "text", config, tmp_path / "out", Distillation())
        assert not (tmp_path / "out").exists()

    def test_a_temperature_that_is_not_above_zero_is_an_error(self, tmp_path):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="the temperature must be above 0, but is -1"):
            distill([], tmp_path / "text", {}, tmp_path / "out", Distillation(temperature=-1))
