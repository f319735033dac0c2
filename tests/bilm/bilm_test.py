import copy
import pickle

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


def assert_same(ours: tuple[torch.Tensor, ...], theirs: tuple[torch.Tensor, ...]) -> None:
    assert len(ours) == len(theirs)
    assert all(torch.equal(our, their) for our, their in zip(ours, theirs, strict=True))


def furthest(ours: tuple[torch.Tensor, ...], theirs: tuple[torch.Tensor, ...]) -> float:
    return max(
        float((our - their).detach().abs().max()) for our, their in zip(ours, theirs, strict=True)
    )


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

        files = save(random_bilm(options, seed=seed, std=0.5), tmp_path_factory.mktemp("bilm"))
        bilm = Bilm.from_files(*files)
        character_ids = pad(BYTES.batch(sentences), (0, 0, 0, n_padding))
        ours = bilm(character_ids)
        assert len(ours.layers) == bilm.num_layers == options.n_layers + 1
        assert_layers_equal(ours.layers, allennlp_layers(_ElmoBiLm(*files), character_ids), 1e-5)
        for layer in ours.layers:
            assert layer.shape == (*character_ids.shape[:2], bilm.get_output_dim())

    def test_the_included_bilm_equals_allennlps(self, news, float64, tmp_path):
        """Float64, because AllenNLP adds the forget gate's 1 in the dtype of the file."""
        from allennlp.modules.elmo import _ElmoBiLm

        bilm = Bilm.from_files(*bilm_files(SHIPPED_BILM)).requires_grad_(False)
        theirs = _ElmoBiLm(*save(bilm, tmp_path)).double()
        character_ids = BYTES.batch(news[:5])
        with torch.no_grad():
            expected = allennlp_layers(theirs, character_ids)
            assert_layers_equal(bilm.double()(character_ids).layers, expected, 1e-10)

    def test_a_long_sentence_among_short_ones(self, bilm, files):
        from allennlp.modules.elmo import _ElmoBiLm

        character_ids = BYTES.batch([["a"], [f"word{i % 50}" for i in range(300)], [], ["b", "c"]])
        expected = allennlp_layers(_ElmoBiLm(*files), character_ids)
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
            torch.testing.assert_close(layer[row, :n_words], expected[0], rtol=0, atol=1e-6)
            assert not layer[row, n_words:].any()
        assert together.mask[row].tolist() == [i < n_words for i in range(together.mask.size(1))]
        # The context does matter, so this does not compare constants.
        if n_words > 1:
            assert not torch.allclose(
                alone.layers[-1][0, 0], bilm([sentence[:1]]).layers[-1][0, 0], rtol=0, atol=1e-6
            )

    def test_both_directions_read_the_boundaries(self, bilm):
        short, right, left = (bilm([s]).layers for s in (["b"], ["b", "c"], ["a", "b"]))
        dim = SMALL.projection_dim
        for layer in (1, 2):
            torch.testing.assert_close(
                short[layer][0, 0, :dim], right[layer][0, 0, :dim], rtol=0, atol=1e-6
            )
            torch.testing.assert_close(
                short[layer][0, 0, dim:], left[layer][0, 1, dim:], rtol=0, atol=1e-6
            )
            assert not torch.allclose(short[layer][0, 0, dim:], right[layer][0, 0, dim:], atol=1e-4)
            assert not torch.allclose(short[layer][0, 0, :dim], left[layer][0, 1, :dim], atol=1e-4)


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
        ("call", "found"),
        [
            (lambda bilm: bilm(torch.ones(2, 3, 49, dtype=torch.int64)), r"\(2, 3, 49\)"),
            (lambda bilm: bilm(BYTES.batch([["a"] * 3, ["b"]]).flip(1)), "sentence 1"),
            (lambda _: Bilm(SMALL, precision="int8").requires_grad_()(BATCH), "int8"),
            (lambda _: Bilm(SMALL, precision="int8").to("meta")(BATCH), "int8"),
            (lambda _: Bilm(SMALL, precision="fp16"), "fp16"),
        ],
    )
    def test_an_error_names_what_is_wrong(self, bilm, call, found):
        with pytest.raises(ValueError, match=found):
            call(bilm)


class TestPrecision:
    @pytest.mark.parametrize("folder", [SHIPPED_BILM, TINY_BILM], ids=lambda folder: folder.name)
    def test_bf16_is_near_float32(self, news, folder):
        files = bilm_files(folder)
        exact = Bilm.from_files(*files).requires_grad_(False)(news)
        near = Bilm.from_files(*files, precision="bf16").requires_grad_(False)(news)
        for ours, theirs in zip(near.layers, exact.layers, strict=True):
            assert ours.dtype == torch.float32
            cosines = torch.cosine_similarity(ours[exact.mask], theirs[exact.mask], dim=-1)
            assert 0.999 < cosines.min() < 1.0 - 1e-7
            assert not ours[~exact.mask].any()

    def test_int8_is_near_float32_in_any_batch(self, news):
        exact, near = (
            Bilm.from_files(*bilm_files(SHIPPED_BILM), precision=precision).requires_grad_(False)
            for precision in ("float32", "int8")
        )
        expected, found = exact(news), near(news)
        for ours, theirs in zip(found.layers, expected.layers, strict=True):
            cosines = torch.cosine_similarity(ours[expected.mask], theirs[expected.mask], dim=-1)
            assert 0.99 < cosines.min() < 0.9999
            assert cosines.mean() > 0.998
        for row, sentence in enumerate(news[:5]):
            for alone, together in zip(near([sentence]).layers, found.layers, strict=True):
                torch.testing.assert_close(
                    alone[0], together[row, : len(sentence)], rtol=0.0, atol=1e-3
                )

    @pytest.mark.parametrize("instructions", ["bf16", "vnni", "avx512", "avx2", "default"])
    @pytest.mark.parametrize("is_large", [False, True])
    def test_auto_is_the_fastest_and_what_is_slower_is_said(
        self, monkeypatch, caplog, instructions, is_large
    ):
        monkeypatch.setattr("elmo_tasks.bilm.precision.cpu_instructions", lambda: instructions)
        precision_on.cache_clear()
        options = (
            BilmOptions(projection_dim=256, cell_dim=8, filters=((1, 4),)) if is_large else SMALL
        )
        chosen = Bilm(options, precision="auto").precision
        expected = {"bf16": "int8" if is_large else "bf16", "default": "float32"}
        if not is_large:
            expected |= {"vnni": "float32", "avx512": "float32"}
        assert chosen == expected.get(instructions, "int8")
        assert Bilm(options, precision=chosen).precision == chosen and not caplog.records
        for _ in range(2):
            assert Bilm(options, precision="bf16").precision == "bf16"
        assert len(caplog.records) == (instructions not in ("bf16", "default"))
        precision_on.cache_clear()

    def test_auto_trains_in_float32(self):
        trained, exact = Bilm(SMALL, precision="auto"), Bilm(SMALL)
        exact.load_state_dict(trained.state_dict())
        assert_same(trained(BATCH).layers, exact(BATCH).layers)

    def test_a_frozen_bilm_does_not_follow_autocast(self):
        bilm = random_bilm()
        expected = bilm(BATCH).layers
        with torch.autocast("cpu", torch.bfloat16):
            assert_same(bilm(BATCH).layers, expected)
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16

    def test_a_trained_bilm_follows_autocast(self):
        found = []
        for enabled in (False, True):
            bilm = random_bilm().requires_grad_()
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                layers = bilm(BATCH).layers
                assert all(layer.dtype == torch.float32 for layer in layers)
                loss = sum(layer.square().sum() for layer in layers)
            loss.backward()
            gradients = {name: parameter.grad for name, parameter in bilm.named_parameters()}
            assert all(gradient.dtype == torch.float32 for gradient in gradients.values())
            found.append((layers, gradients))
        (exact, exact_gradients), (near, near_gradients) = found
        assert 1e-4 < furthest(near, exact) < 0.1
        for name, gradient in exact_gradients.items():
            cosine = torch.cosine_similarity(
                near_gradients[name].flatten(), gradient.flatten(), dim=0
            )
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
            first = [layer.clone() for layer in copy.deepcopy(bilm)(BATCH).layers]
            bilm(BATCH)
        layers = bilm(BATCH).layers
        assert not any(layer.requires_grad or layer.is_inference() for layer in layers)
        torch.testing.assert_close(trained(BATCH).layers, layers, rtol=0, atol=1e-6)
        torch.testing.assert_close(first, list(layers), rtol=0, atol=1e-6)
        mix = torch.ones((), requires_grad=True)
        (mix * layers[-1]).sum().backward()
        torch.testing.assert_close(mix.grad, layers[-1].sum())

    @pytest.mark.parametrize(
        "copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
    )
    def test_a_copy_has_separate_weights(self, copied):
        bilm = random_bilm()
        expected = bilm(BATCH).layers
        other = copied(bilm)
        assert_same(other(BATCH).layers, expected)
        other.load_state_dict(random_bilm(seed=1).state_dict())
        assert_same(other(BATCH).layers, random_bilm(seed=1)(BATCH).layers)
        assert_same(bilm(BATCH).layers, expected)
