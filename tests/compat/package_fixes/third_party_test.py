"""Tests of elmo_tasks.compat.package_fixes.third_party."""

import importlib
import sys
from pathlib import Path

import pytest
import torch
from allennlp.common import Params, cached_transformers
from allennlp.data.tokenizers import PretrainedTransformerTokenizer
from allennlp.training.optimizers import Optimizer

from elmo_tasks.compat.package_fixes import third_party


@pytest.fixture
def fresh(monkeypatch):
    """Imports a module as if for the first time."""

    def fresh(name, *others):
        for module in (name, *others):
            monkeypatch.delitem(sys.modules, module, raising=False)
        return importlib.import_module(name)

    return fresh


@pytest.fixture
def tiny_bert(tmp_path):
    """The folder of a BERT tokenizer with six words."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "barks"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    return str(tmp_path)


class TestAcceptAddSpecialTokens:
    def test_a_transformer_tokenizer_is_built_and_tokenizes(self, tiny_bert):
        """Oracle: by hand, with and without BERT's special tokens."""
        words = ["a", "dog", "barks"]
        for special, expected in ((True, ["[CLS]", *words, "[SEP]"]), (False, words)):
            tokenizer = PretrainedTransformerTokenizer(tiny_bert, add_special_tokens=special)
            assert [token.text for token in tokenizer.tokenize("a dog barks")] == expected

    def test_other_keywords_reach_transformers(self, tiny_bert):
        """Oracle: the option of the tokenizer."""
        tokenizer = cached_transformers.get_tokenizer(tiny_bert, add_special_tokens=False, model_max_length=7)
        assert tokenizer.model_max_length == 7


class TestAllowPennTreebankFiles:
    def test_a_file_outside_of_the_folders_of_nltk_is_read(self, tmp_path):
        """Oracle: the words of the file."""
        from allennlp_models.structured_prediction import PennTreeBankConstituencySpanDatasetReader

        (tmp_path / "trees.mrg").write_text("(S (NP (DT A) (NN dog)) (VP (VBZ barks)))\n")
        reader = PennTreeBankConstituencySpanDatasetReader()
        (instance,) = reader.read(str(tmp_path / "trees.mrg"))
        assert [token.text for token in instance["tokens"]] == ["A", "dog", "barks"]


class TestDoNotDownloadNltkData:
    def test_importing_the_script_downloads_nothing(self, fresh, monkeypatch):
        """Oracle: nltk's function, which fails the test; nltk finds no data."""
        import nltk

        def find(*args, **kwargs):
            raise LookupError

        monkeypatch.setattr(nltk, "download", lambda *args: pytest.fail("tried to download data"))
        monkeypatch.setattr(nltk.data, "find", find)
        assert fresh("allennlp_models.rc.tools.narrativeqa").nltk is nltk


class TestStandInForPkgResources:
    def test_rouge_finds_its_files_and_no_other_module_sees_the_stand_in(self, fresh):
        """Oracle: the first line of one of the files; `sys.modules`."""
        was_there = "pkg_resources" in sys.modules
        rouge = fresh("rouge", "rouge.rouge")
        fresh("rouge.rouge_augmented")
        rouge.Rouge(metrics=["rouge-l"])
        lines = (Path(rouge.__file__).parent / "wordnet_key_value.txt").read_text(encoding="utf-8").splitlines()
        key, value = lines[0].split("|")
        assert rouge.Rouge.WORDNET_KEY_VALUE[key] == value
        assert ("pkg_resources" in sys.modules) == was_there

    def test_programs_without_allennlp_see_no_stand_in(self, monkeypatch):
        """Oracle: `sys.modules` inside the block, with AllenNLP and without."""
        monkeypatch.delitem(sys.modules, "pkg_resources", raising=False)
        with third_party.stand_in_for_pkg_resources():
            assert "pkg_resources" in sys.modules
        monkeypatch.delitem(sys.modules, "allennlp")
        with third_party.stand_in_for_pkg_resources():
            assert "pkg_resources" not in sys.modules


class TestRestoreTransformersAdamw:
    def optimizer(self, parameters, **params):
        return Optimizer.from_params(
            Params({"type": "huggingface_adamw", **params}), model_parameters=list(enumerate(parameters))
        )

    def test_it_optimizes_as_adamw_of_torch(self):
        """Oracle: `torch.optim.AdamW`."""
        ours, theirs = (torch.nn.Parameter(torch.tensor([1.0, -2.0])) for _ in range(2))
        options = dict(lr=0.1, betas=(0.8, 0.9), eps=1e-8, weight_decay=0.01)
        optimizers = [self.optimizer([ours], **options), torch.optim.AdamW([theirs], **options)]
        for _ in range(3):
            for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
                optimizer.zero_grad()
                parameter.pow(2).sum().backward()
                optimizer.step()
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=0)

    def test_omitting_the_correction_is_an_error(self):
        """Oracle: the message, unless transformers has a class of its own."""
        import transformers

        if hasattr(transformers, "AdamW"):
            pytest.skip("this transformers has its own AdamW")
        with pytest.raises(ValueError, match="correct_bias=False needs transformers"):
            self.optimizer([torch.nn.Parameter(torch.zeros(1))], correct_bias=False)
