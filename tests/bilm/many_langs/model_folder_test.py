"""Tests of the folder of a model of ELMoForManyLangs."""

import json

import pytest

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.bilm.many_langs.model_folder import is_model_folder, read_options
from elmo_tasks.bilm.options import DictionaryOptions
from tests.bilm.many_langs.models import CHARACTERS, WORDS, write_model


def network_changed(folder, part, **values):
    """Writes the description of the network with other values; `...` for no value."""
    file = folder / "cnn_small.json"
    network = json.loads(file.read_text())
    for key, value in values.items():
        network[part].pop(key) if value is ... else network[part].update({key: value})
    file.write_text(json.dumps(network))


class TestReadOptions:
    def test_they_are_those_of_the_files(self, tmp_path):
        """Oracle: by hand."""
        found = read_options(write_model(tmp_path / "model") / "config.json")
        assert found == BilmOptions(
            cell_dim=5,
            projection_dim=6,
            cell_clip=0.6,
            projection_clip=0.7,
            character_dim=4,
            filters=((1, 3), (2, 2), (4, 3)),
            dictionaries=DictionaryOptions(
                n_characters=len(CHARACTERS), n_words=len(WORDS), word_dim=3, max_characters=10
            ),
        )
        assert BilmOptions.from_dict(found.to_dict()) == found

    @pytest.mark.parametrize("name", ["cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json"])
    def test_the_network_of_the_published_models_is_known(self, tmp_path, name):
        """Oracle: by hand: the paper's biLM with characters of 50 units and words of 100. Archives lack the file."""
        folder = write_model(tmp_path / "model", network=None)
        (folder / "config.json").write_text(json.dumps({"config_path": f"/users4/conll18st/elmo/configs/{name}"}))
        found = read_options(folder / "config.json")
        sizes = DictionaryOptions(n_characters=len(CHARACTERS), n_words=len(WORDS), word_dim=100)
        assert found == BilmOptions(character_dim=50, dictionaries=sizes)

    def test_no_clip_may_be_null_or_zero(self, tmp_path):
        """Oracle: by hand, as the original takes both."""
        folder = write_model(tmp_path / "model")
        network_changed(folder, "encoder", cell_clip=0, proj_clip=None)
        found = read_options(folder / "config.json")
        assert (found.cell_clip, found.projection_clip) == (None, None)

    @pytest.mark.parametrize("is_absolute", [True, False])
    def test_the_network_is_in_the_folder(self, tmp_path, is_absolute):
        """Oracle: the message: a file outside is not read, whoever made the model; one below the folder is."""
        folder = write_model(tmp_path / "model")
        (tmp_path / "outside.json").write_bytes((folder / "cnn_small.json").read_bytes())
        path = str(tmp_path / "outside.json") if is_absolute else "../outside.json"
        (folder / "config.json").write_text(json.dumps({"config_path": path}))
        with pytest.raises(FileNotFoundError, match=r"has no outside\.json"):
            read_options(folder / "config.json")
        (folder / "configs").mkdir()
        (folder / "cnn_small.json").rename(folder / "configs" / "small.json")
        (folder / "config.json").write_text('{"config_path": "configs/small.json"}')
        assert read_options(folder / "config.json").cell_dim == 5

    @pytest.mark.parametrize("name", ["char.dic", "word.dic", "cnn_small.json"])
    def test_a_missing_file_is_named(self, tmp_path, name):
        """Oracle: the file in the message."""
        folder = write_model(tmp_path / "model")
        (folder / name).unlink()
        with pytest.raises(FileNotFoundError, match=rf"{name}.*|has no {name}"):
            read_options(folder / "config.json")

    @pytest.mark.parametrize(
        ("part", "values", "message"),
        [
            ("encoder", {"name": "lstm"}, "the 'encoder' of a model must be 'elmo', .* but is 'lstm'"),
            ("token_embedder", {"name": "lstm"}, "must be 'cnn', .* but is 'lstm'"),
            ("encoder", {"dim": ...}, "the key 'dim' must be there, but is missing"),
            ("token_embedder", {"char_dim": -1}, "'char_dim' must be a whole number of at least 0, but is -1"),
            ("token_embedder", {"word_dim": "3"}, "'word_dim' must be"),
            ("token_embedder", {"char_dim": 0, "word_dim": 0}, "must have characters, or words with an embedding"),
            ("token_embedder", {"filters": [[11, 4]]}, r"a width \(1 to 10\)"),
            ("token_embedder", {"max_characters_per_token": 6}, "must be a whole number of at least 7, but is 6"),
            ("token_embedder", {"max_characters_per_token": 10**9}, "must be at most 10,000"),
            ("token_embedder", {"activation": "gelu"}, "but is 'gelu'"),
            ("encoder", {"dim": 2**40}, "must have at most"),
        ],
    )
    def test_what_is_wrong_in_the_network_is_named(self, tmp_path, part, values, message):
        """Oracle: the file and the rule in the message."""
        folder = write_model(tmp_path / "model")
        network_changed(folder, part, **values)
        with pytest.raises(ValueError, match=rf"cnn_small\.json: .*{message}"):
            read_options(folder / "config.json")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("[]", "must hold a JSON object"),
            ("{", "must be JSON"),
            ("[" * 50_000, "must be JSON"),
            ("{}", "'config_path'"),
        ],
    )
    def test_what_is_wrong_in_the_config_is_named(self, tmp_path, content, message):
        """Oracle: the rule in the message."""
        folder = write_model(tmp_path / "model")
        (folder / "config.json").write_text(content)
        with pytest.raises(ValueError, match=message):
            read_options(folder / "config.json")


class TestIsModelFolder:
    def test_one_file_is_enough_to_know_it(self, tmp_path):
        """Oracle: by hand; the public format takes precedence, and other folders have a `config.json` too."""
        folder = write_model(tmp_path / "model")
        assert is_model_folder(folder)
        for name in ("encoder.pkl", "token_embedder.pkl"):
            (folder / name).unlink()
        assert is_model_folder(folder)
        (folder / "config.json").write_text('{"model": {}}')
        assert not is_model_folder(folder)
        (folder / "encoder.pkl").touch()
        assert is_model_folder(folder)
        (folder / "options.json").touch()
        assert not is_model_folder(folder)
