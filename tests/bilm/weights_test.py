import dataclasses
import json
import random
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.bilm.weights import read_softmax, read_weights, weight_names, write_weights
from tests.bilm.helpers import SMALL, bilm_options, random_bilm, save

SENTENCES = [["The", "cat", "sat"], ["Encyclopædia"]]
LSTM = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/{}"


def replace(weight_file: str, key: str, value: np.ndarray) -> None:
    with h5py.File(weight_file, "r+") as file:
        if key in file:
            del file[key]
        file[key] = value


def read(weight_file: str, key: str) -> np.ndarray:
    with h5py.File(weight_file) as file:
        return file[key][...]


def refusal(options: object, weight_file: object, kind: type[Exception] = ValueError) -> str:
    """The message with which the files are refused; it must begin with the weight file's name."""
    with pytest.raises(kind) as error:
        read_weights(weight_file, options)
    message = str(error.value)
    assert message.startswith(f"{weight_file}: ")
    return message.removeprefix(f"{weight_file}: ")


class TestWeightNames:
    def test_the_names_are_the_public_ones(self):
        """Oracle: the keys and shapes that bilm-tf writes, by hand for one small biLM."""
        options = dataclasses.replace(SMALL, filters=((1, 2), (3, 4)), n_highway=1, n_layers=1)
        assert {name.key: name.shape for name in weight_names(options)} == {
            "char_embed": (261, 3),
            "CNN/W_cnn_0": (1, 1, 3, 2),
            "CNN/b_cnn_0": (2,),
            "CNN/W_cnn_1": (1, 3, 3, 4),
            "CNN/b_cnn_1": (4,),
            "CNN_high_0/W_transform": (6, 6),
            "CNN_high_0/b_transform": (6,),
            "CNN_high_0/W_carry": (6, 6),
            "CNN_high_0/b_carry": (6,),
            "CNN_proj/W_proj": (6, 6),
            "CNN_proj/b_proj": (6,),
            **{LSTM.format(direction, 0, "W_0"): (12, 32) for direction in (0, 1)},
            **{LSTM.format(direction, 0, "B"): (32,) for direction in (0, 1)},
            **{LSTM.format(direction, 0, "W_P_0"): (8, 6) for direction in (0, 1)},
        }

    @settings(max_examples=20)
    @given(bilm_options())
    def test_there_is_a_row_for_each_parameter(self, options):
        """Oracle: the names in the state of a biLM with these options."""
        parameters = [name.parameter for name in weight_names(options)]
        assert sorted(parameters) == sorted(Bilm(options).state_dict())

    def test_every_array_of_the_original_file_is_read(self, reference):
        """Oracle: all keys of a file that bilm-tf wrote."""
        folder = reference / "bilm_tf"
        bilm = Bilm.from_files(folder / "options.json", folder / "lm_weights.hdf5")
        keys = set()
        with h5py.File(folder / "lm_weights.hdf5") as file:
            file.visititems(lambda key, node: keys.add(key) if isinstance(node, h5py.Dataset) else None)
        assert keys == {name.key for name in weight_names(bilm.options)}


class TestRoundTrip:
    @settings(max_examples=15)
    @given(bilm_options())
    def test_float32_comes_back_bit_by_bit(self, tmp_path_factory, options):
        """Oracle: the state that was written."""
        bilm = random_bilm(options)
        again = Bilm.from_files(*save(bilm, tmp_path_factory.mktemp("bilm")))
        assert again.options == bilm.options
        for name, value in bilm.state_dict().items():
            assert torch.equal(again.state_dict()[name], value), name

    def test_float16_is_the_rounded_weights_and_little_else(self, bilm, tmp_path):
        """Oracle: the weights rounded by torch; the layers of the biLM in float32."""
        files = save(bilm, tmp_path, dtype=torch.float16)
        again = Bilm.from_files(*files)
        assert read(files[1], "char_embed").dtype == np.float16
        for name, value in bilm.state_dict().items():
            assert again.state_dict()[name].dtype == torch.float32
            assert torch.equal(again.state_dict()[name], value.half().float()), name
        for ours, expected in zip(again(SENTENCES).layers, bilm(SENTENCES).layers, strict=True):
            assert 0 < (ours - expected).abs().max() < 3e-3

    def test_the_file_is_compressed_and_need_not_be(self, bilm, files):
        """Oracle: h5py's error; the weights read before the compression was taken away."""
        before = read_weights(files[1], bilm.options)
        for name in weight_names(bilm.options):
            with h5py.File(files[1]) as file:
                assert file[name.key].compression == "gzip"
            replace(files[1], name.key, read(files[1], name.key))
            with h5py.File(files[1]) as file:
                assert file[name.key].compression is None
        after = read_weights(files[1], bilm.options)
        assert all(torch.equal(after[name], value) for name, value in before.items())

    def test_a_softmax_in_the_file_is_ignored(self, bilm, files):
        """Oracle: the biLM that was written."""
        replace(files[1], "softmax/W", np.ones((100, 6), dtype=np.float32))
        replace(files[1], "softmax/b", np.ones(100, dtype=np.float32))
        layers = Bilm.from_files(*files).requires_grad_(False)(SENTENCES).layers
        assert all(torch.equal(*pair) for pair in zip(layers, bilm(SENTENCES).layers, strict=True))

    def test_a_262nd_character_is_ignored(self, bilm, files):
        """Oracle: the biLM that was written; bilm-tf's files have a row that no text reaches."""
        characters = read(files[1], "char_embed")
        assert characters.shape == (261, 3)
        replace(files[1], "char_embed", np.concatenate([characters, np.full((1, 3), 9.0, dtype=np.float32)]))
        layers = Bilm.from_files(*files).requires_grad_(False)(SENTENCES).layers
        assert all(torch.equal(*pair) for pair in zip(layers, bilm(SENTENCES).layers, strict=True))

    # AllenNLP adds the forget gate's 1 to the bias before it leaves float16: that rounds by up to 2 ** -11.
    @pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float16, 1e-3)])
    def test_allennlp_reads_what_we_write(self, bilm, tmp_path, dtype, atol):
        """Oracle: AllenNLP's `Elmo` with equal mix weights, which is the average of our layers."""
        from allennlp.modules.elmo import Elmo

        files = save(bilm, tmp_path, dtype=dtype)
        elmo = Elmo(*files, num_output_representations=1, dropout=0.0, scalar_mix_parameters=[0.0, 0.0, 0.0])
        theirs = elmo(sentences_to_character_ids(SENTENCES))["elmo_representations"][0]
        ours = torch.stack(Bilm.from_files(*files)(SENTENCES).layers).mean(0)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


class TestReadWeights:
    @pytest.mark.parametrize(
        "key", ["char_embed", "CNN/b_cnn_1", "CNN_high_1/W_carry", "CNN_proj/W_proj", LSTM.format(1, 1, "W_P_0")]
    )
    @pytest.mark.parametrize("in_its_place", [None, "group"])
    def test_a_missing_key_is_named(self, bilm, files, key, in_its_place):
        """Oracle: the message, which must state the key and how many are asked for (7 + 8 + 2 + 12)."""
        with h5py.File(files[1], "r+") as file:
            del file[key]
            if in_its_place:
                file.create_group(key)
        assert re.match(rf"1 of the 29 keys .* missing, the first is '{key}'", refusal(bilm.options, files[1]))

    @pytest.mark.parametrize(
        ("key", "shape"),
        [
            ("char_embed", (260, 3)),
            ("char_embed", (263, 3)),
            ("char_embed", (262, 4)),
            ("CNN/W_cnn_1", (3, 3, 4)),
            ("CNN_proj/b_proj", (7,)),
            (LSTM.format(0, 1, "W_0"), (32, 12)),
            (LSTM.format(0, 1, "B"), ()),
        ],
    )
    def test_another_shape_is_named(self, bilm, files, key, shape):
        """Oracle: the message, which must state the key, the expected shape and the one found."""
        expected = read(files[1], key).shape
        replace(files[1], key, np.zeros(shape, dtype=np.float32))
        message = refusal(bilm.options, files[1])
        assert f"'{key}' must have the shape {expected}" in message
        assert f"has {shape}" in message

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_values_that_are_not_finite_are_refused(self, bilm, files, value):
        """Oracle: the message, which must state the key."""
        key = LSTM.format(1, 0, "B")
        array = read(files[1], key)
        array[3] = value
        replace(files[1], key, array)
        assert f"'{key}' must hold finite numbers, but holds NaN or infinity" in refusal(bilm.options, files[1])

    @pytest.mark.parametrize(
        ("other", "key"),
        [
            (dict(n_layers=3), LSTM.format(0, 2, "B")),
            (dict(n_layers=1), LSTM.format(0, 1, "B")),
            (dict(n_highway=3), "CNN_high_2/W_carry"),
            (dict(n_highway=1), "CNN_high_1/W_carry"),
            (dict(n_highway=0), "CNN_high_0/W_carry"),
            (dict(filters=((1, 2), (3, 4), (7, 3), (8, 1))), "CNN/W_cnn_3"),
            (dict(filters=((1, 2), (3, 7))), "CNN/W_cnn_2"),
            (dict(filters=((1, 2), (4, 4), (7, 3))), "CNN/W_cnn_1"),
            (dict(filters=((1, 2), (3, 3), (7, 4))), "CNN/W_cnn_1"),
            (dict(character_dim=4), "char_embed"),
            (dict(projection_dim=7), "CNN_proj/W_proj"),
            (dict(cell_dim=9), LSTM.format(0, 0, "W_0")),
        ],
    )
    def test_options_of_another_bilm_are_refused(self, files, other, key):
        """Oracle: the message, which must state the first key where options and file differ."""
        message = refusal(dataclasses.replace(SMALL, **other), files[1])
        assert f"'{key}'" in message
        assert "options" in message

    @pytest.mark.parametrize(
        ("other", "words"),
        [
            (dict(n_layers=3), "lstm.n_layers is 3 in the options, but 2 in the file"),
            (dict(n_layers=1), "lstm.n_layers is 1 in the options, but 2 in the file"),
            (dict(n_highway=3), "char_cnn.n_highway is 3 in the options, but 2 in the file"),
            (dict(filters=((1, 2), (3, 7))), "the length of char_cnn.filters is 2 in the options, but 3 in the file"),
        ],
    )
    def test_the_option_that_does_not_fit_is_named(self, files, other, words):
        """Oracle: the message, which must state the option, and its value on both sides."""
        assert words in refusal(dataclasses.replace(SMALL, **other), files[1])

    @pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
    def test_a_truncated_file_is_refused(self, bilm, files, share):
        """Oracle: the message, which must say what the file should be."""
        with open(files[1], "r+b") as file:
            file.truncate(int(share * file.seek(0, 2)))
        assert "must be HDF5, but this one is of another kind or truncated" in refusal(bilm.options, files[1])

    @pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"\0" * 4096])
    def test_a_file_of_another_kind_is_refused(self, bilm, tmp_path, content):
        """Oracle: the message, which must say what the file should be."""
        (tmp_path / "weights.hdf5").write_bytes(content)
        assert "must be HDF5, but this one is" in refusal(bilm.options, tmp_path / "weights.hdf5")

    def test_a_damaged_file_is_refused_by_its_name_or_read(self, bilm, files):
        """Oracle: one flipped bit: no error but a `ValueError` with the file's name."""
        rng = random.Random(0)
        content = Path(files[1]).read_bytes()
        n_refused = 0
        for _ in range(120):
            damaged = bytearray(content)
            damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            Path(files[1]).write_bytes(damaged)
            try:
                read_weights(files[1], bilm.options)
            except ValueError as error:
                assert str(error).startswith(f"{files[1]}: ")
                n_refused += 1
        assert n_refused > 5

    def test_a_missing_file_is_an_error_of_the_system(self, bilm, files, tmp_path):
        """Oracle: the exception's own file name, for each of the two files."""
        none = str(tmp_path / "none")
        for pair in ((none, files[1]), (files[0], none)):
            with pytest.raises(FileNotFoundError) as error:
                Bilm.from_files(*pair)
            assert error.value.filename == none

    def test_options_that_cannot_be_are_refused_before_the_weights_are_read(self, files, tmp_path):
        """Oracle: the message, which must name the options file."""
        options = SMALL.to_dict()
        options["lstm"]["proj_clip"] = -1
        (tmp_path / "options.json").write_text(json.dumps(options))
        with pytest.raises(ValueError, match=r"options\.json: lstm\.proj_clip must be .* -1$"):
            Bilm.from_files(tmp_path / "options.json", files[1])

    def test_weights_that_are_refused_change_nothing(self, bilm, files):
        """Oracle: the state before."""
        replace(files[1], LSTM.format(1, 1, "W_P_0"), np.zeros((2, 2), dtype=np.float32))
        other = random_bilm(seed=5)
        before = {name: value.clone() for name, value in other.state_dict().items()}
        with pytest.raises(ValueError, match="W_P_0"):
            other.load_weights(files[1])
        assert all(torch.equal(other.state_dict()[name], value) for name, value in before.items())


class TestWriteWeights:
    @pytest.mark.parametrize(
        ("value", "dtype"),
        [(float("nan"), torch.float32), (float("inf"), torch.float32), (1e6, torch.float16)],
    )
    def test_what_is_not_finite_is_not_written_and_the_old_file_stays(self, bilm, files, value, dtype):
        """Oracle: the message, which must state the parameter; the bytes of the file before."""
        before = Path(files[1]).read_bytes()
        other = random_bilm()
        other.backward_layers[1].bias[0] = value
        with pytest.raises(ValueError, match=rf"'backward_layers.1.bias' must hold finite numbers .* {dtype}"):
            write_weights(files[1], other.state_dict(), other.options, dtype=dtype)
        assert Path(files[1]).read_bytes() == before

    def test_another_dtype_is_refused(self, bilm, tmp_path):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=r"torch\.float32 or torch\.float16, but is torch\.bfloat16"):
            save(bilm, tmp_path, dtype=torch.bfloat16)

    def test_a_bilm_in_float64_is_written_in_float32(self, bilm, tmp_path):
        """Oracle: the biLM before it went to float64."""
        again = Bilm.from_files(*save(random_bilm().double(), tmp_path))
        assert all(torch.equal(again.state_dict()[name], value) for name, value in bilm.state_dict().items())


@pytest.fixture
def softmax(bilm):
    torch.manual_seed(7)
    softmax = LmSoftmax(9, bilm.options.projection_dim, n_samples=4)
    torch.nn.init.normal_(softmax.bias)
    return softmax


@pytest.fixture
def files_with_softmax(bilm, softmax, tmp_path):
    files = (f"{tmp_path}/options.json", f"{tmp_path}/with_softmax.hdf5")
    bilm.save(*files, softmax=softmax.state_dict())
    return files


class TestSoftmax:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
    def test_it_comes_back(self, bilm, softmax, tmp_path, dtype):
        """Oracle: the state that was written, rounded by torch; h5py's list of what is in the file."""
        weight_file = f"{tmp_path}/weights.hdf5"
        bilm.save(f"{tmp_path}/options.json", weight_file, softmax=softmax.state_dict(), dtype=dtype)
        with h5py.File(weight_file) as file:
            assert (file["softmax/W"].shape, file["softmax/b"].shape) == ((9, 6), (9,))
            assert all(file[key].dtype == str(dtype).removeprefix("torch.") for key in ("softmax/W", "softmax/b"))
            assert all(file[key].compression == "gzip" for key in ("softmax/W", "softmax/b"))
        again = LmSoftmax(9, 6)
        again.load_state_dict(read_softmax(weight_file, bilm.options))
        for name, value in softmax.state_dict().items():
            assert torch.equal(again.state_dict()[name], value.to(dtype).float()), name

    def test_there_may_be_none(self, bilm, files):
        """Oracle: `None`."""
        assert read_softmax(files[1], bilm.options) is None

    def test_the_bilm_in_the_same_file_is_read_as_before(self, bilm, files_with_softmax):
        """Oracle: the biLM that was written; AllenNLP's `Elmo`, which is the average of our layers."""
        from allennlp.modules.elmo import Elmo

        layers = Bilm.from_files(*files_with_softmax).requires_grad_(False)(SENTENCES).layers
        assert all(torch.equal(*pair) for pair in zip(layers, bilm(SENTENCES).layers, strict=True))
        elmo = Elmo(
            *files_with_softmax, num_output_representations=1, dropout=0.0, scalar_mix_parameters=[0.0, 0.0, 0.0]
        )
        theirs = elmo(sentences_to_character_ids(SENTENCES))["elmo_representations"][0]
        torch.testing.assert_close(torch.stack(layers).mean(0), theirs, rtol=0, atol=1e-5)

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("softmax/W", np.zeros((9, 7)), "'softmax/W' must have the shape (9, 6) by the options and the other keys"),
            ("softmax/W", np.zeros((8, 6)), "'softmax/W' must have the shape (9, 6) by the options and the other keys"),
            ("softmax/W", np.float32(1), "'softmax/W' must have the shape (9, 6) by the options and the other keys"),
            ("softmax/b", np.zeros(8), "'softmax/b' must have the shape (9,) by the options and the other keys"),
            ("softmax/b", np.zeros((9, 1)), "'softmax/b' must have the shape (9,) by the options and the other keys"),
            (
                "softmax/b",
                np.full(9, np.nan, np.float32),
                "'softmax/b' must hold finite numbers, but holds NaN or infinity",
            ),
            ("softmax/b", None, "a softmax must have softmax/W and softmax/b, but 'softmax/b' is missing"),
            ("softmax/W", None, "a softmax must have softmax/W and softmax/b, but 'softmax/W' is missing"),
        ],
    )
    def test_what_does_not_fit_is_not_read(self, bilm, files_with_softmax, key, value, message):
        """Oracle: the message, which must state the file, the key and the rule."""
        if value is None:
            with h5py.File(files_with_softmax[1], "r+") as file:
                del file[key]
        else:
            replace(files_with_softmax[1], key, value)
        with pytest.raises(ValueError, match=re.escape(f"{files_with_softmax[1]}: {message}")):
            read_softmax(files_with_softmax[1], bilm.options)

    def test_a_file_of_another_kind_is_refused(self, bilm, tmp_path):
        """Oracle: the message, which must say what the file should be."""
        (tmp_path / "weights.hdf5").write_bytes(b"no")
        with pytest.raises(ValueError, match=r"weights\.hdf5: a weight file must be HDF5"):
            read_softmax(tmp_path / "weights.hdf5", bilm.options)

    @pytest.mark.parametrize(
        ("softmax", "message"),
        [
            (
                {"embedding": torch.zeros(9, 6)},
                r"must have 'weight' and 'bias' to be written.* has 'embedding': omit it",
            ),
            (LmSoftmax(9, 7).state_dict(), r"'weight' of the softmax must have the shape \(9, 6\).* but has \(9, 7\)"),
        ],
    )
    def test_what_has_no_place_in_the_format_is_not_written(self, bilm, files, softmax, message):
        """Oracle: the message; the bytes of the file before."""
        before = Path(files[1]).read_bytes()
        with pytest.raises(ValueError, match=message):
            write_weights(files[1], bilm.state_dict(), bilm.options, softmax=softmax)
        assert Path(files[1]).read_bytes() == before

    def test_what_is_not_finite_is_not_written(self, bilm, softmax, tmp_path):
        """Oracle: the message, which must state the parameter; no file."""
        softmax.weight.data[2, 3] = 1e6
        with pytest.raises(ValueError, match=r"'weight' must hold finite numbers .* torch\.float16"):
            write_weights(
                tmp_path / "new.hdf5",
                bilm.state_dict(),
                bilm.options,
                softmax=softmax.state_dict(),
                dtype=torch.float16,
            )
        assert not (tmp_path / "new.hdf5").exists()
