"""Tests of models that travel to other processes, and of copies."""

import copy
import pickle
from multiprocessing import get_context

import pytest
from allennlp.modules.seq2vec_encoders import CnnHighwayEncoder
from joblib import Parallel, delayed

from elmo_tasks import TrainedTask
from tests.demo.archives import write_archive
from tests.predictors.trained_task_test import TEXTS, rounded


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pickles")
    return {task: write_archive(folder / task, task, "both") for task in TEXTS}


@pytest.mark.parametrize("task", TEXTS)
class TestAllTasks:
    def test_a_task_is_the_place_of_its_model(self, archives, task):
        trained = TrainedTask(archives[task])
        content = pickle.dumps(trained)
        assert len(content) < 500
        assert pickle.loads(content)(*TEXTS[task]) == rounded(trained(*TEXTS[task]))

    def test_a_predictor_and_its_copies(self, archives, task):
        trained = TrainedTask(archives[task])
        expected = rounded(trained(*TEXTS[task]))
        for copied in (pickle.loads(pickle.dumps(trained.predictor)), copy.deepcopy(trained.predictor)):
            lines = copied.lines(*TEXTS[task])
            assert next(copied.results([(tuple(TEXTS[task]), lines)])) == expected


def test_an_encoder_without_layer_normalisation():
    encoder = CnnHighwayEncoder(4, [(1, 3)], 1, 5, do_layer_norm=False)
    assert pickle.loads(pickle.dumps(encoder)).get_output_dim() == 5


class TestProcesses:
    @pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.weekly), "fork"])
    def test_multiprocessing(self, archives, method):
        trained = TrainedTask(archives["ner"])
        with get_context(method).Pool(2) as pool:
            found = pool.map(trained, TEXTS["ner"] * 4)
        assert found == [rounded(trained(*TEXTS["ner"]))] * 4

    @pytest.mark.weekly
    def test_joblib(self, archives):
        trained = TrainedTask(archives["ner"])
        found = Parallel(n_jobs=2)(delayed(trained)(*TEXTS["ner"]) for _ in range(4))
        assert found == [rounded(trained(*TEXTS["ner"]))] * 4
