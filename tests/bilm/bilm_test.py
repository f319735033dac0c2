import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import pad

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.precision import precision_on
from tests.bilm.helpers import (
    SMALL,
    allennlp_layers,
    assert_layers_equal,
    batches,
    bilm_options,
    random_bilm,
    save,
    words,
)
from tests.paths import SHIPPED_BILM, TINY_BILM, bilm_files

BATCH = [["The", "cat", "sat", "."], [], ["Encyclopædia", "😀", "The"], ["x" * 60]]


Layers = tuple[torch.Tensor, ...]


def assert_same(layers: Layers, expected_layers: Layers) -> None:
    for layer, expected in zip(layers, expected_layers, strict=True):
        assert torch.equal(layer, expected)


def largest_difference(layers: Layers, expected_layers: Layers) -> float:
    differences = []
    for layer, expected in zip(layers, expected_layers, strict=True):
        differences.append(float((layer - expected).detach().abs().max()))
    return max(differences)


def assert_close(tensor: torch.Tensor, expected: torch.Tensor, atol: float = 1e-6) -> None:
    torch.testing.assert_close(tensor, expected, rtol=0, atol=atol)


def frozen(folder: Path, **arguments: str) -> Bilm:
    options, weights = bilm_files(folder)
    return Bilm.from_files(options, weights, **arguments).requires_grad_(False)


@pytest.fixture
def float64():
    """AllenNLP creates its states in torch's default dtype."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


class TestBilm:
    @given(bilm_options(), batches(), st.integers(0, 3), st.integers(0, 1000))
    def test_it_equals_allennlp(self, tmp_path_factory, options, sentences, n_padding, seed):
        from allennlp.modules.elmo import _ElmoBiLm

        random = random_bilm(options, seed=seed, std=0.5)
        options_file, weights = save(random, tmp_path_factory.mktemp("bilm"))
        bilm = Bilm.from_files(options_file, weights)
        character_ids = pad(BYTES.batch(sentences), (0, 0, 0, n_padding))
        layers = bilm(character_ids).layers
        assert len(layers) == bilm.num_layers == options.n_layers + 1
        expected = allennlp_layers(_ElmoBiLm(options_file, weights), character_ids)
        assert_layers_equal(layers, expected, 1e-5)
        for layer in layers:
            assert layer.shape == (*character_ids.shape[:2], bilm.get_output_dim())

    def test_the_included_bilm_equals_allennlps(self, news, float64, tmp_path):
        """Float64, because AllenNLP adds the forget gate's 1 in the dtype of the file."""
        from allennlp.modules.elmo import _ElmoBiLm

        bilm = frozen(SHIPPED_BILM)
        options, weights = save(bilm, tmp_path)
        allennlp_bilm = _ElmoBiLm(options, weights).double()
        character_ids = BYTES.batch(news[:5])
        with torch.no_grad():
            expected = allennlp_layers(allennlp_bilm, character_ids)
            assert_layers_equal(bilm.double()(character_ids).layers, expected, 1e-10)

    def test_a_long_sentence_among_short_ones(self, bilm, files):
        from allennlp.modules.elmo import _ElmoBiLm

        options, weights = files
        long_sentence = [f"word{number % 50}" for number in range(300)]
        character_ids = BYTES.batch([["a"], long_sentence, [], ["b", "c"]])
        expected = allennlp_layers(_ElmoBiLm(options, weights), character_ids)
        assert_layers_equal(bilm(character_ids).layers, expected, 1e-5)


class TestSentencesAreIndependent:
    @given(
        sentence=st.lists(words(), max_size=6),
        mates=batches(),
        position=st.integers(0, 4),
        n_padding=st.integers(0, 4),
        before=batches(),
    )
    def test_vectors_do_not_depend_on_the_batch(
        self, bilm, sentence, mates, position, n_padding, before
    ):
        """To 1e-6, because the rounding of a matrix product depends on its size."""
        alone = bilm([sentence])
        bilm(before)
        batch = [*mates[:position], sentence, *mates[position:]]
        row = min(position, len(mates))
        n_words = len(sentence)
        together = bilm(pad(BYTES.batch(batch), (0, 0, 0, n_padding)))
        for layer, expected in zip(together.layers, alone.layers, strict=True):
            assert_close(layer[row, :n_words], expected[0])
            assert not layer[row, n_words:].any()
        assert together.mask[row, :n_words].all()
        assert not together.mask[row, n_words:].any()
        # The context does matter, so this does not compare constants.
        if n_words > 1:
            vector = alone.layers[-1][0, 0]
            without_context = bilm([sentence[:1]]).layers[-1][0, 0]
            assert not torch.allclose(vector, without_context, rtol=0, atol=1e-6)

    def test_both_directions_read_the_boundaries(self, bilm):

        def both_directions(sentence: list[str], layer: int) -> tuple[torch.Tensor, torch.Tensor]:
            """The vectors of the word `b`."""
            vector = bilm([sentence]).layers[layer][0, sentence.index("b")]
            return vector[: SMALL.projection_dim], vector[SMALL.projection_dim :]

        for layer in (1, 2):
            forward, backward = both_directions(["b"], layer)
            forward_before_c, backward_before_c = both_directions(["b", "c"], layer)
            forward_after_a, backward_after_a = both_directions(["a", "b"], layer)
            assert_close(forward_before_c, forward)
            assert_close(backward_after_a, backward)
            assert not torch.allclose(backward_before_c, backward, atol=1e-4)
            assert not torch.allclose(forward_after_a, forward, atol=1e-4)


class TestDegenerateInput:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize(
        ("inputs", "shape"),
        [
            ([], (0, 0)),
            ([[], []], (2, 0)),
            (torch.zeros(0, 5, 50, dtype=torch.int64), (0, 5)),
            (torch.zeros(3, 0, 50, dtype=torch.int64), (3, 0)),
            (torch.zeros(2, 4, 50, dtype=torch.int64), (2, 4)),
        ],
    )
    def test_empty_input_keeps_its_shape_and_dtype(self, inputs, shape, dtype):
        output = random_bilm().to(dtype)(inputs)
        assert output.mask.shape == shape
        assert output.mask.dtype == torch.bool
        assert not output.mask.any()
        assert len(output.layers) == 3
        for layer in output.layers:
            assert layer.shape == (*shape, 12)
            assert layer.dtype == dtype
            assert not layer.any()

    @pytest.mark.parametrize(
        ("call", "named"),
        [
            (lambda bilm: bilm(torch.ones(2, 3, 49, dtype=torch.int64)), r"\(2, 3, 49\)"),
            (lambda bilm: bilm(BYTES.batch([["a"] * 3, ["b"]]).flip(1)), "sentence 1"),
            (lambda _: Bilm(SMALL, precision="int8").requires_grad_()(BATCH), "int8"),
            (lambda _: Bilm(SMALL, precision="int8").to("meta")(BATCH), "int8"),
            (lambda _: Bilm(SMALL, precision="fp16"), "fp16"),
        ],
    )
    def test_an_error_names_what_is_wrong(self, bilm, call, named):
        with pytest.raises(ValueError, match=named):
            call(bilm)


@pytest.fixture
def set_instructions(monkeypatch) -> Iterator[Callable[[str], None]]:
    """Makes these the best instructions of the CPU: `set_instructions("bf16")`."""

    def set_name(name: str) -> None:
        monkeypatch.setattr("elmo_tasks.bilm.precision.cpu_instructions", lambda: name)
        precision_on.cache_clear()

    yield set_name
    precision_on.cache_clear()


class TestPrecision:
    @pytest.mark.parametrize("folder", [SHIPPED_BILM, TINY_BILM], ids=lambda folder: folder.name)
    def test_bf16_is_near_float32(self, news, folder):
        exact = frozen(folder)(news)
        near = frozen(folder, precision="bf16")(news)
        mask = exact.mask
        for layer, expected in zip(near.layers, exact.layers, strict=True):
            assert layer.dtype == torch.float32
            cosines = torch.cosine_similarity(layer[mask], expected[mask], dim=-1)
            assert 0.999 < cosines.min() < 1.0 - 1e-7
            assert not layer[~mask].any()

    def test_int8_is_near_float32_in_any_batch(self, news):
        bilm = frozen(SHIPPED_BILM, precision="int8")
        near = bilm(news)
        exact = frozen(SHIPPED_BILM, precision="float32")(news)
        mask = exact.mask
        for layer, expected in zip(near.layers, exact.layers, strict=True):
            cosines = torch.cosine_similarity(layer[mask], expected[mask], dim=-1)
            assert 0.99 < cosines.min() < 0.9999
            assert cosines.mean() > 0.998
        for row, sentence in enumerate(news[:5]):
            for alone, together in zip(bilm([sentence]).layers, near.layers, strict=True):
                assert_close(alone[0], together[row, : len(sentence)], atol=1e-3)

    @pytest.mark.parametrize("instructions", ["bf16", "vnni", "avx512", "avx2", "default"])
    @pytest.mark.parametrize("is_large", [False, True])
    def test_auto_takes_the_fastest_and_a_slower_choice_gives_one_warning(
        self, set_instructions, caplog, instructions, is_large
    ):
        set_instructions(instructions)
        large = BilmOptions(projection_dim=256, cell_dim=8, filters=((1, 4),))
        options = large if is_large else SMALL
        expected = {
            "bf16": "int8" if is_large else "bf16",
            "vnni": "int8" if is_large else "float32",
            "avx512": "int8" if is_large else "float32",
            "avx2": "int8",
            "default": "float32",
        }
        chosen = Bilm(options, precision="auto").precision
        assert chosen == expected[instructions]
        assert Bilm(options, precision=chosen).precision == chosen
        assert not caplog.records
        for _ in range(2):
            assert Bilm(options, precision="bf16").precision == "bf16"
        assert len(caplog.records) == (instructions not in ("bf16", "default"))
        for record in caplog.records:
            assert "bf16 is slower than float32" in record.getMessage()

    def test_auto_trains_in_float32(self, set_instructions):
        """Also where bf16 would be faster."""
        set_instructions("bf16")
        trained = Bilm(SMALL, precision="auto")
        exact = Bilm(SMALL)
        exact.load_state_dict(trained.state_dict())
        assert_same(trained(BATCH).layers, exact(BATCH).layers)

    def test_a_frozen_bilm_does_not_follow_autocast(self):
        bilm = random_bilm()
        expected = bilm(BATCH).layers
        with torch.autocast("cpu", torch.bfloat16):
            assert_same(bilm(BATCH).layers, expected)
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16

    def test_a_trained_bilm_follows_autocast(self):

        def layers_and_gradients(enabled: bool) -> tuple[Layers, dict[str, torch.Tensor]]:
            bilm = random_bilm().requires_grad_()
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                layers = bilm(BATCH).layers
                assert all(layer.dtype == torch.float32 for layer in layers)
                loss = sum(layer.square().sum() for layer in layers)
            loss.backward()
            gradients = {name: parameter.grad for name, parameter in bilm.named_parameters()}
            assert all(gradient.dtype == torch.float32 for gradient in gradients.values())
            return layers, gradients

        exact, exact_gradients = layers_and_gradients(enabled=False)
        near, near_gradients = layers_and_gradients(enabled=True)
        assert 1e-4 < largest_difference(near, exact) < 0.1
        for name, exact_gradient in exact_gradients.items():
            gradient = near_gradients[name].flatten()
            cosine = torch.cosine_similarity(gradient, exact_gradient.flatten(), dim=0)
            assert cosine > 0.99, name


class TestTraining:
    def test_weights_trained_in_between_are_used(self):
        """Torch's fused kernel changes weights without changing their version counters."""
        bilm = random_bilm()
        with torch.no_grad():
            bilm(BATCH)
        bilm.requires_grad_(True)
        optimizer = torch.optim.Adam(bilm.parameters(), lr=0.1, fused=True)
        for _ in range(2):
            optimizer.zero_grad()
            bilm(BATCH).layers[-1].square().sum().backward()
            optimizer.step()
        bilm.requires_grad_(False)
        new = random_bilm(bilm.options)
        new.load_state_dict(bilm.state_dict())
        with torch.no_grad():
            assert_same(bilm(BATCH).layers, new(BATCH).layers)

    def test_a_frozen_bilm_gives_its_layers_without_gradients(self, bilm):
        trained = copy.deepcopy(bilm).requires_grad_()
        with torch.inference_mode():
            in_inference_mode = [layer.clone() for layer in copy.deepcopy(bilm)(BATCH).layers]
            bilm(BATCH)
        layers = bilm(BATCH).layers
        assert not any(layer.requires_grad or layer.is_inference() for layer in layers)
        torch.testing.assert_close(trained(BATCH).layers, layers, rtol=0, atol=1e-6)
        torch.testing.assert_close(in_inference_mode, list(layers), rtol=0, atol=1e-6)
        mix = torch.ones((), requires_grad=True)
        (mix * layers[-1]).sum().backward()
        torch.testing.assert_close(mix.grad, layers[-1].sum())

    @pytest.mark.parametrize(
        "copied", [copy.deepcopy, lambda bilm: pickle.loads(pickle.dumps(bilm))]
    )
    def test_a_copy_has_separate_weights(self, copied):
        bilm = random_bilm()
        expected = bilm(BATCH).layers
        other = copied(bilm)
        assert_same(other(BATCH).layers, expected)
        other.load_state_dict(random_bilm(seed=1).state_dict())
        assert_same(other(BATCH).layers, random_bilm(seed=1)(BATCH).layers)
        assert_same(bilm(BATCH).layers, expected)
