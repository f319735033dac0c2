"""Tests of the script that trains a BERT and a GPT on the words of a biLM, and of its configs."""

import importlib.util
import json
import shutil
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest
import safetensors.torch
import torch

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.data import LmReader
from elmo_tasks.data.data_loaders.lm_data_loader import LmDataLoader
from elmo_tasks.data.formats.lm_text import LmText
from tests.data.transformer_token_indexer_test import tensor_of
from tests.paths import CHECKOUT, FIXTURES
from tests.training_configs.configs import evaluated

FOLDER = CHECKOUT / "benchmarks" / "equal_cost"
TEXT = FIXTURES / "lm" / "train.txt"
SMALL = ["--tokens-per-batch", "300", "--pieces", "300", "--dim", "8", "--layers", "1", "--heads", "2"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script, where the package is installed that the trainer of `transformers` needs."""
    pytest.importorskip("accelerate")
    spec = importlib.util.spec_from_file_location("train_transformer", FOLDER / "train_transformer.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(script, tmp_path_factory) -> Path:
    """A BERT and a GPT of four steps."""
    made = tmp_path_factory.mktemp("equal_cost")
    for kind in ("bert", "gpt"):
        arguments = [kind, made / kind, "--train", TEXT, "--steps", 4, "--save-steps", 2, *SMALL]
        script.main(list(map(str, arguments)))
    return made


class TestTraining:
    @pytest.mark.parametrize("kind", ["bert", "gpt"])
    def test_a_training_that_is_resumed_ends_as_without_the_interruption(self, script, folder, tmp_path, kind):
        """Oracle: the weights, bit by bit, and the words; the time of the CPU goes on from the checkpoint."""
        run = shutil.copytree(folder / kind, tmp_path / kind)
        report = json.loads((run / "report.json").read_text())
        # As a kill leaves a checkpoint that is being written.
        (run / "training" / "checkpoint-4" / "trainer_state.json").unlink()
        for name in ("model.safetensors", "report.json"):
            (run / name).unlink()
        state = run / "training" / "checkpoint-2" / "trainer_state.json"
        content = json.loads(state.read_text())
        content["stateful_callbacks"]["CpuClock"]["attributes"]["seconds"] = 7200.0
        state.write_text(json.dumps(content))
        arguments = [kind, run, "--train", TEXT, "--steps", 4, "--save-steps", 2, *SMALL]
        script.main(list(map(str, arguments)))
        found, expected = (safetensors.torch.load_file(path / "model.safetensors") for path in (run, folder / kind))
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], weight) for name, weight in expected.items())
        again = json.loads((run / "report.json").read_text())
        assert 2.0 < again.pop("cpu_hours") < 2.1 and report.pop("cpu_hours") < 0.1
        assert again == report

    def test_another_training_in_its_folder_is_an_error(self, script, folder):
        """Oracle: the line names the folder and what differs."""
        arguments = ["bert", folder / "bert", "--train", TEXT, "--steps", 5, *SMALL, "--lr", 0.1]
        with pytest.raises(SystemExit) as ended:
            script.main(list(map(str, arguments)))
        assert "must be a new folder or that of the same training" in str(ended.value.code)
        assert str(ended.value.code).endswith("but its training has another steps, lr")

    def test_hours_become_steps_before_the_training(self, script, tmp_path, capsys):
        """Oracle: the line and the plan say the same number, of which so many fit into the hours."""
        arguments = ["bert", tmp_path / "bert", "--train", TEXT, "--hours", 0.00002, "--save-steps", 100, *SMALL]
        script.main(list(map(str, arguments)))
        line = capsys.readouterr().out.splitlines()[0]
        plan = json.loads((tmp_path / "bert" / "plan.json").read_text())
        seconds = float(line.split()[0])
        assert f"{plan['steps']:,} steps take 2e-05 hours of the CPU" in line
        assert plan["steps"] == pytest.approx(0.072 / seconds, rel=0.6, abs=1)


class TestBatches:
    def test_they_are_those_of_the_bilm(self, script):
        """Oracle: the words of the data loader of the biLM's config, in its first two epochs."""
        loader = LmDataLoader(LmReader(), str(TEXT), max_tokens_per_batch=300)
        of_bilm = [batch for epoch in (0, 1) for batch in loader._batches.of_epoch(epoch)]
        batches = script.Batches(LmText(TEXT), 300)
        assert list(islice(batches, len(of_bilm))) == list(enumerate(of_bilm))
        n_words = sum(len(line.split()) for batch in of_bilm for line in batch)
        assert batches.n_words(len(of_bilm)) == n_words == 2 * len(TEXT.read_text().split())

    def test_bert_predicts_masked_pieces_and_gpt_all(self, script, folder):
        """Oracle: by hand; the same batch has the same masks each time, and another one others."""
        tokenizer = script.tokenizer_of(folder / "bert" / "training_tokenizer", LmText(TEXT), 300)
        sentences = ["The river was cold .", "He saw it ."] * 30
        of_gpt = script.Collator(tokenizer, is_masked=False, seed=1)([(0, sentences)])
        is_piece = of_gpt["attention_mask"] == 1
        assert torch.equal(of_gpt["labels"], of_gpt["input_ids"].masked_fill(~is_piece, -100))
        collate = script.Collator(tokenizer, is_masked=True, seed=1)
        first, again, other = (collate([(number, sentences)]) for number in (0, 0, 1))
        assert torch.equal(first["input_ids"], again["input_ids"])
        assert not torch.equal(first["input_ids"], other["input_ids"])
        share = (first["labels"] != -100).sum() / is_piece.sum()
        assert 0.08 < share < 0.2
        is_predicted = first["labels"] != -100
        assert torch.equal(first["labels"][is_predicted], of_gpt["input_ids"][is_predicted])


class TestLoss:
    @pytest.mark.parametrize("kind", ["bert", "gpt"])
    def test_it_is_that_of_all_logits(self, script, folder, kind):
        """Oracle: the loss of the library, which ignores those of pieces that are not predicted."""
        tokenizer = script.tokenizer_of(folder / kind / "training_tokenizer", LmText(TEXT), 300)
        collate = script.Collator(tokenizer, is_masked=kind == "bert", seed=1)
        batch = collate([(0, ["The river was cold .", "He saw it ."] * 30)])
        network = script.network_of(script.parser().parse_args([kind, "x", "--train", "x", "--steps", "1"]), 300).eval()
        # GPT-2's default; the library warns where none was chosen.
        network.loss_type = {"bert": None, "gpt": "ForCausalLM"}[kind]
        with torch.no_grad():
            assert script.loss_of(network, batch).item() == pytest.approx(network(**batch).loss.item(), rel=1e-5)

    def test_a_batch_without_a_masked_piece_has_no_loss(self, script):
        """Oracle: 0, where the library's mean over nothing is not a number."""
        network = script.network_of(script.parser().parse_args(["bert", "x", "--train", "x", "--steps", "1"]), 300)
        ids = torch.ones(2, 3, dtype=torch.long)
        batch = {"input_ids": ids, "attention_mask": ids, "labels": torch.full_like(ids, -100)}
        loss = script.loss_of(network, batch)
        loss.backward()
        assert loss.item() == 0.0


class TestModels:
    def test_all_three_have_about_the_same_number_of_parameters(self, script, environment):
        """Oracle: 3 million, and none of them further than 10% from another; the numbers of the README."""
        asked = script.parser().parse_args(["bert", "x", "--train", "x", "--steps", "1"])
        sizes = {}
        for kind in ("bert", "gpt"):
            asked.kind = kind
            network = script.network_of(asked, asked.pieces).base_model
            sizes[kind] = sum(each.numel() for each in network.parameters())
        environment.setenv("STEPS", "7")
        config = evaluated(FOLDER / "bilm_3m.jsonnet")
        assert config["data_loader"]["batches_per_epoch"] == 7
        sizes["bilm"] = BilmOptions.from_dict(config["model"]["options"]).n_parameters
        assert max(sizes.values()) < 1.1 * min(sizes.values())
        readme = (FOLDER / "README.md").read_text()
        for name, size in (("biLM", sizes["bilm"]), ("BERT", sizes["bert"]), ("GPT", sizes["gpt"])):
            line = next(line for line in readme.splitlines() if line.startswith(f"| {name}"))
            assert f"{size / 1e6:.2f} million" in line

    @pytest.mark.parametrize("task", ["ner", "snli", "sst", "pos"])
    @pytest.mark.parametrize("model", ["bilm", "bert", "gpt"])
    def test_the_configs_take_them_at_the_input_alone(self, folder, environment, task, model):
        """Oracle: the place, the model and its width."""
        environment.setenv("TASK", task)
        environment.setenv("MODEL", str(folder / model) if model != "bilm" else "bilm")
        config = evaluated(FOLDER / "input.jsonnet")
        embedders = config["model"]["text_field_embedder"]["token_embedders"]
        assert "output_embedder" not in config["model"] and embedders["elmo"]["type"] == "elmo"
        of_model = embedders["elmo"] if task == "pos" else config["model"]["bilm"]
        of_model = of_model.get("bilm", of_model)
        assert of_model.get("model_name") == (str(folder / model) if model != "bilm" else None)

    @pytest.mark.parametrize("kind", ["bert", "gpt"])
    def test_the_folder_gives_the_layers_of_the_network(self, folder, kind):
        """Oracle: the library's own hidden states for the only piece of each word; GPT reads no types."""
        import transformers

        from elmo_tasks.data import TransformerTokenIndexer
        from elmo_tasks.modules import PretrainedTransformer

        tokenizer = transformers.AutoTokenizer.from_pretrained(folder / kind)
        words = [".", ",", "a"]
        encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        assert encoded["input_ids"].shape == (1, 5)
        network = transformers.AutoModel.from_pretrained(folder / kind).eval()
        with torch.no_grad():
            expected = network(**encoded, output_hidden_states=True).hidden_states
            pieces = tensor_of(TransformerTokenIndexer(str(folder / kind)), [words])["elmo"]["pieces"]
            found = PretrainedTransformer(str(folder / kind))(pieces).layers
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs[:, 1:4], rtol=1e-4, atol=1e-5)
