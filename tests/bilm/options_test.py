import copy
import dataclasses
import json

import pytest
from hypothesis import given

from elmo_tasks.bilm import BilmOptions
from tests.bilm.helpers import SMALL, bilm_options

# As bilm-tf writes them, with keys that only matter in training.
PUBLIC = {
    "all_clip_norm_val": 10.0,
    "batch_size": 128,
    "bidirectional": True,
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 16},
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "max_characters_per_token": 50,
        "n_characters": 262,
        "n_highway": 2,
    },
    "dropout": 0.1,
    "lstm": {
        "cell_clip": 3,
        "dim": 4096,
        "n_layers": 2,
        "proj_clip": 3,
        "projection_dim": 512,
        "use_skip_connections": True,
    },
    "n_epochs": 10,
    "n_tokens_vocab": 793471,
}


def changed(part: str, **values: object) -> dict:
    """`PUBLIC` with different values in a part; `...` removes a key."""
    options = copy.deepcopy(PUBLIC)
    for key, value in values.items():
        if value is ...:
            del options[part][key]
        else:
            options[part][key] = value
    return options


class TestBilmOptions:
    def test_the_defaults_are_the_model_of_the_paper(self):
        """
        Oracle: the `options.json` published with the paper's weights, without the training keys.
        """
        assert BilmOptions.from_dict(PUBLIC) == BilmOptions()
        saved = {"lstm": PUBLIC["lstm"], "char_cnn": PUBLIC["char_cnn"]}
        assert BilmOptions().to_dict() == saved
        assert BilmOptions().output_dim == 1024
        assert BilmOptions().n_filters == 2048

    @given(bilm_options())
    def test_writing_and_reading_changes_nothing(self, options):
        written = json.dumps(options.to_dict())
        read = BilmOptions.from_dict(json.loads(written))
        assert read == options
        assert hash(read) == hash(options)

    def test_a_file_holds_the_options(self, tmp_path):
        options = dataclasses.replace(SMALL, residual=False, cell_clip=None)
        options.save(tmp_path / "options.json")
        assert BilmOptions.from_file(tmp_path / "options.json") == options

    @pytest.mark.parametrize(
        ("options", "values"),
        [
            (changed("lstm", n_layers=...), {"n_layers": 1}),
            (
                changed("lstm", cell_clip=..., proj_clip=...),
                {"cell_clip": None, "projection_clip": None},
            ),
            (changed("lstm", use_skip_connections=...), {"residual": False}),
            (changed("char_cnn", n_highway=...), {"n_highway": 0}),
            (changed("char_cnn", n_highway=None), {"n_highway": 0}),
            (changed("char_cnn", n_characters=261), {}),
        ],
    )
    def test_keys_that_bilm_tf_does_not_require_have_defaults(self, options, values):
        assert BilmOptions.from_dict(options) == dataclasses.replace(BilmOptions(), **values)

    @pytest.mark.parametrize(
        ("content", "named"),
        [
            (json.dumps(changed("lstm", dim=...)), "dim"),
            ('{"lstm": {}}', "char_cnn"),
            (json.dumps(changed("char_cnn", n_characters=300)), "300"),
            (json.dumps(changed("char_cnn", max_characters_per_token=30)), "30"),
            (json.dumps(changed("char_cnn", activation="selu")), "selu"),
            (json.dumps(changed("char_cnn", filters=[1, 2])), "options of a biLM"),
            (
                json.dumps(changed("lstm", n_layers=10**9)),
                "from 0 to 64 as n_layers, got 1000000000",
            ),
            (json.dumps(changed("char_cnn", n_highway=10**9)), "n_highway"),
            (json.dumps(changed("lstm", dim=10**12)), "dim, got 1000000000000"),
            (json.dumps(changed("lstm", projection_dim="512")), "projection_dim, got '512'"),
            (json.dumps(changed("lstm", n_layers=-1)), "n_layers"),
            (json.dumps(changed("lstm", n_layers=2.0)), "n_layers"),
            (json.dumps(changed("lstm", cell_clip="3")), "cell_clip, got '3'"),
            (
                json.dumps(changed("lstm", dim=60_000, projection_dim=60_000)),
                "at most 2,147,483,648 weights",
            ),
            (json.dumps(changed("char_cnn", filters=[[1, 1]] * 65)), "filters"),
            (json.dumps({**PUBLIC, "dictionaries": {"n_words": 10**12, "word_dim": 1}}), "n_words"),
            (json.dumps({**PUBLIC, "dictionaries": {"n_words": [1]}}), "n_words"),
            ("[]", "options of a biLM"),
            ("{", "JSON"),
        ],
    )
    def test_an_error_names_the_wrong_file(self, tmp_path, content, named):
        (tmp_path / "my_options.json").write_text(content)
        with pytest.raises(ValueError, match=r"my_options\.json") as error:
            BilmOptions.from_file(tmp_path / "my_options.json")
        assert named in str(error.value)
