"""What the files of a repository may say about a transformer and its tokenizer."""

import json
from pathlib import Path

import pytest
from allennlp.common import cached_transformers
from allennlp.common.checks import ConfigurationError
from transformers import BertConfig

from allennlp_today.trust.repositories import expect_language_model

CONFIG = {"model_type": "bert", "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
CONFIG |= {"intermediate_size": 4, "vocab_size": 8}


@pytest.fixture
def repository(tmp_path) -> Path:
    """A tiny BERT without weights, and its tokenizer."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"])
    )
    return tmp_path


@pytest.fixture
def untrusted(monkeypatch) -> None:
    """As while an archive is loaded that is not trusted."""
    monkeypatch.setattr("allennlp_today.trust.guards.is_untrusted", lambda: True)


@pytest.mark.usefixtures("untrusted")
class TestRepositories:
    @pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
    @pytest.mark.parametrize("name", ["AutoModel", "Trainer", "pipeline", "os.system"])
    def test_a_tokenizer_is_a_tokenizer(self, repository, file, name):
        """transformers takes any of its names."""
        content = CONFIG if file == "config.json" else {}
        (repository / file).write_text(json.dumps({**content, "tokenizer_class": name}))
        with pytest.raises(ConfigurationError, match=f"expected a tokenizer, got '{name}'"):
            cached_transformers.get_tokenizer(str(repository))

    @pytest.mark.parametrize("name", [None, "BertTokenizer", "BertTokenizerFast"])
    def test_those_of_transformers_are_accepted(self, repository, name):
        content = {} if name is None else {"tokenizer_class": name}
        (repository / "tokenizer_config.json").write_text(json.dumps(content))
        assert cached_transformers.get_tokenizer(str(repository)).tokenize("a b") == ["a", "b"]

    def test_kernels_are_not(self, repository):
        """With `org/kernels`, transformers would fetch code from there."""
        content = {**CONFIG, "attn_implementation": "org/kernels"}
        (repository / "config.json").write_text(json.dumps(content))
        transformer = cached_transformers.get(str(repository), make_copy=False)
        assert transformer.config._attn_implementation == "eager"


# Models that transformers builds with a part from another repository, or with another model.
PARTS = {
    "backbone": {"model_type": "detr", "backbone": "org/evil", "use_timm_backbone": False},
    "layout": {"model_type": "layoutlmv2"},
    "encoder": {"model_type": "encoder-decoder", "encoder": CONFIG, "decoder": CONFIG},
    "a config of a part": {**CONFIG, "vision_config": {"backbone": "org/evil"}},
    "no type": {"backbone": "org/evil"},
    "a list": {"model_type": ["bert"]},
}
PARTS["backbone"]["backbone_kwargs"] = {"trust_remote_code": True}


@pytest.mark.usefixtures("untrusted")
class TestLanguageModels:
    @pytest.mark.parametrize("config", PARTS.values(), ids=list(PARTS))
    def test_others_are_refused(self, repository, config):
        (repository / "config.json").write_text(json.dumps(config))
        for read in (
            cached_transformers.get_tokenizer,
            cached_transformers.AutoConfig.from_pretrained,
            lambda path: cached_transformers.get(path, make_copy=False),
        ):
            with pytest.raises(ConfigurationError, match=r"expected (the type of|one)"):
                read(str(repository))

    @pytest.mark.parametrize(
        "model_type", ["albert", "bart", "electra", "gpt2", "openai-gpt", "roberta", "t5", "xlnet"]
    )
    def test_those_of_texts_are_accepted(self, repository, model_type):
        (repository / "config.json").write_text(json.dumps({"model_type": model_type}))
        expect_language_model(str(repository))


def test_a_user_chooses_kernels(monkeypatch):
    config = BertConfig(**{name: value for name, value in CONFIG.items() if name != "model_type"})
    model = cached_transformers.AutoModel.from_config(config, attn_implementation="sdpa")
    assert model.config._attn_implementation == "sdpa"
