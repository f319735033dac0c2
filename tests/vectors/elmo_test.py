"""Tests of `Elmo`."""

import itertools
import os
import pickle
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import elmo_tasks
from elmo_tasks import Elmo
from elmo_tasks.bilm import Bilm, LayerCache
from tests.bilm.helpers import batches, random_bilm, save
from tests.paths import CHECKOUT, TINY_BILM

SENTENCES = [["The", "cat", "sat", "."], [], ["Encyclopædia", "😀", "The"], ["x" * 60], ["The", "cat"], ["<S>"]]
# The environment without anything but what Python needs, for a folder that is not the checkout.
ALONE = {"PYTHONPATH": str(CHECKOUT), "PATH": os.defpath, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def elmo(bilm: Bilm) -> Elmo:
    return Elmo(bilm)


def layers_alone(bilm: Bilm, sentence: list[str]) -> np.ndarray:
    """Shape `(n_layers, n_words, dim)`, without batch mates."""
    return np.stack([layer[0].numpy() for layer in bilm([sentence]).layers])


class TestEmbed:
    @settings(max_examples=20)
    @given(batches(max_size=7), st.sampled_from([1, 7, 40, 4096]))
    def test_a_sentence_has_the_layers_that_it_has_alone(self, elmo, bilm, sentences, batch_tokens):
        """Oracle: the biLM, sentence by sentence; whatever the size of a batch."""
        found = elmo.embed(sentences, layers="all", batch_tokens=batch_tokens)
        assert len(found) == len(sentences)
        for array, sentence in zip(found, sentences, strict=True):
            assert array.dtype == np.float32
            assert array.shape == (3, len(sentence), 12)
            np.testing.assert_allclose(array, layers_alone(bilm, sentence), rtol=0, atol=1e-6)

    @pytest.mark.parametrize("batch_tokens", [1, 12, 4096])
    def test_the_default_is_the_average_of_the_layers(self, elmo, bilm, batch_tokens):
        """Oracle: NumPy's mean of the layers, sentence by sentence, in their order."""
        found = elmo.embed(SENTENCES, batch_tokens=batch_tokens)
        for array, sentence in zip(found, SENTENCES, strict=True):
            np.testing.assert_allclose(array, layers_alone(bilm, sentence).mean(0), rtol=0, atol=1e-6)

    def test_the_arguments_are_those_of_the_selection(self, elmo, bilm):
        """Oracle: the formulas in NumPy."""
        layers = layers_alone(bilm, SENTENCES[0])
        shares = np.exp([0.0, 1.0, -1.0]) / np.exp([0.0, 1.0, -1.0]).sum()
        cases = [
            (dict(weights=[0.0, 1.0, -1.0], gamma=2.0), 2.0 * np.tensordot(shares, layers, 1)),
            (dict(layers="top"), layers[2]),
            (dict(layers=1), layers[1]),
            (dict(layers="top", pool="mean"), layers[2].mean(0)),
            (dict(layers="all", pool="max"), layers.max(1)),
            (dict(layers=1, pool="first-last"), np.concatenate([layers[1, -1, :6], layers[1, 0, 6:]])),
        ]
        for arguments, expected in cases:
            found = elmo.embed(SENTENCES, **arguments)
            np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize(
        ("arguments", "shape"),
        [
            ({}, (0, 12)),
            ({"layers": "all"}, (3, 0, 12)),
            ({"pool": "mean"}, (12,)),
            ({"pool": "max"}, (12,)),
            ({"pool": "first-last", "layers": "all"}, (3, 12)),
        ],
    )
    @pytest.mark.parametrize("sentences", [[[]], [[], []], [["a", "b"], []]])
    def test_a_sentence_without_words_keeps_its_place(self, elmo, sentences, arguments, shape):
        """Oracle: by hand: its shape, zeros for a pool."""
        found = elmo.embed(sentences, **arguments)
        assert len(found) == len(sentences)
        assert found[-1].shape == shape
        assert not found[-1].any()

    def test_no_sentences_are_no_vectors(self, elmo):
        """Oracle: by hand."""
        assert elmo.embed([]) == []

    def test_tensors_have_the_numbers_of_the_arrays(self, elmo):
        """Oracle: the arrays, bit for bit."""
        for arguments in ({}, {"pool": "max"}, {"layers": "all"}):
            arrays = elmo.embed(SENTENCES, **arguments)
            for tensor, array in zip(elmo.embed(SENTENCES, output="torch", **arguments), arrays, strict=True):
                assert isinstance(tensor, torch.Tensor)
                assert not tensor.requires_grad
                assert np.array_equal(tensor.numpy(), array)

    @pytest.mark.parametrize("output", ["numpy", "torch"])
    def test_an_array_does_not_keep_its_batch(self, elmo, output):
        """Oracle: the size of the memory behind it."""
        for array in elmo.embed(SENTENCES, output=output):
            if output == "torch":
                assert array.untyped_storage().nbytes() == array.numel() * array.element_size()
            else:
                assert array.base is None

    def test_no_gradient_is_computed_though_the_parameters_require_it(self):
        """Oracle: a biLM whose parameters require gradients."""
        (found,) = Elmo(random_bilm().requires_grad_(True)).embed([["a"]], output="torch")
        assert not found.requires_grad

    def test_strings_are_split_by_the_rules_of_spacy(self, elmo):
        """Oracle: the vectors of the words by hand."""
        texts = np.array(["Don't  stop,\tMr. O'Neill!\n", "", "  "])
        words = [["Do", "n't", "stop", ",", "Mr.", "O'Neill", "!"], [], []]
        for ours, again, theirs in zip(elmo.embed(texts), elmo.embed(texts.tolist()), elmo.embed(words), strict=True):
            assert np.array_equal(ours, theirs)
            assert np.array_equal(again, theirs)

    def test_another_tokenizer_may_be_given(self, bilm, elmo):
        """Oracle: the vectors of the words; a list of words is not split again."""
        found = Elmo(bilm, tokenizer=str.split).embed(["Don't stop,", ["a b"]])
        expected = elmo.embed([["Don't", "stop,"], ["a b"]])
        assert all(np.array_equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))

    def test_a_layer_cache_is_used(self, tmp_path):
        """Oracle: the vectors without it, bit for bit; the second time the biLM is not run."""
        bilm = random_bilm()
        elmo = Elmo(bilm, layer_cache=LayerCache(tmp_path / "cache"))
        runs = []
        bilm.register_forward_pre_hook(lambda module, inputs: runs.append(inputs))
        for n_runs in (1, 1):
            for ours, theirs in zip(elmo.embed(SENTENCES), Elmo(random_bilm()).embed(SENTENCES), strict=True):
                assert np.array_equal(ours, theirs)
            assert len(runs) == n_runs

    def test_a_layer_cache_is_for_a_frozen_bilm(self, tmp_path):
        """Oracle: the message; nothing would be kept."""
        cache = LayerCache(tmp_path / "cache")
        with pytest.raises(ValueError, match=r"must be frozen, .* call bilm\.requires_grad_\(False\)"):
            Elmo(Bilm.from_files(TINY_BILM / "options.json", TINY_BILM / "weights.hdf5"), layer_cache=cache)

    def test_it_can_be_pickled(self, elmo):
        """Oracle: its vectors."""
        again = pickle.loads(pickle.dumps(elmo))
        assert np.array_equal(again.embed(SENTENCES[:1])[0], elmo.embed(SENTENCES[:1])[0])


class TestEmbedIter:
    def test_no_more_of_a_corpus_is_read_than_is_needed(self, elmo):
        """Oracle: the number of sentences that have been read of a corpus without an end."""
        read = []

        def corpus():
            for index in itertools.count():
                read.append(index)
                yield ["word"] * 8

        vectors = elmo.embed_iter(corpus(), batch_tokens=20)
        assert not read
        first = [next(vectors) for _ in range(40)]
        assert len(first) == 40
        # Eight batches of 20 words are 16 sentences of 8 words and two boundaries.
        assert 40 <= len(read) <= 56

    def test_gradients_stay_on_for_the_caller(self, elmo):
        """Oracle: torch's switch between two vectors."""
        for _ in elmo.embed_iter(SENTENCES):
            assert torch.is_grad_enabled()

    def test_arguments_are_checked_at_once(self, elmo):
        """Oracle: an error before anything is read."""
        with pytest.raises(ValueError, match="layers must be"):
            elmo.embed_iter([["a"]], layers="best")


class Table(dict[str, list[Any]]):
    """As of pandas: it has columns, and its names are what a loop gets."""

    columns = property(dict.keys)


class TestErrors:
    def test_a_string_is_not_a_list_of_sentences(self, elmo):
        """Oracle: the rule and the value in the message."""
        table = Table(text=["one film", "two"], label=[0, 1])
        for names in (table, {"a b": 1}):
            for embed in (elmo.embed, elmo.embed_documents):
                with pytest.raises(ValueError, match=rf"is a {type(names).__name__}, of which only the names would be"):
                    embed(names)
        assert len(elmo.embed(table["text"])) == 2
        with pytest.raises(ValueError, match="sentences must be a list of sentences, but is the string 'one string'"):
            elmo.embed("one string")

    def test_a_tokenizer_that_is_a_code_of_a_language_is_an_error(self):
        """Oracle: the message, with what to give."""
        with pytest.raises(ValueError, match=r"must be a function .* is 'de': .*blank_tokenizer"):
            Elmo.from_pretrained(TINY_BILM, tokenizer="de")

    def test_an_object_that_is_not_a_sentence_is_named(self, elmo):
        """Oracle: the number of the sentence in the message."""
        with pytest.raises(ValueError, match=r"a sentence must be a string, .*, but sentence 1 is None"):
            elmo.embed([["a"], None])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"output": "list"}, "output must be one of 'numpy', 'torch', but is 'list'"),
            ({"batch_tokens": 0}, "batch_tokens must be a whole number of at least 1, but is 0"),
            ({"batch_tokens": 1.5}, r"but is 1\.5"),
            ({"batch_tokens": None}, "but is None"),
            ({"pool": "sum"}, "pool must be"),
        ],
    )
    def test_other_arguments_are_errors(self, elmo, arguments, message):
        """Oracle: the rule and the value in the message."""
        with pytest.raises(ValueError, match=message):
            elmo.embed(SENTENCES, **arguments)

    def test_a_stateful_bilm_is_refused(self):
        """Oracle: the message; sorted by length, its vectors would depend on all others."""
        with pytest.raises(ValueError, match="must not be stateful"):
            Elmo(random_bilm(stateful=True))


class TestFromPretrained:
    def test_a_folder_and_two_files_are_the_bilm(self, bilm, tmp_path):
        """Oracle: the biLM that was saved; `str` and `Path`."""
        files = save(bilm, tmp_path)
        expected = Elmo(bilm).embed(SENTENCES[:1])[0]
        for elmo in (Elmo.from_pretrained(tmp_path), Elmo.from_pretrained(str(tmp_path)), Elmo.from_files(*files)):
            assert np.array_equal(elmo.embed(SENTENCES[:1])[0], expected)
            assert not any(weight.requires_grad for weight in elmo.bilm.parameters())

    def test_the_small_one_ships(self, shipped_bilm):
        """Oracle: its files."""
        elmo = Elmo.from_pretrained()
        assert (elmo.dim, elmo.n_layers) == (256, 3)
        bilm = Bilm.from_files(shipped_bilm / "options.json", shipped_bilm / "weights.hdf5")
        assert torch.equal(elmo.bilm.forward_layers[1].kernel, bilm.forward_layers[1].kernel)

    def test_a_text_of_another_script_is_said_once(self, shipped_bilm, caplog):
        """Oracle: the line, for the English biLM that ships; nothing for its own script, nor for files alone."""
        files = shipped_bilm / "options.json", shipped_bilm / "weights.hdf5"
        english, korean = [["They", "play"]], [["나는", "학교에"]]
        for elmo, sentences in (
            (Elmo.from_pretrained("small-open"), english),
            (Elmo.from_pretrained("small-ko-open"), korean),
            (Elmo.from_files(*files), korean),
        ):
            elmo.embed([])
            elmo.embed(sentences)
        assert caplog.text == ""
        elmo = Elmo.from_pretrained("small-open")
        elmo.embed([])
        for _ in range(2):
            elmo.embed(korean)
        assert len(caplog.records) == 1
        assert "the first sentences, 100% are of scripts that the biLM 'small-open' has never seen" in caplog.text

    def test_its_folder_may_be_gone(self, tmp_path):
        """Oracle: the vectors before; of an object that an earlier version has pickled too, which knows no scripts."""
        shutil.copytree(TINY_BILM, tmp_path / "bilm")
        elmo, other = (Elmo.from_pretrained(tmp_path / "bilm", device="cpu") for _ in range(2))
        shutil.rmtree(tmp_path / "bilm")
        del other._scripts
        (first,), (second,) = (each.embed([["나는"]]) for each in (elmo, other))
        assert first.any() and np.array_equal(first, second)

    def test_device_and_precision_are_those_of_the_bilm(self, files):
        """Oracle: the arguments, and the default of the precision."""
        assert Elmo.from_files(*files, device="cpu", precision="bf16").bilm.precision == "bf16"
        elmo = Elmo.from_files(*files, device=torch.device("meta"))
        assert elmo.bilm.precision == "float32"
        assert next(elmo.bilm.parameters()).device.type == "meta"
        with pytest.raises(ValueError, match="precision"):
            Elmo.from_files(*files, precision="int8")

    @pytest.mark.parametrize("device", ["gpu", "cuda:99", 99])
    def test_a_device_that_is_not_here_is_an_error(self, files, device):
        """Oracle: the message; torch does not know the first, and no machine has the second."""
        with pytest.raises(ValueError, match=f"device must be one that torch has here, .* but is '{device}': "):
            Elmo.from_files(*files, device=device)

    def test_it_needs_neither_allennlp_nor_spacy_nor_transformers(self, tmp_path):
        """Oracle: `sys.modules` of a new interpreter in another folder, after three sentences."""
        code = (
            "import sys\nimport elmo_tasks\nassert 'torch' not in sys.modules\nfrom elmo_tasks import Elmo\n"
            "print(*(x.shape[0] for x in Elmo.from_pretrained().embed([['One'], ['Two', 'words'], []])))\n"
            "print(*{name.split('.')[0] for name in sys.modules})"
        )
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=ALONE)
        assert process.returncode == 0, process.stderr
        shapes, modules = process.stdout.splitlines()
        assert shapes == "1 2 0"
        assert "torch" in modules.split()
        assert not {"allennlp", "spacy", "transformers", "sklearn", "nltk"} & set(modules.split())


class TestThePackage:
    def test_it_lists_what_it_imports_late(self):
        """Oracle: by hand."""
        assert {"Elmo", "ElmoVectorizer", "__version__"} <= set(dir(elmo_tasks))
        with pytest.raises(AttributeError, match="'elmo_tasks' has no attribute 'Bert'"):
            elmo_tasks.Bert  # noqa: B018
