import json
import os
import pickle
import shutil

import pytest
import requests
import safetensors.torch
import torch
import transformers

from elmo_tasks.transformer.checkpoint import load_network, make_network, read_config, read_pieces, size_of
from elmo_tasks.transformer.transformer import Transformer
from elmo_tasks.transformer.word_pieces import SpecialPieces
from tests.transformer.checkpoints import FAMILIES


class Evil:
    """What runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def bert(checkpoint, tmp_path):
    """A copy of a checkpoint that may be damaged."""
    return shutil.copytree(checkpoint("bert"), tmp_path / "bert")


@pytest.fixture
def no_network(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("transformers.utils.hub._is_offline_mode", True)


@pytest.fixture
def requests_without_answer(monkeypatch):
    """Every request fails, as without a network; the list of those that were made."""
    made = []

    def request(self, method, url, **kwargs):
        made.append(url)
        raise requests.ConnectionError("Name or service not known")

    monkeypatch.setattr("requests.Session.request", request)
    return made


def change_config(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def error_of(function, *arguments):
    with pytest.raises(ValueError) as error:
        function(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


class TestReading:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_the_config_makes_the_same_network(self, checkpoint, family):
        """Oracle: the library's own config, class and number of layers and units; the weights have the same names."""
        folder = str(checkpoint(family))
        config = read_config(folder)
        of_library = transformers.AutoConfig.from_pretrained(folder)
        assert size_of(config) == (of_library.num_hidden_layers + 1, of_library.hidden_size) == (3, 16)
        network = make_network(json.loads(json.dumps(config)))
        loaded = load_network(folder, config)
        assert type(network) is type(loaded)
        assert {name: value.shape for name, value in network.state_dict().items()} == {
            name: value.shape for name, value in loaded.state_dict().items()
        }

    def test_a_type_with_other_layers_is_an_error(self):
        """Oracle: the message: Funnel's layers are shorter than its sentences. Its config names one of two classes."""
        config = json.loads(transformers.FunnelConfig(d_model=16, block_sizes=[1], n_head=2).to_json_string())
        message = error_of(Transformer, make_network(config), config, SpecialPieces((), (), None))
        assert "must give 2 layers with 16 units for each piece" in message

    @pytest.mark.parametrize("name", ["~nobody/x", "a" * 300])
    def test_a_name_that_is_no_path(self, name):
        """Oracle: an error in one line, for the tokenizer as for the config."""
        for read in (read_pieces, read_config):
            assert "must have" in error_of(read, name)

    def test_another_tokenizer_in_the_folder_is_read(self, bert):
        """Oracle: the library's, after its file has become another."""
        before = read_pieces(str(bert))[0](["the"])
        file = bert / "tokenizer.json"
        content = json.loads(file.read_text())
        vocabulary = content["model"]["vocab"]
        piece = next(piece for piece, number in vocabulary.items() if number == before[0][0])
        other = next(other for other, number in vocabulary.items() if number > 20 and other != piece)
        vocabulary[piece], vocabulary[other] = vocabulary[other], vocabulary[piece]
        file.write_text(json.dumps(content))
        assert read_pieces(str(bert))[0](["the"])[0][0] == vocabulary[piece] != before[0][0]

    def test_a_folder_has_a_relative_name_too(self, bert, monkeypatch):
        """Oracle: the config by its absolute name."""
        monkeypatch.chdir(bert.parent)
        assert read_config("bert") == read_config(str(bert)) == read_config("./bert")

    def test_a_folder_is_not_read_in_place_of_the_hub(self, bert, monkeypatch):
        """Oracle: the message; the library prefers a folder of the same name."""
        monkeypatch.chdir(bert.parent)
        with pytest.raises(
            ValueError, match="there is a folder 'bert' here, which the library would read in place of the hub's"
        ):
            read_config("hf://bert")

    @pytest.mark.parametrize("network", ["no_network", "requests_without_answer"])
    def test_a_checkpoint_on_the_hub_is_read_from_its_cache(self, bert, monkeypatch, tmp_path, network, request):
        """Oracle: the config and the weights of the folder; the cache is laid out as the hub's client does it."""
        request.getfixturevalue(network)
        home = tmp_path / "hub"
        snapshot = home / "models--somebody--tiny-bert" / "snapshots" / ("0" * 40)
        snapshot.mkdir(parents=True)
        for file in bert.iterdir():
            shutil.copy(file, snapshot)
        (snapshot.parent.parent / "refs").mkdir()
        (snapshot.parent.parent / "refs" / "main").write_text("0" * 40)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(home))
        monkeypatch.setattr("transformers.utils.hub.TRANSFORMERS_CACHE", str(home), raising=False)
        for name in ("somebody/tiny-bert", "hf://somebody/tiny-bert"):
            assert read_config(name) == read_config(str(bert))
        found, expected = (load_network(name, read_config(name)).state_dict() for name in (name, str(bert)))
        assert all(torch.equal(found[key], value) for key, value in expected.items())

    def test_safetensors_take_precedence_over_a_pickle(self, bert, tmp_path):
        """Oracle: the weights of the safetensors; what is in the pickle is not run."""
        config = read_config(str(bert))
        expected = load_network(str(bert), config).state_dict()
        (bert / "pytorch_model.bin").write_bytes(pickle.dumps(Evil(tmp_path / "ran")))
        found = load_network(str(bert), config).state_dict()
        assert all(torch.equal(found[name], value) for name, value in expected.items())
        assert not (tmp_path / "ran").exists()

    def test_a_pickle_of_tensors_alone_is_read(self, bert):
        """Oracle: the weights of the safetensors that were replaced."""
        config = read_config(str(bert))
        expected = load_network(str(bert), config).state_dict()
        weights = safetensors.torch.load_file(bert / "model.safetensors")
        (bert / "model.safetensors").unlink()
        torch.save(weights, bert / "pytorch_model.bin")
        found = load_network(str(bert), config).state_dict()
        assert all(torch.equal(found[name], value) for name, value in expected.items())

    def test_weights_in_half_precision_are_float32(self, bert):
        """Oracle: the type, and the values rounded."""
        config = read_config(str(bert))
        expected = load_network(str(bert), config).state_dict()
        transformers.AutoModel.from_pretrained(bert).half().save_pretrained(bert)
        found = load_network(str(bert), read_config(str(bert))).state_dict()
        for name, value in expected.items():
            if value.is_floating_point():
                assert torch.equal(found[name], value.half().float())


class TestBadCheckpoints:
    def test_a_name_that_is_no_folder_and_not_reachable(self, no_network):
        """Oracle: the message says name, rule and remedy."""
        for function in (read_config, read_pieces):
            message = error_of(function, "somebody/no-such-model")
            assert "the transformer 'somebody/no-such-model' must have" in message
            assert "Give a folder that has it, or the name of a model on a hub that can be reached" in message
        assert "it is neither a folder nor a name on the Hugging Face hub" in error_of(read_config, "/no/such/folder")

    def test_a_hub_that_does_not_answer_is_asked_once(self, requests_without_answer):
        """Oracle: one request, where the library would make six and wait between them; the same message."""
        message = error_of(read_config, "somebody/no-such-model")
        assert "Give a folder that has it, or the name of a model on a hub that can be reached" in message
        assert len(requests_without_answer) == 1

    @pytest.mark.parametrize("content", [None, "{}"])
    def test_a_folder_without_a_type_of_model(self, tmp_path, content):
        """Oracle: the message, for a folder in whose name the library finds a type."""
        folder = tmp_path / "my-bert"
        folder.mkdir()
        if content is not None:
            (folder / "config.json").write_text(content)
        assert "must have config.json" in error_of(read_config, str(folder))

    def test_a_damaged_config(self, bert):
        """Oracle: the message."""
        (bert / "config.json").write_text("{")
        assert "must have config.json" in error_of(read_config, str(bert))

    @pytest.mark.parametrize("model_type", ["resnet", "no-such-type", 3])
    def test_a_model_that_reads_no_words_or_is_unknown(self, bert, model_type):
        """Oracle: one line, from whichever step finds out first."""
        change_config(bert, model_type=model_type)

        def read():
            make_network(read_config(str(bert)))

        assert "transformer" in error_of(read)

    def test_code_in_a_checkpoint_is_not_run(self, bert, tmp_path):
        """Oracle: the message; the code leaves no trace; nothing is asked on the terminal."""
        change_config(bert, model_type="own", auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"})
        (bert / "own.py").write_text(f"import os; os.mkdir({str(tmp_path / 'ran')!r})")
        assert "code in a checkpoint is never run" in error_of(read_config, str(bert))
        assert not (tmp_path / "ran").exists()

    def test_code_next_to_a_known_model_is_ignored(self, bert, tmp_path):
        """Oracle: the config without it."""
        expected = read_config(str(bert))
        change_config(bert, auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"})
        (bert / "own.py").write_text(f"import os; os.mkdir({str(tmp_path / 'ran')!r})")
        assert read_config(str(bert)) == expected
        load_network(str(bert), expected)
        assert not (tmp_path / "ran").exists()

    def test_a_pickle_with_code_is_not_run(self, bert, tmp_path):
        """Oracle: the message; no trace of the code."""
        config = read_config(str(bert))
        (bert / "model.safetensors").unlink()
        torch.save({"a": Evil(tmp_path / "ran")}, bert / "pytorch_model.bin")
        assert "must have weights (model.safetensors)" in error_of(load_network, str(bert), config)
        assert not (tmp_path / "ran").exists()

    def test_damaged_weights(self, bert):
        """Oracle: the message."""
        config = read_config(str(bert))
        (bert / "model.safetensors").write_bytes(b"damaged")
        assert "must have weights (model.safetensors)" in error_of(load_network, str(bert), config)
        (bert / "model.safetensors").unlink()
        assert "must have weights (model.safetensors)" in error_of(load_network, str(bert), config)

    def test_weights_of_another_shape_or_without_a_layer(self, bert):
        """Oracle: the message; in the second case it names one that is missing."""
        config = read_config(str(bert))
        assert "must have weights" in error_of(load_network, str(bert), {**config, "intermediate_size": 8})
        message = error_of(load_network, str(bert), {**config, "num_hidden_layers": 3})
        assert "16 weights are missing, encoder.layer.2." in message

    def test_a_tokenizer_without_offsets(self, tmp_path):
        """Oracle: the message names the class; that of a model whose tokenizer the library has in Python alone."""
        transformers.CTRLConfig(n_embd=16, n_layer=2, n_head=2, dff=16).save_pretrained(tmp_path)
        (tmp_path / "vocab.json").write_text(json.dumps({"<unk>": 0, "a</w>": 1}))
        (tmp_path / "merges.txt").write_text("#version\n")
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CTRLTokenizer"}))
        message = error_of(read_pieces, str(tmp_path))
        assert "a CTRLTokenizer, has no offsets: use a checkpoint with a tokenizer.json" in message

    def test_a_folder_without_a_tokenizer(self, bert):
        """Oracle: the message."""
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            (bert / name).unlink()
        for file in bert.glob("vocab*"):
            file.unlink()
        assert "must have a tokenizer.json" in error_of(read_pieces, str(bert))
