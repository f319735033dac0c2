import copy
import dataclasses
import json
import re

import pytest
from hypothesis import given, settings

from elmo_tasks.bilm import Bilm, BilmOptions
from tests.bilm.helpers import SMALL, bilm_options

# As bilm-tf writes it, with keys that only matter to its training.
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
REQUIRED = [
    "lstm",
    "lstm.dim",
    "lstm.projection_dim",
    "lstm.n_layers",
    "lstm.cell_clip",
    "lstm.proj_clip",
    "lstm.use_skip_connections",
    "char_cnn",
    "char_cnn.embedding",
    "char_cnn.embedding.dim",
    "char_cnn.filters",
    "char_cnn.n_highway",
    "char_cnn.activation",
    "char_cnn.n_characters",
    "char_cnn.max_characters_per_token",
]


def changed(key: str, **value: object) -> dict:
    """`PUBLIC` with another value under a dotted key; without the key where no `value` is given."""
    options = copy.deepcopy(PUBLIC)
    *path, last = key.split(".")
    place = options
    for part in path:
        place = place[part]
    if value:
        place[last] = value["value"]
    else:
        del place[last]
    return options


class TestBilmOptions:
    def test_the_defaults_are_the_model_of_the_paper(self):
        """Oracle: the `options.json` that was published with the paper's weights."""
        assert BilmOptions.from_dict(PUBLIC) == BilmOptions()
        assert BilmOptions().output_dim == 1024
        assert BilmOptions().n_filters == 2048

    def test_it_is_written_as_the_public_format_says(self):
        """Oracle: the published file, without the keys of bilm-tf's training."""
        assert BilmOptions().to_dict() == {key: PUBLIC[key] for key in ("lstm", "char_cnn")}

    @settings(max_examples=50)
    @given(bilm_options())
    def test_writing_and_reading_changes_nothing(self, options):
        """Oracle: the options themselves, after a round trip through JSON text."""
        assert BilmOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options

    @pytest.mark.parametrize("residual", [True, False])
    def test_a_file_holds_the_options(self, tmp_path, residual):
        """Oracle: the options themselves, after a round trip through a file."""
        options = dataclasses.replace(SMALL, residual=residual, cell_clip=None)
        options.save(tmp_path / "options.json")
        assert BilmOptions.from_file(tmp_path / "options.json") == options
        assert BilmOptions.from_file(str(tmp_path / "options.json")) == options

    def test_a_settled_start_is_written_and_zero_is_not(self):
        """Oracle: the published file has no such key; a round trip."""
        settled = dataclasses.replace(SMALL, start_state="settled")
        assert settled.to_dict()["lstm"] == {**SMALL.to_dict()["lstm"], "start_state": "settled"}
        assert BilmOptions.from_dict(settled.to_dict()) == settled != SMALL
        assert "start_state" not in SMALL.to_dict()["lstm"]
        assert BilmOptions.from_dict(changed("lstm.start_state", value="zero")) == BilmOptions()

    def test_a_start_state_beside_lstm_is_refused(self):
        """Oracle: the message; it had no effect there."""
        with pytest.raises(ValueError, match="start_state must be in 'lstm'"):
            BilmOptions.from_dict({**SMALL.to_dict(), "start_state": "settled"})

    @pytest.mark.parametrize("clip", [3, 3.0, 0.5, None])
    def test_a_clip_is_a_whole_number_or_a_fraction_or_null(self, clip):
        """Oracle: the value in the file."""
        assert BilmOptions.from_dict(changed("lstm.cell_clip", value=clip)).cell_clip == clip
        assert BilmOptions.from_dict(changed("lstm.proj_clip", value=clip)).projection_clip == clip

    def test_261_and_262_characters_mean_the_same_model(self):
        """Oracle: the options read with 262."""
        assert BilmOptions.from_dict(changed("char_cnn.n_characters", value=261)) == BilmOptions()

    @pytest.mark.parametrize("key", REQUIRED)
    def test_a_missing_key_is_named_with_its_file(self, tmp_path, key):
        """Oracle: the message."""
        file = tmp_path / "my_options.json"
        file.write_text(json.dumps(changed(key)))
        with pytest.raises(ValueError, match=rf"{re.escape(str(file))}: .*'{re.escape(key)}'.* missing"):
            BilmOptions.from_file(file)

    @pytest.mark.parametrize(
        ("key", "value", "found"),
        [
            *(("lstm.dim", value, repr(value)) for value in (0, -4, 2.5, "64", True, None, [64])),
            *(("lstm.projection_dim", value, repr(value)) for value in (0, 0.5, None)),
            *(("lstm.n_layers", value, repr(value)) for value in (0, 2.0, "2", None)),
            *(("lstm.cell_clip", value, repr(value)) for value in (-3, 0, -0.5, float("nan"), "3", True, [3])),
            *(("lstm.proj_clip", value, repr(value)) for value in (-3, 0, -0.5, float("nan"), "3", True, [3])),
            *(("lstm.start_state", value, repr(value)) for value in ("one", "Settled", None, 0, True)),
            *(("char_cnn.embedding.dim", value, repr(value)) for value in (0, "16", None)),
            *(("char_cnn.n_highway", value, repr(value)) for value in (-1, 1.5, True, None)),
            *(("char_cnn.activation", value, repr(value)) for value in ("selu", "ReLU", None, 1)),
            *(("char_cnn.n_characters", value, repr(value)) for value in (260, 263, "262", None)),
            *(("char_cnn.max_characters_per_token", value, repr(value)) for value in (49, 51, "50", None)),
            *(
                ("char_cnn.filters", value, repr(value))
                for value in (
                    [],
                    [[0, 4]],
                    [[1, 4], [51, 4]],
                    [[1, 0]],
                    [["1", 4]],
                    [[1, 4.0]],
                    [[1, 4, 2]],
                    [1, 4],
                    None,
                )
            ),
        ],
    )
    def test_a_value_that_cannot_be_is_named_with_its_key_and_source(self, key, value, found):
        """Oracle: the message, which must state the source, the key and the value."""
        with pytest.raises(ValueError) as error:
            BilmOptions.from_dict(changed(key, value=value), source="dir/my_options.json")
        message = str(error.value)
        assert message.startswith(f"dir/my_options.json: {key} must be ")
        assert message.endswith(f" {found}")

    @pytest.mark.parametrize("key", ["lstm", "char_cnn", "char_cnn.embedding"])
    def test_a_value_in_the_place_of_an_object_is_an_error(self, key):
        """Oracle: the message, which must state the source and the key."""
        with pytest.raises(ValueError, match=rf"^here: .*'{re.escape(key)}\."):
            BilmOptions.from_dict(changed(key, value=16), source="here")

    @pytest.mark.parametrize("content", ["[1, 2]", '"lstm"', "null", "3"])
    def test_a_file_that_holds_no_object_is_an_error(self, tmp_path, content):
        """Oracle: the message, which must state the file and what is in it."""
        file = tmp_path / "options.json"
        file.write_text(content)
        with pytest.raises(ValueError) as error:
            BilmOptions.from_file(file)
        assert str(error.value).startswith(f"{file}: ")
        assert repr(json.loads(content)) in str(error.value)

    @pytest.mark.parametrize("content", [b"", b'{"lstm": {', b"lstm = 3", b"\x89HDF\r\n\x1a\n\xff\xfe"])
    def test_a_file_that_is_not_json_is_an_error(self, tmp_path, content):
        """Oracle: the message, which must state the file and what it should be."""
        file = tmp_path / "options.json"
        file.write_bytes(content)
        with pytest.raises(ValueError, match=f"^{re.escape(str(file))}: an options file must be JSON"):
            BilmOptions.from_file(file)

    def test_a_missing_file_is_an_error_of_the_system(self, tmp_path):
        """Oracle: the exception's own file name."""
        with pytest.raises(FileNotFoundError) as error:
            BilmOptions.from_file(tmp_path / "none.json")
        assert error.value.filename == str(tmp_path / "none.json")

    def test_values_are_checked_wherever_they_come_from(self):
        """Oracle: the same message as for a file, without a source."""
        with pytest.raises(ValueError, match=r"^lstm\.cell_clip must be .* -3$"):
            BilmOptions(cell_clip=-3)

    def test_filters_of_json_are_equal_to_tuples(self):
        """Oracle: equality and hash of the same options with tuples."""
        options = BilmOptions(filters=[[1, 4], [2, 8]])
        assert options == BilmOptions(filters=((1, 4), (2, 8)))
        assert hash(options) == hash(BilmOptions(filters=((1, 4), (2, 8))))

    @pytest.mark.parametrize("filters", [(1, 2), ((1, 2, 3),), (), "12", None, ((51, 1),)])
    def test_filters_that_are_no_pairs_are_an_error(self, filters):
        """Oracle: the message, which must state the key and the value."""
        with pytest.raises(ValueError, match=rf"char_cnn\.filters must be .*{re.escape(repr(filters))}$"):
            BilmOptions(filters=filters)

    def test_a_residual_connection_is_there_or_not(self):
        """Oracle: the message; the text "false" is true for Python."""
        with pytest.raises(ValueError, match=r"lstm\.use_skip_connections must be true or false, but is 'false'"):
            BilmOptions(residual="false")


class TestBounds:
    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"n_layers": 10**7}, "lstm.n_layers must be at most 100"),
            ({"n_highway": 10**6}, "char_cnn.n_highway must be at most 100"),
            ({"cell_dim": 10**30}, "at most 4,294,967,296 parameters"),
            ({"projection_dim": 10**400}, "at most 4,294,967,296 parameters"),
            ({"filters": ((3, 10**9),)}, "at most 4,294,967,296 parameters"),
            ({"filters": ((3, 1),) * 1001}, "char_cnn.filters must be pairs"),
        ],
    )
    def test_options_that_fill_the_memory_are_refused(self, values, message):
        """Oracle: the message, at once and before anything is allocated."""
        with pytest.raises(ValueError, match=re.escape(message)):
            BilmOptions(**values)

    def test_a_file_that_is_nested_too_deep_is_an_error(self, tmp_path):
        """Oracle: the message, with the file."""
        path = tmp_path / "options.json"
        path.write_text("[" * 100_000)
        with pytest.raises(ValueError, match=r"options\.json: an options file must be JSON"):
            BilmOptions.from_file(path)

    @given(bilm_options())
    @settings(max_examples=20)
    def test_the_number_of_parameters(self, options):
        """Oracle: the parameters of a biLM."""
        assert options.n_parameters == sum(parameter.numel() for parameter in Bilm(options).parameters())
