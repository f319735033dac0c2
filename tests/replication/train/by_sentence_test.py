"""Tests of the scores of single sentences."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.sentence_scores import score_of
from elmo_tasks.replication.train import by_sentence
from elmo_tasks.replication.train.by_sentence import scores_by_sentence


class TestScoresBySentence:
    @pytest.mark.parametrize(("task", "n_columns"), [("srl", 3), ("squad", 1), ("sst", 1)])
    def test_they_add_up_to_the_score_of_all_together(self, make_model, monkeypatch, task, n_columns):
        """
        Oracle: the metric of the model after one batch of all, without dropout, which a model that was loaded has; and
        the names of the data that is read.
        """
        model, reader, instances = make_model(task, [])
        paths = []
        # A vocabulary of its own, and the texts of the small data.
        read = SimpleNamespace(read=lambda path: paths.append(path) or iter(instances))
        config = {"validation_data_path": "dev", "test_data_path": "test"}
        loaded = SimpleNamespace(model=model, validation_dataset_reader=read, config=config)
        monkeypatch.setattr(by_sentence, "load_archive", lambda archive, cuda_device: loaded)
        for instance in instances:
            reader.apply_token_indexers(instance)
        model.eval().get_metrics(reset=True)
        model.forward_on_instances(instances)
        score = 100 * model.get_metrics()[TASKS[task].metric]
        computed = []
        model.register_forward_hook(lambda module, *others: computed.append(module.training))
        model.train()
        rows = np.array(scores_by_sentence(task, Path("model.tar.gz")))
        assert computed == [False] * len(instances)
        assert rows.shape == (len(instances), n_columns)
        assert paths == ["dev" if task == "squad" else "test"]
        assert score_of(rows.sum(0), len(rows)) == pytest.approx(score)
