import importlib
import math
import pickle

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers
from allennlp.common import Params, cached_transformers
from allennlp.common.plugins import import_plugins
from allennlp.data import Vocabulary
from allennlp.data.data_loaders.data_collator import LanguageModelingDataCollator
from allennlp.data.dataset_readers import DatasetReader
from allennlp.data.token_indexers import PretrainedTransformerIndexer
from allennlp.data.tokenizers import PretrainedTransformerTokenizer, Token
from allennlp.models import Model
from allennlp.training.optimizers import Optimizer


@pytest.fixture
def tiny_bert(tmp_path):
    """The folder of a BERT tokenizer with a few words."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "barks", "##s"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    return str(tmp_path)


class TestAcceptCurrentTokenizers:
    def test_a_transformer_tokenizer_is_built_and_tokenizes(self, tiny_bert):
        words = ["a", "dog", "barks"]
        for special, expected in ((True, ["[CLS]", *words, "[SEP]"]), (False, words)):
            tokenizer = PretrainedTransformerTokenizer(tiny_bert, add_special_tokens=special)
            assert [token.text for token in tokenizer.tokenize("a dog barks")] == expected

    def test_it_has_the_methods_that_custom_readers_call(self, tiny_bert):
        tokenizer = PretrainedTransformerTokenizer(tiny_bert).tokenizer
        assert tokenizer.encode_plus("a dog")["input_ids"] == [2, 5, 6, 3]
        assert tokenizer.batch_encode_plus(["a", "dog"])["input_ids"] == [[2, 5, 3], [2, 6, 3]]

    def test_each_part_of_a_long_text_has_its_own_special_tokens(self, tiny_bert):
        indexer = PretrainedTransformerIndexer(tiny_bert, max_length=4)
        # As for the worker of a data loader.
        indexer = pickle.loads(pickle.dumps(indexer))
        tokens = PretrainedTransformerTokenizer(tiny_bert).tokenize("a dog barks")
        assert indexer.tokens_to_indices(tokens, Vocabulary())["token_ids"] == [2, 5, 6, 3, 2, 7, 3]

    def test_words_are_split_for_srl(self, tiny_bert):
        import_plugins()
        reader = DatasetReader.by_name("srl")(bert_model_name=tiny_bert)
        reader = pickle.loads(pickle.dumps(reader))
        words = [Token(word) for word in ("a", "dogs", "barks", "!")]
        instance = reader.text_to_instance(words, [0, 0, 1, 0], ["O", "B-ARG0", "B-V", "O"])
        wordpieces = [token.text for token in instance["tokens"]]
        assert wordpieces == ["[CLS]", "a", "dog", "##s", "barks", "[UNK]", "[SEP]"]


class TestInitializeLoadedWeightsAgain:
    def test_only_the_last_layer_has_new_weights(self, tmp_path):
        sizes = dict(
            vocab_size=9,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
        transformers.BertModel(transformers.BertConfig(**sizes)).save_pretrained(tmp_path)
        loaded = cached_transformers.get(str(tmp_path), True)
        changed = cached_transformers.get(str(tmp_path), True, reinit_modules=1)
        expected, weights = (
            [layer.output.dense.weight for layer in model.encoder.layer]
            for model in (loaded, changed)
        )
        assert torch.equal(weights[0], expected[0])
        assert not torch.equal(weights[1], expected[1])


class TestMaskSingleWordpieces:
    def test_some_are_masked(self, tiny_bert):
        collator = LanguageModelingDataCollator(tiny_bert, mlm_probability=0.5, filed_name="text")
        torch.manual_seed(0)
        ids = torch.tensor([[2, 5, 6, 7, 6, 5, 7, 3]])
        tensors = {"text": {"tokens": {"token_ids": ids.clone()}}}
        tokens = collator.process_tokens(tensors)["text"]["tokens"]
        asked = tokens["labels"] != -100
        assert 0 < asked.sum() < 6
        assert torch.equal(tokens["labels"][asked], ids[asked])
        assert torch.equal(tokens["token_ids"][~asked], ids[~asked])


class TestAcceptCurrentDecoderCaches:
    def test_bart_decodes_as_without_a_cache(self, tmp_path, tiny_bert):
        import_plugins()
        torch.manual_seed(0)
        sizes = dict(
            d_model=8,
            encoder_ffn_dim=8,
            decoder_ffn_dim=8,
            max_position_embeddings=32,
            vocab_size=9,
        )
        layers = dict(
            encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2
        )
        special = dict(pad_token_id=0, bos_token_id=2, eos_token_id=3, decoder_start_token_id=3)
        config = transformers.BartConfig(**sizes, **layers, **special, init_std=1.0)
        transformers.BartForConditionalGeneration(config).save_pretrained(tmp_path / "bart")
        indexer = PretrainedTransformerIndexer(tiny_bert)
        bart = Model.by_name("bart")(str(tmp_path / "bart"), Vocabulary(), indexer=indexer).eval()
        source = torch.tensor([[2, 5, 6, 7, 3], [2, 7, 5, 3, 0]])
        state = {"input_ids": source, "input_mask": source != 0}
        words = torch.tensor([[3, 2, 5], [3, 2, 7]])
        with torch.no_grad():
            for step in range(3):
                scores, state = bart.take_step(words[:, step], state, step)
            output = bart.bart(source, attention_mask=source != 0, decoder_input_ids=words)
        expected = torch.log_softmax(output.logits[:, -1], -1)
        torch.testing.assert_close(scores, expected)


@pytest.mark.skipif(hasattr(transformers, "AdamW"), reason="this transformers has its own AdamW")
class TestRestoreTransformersAdamw:
    @pytest.mark.parametrize("correct_bias", [True, False])
    def test_it_takes_the_steps_of_transformers_4(self, correct_bias):
        """Epsilon is large, so its place matters."""
        rate, beta1, beta2, epsilon, decay = 0.1, 0.8, 0.9, 0.1, 0.3
        options = {"lr": rate, "betas": (beta1, beta2), "eps": epsilon, "weight_decay": decay}
        params = Params({"type": "huggingface_adamw", "correct_bias": correct_bias, **options})
        weight = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
        optimizer = Optimizer.from_params(params, model_parameters=[("weight", weight)])
        expected = np.array([1.0, -2.0])
        mean = 0
        square = 0
        for step in (1, 2, 3):
            optimizer.zero_grad()
            weight.pow(2).sum().backward()
            optimizer.step()
            gradient = 2 * expected
            mean = beta1 * mean + (1 - beta1) * gradient
            square = beta2 * square + (1 - beta2) * gradient**2
            size = rate
            if correct_bias:
                size *= math.sqrt(1 - beta2**step) / (1 - beta1**step)
            expected = (expected - size * mean / (np.sqrt(square) + epsilon)) * (1 - rate * decay)
            np.testing.assert_allclose(weight.detach().numpy(), expected, rtol=1e-12)


@pytest.mark.skipif(
    hasattr(huggingface_hub, "Repository"), reason="this huggingface_hub has its own Repository"
)
class TestPushWithCurrentHub:
    def test_the_files_of_a_run_and_a_card_are_uploaded(self, tmp_path, monkeypatch):
        uploads = []

        def upload(folder_path, **options):
            files = sorted(path.name for path in folder_path.rglob("*"))
            uploads.append({**options, "files": files})

        push_to_hf = importlib.import_module("allennlp.common.push_to_hf")
        url = huggingface_hub.RepoUrl("https://huggingface.co/us/tagger")
        monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", lambda self, name, **options: url)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda repo_id, **options: None)
        monkeypatch.setattr(huggingface_hub, "upload_folder", upload)
        for name in ("config.json", "best.th", "training_state_e0_b0.th"):
            (tmp_path / "run" / name).parent.mkdir(exist_ok=True)
            (tmp_path / "run" / name).touch()
        options = {
            "local_repo_path": tmp_path / "hub",
            "commit_message": "First",
            "use_auth_token": "secret",
        }
        pushed = push_to_hf.push_to_hf("tagger", tmp_path / "run", organization="us", **options)
        assert pushed == url
        files = ["README.md", "config.json", "weights.th"]
        assert uploads == [
            {"repo_id": "us/tagger", "token": "secret", "commit_message": "First", "files": files}
        ]
