import copy
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from torch.nn.functional import pad

from elmo_tasks.bilm import Bilm, BilmOutput, CachedBilm, LayerCache
from elmo_tasks.bilm import bilm as bilm_module
from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.bilm.lstm.frozen import bilm_digest
from tests.bilm.helpers import batches, random_bilm

BATCH = [["The", "cat", "sat", "."], [], ["Encyclopædia", "😀", "The"], ["x" * 60]]


def assert_same(ours: BilmOutput, theirs: BilmOutput) -> None:
    """Bit for bit."""
    assert torch.equal(ours.mask, theirs.mask)
    assert len(ours.layers) == len(theirs.layers)
    for our, their in zip(ours.layers, theirs.layers, strict=True):
        assert our.dtype == their.dtype
        assert torch.equal(our, their)


def assert_close(ours: BilmOutput, theirs: BilmOutput) -> None:
    """Up to the rounding of matrix products of another size."""
    assert torch.equal(ours.mask, theirs.mask)
    torch.testing.assert_close(ours.layers, theirs.layers, rtol=0, atol=1e-6)


def computed(bilm: Bilm) -> list[torch.Tensor]:
    """A list into which a biLM puts what it is run on."""
    seen: list[torch.Tensor] = []
    bilm.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    return seen


@pytest.fixture
def cache(tmp_path: Path) -> LayerCache:
    return LayerCache(tmp_path / "cache")


@pytest.fixture
def cached(cache: LayerCache) -> CachedBilm:
    return CachedBilm(random_bilm(), cache)


class TestCachedBilm:
    def test_it_gives_the_same_bits_and_computes_once(self, cached):
        """Oracle: the biLM, on the same batch; its runs."""
        expected = random_bilm()(BATCH)
        seen = computed(cached.bilm)
        for _ in range(3):
            assert_same(cached(BATCH), expected)
        assert len(seen) == 1

    def test_a_later_process_computes_nothing(self, cached, cache):
        """Oracle: the runs of another biLM with the same weights."""
        expected = cached(BATCH)
        other = CachedBilm(random_bilm(), cache)
        seen = computed(other.bilm)
        assert_same(other(BATCH), expected)
        assert not seen

    def test_only_what_is_missing_is_computed(self, cached):
        """Oracle: the ids of the sentences that are new, and the biLM for all."""
        cached([BATCH[0], BATCH[3]])
        seen = computed(cached.bilm)
        assert_close(cached(BATCH), random_bilm()(BATCH))
        assert len(seen) == 1
        assert torch.equal(seen[0], sentences_to_character_ids(BATCH)[[1, 2]])

    @settings(max_examples=60)
    @given(batches())
    def test_it_equals_the_bilm_whatever_came_before(self, cached, bilm, sentences):
        """Oracle: the biLM, with more and more of its sentences in the cache; any padding."""
        character_ids = pad(sentences_to_character_ids(sentences), (0, 0, 0, len(sentences) % 3))
        expected = bilm(character_ids)
        assert_close(cached(character_ids), expected)
        output = cached(character_ids)
        assert_close(output, expected)
        timesteps = max(map(len, sentences))
        without_padding = BilmOutput(tuple(x[:, :timesteps] for x in output.layers), output.mask[:, :timesteps])
        assert_same(cached(sentences), without_padding)

    def test_a_sentence_is_found_in_another_batch_and_place(self, cached):
        """Oracle: its own layers, bit for bit."""
        first = cached(BATCH)
        seen = computed(cached.bilm)
        second = cached([BATCH[3], BATCH[0], BATCH[0]])
        assert not seen
        for layer, before in zip(second.layers, first.layers, strict=True):
            assert torch.equal(layer, torch.stack([before[3], before[0], before[0]]))

    def test_what_a_user_does_to_the_layers_is_the_users(self, cached):
        """Oracle: the layers before they were overwritten."""
        expected = copy.deepcopy(cached(BATCH).layers)
        for _ in range(2):
            output = cached(BATCH)
            assert_same(output, BilmOutput(expected, output.mask))
            for layer in output.layers:
                layer.zero_()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_smaller_types_are_exact_in_float32(self, cache, dtype):
        """Oracle: the biLM in the same type; the layers of float32 are not mixed up with them."""
        CachedBilm(random_bilm(), cache)(BATCH)
        cached = CachedBilm(random_bilm().to(dtype), cache)
        expected = cached.bilm(BATCH)
        for _ in range(2):
            assert_same(cached(BATCH), expected)

    def test_float16_gives_the_same_at_first_as_later(self, tmp_path):
        """Oracle: the first pass, bit for bit; the biLM, within the rounding."""
        cached = CachedBilm(random_bilm(), LayerCache(tmp_path, dtype="float16"))
        first = cached(BATCH)
        assert_same(cached(BATCH), first)
        torch.testing.assert_close(first.layers, random_bilm()(BATCH).layers, rtol=2**-11, atol=1e-7)

    def test_it_can_be_copied_and_pickled(self, cached):
        """Oracle: the original; a copy has a biLM of its own."""
        expected = cached(BATCH)
        for other in (copy.deepcopy(cached), pickle.loads(pickle.dumps(cached))):
            assert other.bilm is not cached.bilm
            assert_same(other(BATCH), expected)
            with torch.no_grad():
                other.bilm.forward_layers[0].kernel.mul_(0.5)
            assert_close(other(BATCH), other.bilm(BATCH))
        assert_same(cached(BATCH), expected)

    def test_it_runs_in_inference_mode(self, cached):
        """Oracle: the layers outside of it."""
        expected = random_bilm()(BATCH)
        seen = computed(cached.bilm)
        for _ in range(2):
            with torch.inference_mode():
                assert_same(cached(BATCH), expected)
            assert_same(cached(BATCH), expected)
        assert len(seen) == 1

    def test_without_its_disk_it_computes(self, tmp_path):
        """Oracle: the biLM, every time."""
        (tmp_path / "file").touch()
        cached = CachedBilm(random_bilm(), LayerCache(tmp_path / "file"))
        seen = computed(cached.bilm)
        for _ in range(2):
            assert_same(cached(BATCH), random_bilm()(BATCH))
        assert len(seen) == 2


class TestWhatLayersAreKeptFor:
    @pytest.mark.parametrize(
        "change",
        [
            lambda bilm: bilm.backward_layers[1].bias.add_(0.5),
            lambda bilm: bilm.character_encoder.embedding.weight[259, 0].add_(1.0),
            lambda bilm: bilm.load_state_dict(random_bilm(seed=1).state_dict()),
            lambda bilm: bilm.load_state_dict(random_bilm(seed=1).state_dict(), assign=True),
            lambda bilm: setattr(bilm.forward_layers[0].kernel, "data", bilm.forward_layers[0].kernel * 0.5),
            lambda bilm: setattr(bilm, "forward_layers", random_bilm(seed=1).forward_layers),
        ],
        ids=["in place", "one number", "loaded", "exchanged", "data", "module"],
    )
    def test_other_weights_have_other_layers(self, cached, change):
        """Oracle: the biLM with the new weights; then the old ones again."""
        before = cached(BATCH)
        old_state = copy.deepcopy(cached.bilm.state_dict())
        with torch.no_grad():
            change(cached.bilm)
        after = cached(BATCH)
        assert_same(after, cached.bilm(BATCH))
        assert not torch.equal(after.layers[-1], before.layers[-1])
        cached.bilm.load_state_dict(old_state)
        assert_same(cached(BATCH), before)

    def test_other_options_have_other_layers(self, cached, cache):
        """Oracle: the biLM with the same weights and without clipping."""
        cached(BATCH)
        bilm = random_bilm()
        for lstm in [*bilm.forward_layers, *bilm.backward_layers]:
            lstm.cell_clip = None
        bilm.options = type(bilm.options)(**{**vars(bilm.options), "cell_clip": None})
        assert_same(CachedBilm(bilm, cache)(BATCH), bilm(BATCH))

    @pytest.mark.parametrize(
        "change",
        [
            lambda bilm: torch.set_float32_matmul_precision("medium"),
            lambda bilm: setattr(bilm, "precision", "bf16"),
            lambda bilm: setattr(torch.backends.cudnn, "allow_tf32", not torch.backends.cudnn.allow_tf32),
        ],
        ids=["torch", "bilm", "convolutions"],
    )
    def test_another_precision_has_other_layers(self, monkeypatch, cached, change):
        """Oracle: the runs of the biLM; a CPU without instructions for bfloat16 is asked to compute it, slowly."""
        monkeypatch.setattr(bilm_module, "supports_bf16", lambda device: True)
        cached(BATCH)
        seen = computed(cached.bilm)
        before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
        try:
            change(cached.bilm)
            cached(BATCH), cached(BATCH)
        finally:
            torch.set_float32_matmul_precision(before[0])
            torch.backends.cudnn.allow_tf32 = before[1]
        assert len(seen) == 1

    @pytest.mark.parametrize("is_asked", [True, False])
    def test_weights_that_were_trained_meanwhile_have_other_layers(self, cached, is_asked):
        """Oracle: the biLM; the change is by way of `.data`, unnoticed."""
        before = cached(BATCH).layers[2]
        cached.bilm.requires_grad_(True)
        if is_asked:
            cached(BATCH)
        else:
            cached.bilm(BATCH)
            cached.forget()
        next(cached.bilm.forward_layers.parameters()).data.mul_(2)
        cached.bilm.requires_grad_(False)
        found = cached(BATCH)
        assert not torch.equal(found.layers[2], before)
        assert_close(found, copy.deepcopy(cached.bilm)(BATCH))

    def test_the_weights_are_hashed_once(self, cached, monkeypatch):
        """Oracle: the number of digests, each of which takes half a second for the paper's weights."""
        hashed = []

        def count(options, weights):
            hashed.append(options)
            return bilm_digest(options, weights)

        monkeypatch.setattr("elmo_tasks.bilm.cache.cached_bilm.bilm_digest", count)
        for _ in range(3):
            cached(BATCH)
        assert len(hashed) == 1


class TestWithoutCache:
    @pytest.mark.parametrize(
        "change",
        [
            lambda bilm: bilm.requires_grad_(True),
            lambda bilm: bilm.character_encoder.projection.bias.requires_grad_(True),
            lambda bilm: setattr(bilm, "stateful", True),
            lambda bilm: bilm.double(),
        ],
        ids=["trained", "in part", "stateful", "float64"],
    )
    def test_a_bilm_whose_layers_cannot_be_kept_is_run_each_time(self, cached, change, tmp_path):
        """Oracle: the biLM by itself, batch after batch; no file is made."""
        change(cached.bilm)
        alone = copy.deepcopy(cached.bilm)
        for _ in range(2):
            ours, theirs = cached(BATCH), alone(BATCH)
            assert_same(ours, theirs)
            assert ours.layers[-1].requires_grad == theirs.layers[-1].requires_grad
        assert not (tmp_path / "cache").exists()

    def test_autocast_is_ignored(self, cached):
        """Oracle: the biLM without autocast, which a frozen one does not follow; then without the biLM."""
        expected = cached.bilm(BATCH)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert_same(cached(BATCH), expected)
            assert_same(cached(BATCH), expected)

    def test_it_is_bypassed_where_changes_are_not_counted(self, cache):
        """Oracle: the biLM, whose parameters were made in inference mode and change in place."""
        with torch.inference_mode():
            cached = CachedBilm(random_bilm(), cache)
            cached(BATCH)
            cached.bilm.forward_layers[0].kernel.mul_(0.5)
            assert_same(cached(BATCH), cached.bilm(BATCH))


def ids_with(position: tuple[int, int], character: int) -> torch.Tensor:
    character_ids = sentences_to_character_ids(BATCH)
    character_ids[position] = character
    return character_ids


class TestDegenerateInput:
    @pytest.mark.parametrize(
        "inputs",
        [[], [[], []], torch.zeros(0, 5, 50, dtype=torch.int64), torch.zeros(2, 4, 50, dtype=torch.int64)],
        ids=["nothing", "empty", "no rows", "padding"],
    )
    def test_nothing_is_what_it_is_to_the_bilm(self, cached, inputs):
        """Oracle: the biLM."""
        for _ in range(2):
            assert_same(cached(inputs), random_bilm()(inputs))

    @pytest.mark.parametrize(
        "inputs",
        [
            ids_with((0, 1), 0),
            ids_with((3, 2), -1),
            sentences_to_character_ids(BATCH) + 2**16,
            sentences_to_character_ids(BATCH)[..., :49],
            sentences_to_character_ids(BATCH).int(),
            sentences_to_character_ids(BATCH)[0],
            ["a string"],
        ],
        ids=["hole", "negative", "large", "narrow", "int32", "two dimensions", "string"],
    )
    def test_bad_input_is_the_error_that_it_is_to_the_bilm(self, cached, inputs):
        """Oracle: the error of the biLM, word for word, though the cache knows the sentences."""
        cached(BATCH)
        with pytest.raises(ValueError) as expected:
            random_bilm()(inputs)
        with pytest.raises(ValueError) as error:
            cached(inputs)
        assert str(error.value) == str(expected.value)
