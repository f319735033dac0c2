import io

import pytest
import torch
from allennlp.training.callbacks import TrainerCallback

from elmo_tasks.training import RandomStateCallback


@pytest.fixture(autouse=True)
def same_numbers_afterwards():
    with torch.random.fork_rng():
        yield


def through_a_file(state: dict) -> dict:
    """As a checkpoint keeps it."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, map_location="cpu", weights_only=False)


class TestRandomStateCallback:
    def test_random_numbers_resume_where_they_were(self, tmp_path):
        """Oracle: the next numbers; another seed in between."""
        callback = RandomStateCallback(str(tmp_path))
        torch.rand(3)
        state = through_a_file(callback.state_dict())
        expected = torch.rand(5)
        torch.manual_seed(99)
        assert not torch.equal(torch.rand(5), expected)
        RandomStateCallback(str(tmp_path)).load_state_dict(state)
        assert torch.equal(torch.rand(5), expected)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
    def test_a_run_on_a_gpu_may_resume_without_one(self, tmp_path):
        """Oracle: the generator of the CPU; the states of missing GPUs are ignored."""
        callback = RandomStateCallback(str(tmp_path))
        state = {**callback.state_dict(), "cuda": [torch.zeros(16, dtype=torch.uint8)]}
        expected = torch.rand(5)
        callback.load_state_dict(state)
        assert torch.equal(torch.rand(5), expected)

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
    def test_random_numbers_of_the_gpu_resume_too(self, tmp_path):
        """Oracle: the next numbers."""
        callback = RandomStateCallback(str(tmp_path))
        state = through_a_file(callback.state_dict())
        expected = torch.rand(5, device="cuda")
        callback.load_state_dict(state)
        assert torch.equal(torch.rand(5, device="cuda"), expected)

    def test_it_is_made_from_a_config(self, environment):
        """Oracle: the name in AllenNLP's registry."""
        assert TrainerCallback.by_name("elmo_random_state") is RandomStateCallback
