"""Tests of elmo_tasks.compat.third_party."""

import numpy as np
import pytest
import torch
import transformers
from allennlp.common import Params
from allennlp.data.tokenizers import PretrainedTransformerTokenizer
from allennlp.training import Checkpointer
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.optimizers import Optimizer


@pytest.fixture
def tiny_bert(tmp_path):
    """The folder of a BERT tokenizer with six words."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "barks"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    return str(tmp_path)


class TestAcceptAddSpecialTokens:
    def test_a_transformer_tokenizer_is_built_and_tokenizes(self, tiny_bert):
        words = ["a", "dog", "barks"]
        for special, expected in ((True, ["[CLS]", *words, "[SEP]"]), (False, words)):
            tokenizer = PretrainedTransformerTokenizer(tiny_bert, add_special_tokens=special)
            assert [token.text for token in tokenizer.tokenize("a dog barks")] == expected


class TestAcceptVerboseReduceOnPlateau:
    def test_it_is_built_from_a_config_and_reduces(self):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        params = Params({"type": "reduce_on_plateau", "factor": 0.1, "patience": 0, "mode": "max", "min_lr": 0.05})
        scheduler = LearningRateScheduler.from_params(params, optimizer=optimizer)
        rates = []
        for metric in (0.5, 0.4, 0.3):
            scheduler.step(metric)
            rates.append(optimizer.param_groups[0]["lr"])
        assert rates == pytest.approx([1.0, 0.1, 0.05])


class TestAcceptNumbersInCheckpoints:
    def test_numpy_numbers_are_loaded_and_code_is_not(self, tmp_path):
        checkpointer = Checkpointer(tmp_path)
        torch.save({"w": torch.ones(2)}, tmp_path / "model_state_e0_b0.th")
        state = {"metric": np.float64(0.5), "best": np.array([1, 2])}
        torch.save(state, tmp_path / "training_state_e0_b0.th")
        loaded = checkpointer.load_checkpoint().trainer_state
        assert loaded["metric"] == 0.5 and loaded["best"].tolist() == [1, 2]
        torch.save({"step": Params({})}, tmp_path / "training_state_e0_b0.th")
        with pytest.raises(Exception, match="Weights only load failed"):
            checkpointer.load_checkpoint()


@pytest.mark.skipif(hasattr(transformers, "AdamW"), reason="this transformers has its own AdamW")
class TestRestoreTransformersAdamw:
    def test_it_takes_the_steps_of_torch_adamw(self):
        ours, theirs = (torch.nn.Parameter(torch.tensor([1.0, -2.0])) for _ in range(2))
        options = dict(lr=0.1, betas=(0.8, 0.9), eps=1e-8, weight_decay=0.01)
        params = Params({"type": "huggingface_adamw", **options})
        optimizers = [
            Optimizer.from_params(params, model_parameters=[("ours", ours)]),
            torch.optim.AdamW([theirs], **options),
        ]
        for _ in range(3):
            for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
                optimizer.zero_grad()
                parameter.pow(2).sum().backward()
                optimizer.step()
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=0)
