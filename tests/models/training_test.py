from pathlib import Path

import pytest
from allennlp.common.testing import ModelTestCase

from tests.task_models import EACH_PLACE, PLACES, TASKS


@pytest.mark.slow
class TestTraining(ModelTestCase):
    """
    AllenNLP trains, saves and loads each model, and compares the loaded model with the trained one.
    """

    @pytest.mark.parametrize("place", EACH_PLACE)
    @pytest.mark.parametrize("task", TASKS)
    def test_it_can_train_save_and_load(self, environment, small_data, write_variant, task, place):
        row = TASKS[task]
        if task in ("ner", "squad"):
            environment.setenv("ELMO_TASKS_DATA", str(small_data))
        # Buckets would be shuffled, so the instances of the two models could not be compared.
        loader = (
            f"{{ data_loader: {{ batch_size: {row.batch_size} }}, trainer+: {{ num_epochs: 1 }} }}"
        )
        path: Path = write_variant(task, PLACES[place], f"{loader} + {row.trained_overrides}")
        self.ensure_model_can_train_save_and_load(path, seed=1, gradients_to_ignore=set(row.unseen))
