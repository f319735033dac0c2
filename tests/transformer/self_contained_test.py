import json

import pytest

from elmo_tasks.transformer.checkpoint import read_config, read_pieces
from elmo_tasks.transformer.self_contained import write_content


class TestWriteContent:
    def test_transformers_and_their_indexers_get_what_they_are_made_from(self, checkpoint):
        """Oracle: config, special pieces and tokenizer of the checkpoint; all other keys stay."""
        name = str(checkpoint("bert"))
        indexers = {"elmo": {"type": "elmo_transformer", "model_name": name}, "tokens": {"type": "single_id"}}
        config = {
            "readers": [{"token_indexers": indexers}],
            "model": {"bilm": {"type": "transformer", "model_name": name, "pooling": "first"}, "dropout": 0.5},
            "other": {"type": "transformer", "model_name": "not ours"},
        }
        write_content(config)
        pieces, special = read_pieces(name)
        assert config == {
            "readers": [
                {
                    "token_indexers": {
                        "elmo": {"type": "elmo_transformer", "model_name": name, "tokenizer": pieces.to_dict()},
                        "tokens": {"type": "single_id"},
                    }
                }
            ],
            "model": {
                "bilm": {
                    "type": "transformer",
                    "model_name": name,
                    "pooling": "first",
                    "config": read_config(name),
                    "special_pieces": special.to_dict(),
                    "pretrained_file": name,
                },
                "dropout": 0.5,
            },
            "other": {"type": "transformer", "model_name": "not ours"},
        }

    def test_what_is_there_stays(self, checkpoint):
        """Oracle: the same config after a second time, also without the checkpoint."""
        name = str(checkpoint("bert"))
        config = {
            "bilm": {"type": "transformer", "model_name": name},
            "i": {"type": "elmo_transformer", "model_name": name},
        }
        write_content(config)
        text = json.dumps(config)
        for part in config.values():
            part["model_name"] = "gone"
        write_content(config)
        assert json.dumps(config).replace('"gone"', json.dumps(name)) == text

    def test_a_checkpoint_that_is_not_there_is_an_error(self):
        """Oracle: the message names it."""
        with pytest.raises(ValueError, match=r"the transformer '/no/such/folder' must have config\.json"):
            write_content(
                {
                    "bilm": {"type": "transformer", "model_name": "/no/such/folder"},
                    "i": {"type": "elmo_transformer", "model_name": "/no/such/folder"},
                }
            )

    @pytest.mark.parametrize(
        ("indexer", "shown"),
        [
            ({"type": "elmo_transformer", "model_name": "roberta"}, "'roberta'"),
            # Each word's characters would be read as 50 pieces.
            ({"type": "elmo"}, "none"),
        ],
    )
    def test_words_of_another_indexer_are_an_error(self, checkpoint, indexer, shown):
        """Oracle: the message names both; the config stays as it is."""
        config = {
            "reader": {"token_indexers": {"elmo": indexer}},
            "model": {"bilm": {"type": "transformer", "model_name": "bert"}},
        }
        before = json.dumps(config)
        with pytest.raises(ValueError, match=rf"with its model_name \('bert'\), but the config has {shown}"):
            write_content(config)
        assert json.dumps(config) == before

    def test_a_folder_has_several_names(self, checkpoint, monkeypatch):
        """Oracle: no error; and an indexer with a tokenizer needs no name."""
        folder = checkpoint("bert")
        monkeypatch.chdir(folder.parent)
        for indexer in (f"./{folder.name}", f"{folder}/"):
            write_content(
                {
                    "token_indexers": {"elmo": {"type": "elmo_transformer", "model_name": indexer}},
                    "bilm": {"type": "transformer", "model_name": folder.name},
                }
            )
        write_content(
            {
                "token_indexers": {"elmo": {"type": "elmo_transformer", "tokenizer": {}}},
                "bilm": {"type": "transformer", "model_name": folder.name},
            }
        )

    def test_a_part_of_a_config_has_no_indexers(self, checkpoint):
        """Oracle: no error."""
        write_content({"bilm": {"type": "transformer", "model_name": str(checkpoint("bert"))}})

    def test_the_hub_has_two_names_for_the_same(self, checkpoint):
        """Oracle: no error; what both are made from is there already."""
        config = {
            "token_indexers": {"i": {"type": "elmo_transformer", "model_name": "hf://somebody/bert", "tokenizer": "t"}},
            "bilm": {"type": "transformer", "model_name": "somebody/bert", "config": {}},
        }
        before = json.dumps(config)
        write_content(config)
        assert json.dumps(config) == before
