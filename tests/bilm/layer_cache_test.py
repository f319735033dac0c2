import copy
import gc
import multiprocessing
import os
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from torch.nn.functional import pad

from elmo_tasks.bilm import Bilm, BilmOutput, CachedBilm, LayerCache, LayerMemory, LayerStore
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.layer_cache import forget_shared_layers, shared_bilm
from tests.bilm.helpers import batches, random_bilm

BATCH = [["The", "cat", "sat", "."], [], ["Encyclopædia", "😀", "The"], ["x" * 60]]


def assert_same(output: BilmOutput, expected: BilmOutput, *, atol: float = 0.0) -> None:
    """Bit for bit, or up to the rounding of matrix products of a different size."""
    assert torch.equal(output.mask, expected.mask)
    torch.testing.assert_close(output.layers, expected.layers, rtol=0, atol=atol)


def inputs_of(bilm: Bilm) -> list[torch.Tensor]:
    """A list that collects the inputs of a biLM's forward passes."""
    collected: list[torch.Tensor] = []

    def collect(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        collected.append(inputs[0])

    bilm.register_forward_pre_hook(collect)
    return collected


def key(number: int) -> bytes:
    return bytes([number % 256, number // 256] * 16)


def layers_of(number: int) -> np.ndarray:
    """About 12 kB."""
    return np.random.default_rng(number).standard_normal((3, 4, 256), dtype=np.float32)


def write(cache: LayerStore, *numbers: int) -> None:
    cache.write(list(map(key, numbers)), [layers_of(number) for number in numbers])


def are_kept(cache: LayerStore, *numbers: int) -> list[bool]:
    """Which of them the cache has; checks that their content is what was written."""
    targets = [np.zeros((3, 4, 256), np.float32) for _ in numbers]
    all_kept = cache.read(list(map(key, numbers)), targets)
    for number, target, is_kept in zip(numbers, targets, all_kept, strict=True):
        if is_kept:
            assert np.array_equal(target, layers_of(number))
    return all_kept


def write_in_process(folder: Path, first: int) -> None:
    cache = LayerCache(folder)
    for number in range(first, first + 40):
        write(cache, number)


@pytest.fixture
def cache(tmp_path: Path) -> LayerCache:
    return LayerCache(tmp_path / "cache")


@pytest.fixture
def cached(cache: LayerCache) -> CachedBilm:
    return CachedBilm(random_bilm(), cache)


class TestLayerCache:
    def test_layers_of_both_types_may_be_in_one_file(self, cache):
        write(cache, 0)
        half = LayerCache(cache.folder, dtype="float16")
        layers = layers_of(1).astype(np.float16)
        target = np.zeros_like(layers)
        assert half.read([key(0)], [target]) == [False]
        half.write([key(0)], [layers])
        assert half.read([key(0)], [target]) == [True]
        assert np.array_equal(target, layers)
        assert are_kept(cache, 0) == [True]

    @pytest.mark.parametrize("dtype", ["float32", "float16"])
    def test_bits_are_kept(self, tmp_path, dtype):
        special = np.resize(np.float32([1e-45, 3.4e4, -0.0, 1 / 3]), (3, 4, 256)).astype(dtype)
        cache = LayerCache(tmp_path, dtype=dtype)
        target = np.ones_like(special)
        cache.write([key(0)], [special])
        assert cache.read([key(0)], [target]) == [True]
        assert target.tobytes() == special.tobytes()

    def test_the_oldest_entries_are_evicted(self, tmp_path):
        cache = LayerCache(tmp_path, max_bytes=4 * 2**20)
        for number in range(600):
            write(cache, number)
        assert (tmp_path / "layers.sqlite").stat().st_size < 5 * 2**20
        assert are_kept(cache, 0, 1, 598, 599) == [False, False, True, True]

    def test_processes_and_threads_share_a_file(self, cache):
        write(cache, 0)
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(target=write_in_process, args=(cache.folder, 100)),
            context.Process(target=write_in_process, args=(cache.folder, 200)),
            threading.Thread(target=write, args=(cache, *range(300, 340))),
            threading.Thread(target=write, args=(cache, *range(400, 440))),
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        for start in (100, 200, 300, 400):
            assert all(are_kept(cache, *range(start, start + 40)))

    def test_a_forked_child_and_a_pickled_copy_open_their_own_file(self, cache):
        write(cache, 0)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply(partial(are_kept, cache, 0)) == [True]
        assert are_kept(pickle.loads(pickle.dumps(cache)), 0) == [True]
        assert are_kept(copy.deepcopy(cache), 0) == [True]

    @pytest.mark.parametrize(
        "damage",
        [
            lambda file: file.write_bytes(b"not a database" * 1000),
            lambda file: os.truncate(file, file.stat().st_size // 2),
            lambda file: (file.unlink(), file.mkdir()),
        ],
        ids=["garbage", "truncated", "folder"],
    )
    def test_a_damaged_file_is_one_warning_and_no_error(self, tmp_path, caplog, damage):
        folder = tmp_path / "cache"
        write(LayerCache(folder), *range(20))
        # Closing the file empties the write-ahead log.
        gc.collect()
        damage(folder / "layers.sqlite")
        cache = LayerCache(folder)
        cached = CachedBilm(random_bilm(), cache)
        for _ in range(3):
            are_kept(cache, *range(20))
            assert_same(cached(BATCH), random_bilm()(BATCH))
            write(cache, *range(20, 40))
        (warning,) = [record for record in caplog.records if record.name.endswith("layer_cache")]
        assert str(folder) in warning.getMessage()

    def test_nothing_is_created_before_the_first_use(self, cached, cache):
        assert not cache.folder.exists()
        cached(BATCH)
        assert cache.folder.is_dir()


class TestLayerMemory:
    # Four of about 12 kB.
    MAX_BYTES = 4 * 13_000

    def test_the_sentences_that_were_used_last_are_kept(self):
        memory = LayerMemory(self.MAX_BYTES)
        write(memory, 0, 1, 2, 3)
        assert are_kept(memory, 0, 0, 4) == [True, True, False]
        write(memory, 4, 5)
        assert are_kept(memory, 0, 1, 2, 3, 4, 5) == [True, False, False, True, True, True]

    def test_the_first_sentences_are_kept_for_epochs(self):
        memory = LayerMemory(self.MAX_BYTES, keeps_first=True)
        for _ in range(2):
            for number in range(6):
                write(memory, number)
        assert are_kept(memory, *range(6)) == [True] * 4 + [False] * 2

    def test_copies_and_forked_processes_start_empty(self):
        memory = LayerMemory(self.MAX_BYTES)
        write(memory, 0)
        # As in a thread that a forked process does not have.
        with memory._arrays._lock, multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply(are_kept, (memory, 0)) == [False]
            assert pool.apply(are_kept_after_writing, (memory, 0)) == [True]
        assert are_kept(pickle.loads(pickle.dumps(memory)), 0) == [False]
        assert are_kept(copy.deepcopy(memory), 0) == [False]
        assert are_kept(memory, 0) == [True]


def are_kept_after_writing(memory: LayerMemory, *numbers: int) -> list[bool]:
    write(memory, *numbers)
    return are_kept(memory, *numbers)


def in_int8(bilm: Bilm) -> None:
    state = bilm.state_dict()
    bilm.__init__(bilm.options, precision="int8")  # type: ignore[misc]
    bilm.requires_grad_(False).load_state_dict(state)


class TestSharedBilm:
    def test_equal_bilms_share_a_pass_until_the_last_one_is_dropped(self):
        shared = shared_bilm(random_bilm())
        shared_again = shared_bilm(random_bilm())
        assert shared is shared_again
        inputs = inputs_of(shared.bilm)
        expected = random_bilm()(BATCH)
        assert_same(shared(BATCH), expected)
        # As words or ids, in a different batch.
        output = shared_again(BYTES.batch([BATCH[2], BATCH[0]]))
        assert torch.equal(output.layers[2][1, :4], expected.layers[2][0, :4])
        assert len(inputs) == 1
        bilm = weakref.ref(shared.bilm)
        del shared, shared_again, inputs
        gc.collect()
        assert bilm() is None

    @pytest.mark.parametrize(
        "change",
        [lambda bilm: bilm.backward_layers[1].bias.add_(0.5), in_int8],
        ids=["weights", "precision"],
    )
    def test_different_bilms_share_nothing(self, change):
        shared = shared_bilm(random_bilm())
        changed = random_bilm()
        with torch.no_grad():
            change(changed)
        assert shared_bilm(changed) is not shared
        assert shared_bilm(changed).store is not shared.store

    def test_forgotten_layers_are_computed_again(self):
        shared = shared_bilm(random_bilm())
        inputs = inputs_of(shared.bilm)
        for _ in range(2):
            shared(BATCH)
        forget_shared_layers()
        shared(BATCH)
        assert len(inputs) == 2

    def test_threads_get_the_layers_of_a_pass(self):
        shared = shared_bilm(random_bilm())
        sentences = [[f"{number}", "cat", *"abc"[: number % 4]] for number in range(60)]
        layers_of_sentences = [random_bilm()([sentence]).layers for sentence in sentences]

        def run(seed: int) -> None:
            starts = np.random.default_rng(seed).integers(0, len(sentences) - 3, 60)
            for start in starts.tolist():
                output = shared(sentences[start : start + 3])
                for row, number in enumerate(range(start, start + 3)):
                    n_words = len(sentences[number])
                    pairs = zip(output.layers, layers_of_sentences[number], strict=True)
                    for layer, expected in pairs:
                        difference = layer[row, :n_words] - expected[0]
                        assert difference.abs().max() <= 1e-5

        with ThreadPoolExecutor(4) as pool:
            # Raises the errors of the threads.
            list(pool.map(run, range(4)))


class TestCachedBilm:
    def test_it_gives_the_same_bits_and_computes_once(self, cached, cache):
        expected = random_bilm()(BATCH)
        inputs = inputs_of(cached.bilm)
        for _ in range(3):
            output = cached(BATCH)
            assert_same(output, expected)
            # Changes that a caller makes to the layers do not change the cache.
            output.layers[0].zero_()
        assert len(inputs) == 1
        later = CachedBilm(random_bilm(), cache)
        inputs_later = inputs_of(later.bilm)
        assert_same(later(BATCH), expected)
        assert len(inputs_later) == 0

    def test_only_missing_sentences_are_computed(self, cached):
        output_before = cached([BATCH[0], BATCH[3]])
        inputs = inputs_of(cached.bilm)
        output = cached(BATCH)
        assert_same(output, random_bilm()(BATCH), atol=1e-6)
        for layer, layer_before in zip(output.layers, output_before.layers, strict=True):
            assert torch.equal(layer[0], layer_before[0])
        assert torch.equal(inputs[0], BYTES.batch(BATCH)[[1, 2]])

    def test_a_sentence_that_a_batch_repeats_is_computed_once(self, cached):
        inputs = inputs_of(cached.bilm)
        sentences = [BATCH[0], BATCH[2], BATCH[0]]
        assert_same(cached(sentences), random_bilm()(sentences), atol=1e-6)
        assert torch.equal(inputs[0], BYTES.batch([BATCH[0], BATCH[2]]))

    @given(batches())
    def test_it_equals_the_bilm_for_any_batch_and_padding(self, cached, bilm, sentences):
        character_ids = pad(BYTES.batch(sentences), (0, 0, 0, len(sentences) % 3))
        for _ in range(2):
            assert_same(cached(character_ids), bilm(character_ids), atol=1e-6)

    def test_float16_layers_are_equal_on_first_and_later_calls(self, tmp_path):
        cached = CachedBilm(random_bilm(), LayerCache(tmp_path, dtype="float16"))
        output = cached(BATCH)
        assert_same(cached(BATCH), output)
        for layer, exact in zip(output.layers, random_bilm()(BATCH).layers, strict=True):
            assert torch.equal(layer, exact.half().float())

    @pytest.mark.parametrize(
        "change",
        [
            lambda bilm: bilm.backward_layers[1].bias.add_(0.5),
            lambda bilm: bilm.load_state_dict(random_bilm(seed=1).state_dict()),
        ],
        ids=["in place", "loaded"],
    )
    def test_changed_weights_have_separate_entries(self, cached, change):
        before = cached(BATCH)
        old_state = copy.deepcopy(cached.bilm.state_dict())
        with torch.no_grad():
            change(cached.bilm)
        after = cached(BATCH)
        assert_same(after, cached.bilm(BATCH))
        assert not torch.equal(after.layers[-1], before.layers[-1])
        cached.bilm.load_state_dict(old_state)
        assert_same(cached(BATCH), before)

    def test_weights_trained_by_a_fused_optimizer_have_separate_entries(self, cached):
        """
        Such an optimizer changes weights without changing their version counters, as `.data` does.
        """
        before = cached(BATCH).layers[2]
        cached.bilm.requires_grad_(True)
        cached(BATCH)
        next(cached.bilm.forward_layers.parameters()).data.mul_(2)
        cached.bilm.requires_grad_(False)
        output = cached(BATCH)
        assert not torch.equal(output.layers[2], before)
        assert_same(output, copy.deepcopy(cached.bilm)(BATCH), atol=1e-6)

    @pytest.mark.parametrize(
        "change",
        [lambda bilm: bilm.requires_grad_(True), Bilm.double],
        ids=["trained", "float64"],
    )
    def test_a_bilm_that_cannot_be_cached_is_run_each_time(self, cached, cache, change):
        change(cached.bilm)
        alone = copy.deepcopy(cached.bilm)
        for _ in range(2):
            output = cached(BATCH)
            expected = alone(BATCH)
            assert_same(output, expected)
            assert output.layers[-1].requires_grad == expected.layers[-1].requires_grad
        assert not cache.folder.exists()
