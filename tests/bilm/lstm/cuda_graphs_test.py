import threading
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.lstm import bidirectional_layer, cuda_graphs, graph_pool, precision
from elmo_tasks.bilm.lstm.cuda_graphs import GraphedRecurrence, rectangles
from elmo_tasks.bilm.lstm.recurrence import LstmWeights, run_lstms
from tests.bilm.helpers import random_bilm
from tests.bilm.lstm.replaying_pool import ReplayingPool
from tests.devices import DEVICES
from tests.paths import bilm_files

N_STEPS = 8


def draw(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def batch_sizes_of(lengths: Sequence[int]) -> list[int]:
    return [sum(length > step for length in lengths) for step in range(max(lengths))]


class TestRectangles:
    @settings(max_examples=200)
    @given(st.lists(st.integers(1, 1300), min_size=1, max_size=30).map(lambda sizes: sorted(sizes, reverse=True)))
    def test_each_word_has_a_place_of_its_own(self, batch_sizes):
        """Oracle: step and row of each packed word, in a plain loop; places are `step * n_rows + row`."""
        expected = [(step, row) for step, size in enumerate(batch_sizes) for row in range(size)]
        found = []
        for index, (n_rows, places) in enumerate(rectangles(batch_sizes)):
            sizes = batch_sizes[N_STEPS * index : N_STEPS * (index + 1)]
            assert n_rows >= max(sizes)
            assert len(places) == sum(sizes)
            found += [(N_STEPS * index + place // n_rows, place % n_rows) for place in places]
        assert found == expected

    @settings(max_examples=200)
    @given(st.lists(st.integers(1, 3000), min_size=1, max_size=40).map(lambda sizes: sorted(sizes, reverse=True)))
    def test_there_are_few_numbers_of_rows_and_little_is_wasted(self, batch_sizes):
        """Oracle: all numbers up to 512 and multiples of it; at most twice what is needed; they never increase."""
        numbers = [n_rows for n_rows, _ in rectangles(batch_sizes)]
        assert numbers == sorted(numbers, reverse=True)
        for n_rows, size in zip(numbers, batch_sizes[::N_STEPS], strict=True):
            assert n_rows in cuda_graphs._ROWS or n_rows % 512 == 0
            assert n_rows < 2 * size or n_rows == 1

    def test_two_by_hand(self):
        """Oracle: three sentences of 9, 8 and 1 words: 4 rows for 8 steps, then one row."""
        (many, places), one = rectangles([3, 2, 2, 2, 2, 2, 2, 2, 1])
        assert many == 4
        assert places == [0, 1, 2, *(4 * step + row for step in range(1, 8) for row in range(2))]
        assert one == (1, [0])


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> ReplayingPool:
    """A pool on the CPU; memory is pinned by CUDA alone."""
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    return ReplayingPool()


def random_weights(dtype: torch.dtype = torch.float32) -> LstmWeights:
    kernel, bias, projection = draw(0, 2, 7, 20), draw(1, 2, 20), draw(2, 2, 5, 4)
    return LstmWeights.of(kernel, bias, projection, 0.8, 1.5, dtype)


def plainly(weights: LstmWeights, inputs: torch.Tensor, batch_sizes: list[int]) -> torch.Tensor:
    """`run_lstms` from the zero state."""
    output, memory = inputs.new_zeros(2, batch_sizes[0], 4), torch.zeros(2, batch_sizes[0], 5)
    return run_lstms(weights, inputs, batch_sizes, output, memory)


# From 70 sentences to one, through many numbers of rows; all equally long; one; more than the largest number.
SENTENCES = {
    "many lengths": [40, 33, 33, 20, 17, 16, 16, 15, 9, 9, 9, *range(1, 9), *[5] * 30, *[2] * 21],
    "one length": [8] * 5,
    "one step": [1] * 3,
    "one sentence": [30],
    "many sentences": [9, *[2] * 600],
}


class TestGraphedRecurrence:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    @pytest.mark.parametrize("max_graphs", [24, 2, 1])
    def test_it_is_the_recurrence(self, pool, monkeypatch, max_graphs, dtype):
        """Oracle: `run_lstms`, one batch after the other with the same graphs, whose buffers are dirty."""
        monkeypatch.setattr(graph_pool, "_MAX_GRAPHS", max_graphs)
        weights = random_weights(dtype)
        graphed = GraphedRecurrence(weights, pool)
        for seed, lengths in enumerate([*SENTENCES.values(), *SENTENCES.values()]):
            batch_sizes = batch_sizes_of(lengths)
            inputs = draw(seed, 2, sum(lengths), 3, dtype=dtype)
            before = inputs.clone()
            outputs = graphed(inputs, batch_sizes)
            atol = 1e-6 if dtype == torch.float32 else 2**-6
            torch.testing.assert_close(outputs, plainly(weights, inputs, batch_sizes), rtol=0, atol=atol)
            assert torch.equal(inputs, before)
            assert pool.size().n_graphs <= max_graphs

    @pytest.mark.parametrize("most_rows", [0, 3, 1000])
    @pytest.mark.parametrize("lengths", SENTENCES.values(), ids=SENTENCES)
    def test_it_begins_in_the_state_that_is_given(self, pool, monkeypatch, lengths, most_rows):
        """Oracle: `run_lstms` from that state, in plain steps and in graphs; then, with the same graphs, from zero."""
        weights, batch_sizes = random_weights(), batch_sizes_of(lengths)
        inputs, output, memory = draw(0, 2, sum(lengths), 3), draw(1, 2, len(lengths), 4), draw(2, 2, len(lengths), 5)
        n_bytes = cuda_graphs._n_bytes(weights, 1, inputs)
        monkeypatch.setattr(graph_pool, "_MAX_BYTES_OF_GRAPH", n_bytes * most_rows)
        graphed = GraphedRecurrence(weights, pool)
        expected = run_lstms(weights, inputs, batch_sizes, output.clone(), memory.clone())
        outputs = graphed(inputs, batch_sizes, (output.clone(), memory.clone()))
        torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-6)
        torch.testing.assert_close(
            graphed(inputs, batch_sizes), plainly(weights, inputs, batch_sizes), rtol=0, atol=1e-6
        )
        assert not torch.allclose(outputs, graphed(inputs, batch_sizes), rtol=0, atol=1e-3)

    @pytest.mark.parametrize("most_rows", [0, 3, 100])
    def test_steps_with_many_rows_are_not_recorded(self, pool, monkeypatch, most_rows):
        """Oracle: `run_lstms`; the numbers of rows of the graphs. The state goes from the plain steps to the graphs."""
        weights, lengths = random_weights(), [*SENTENCES["many lengths"], *[17] * 90]
        batch_sizes, inputs = batch_sizes_of(lengths), draw(0, 2, sum(lengths), 3)
        n_bytes = cuda_graphs._n_bytes(weights, 1, inputs)
        monkeypatch.setattr(graph_pool, "_MAX_BYTES_OF_GRAPH", n_bytes * most_rows)
        graphed = GraphedRecurrence(weights, pool)
        for _ in range(2):
            outputs = graphed(inputs, batch_sizes)
            torch.testing.assert_close(outputs, plainly(weights, inputs, batch_sizes), rtol=0, atol=1e-6)
        numbers = {n_rows for n_rows, _ in rectangles(batch_sizes) if n_rows <= most_rows}
        assert {graph.memory.size(1) for graph in pool._alive()} == numbers
        assert len(numbers) < len({n_rows for n_rows, _ in rectangles(batch_sizes)})

    def test_the_size_of_a_graph_is_that_of_its_buffers(self, pool):
        """Oracle: the bytes of its tensors."""
        for dtype in (torch.float32, torch.bfloat16):
            graphed = GraphedRecurrence(random_weights(dtype), pool)
            graphed(draw(0, 2, 6, 3, dtype=dtype), [3, 3])
            (graph,) = graphed._graphs.values()
            assert graph.n_bytes == sum(
                tensor.nbytes for tensor in (graph.inputs, graph.outputs, graph.output, graph.memory)
            )

    def test_threads_may_share_it(self, pool):
        """Oracle: `run_lstms`; two threads with batches of the same and of other shapes."""
        weights = random_weights()
        graphed, found = GraphedRecurrence(weights, pool), []

        def compute(seed: int) -> None:
            for index in range(20):
                lengths = [[9, 3], [20, 20, 1], [3]][(seed + index) % 3]
                inputs = draw(100 * seed + index, 2, sum(lengths), 3)
                outputs = graphed(inputs, batch_sizes_of(lengths))
                found.append((outputs, plainly(weights, inputs, batch_sizes_of(lengths))))

        threads = [threading.Thread(target=compute, args=(seed,)) for seed in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 40
        for outputs, expected in found:
            torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-5)

    def test_a_graph_that_the_pool_has_dropped_is_recorded_again(self, pool):
        """Oracle: `run_lstms`, and the number of recordings."""
        weights, inputs = random_weights(), draw(0, 2, 8, 3)
        graphed = GraphedRecurrence(weights, pool)
        for n_recorded in (1, 2):
            outputs = graphed(inputs, [1] * 8)
            torch.testing.assert_close(outputs, plainly(weights, inputs, [1] * 8), rtol=0, atol=1e-6)
            assert pool.n_recorded == n_recorded
            pool.clear()

    def test_graphs_are_made_once(self, pool):
        """Oracle: the numbers of rows of the rectangles."""
        graphed = GraphedRecurrence(random_weights(), pool)
        lengths = SENTENCES["many lengths"]
        batch_sizes = batch_sizes_of(lengths)
        numbers = {n_rows for n_rows, _ in rectangles(batch_sizes)}
        assert len(numbers) > 3
        for _ in range(3):
            graphed(draw(0, 2, sum(lengths), 3), batch_sizes)
            assert pool.n_recorded == pool.size().n_graphs == len(numbers)

    def test_the_least_recently_used_graph_is_removed(self, pool, monkeypatch):
        """Oracle: the order of use, by hand."""
        monkeypatch.setattr(graph_pool, "_MAX_GRAPHS", 2)
        graphed = GraphedRecurrence(random_weights(), pool)
        kept = []
        for n_rows in (1, 2, 1, 4, 2):
            graphed(draw(0, 2, n_rows, 3), [n_rows])
            kept.append([graph.memory.size(1) for graph in pool._alive()])
        assert kept == [[1], [1, 2], [2, 1], [1, 4], [4, 2]]

    def test_a_result_stays_when_more_is_computed(self, pool):
        """Oracle: the result before."""
        graphed = GraphedRecurrence(random_weights(), pool)
        first = graphed(draw(0, 2, 8, 3), [1] * 8)
        before = first.clone()
        graphed(draw(1, 2, 8, 3), [1] * 8)
        assert torch.equal(first, before)

    @pytest.mark.parametrize("modes", [(True, False), (False, True)])
    def test_inference_mode_may_change_between_batches(self, pool, modes):
        """Oracle: `run_lstms`; torch refuses to write to tensors of inference mode outside of it."""
        weights = random_weights()
        graphed = GraphedRecurrence(weights, pool)
        for mode in modes:
            inputs = draw(0, 2, 12, 3)
            with torch.inference_mode(mode):
                outputs = graphed(inputs.clone(), [2] * 3 + [1] * 6)
                torch.testing.assert_close(outputs, plainly(weights, inputs, [2] * 3 + [1] * 6), rtol=0, atol=1e-6)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A GPU; and on every machine the CPU, with graphs that run their steps when they are replayed."""
    if request.param == "cpu":
        pool = request.getfixturevalue("pool")
        monkeypatch.setattr(bidirectional_layer, "pool_of", lambda device: pool)
        monkeypatch.setattr(bidirectional_layer, "graphs_are_used", lambda inputs: True)
    return request.param


class TestBilmWithGraphs:
    def batch(self) -> list[list[str]]:
        return [
            [f"word{(7 * row + i) % 90}" for i in range(length)] for row, length in enumerate(SENTENCES["many lengths"])
        ]

    def layers(self, bilm: Bilm) -> list[torch.Tensor]:
        return [layer.cpu() for layer in bilm(self.batch()).layers]

    @torch.no_grad()
    def test_it_equals_the_bilm_without_graphs(self, shipped_bilm, device):
        """Oracle: the biLM on a CPU, of which no graph is recorded while it is trained; twice, with the same graphs."""
        expected = self.layers(Bilm.from_files(*bilm_files(shipped_bilm)))
        bilm = Bilm.from_files(*bilm_files(shipped_bilm)).requires_grad_(False).to(device)
        for _ in range(2):
            torch.testing.assert_close(self.layers(bilm), expected, rtol=0, atol=1e-4)
        assert all(layer._graphs._entry.value._graphs for layer in bilm._layers)

    @pytest.mark.parametrize("digits", ["tf32", "bf16"])
    @torch.no_grad()
    def test_fewer_digits_are_near_float32(self, monkeypatch, shipped_bilm, news, device, digits):
        """
        Oracle: the biLM on a CPU in float32, without graphs: the cosine of each word's vector in each layer. A CPU
        without instructions for bfloat16 is asked to compute it, slowly.
        """
        monkeypatch.setattr(precision, "supports_bf16", lambda device: True)
        bilm = Bilm.from_files(*bilm_files(shipped_bilm), precision=digits).requires_grad_(False).to(device)
        near, exact = bilm(news), Bilm.from_files(*bilm_files(shipped_bilm))(news)
        for ours, theirs in zip(near.layers, exact.layers, strict=True):
            assert ours.dtype == torch.float32
            assert torch.cosine_similarity(ours.cpu()[exact.mask], theirs[exact.mask], dim=-1).min() > 0.999

    def test_gradients_are_those_of_float64(self, device):
        """Oracle: the gradients of every parameter in float64 on a CPU."""
        found = []
        for place, dtype in (("cpu", torch.float64), (device, torch.float32)):
            bilm = random_bilm().requires_grad_().to(place, dtype)
            sum(layer.square().sum() for layer in bilm(self.batch()).layers).backward()
            found.append({name: parameter.grad.cpu().double() for name, parameter in bilm.named_parameters()})
        for name, gradient in found[0].items():
            scale = float(gradient.abs().max())
            torch.testing.assert_close(found[1][name], gradient, rtol=0, atol=1e-4 * scale, msg=name)

    def test_inference_mode_may_change_between_batches(self, device):
        """Oracle: the layers without inference mode."""
        bilm = random_bilm().to(device)
        with torch.inference_mode():
            first = self.layers(bilm)
        torch.testing.assert_close(self.layers(bilm), first, rtol=0, atol=1e-6)
