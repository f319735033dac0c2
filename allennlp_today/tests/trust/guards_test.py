"""What AllenNLP's functions refuse while an archive that is not trusted is loaded."""

from contextvars import copy_context
from pathlib import Path

import pytest
from allennlp.common import cached_transformers, file_utils, util
from allennlp.common.checks import ConfigurationError
from transformers import BertConfig

from allennlp_today.trust.current_archive import Loading, start_loading


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "inside.txt").touch()
    (tmp_path / "outside.txt").touch()
    return tmp_path / "archive"


def while_loading(folder: Path, trusted: bool, function, *args):
    """The result of a function that is called while the archive in this folder is loaded."""

    def call():
        start_loading(Loading("archive", folder, folder / "weights.th", trusted))
        return function(*args)

    return copy_context().run(call)


class TestFiles:
    """ELMo's files, among others, are opened with `cached_path`."""

    def test_a_file_of_the_archive_is_opened(self, folder):
        inside = str(folder / "inside.txt")
        assert while_loading(folder, False, file_utils.cached_path, inside) == inside

    @pytest.mark.parametrize("name", ["../outside.txt", "/etc/passwd", "/dev/zero", "/"])
    def test_an_existing_file_elsewhere_is_not_opened(self, folder, name):
        path = str(folder / name)
        with pytest.raises(ConfigurationError, match="expected a file in the archive"):
            while_loading(folder, False, file_utils.cached_path, path)

    def test_a_trusted_archive_may_open_it(self, folder):
        outside = str(folder.with_name("outside.txt"))
        assert while_loading(folder, True, file_utils.cached_path, outside) == outside


def test_no_pipeline_of_spacy_is_installed(folder):
    with pytest.raises(ConfigurationError, match="zz_core is not installed"):
        while_loading(folder, False, util.spacy_download, "zz_core")


def test_a_transformer_names_no_kernels(folder):
    config = BertConfig(
        vocab_size=5,
        hidden_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=4,
        attn_implementation="sdpa",
    )
    model = while_loading(folder, False, cached_transformers.AutoModel.from_config, config)
    assert model.config._attn_implementation == "eager"
