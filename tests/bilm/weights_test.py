import dataclasses
from itertools import product

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.bilm.weights import read_arrays, read_softmax, read_weights, weight_names
from tests.bilm.helpers import SMALL, bilm_options, random_bilm, save
from tests.paths import REFERENCE

SENTENCES = [["The", "cat", "sat"], ["Encyclopædia"]]
LSTM = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/{}"


def replace(weight_file: str, key: str, value: np.ndarray | None) -> None:
    """Replaces an array in a file; `None` removes it."""
    with h5py.File(weight_file, "r+") as file:
        if key in file:
            del file[key]
        if value is not None:
            file[key] = value


def read(weight_file: str, key: str) -> np.ndarray:
    with h5py.File(weight_file) as file:
        return file[key][...]


class TestWeightNames:
    def test_the_names_are_the_public_ones(self):
        options = dataclasses.replace(SMALL, filters=((1, 2), (3, 4)), n_highway=1, n_layers=1)
        shapes = {
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
        }
        for direction in (0, 1):
            shapes[LSTM.format(direction, 0, "W_0")] = (12, 32)
            shapes[LSTM.format(direction, 0, "B")] = (32,)
            shapes[LSTM.format(direction, 0, "W_P_0")] = (8, 6)
        assert {name.key: name.shape for name in weight_names(options)} == shapes

    @given(bilm_options())
    def test_there_is_a_row_for_each_parameter(self, options):
        parameters = [name.parameter for name in weight_names(options)]
        assert sorted(parameters) == sorted(Bilm(options).state_dict())

    def test_every_array_of_the_original_file_is_read(self):
        folder = REFERENCE / "bilm_tf"
        bilm = Bilm.from_files(folder / "options.json", folder / "lm_weights.hdf5")
        arrays = read_arrays(folder / "lm_weights.hdf5")
        assert arrays.keys() == {name.key for name in weight_names(bilm.options)}


class TestRoundTrip:
    @given(bilm_options())
    def test_float32_round_trips_bit_for_bit(self, tmp_path_factory, options):
        bilm = random_bilm(options)
        options_file, weights = save(bilm, tmp_path_factory.mktemp("bilm"))
        read_back = Bilm.from_files(options_file, weights)
        assert read_back.options == bilm.options
        for name, value in bilm.state_dict().items():
            assert torch.equal(read_back.state_dict()[name], value), name

    def test_float16_rounds_the_weights_and_hardly_changes_the_layers(self, bilm, tmp_path):
        options, weights = save(bilm, tmp_path, dtype=torch.float16)
        read_back = Bilm.from_files(options, weights)
        assert read(weights, "char_embed").dtype == np.float16
        state = read_back.state_dict()
        for name, value in bilm.state_dict().items():
            assert state[name].dtype == torch.float32
            assert torch.equal(state[name], value.half().float()), name
        layers = read_back(SENTENCES).layers
        for layer, expected in zip(layers, bilm(SENTENCES).layers, strict=True):
            assert 0 < (layer - expected).abs().max() < 3e-3

    def test_a_262nd_character_is_ignored(self, bilm, files):
        """bilm-tf's files have an extra row that no text uses."""
        options, weights = files
        extra_row = np.full((1, 3), 9.0, dtype=np.float32)
        characters = np.concatenate([read(weights, "char_embed"), extra_row])
        replace(weights, "char_embed", characters)
        layers = Bilm.from_files(options, weights).requires_grad_(False)(SENTENCES).layers
        for layer, expected in zip(layers, bilm(SENTENCES).layers, strict=True):
            assert torch.equal(layer, expected)

    # AllenNLP adds the forget gate's 1 to the bias while it is still float16, which rounds by up to
    # 2 ** -11.
    @pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float16, 1e-3)])
    def test_allennlp_reads_what_we_write(self, bilm, tmp_path, dtype, atol):
        """Compares AllenNLP's mix with equal weights with the average of our layers."""
        from allennlp.modules.elmo import Elmo

        options, weights = save(bilm, tmp_path, dtype=dtype)
        elmo = Elmo(
            options,
            weights,
            num_output_representations=1,
            dropout=0.0,
            scalar_mix_parameters=[0.0, 0.0, 0.0],
        )
        (expected,) = elmo(BYTES.batch(SENTENCES))["elmo_representations"]
        layers = Bilm.from_files(options, weights)(SENTENCES).layers
        torch.testing.assert_close(torch.stack(layers).mean(0), expected, rtol=0, atol=atol)


class TestShapesOfBilmTf:
    """bilm-tf omits projections that would not change the number of units."""

    OPTIONS = BilmOptions(
        cell_dim=6,
        projection_dim=6,
        n_layers=2,
        cell_clip=0.8,
        character_dim=3,
        filters=((1, 2), (3, 4)),
        n_highway=1,
    )

    def test_a_projection_that_is_missing_is_the_identity(self, tmp_path):
        bilm = random_bilm(self.OPTIONS, std=0.5)
        for lstm in (*bilm.forward_layers, *bilm.backward_layers):
            lstm.projection.copy_(torch.eye(6))
        bilm.character_encoder.projection.weight.copy_(torch.eye(6))
        bilm.character_encoder.projection.bias.zero_()
        options, weights = save(bilm, tmp_path)
        replace(weights, "CNN_proj/W_proj", None)
        replace(weights, "CNN_proj/b_proj", None)
        for direction, layer in product((0, 1), repeat=2):
            replace(weights, LSTM.format(direction, layer, "W_P_0"), None)
        state = Bilm.from_files(options, weights).state_dict()
        for name, value in bilm.state_dict().items():
            assert torch.equal(state[name], value), name


class TestWrongFiles:
    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            (dict(n_layers=3), LSTM.format(0, 2, "B")),
            (dict(n_highway=1), "CNN_high_1/W_carry"),
            (dict(filters=((1, 2), (3, 7))), "CNN/W_cnn_2"),
            (dict(filters=((1, 2), (4, 4), (7, 3))), "CNN/W_cnn_1"),
            (dict(character_dim=4), "char_embed"),
            (dict(cell_dim=9), LSTM.format(0, 0, "W_0")),
        ],
    )
    def test_an_error_names_options_of_a_different_bilm(self, files, changes, named):
        _, weights = files
        with pytest.raises(ValueError, match=r"weights\.hdf5") as error:
            read_weights(weights, dataclasses.replace(SMALL, **changes))
        assert named in str(error.value)

    @pytest.mark.parametrize("is_virtual", [False, True])
    def test_numbers_in_a_different_file_are_not_read(self, files, is_virtual):
        _, weights = files
        key = "CNN_proj/b_proj"
        replace(weights, key, None)
        layout = h5py.VirtualLayout((SMALL.projection_dim,), np.float32)
        layout[:] = h5py.VirtualSource("secret.hdf5", "numbers", layout.shape)
        with h5py.File(weights, "r+") as file:
            if is_virtual:
                file.create_virtual_dataset(key, layout)
            else:
                file.create_dataset(key, layout.shape, np.float32, external="/etc/passwd")
        with pytest.raises(ValueError, match=r"b_proj.*missing.*weights\.hdf5"):
            read_weights(weights, SMALL)

    @pytest.mark.parametrize("name", ["weights.hdf5", "weights.safetensors"])
    @pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
    def test_an_error_names_a_truncated_file(self, bilm, tmp_path, name, share):
        path = tmp_path / name
        bilm.save(tmp_path / "options.json", path)
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match=name):
            read_weights(path, bilm.options)


class TestSoftmax:
    @pytest.fixture
    def softmax(self, bilm):
        torch.manual_seed(7)
        softmax = LmSoftmax(9, bilm.options.projection_dim, n_samples=4)
        torch.nn.init.normal_(softmax.bias)
        return softmax

    @pytest.mark.parametrize("name", ["weights.hdf5", "weights.safetensors"])
    def test_it_is_read_back_together_with_the_bilm(self, bilm, softmax, tmp_path, name):
        path = tmp_path / name
        state = softmax.state_dict()
        bilm.save(tmp_path / "options.json", path, softmax=state, dtype=torch.float16)
        softmax_read = read_softmax(path, bilm.options)
        for parameter, value in state.items():
            assert torch.equal(softmax_read[parameter], value.half().float()), parameter
        weights_read = read_weights(path, bilm.options)
        for parameter, value in bilm.state_dict().items():
            assert torch.equal(weights_read[parameter], value.half().float()), parameter

    def test_a_file_may_have_no_softmax(self, bilm, files):
        _, weights = files
        assert read_softmax(weights, bilm.options) is None

    def test_an_error_names_a_softmax_of_a_different_shape(self, bilm, softmax, tmp_path):
        path = str(tmp_path / "weights.hdf5")
        bilm.save(tmp_path / "options.json", path, softmax=softmax.state_dict())
        with pytest.raises(ValueError, match="softmax/W"):
            read_softmax(path, dataclasses.replace(SMALL, projection_dim=7))
        replace(path, "softmax/b", None)
        with pytest.raises(ValueError, match=r"weights\.hdf5"):
            read_softmax(path, bilm.options)
