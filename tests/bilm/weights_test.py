import dataclasses

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
        again = Bilm.from_files(*save(bilm, tmp_path_factory.mktemp("bilm")))
        assert again.options == bilm.options
        for name, value in bilm.state_dict().items():
            assert torch.equal(again.state_dict()[name], value), name

    def test_float16_rounds_the_weights_and_hardly_changes_the_layers(self, bilm, tmp_path):
        files = save(bilm, tmp_path, dtype=torch.float16)
        again = Bilm.from_files(*files)
        assert read(files[1], "char_embed").dtype == np.float16
        for name, value in bilm.state_dict().items():
            assert again.state_dict()[name].dtype == torch.float32
            assert torch.equal(again.state_dict()[name], value.half().float()), name
        for ours, expected in zip(again(SENTENCES).layers, bilm(SENTENCES).layers, strict=True):
            assert 0 < (ours - expected).abs().max() < 3e-3

    def test_a_262nd_character_is_ignored(self, bilm, files):
        """bilm-tf's files have an extra row that no text uses."""
        characters = read(files[1], "char_embed")
        replace(
            files[1],
            "char_embed",
            np.concatenate([characters, np.full((1, 3), 9.0, dtype=np.float32)]),
        )
        layers = Bilm.from_files(*files).requires_grad_(False)(SENTENCES).layers
        assert all(torch.equal(*pair) for pair in zip(layers, bilm(SENTENCES).layers, strict=True))

    # AllenNLP adds the forget gate's 1 to the bias while it is still float16, which rounds by up to
    # 2 ** -11.
    @pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float16, 1e-3)])
    def test_allennlp_reads_what_we_write(self, bilm, tmp_path, dtype, atol):
        """Compares AllenNLP's mix with equal weights with the average of our layers."""
        from allennlp.modules.elmo import Elmo

        files = save(bilm, tmp_path, dtype=dtype)
        elmo = Elmo(
            *files, num_output_representations=1, dropout=0.0, scalar_mix_parameters=[0.0, 0.0, 0.0]
        )
        theirs = elmo(BYTES.batch(SENTENCES))["elmo_representations"][0]
        ours = torch.stack(Bilm.from_files(*files)(SENTENCES).layers).mean(0)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


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
        files = save(bilm, tmp_path)
        lstms = [LSTM.format(direction, layer, "W_P_0") for direction in "01" for layer in "01"]
        for key in ["CNN_proj/W_proj", "CNN_proj/b_proj", *lstms]:
            replace(files[1], key, None)
        found = Bilm.from_files(*files).state_dict()
        assert all(torch.equal(found[name], value) for name, value in bilm.state_dict().items())


class TestWrongFiles:
    @pytest.mark.parametrize(
        ("other", "found"),
        [
            (dict(n_layers=3), LSTM.format(0, 2, "B")),
            (dict(n_highway=1), "CNN_high_1/W_carry"),
            (dict(filters=((1, 2), (3, 7))), "CNN/W_cnn_2"),
            (dict(filters=((1, 2), (4, 4), (7, 3))), "CNN/W_cnn_1"),
            (dict(character_dim=4), "char_embed"),
            (dict(cell_dim=9), LSTM.format(0, 0, "W_0")),
        ],
    )
    def test_an_error_names_options_of_a_different_bilm(self, files, other, found):
        with pytest.raises(ValueError, match=r"weights\.hdf5") as error:
            read_weights(files[1], dataclasses.replace(SMALL, **other))
        assert found in str(error.value)

    @pytest.mark.parametrize("is_virtual", [False, True])
    def test_numbers_in_a_different_file_are_not_read(self, files, is_virtual):
        replace(files[1], "CNN_proj/b_proj", None)
        layout = h5py.VirtualLayout((SMALL.projection_dim,), np.float32)
        layout[:] = h5py.VirtualSource("secret.hdf5", "numbers", layout.shape)
        with h5py.File(files[1], "r+") as file:
            if is_virtual:
                file.create_virtual_dataset("CNN_proj/b_proj", layout)
            else:
                file.create_dataset(
                    "CNN_proj/b_proj", layout.shape, np.float32, external="/etc/passwd"
                )
        with pytest.raises(ValueError, match=r"b_proj.*missing.*weights\.hdf5"):
            read_weights(files[1], SMALL)

    @pytest.mark.parametrize("name", ["weights.hdf5", "weights.safetensors"])
    @pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
    def test_an_error_names_a_truncated_file(self, bilm, tmp_path, name, share):
        bilm.save(tmp_path / "options.json", tmp_path / name)
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match=name):
            read_weights(tmp_path / name, bilm.options)


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
        found = read_softmax(path, bilm.options)
        assert all(torch.equal(found[name], value.half().float()) for name, value in state.items())
        weights = read_weights(path, bilm.options)
        assert all(
            torch.equal(weights[name], value.half().float())
            for name, value in bilm.state_dict().items()
        )

    def test_a_file_may_have_no_softmax(self, bilm, files):
        assert read_softmax(files[1], bilm.options) is None

    def test_an_error_names_a_softmax_of_a_different_shape(self, bilm, softmax, tmp_path):
        path = str(tmp_path / "weights.hdf5")
        bilm.save(tmp_path / "options.json", path, softmax=softmax.state_dict())
        with pytest.raises(ValueError, match="softmax/W"):
            read_softmax(path, dataclasses.replace(SMALL, projection_dim=7))
        replace(path, "softmax/b", None)
        with pytest.raises(ValueError, match=r"weights\.hdf5"):
            read_softmax(path, bilm.options)
