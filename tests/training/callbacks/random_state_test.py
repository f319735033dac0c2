import io
from types import SimpleNamespace

import pytest
import torch
from allennlp.training.callbacks import TrainerCallback

from elmo_tasks.training import RandomStateCallback
from tests.devices import ON_CUDA


@pytest.fixture(autouse=True)
def same_numbers_afterwards():
    with torch.random.fork_rng():
        yield


@pytest.fixture(params=["stand-ins", ON_CUDA])
def generators(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[torch.Generator]:
    """The generators of the GPUs; and on every machine two of the CPU that stand in for them."""
    if request.param == "cuda":
        torch.cuda.init()
        return list(torch.cuda.default_generators)
    found = [torch.Generator().manual_seed(seed) for seed in range(2)]

    def set_all(states: list[torch.Tensor]) -> None:
        for generator, state in zip(found, states, strict=True):
            generator.set_state(state)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(found))
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: [generator.get_state() for generator in found])
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", set_all)
    return found


def through_a_file(state: dict) -> dict:
    """As a checkpoint keeps it."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, map_location="cpu", weights_only=False)


class TestRandomStateCallback:
    def test_random_numbers_go_on_where_they_were(self, tmp_path):
        """Oracle: the numbers that come after; another seed in between."""
        callback = RandomStateCallback(str(tmp_path))
        torch.rand(3)
        state = through_a_file(callback.state_dict())
        expected = torch.rand(5)
        torch.manual_seed(99)
        assert not torch.equal(torch.rand(5), expected)
        RandomStateCallback(str(tmp_path)).load_state_dict(state)
        assert torch.equal(torch.rand(5), expected)

    def test_a_run_on_a_gpu_may_resume_without(self, tmp_path, monkeypatch):
        """Oracle: the generator of the CPU; the states of GPUs that are not there are ignored."""
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        callback = RandomStateCallback(str(tmp_path))
        state = {**callback.state_dict(), "cuda": [torch.zeros(16, dtype=torch.uint8)]}
        expected = torch.rand(5)
        callback.load_state_dict(state)
        assert torch.equal(torch.rand(5), expected)

    def test_random_numbers_of_the_gpus_resume_too(self, tmp_path, generators):
        """Oracle: the numbers that come after, of each GPU."""
        callback = RandomStateCallback(str(tmp_path))
        state = through_a_file(callback.state_dict())
        expected = [torch.rand(5, generator=each, device=each.device) for each in generators]
        callback.load_state_dict(state)
        found = [torch.rand(5, generator=each, device=each.device) for each in generators]
        assert len(found) == len(state["cuda"]) > 0
        assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))

    @pytest.mark.parametrize("is_mixed", [True, False])
    def test_the_scale_of_mixed_precision_resumes(self, tmp_path, is_mixed):
        """Oracle: torch's scaler; a run with one may resume without."""
        callback, resumed = (RandomStateCallback(str(tmp_path)) for _ in range(2))
        callback.on_start(SimpleNamespace(_scaler=torch.amp.GradScaler("cpu", init_scale=8.0)))
        resumed.load_state_dict(through_a_file(callback.state_dict()))
        scaler = torch.amp.GradScaler("cpu") if is_mixed else None
        resumed.on_start(SimpleNamespace(_scaler=scaler))
        assert scaler is None or scaler.get_scale() == 8.0

    def test_it_is_made_from_a_config(self, environment):
        """Oracle: the name in AllenNLP's registry."""
        assert TrainerCallback.by_name("elmo_random_state") is RandomStateCallback
