from pathlib import Path
from typing import NamedTuple

import pytest
from allennlp.common.testing import ModelTestCase

from tests.task_models import PLACES


class Case(NamedTuple):
    """How a task is trained here."""

    batch_size: int
    places: tuple[str, ...] = ("none", "both")
    # Laid over the variant.
    overrides: str = "{}"
    # A softmax does not see what is added to all its inputs.
    without_gradients: frozenset[str] = frozenset()


CASES = {
    "coref": Case(2, overrides="{ model+: { encoder+: { hidden_size: 20 }, hidden_dim: 10, dropout: 0 } }"),
    "ner": Case(8, tuple(PLACES)),
    "snli": Case(8),
    "squad": Case(
        20,
        tuple(PLACES),
        without_gradients=frozenset({"attention.similarity._bias", "self_attention.similarity._bias"}),
    ),
    "srl": Case(8, tuple(PLACES)),
    "sst": Case(16),
}


@pytest.mark.slow
class TestTraining(ModelTestCase):
    """Oracle: AllenNLP's `ModelTestCase`: trains, saves, loads, and compares the loaded model with the trained one."""

    @pytest.mark.parametrize(
        ("task", "place"), [(task, place) for task, case in CASES.items() for place in case.places]
    )
    def test_it_can_train_save_and_load(self, environment, small_ner, write_variant, task, place):
        """Oracle: see the class; what is frozen has no gradients, and what BIOUL allows has none to have."""
        case = CASES[task]
        if task == "ner":
            environment.setenv("ELMO_TASKS_DATA", str(small_ner))
        # Without buckets: they are shuffled, and the instances of the two models could not be compared.
        loader = f"{{ data_loader: {{ batch_size: {case.batch_size} }}, trainer+: {{ num_epochs: 1 }} }}"
        path: Path = write_variant(task, PLACES[place], f"{loader} + {case.overrides}")
        self.ensure_model_can_train_save_and_load(path, seed=1, gradients_to_ignore=set(case.without_gradients))
