import json

import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.formats import read_any_options
from elmo_tasks.files.json_files import file_digest
from elmo_tasks.modules import ContextualBilm
from tests.bilm.many_langs.models import SENTENCES, layers_by_hand, write_model
from tests.paths import SHIPPED_BILM, TINY_BILM


class TestContextualBilm:
    def test_it_computes_the_layers_of_the_files(self, pretrained, batch):
        folder = TINY_BILM
        bilm = Bilm.from_files(folder / "options.json", folder / "weights.hdf5").requires_grad_(
            False
        )
        expected = bilm(batch)
        output = pretrained()(batch)
        assert torch.equal(output.mask, expected.mask)
        assert all(torch.equal(*pair) for pair in zip(output.layers, expected.layers, strict=True))
        assert pretrained().num_layers == len(expected.layers)
        assert pretrained().output_dim == expected.layers[0].size(-1)

    def test_a_many_langs_model_is_read_and_its_state_is_complete(self, tmp_path):
        folder = write_model(tmp_path / "model")
        options = read_any_options(folder / "config.json").to_dict()
        made = ContextualBilm.from_params(
            Params({"options": options, "pretrained_file": f"{folder}/encoder.pkl"})
        )
        again = ContextualBilm(options)
        again.load_state_dict(made.state_dict())
        for sentence in SENTENCES:
            for bilm in (made, again):
                # Shape: (n_layers, n_words, dim)
                found = torch.cat(bilm(bilm.bilm.word_rows.batch([sentence])).layers).numpy()
                np.testing.assert_allclose(
                    found, layers_by_hand(folder, sentence), rtol=1e-5, atol=1e-5
                )

    def test_the_weights_of_an_included_bilm_may_be_left_out(self, batch):
        options = json.loads((SHIPPED_BILM / "options.json").read_text())
        digest = file_digest(SHIPPED_BILM / "weights.hdf5")[:16]
        bilm = ContextualBilm(options, included="small-open", digest=digest)
        bilm.load_state_dict({})
        expected = Bilm.from_files(
            SHIPPED_BILM / "options.json", SHIPPED_BILM / "weights.hdf5"
        ).requires_grad_(False)
        expected = expected(batch).layers[-1]
        assert torch.equal(bilm(batch).layers[-1], expected)
        with pytest.raises(ConfigurationError, match=f"small-open 0123, got {digest}"):
            ContextualBilm(options, included="small-open", digest="0123")

    def test_two_places_of_a_trained_bilm_share_a_pass(self, pretrained, batch, count_passes):
        trained, other = (pretrained(requires_grad=True).train() for _ in range(2))
        passes = count_passes(trained)
        for step in (1, 2):
            trained.zero_grad()
            below = trained(batch).layers[-1].square().sum()
            above = trained(batch).layers[-1].square().sum()
            (below + 2 * above).backward()
            assert len(passes) == step
            other.zero_grad()
            (3 * other(batch).layers[-1].square().sum()).backward()
            for ours, theirs in zip(trained.parameters(), other.parameters(), strict=True):
                torch.testing.assert_close(ours.grad, theirs.grad)

    def test_it_runs_in_inference_mode(self, pretrained, batch):
        """Tensors made in inference mode have no version counter."""
        expected = pretrained()(batch).layers[-1]
        bilm = pretrained()
        with torch.inference_mode():
            ids = batch.clone()
            assert torch.equal(bilm(ids).layers[-1], expected)
            assert torch.equal(bilm(ids).layers[-1], expected)

    def test_weights_may_come_from_the_state_of_a_larger_module(self, pretrained, batch):
        larger = torch.nn.ModuleDict(
            {"a": torch.nn.ModuleDict({"bilm": pretrained(pretrained_file=None)})}
        )
        larger.load_state_dict(
            torch.nn.ModuleDict({"a": torch.nn.ModuleDict({"bilm": pretrained()})}).state_dict()
        )
        assert torch.equal(larger["a"]["bilm"](batch).layers[-1], pretrained()(batch).layers[-1])

    def test_random_weights_may_be_trained(self, pretrained, batch):
        """They may be frozen after a step, but not before the first one."""
        bilm = pretrained(pretrained_file=None, requires_grad=True).train()
        assert bilm(batch).layers[-1].requires_grad
        assert not bilm.requires_grad_(False)(batch).layers[-1].requires_grad
        frozen = (
            pretrained(pretrained_file=None),
            pretrained(pretrained_file=None, requires_grad=True),
        )
        for bilm in frozen:
            with pytest.raises(ConfigurationError, match="expected weights for the frozen biLM"):
                bilm.requires_grad_(False).train()(batch)

    def test_weights_of_a_different_bilm_are_an_error(self, pretrained, tiny_options, tiny_weights):
        options = json.loads(json.dumps(tiny_options))
        options["lstm"]["dim"] += 1
        with pytest.raises(ConfigurationError) as error:
            pretrained(options=options)
        assert tiny_weights in str(error.value)
        assert "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0" in str(error.value)

    def test_a_cache_folder_makes_a_later_run_compute_nothing(
        self, pretrained, batch, count_passes, tmp_path
    ):
        first = pretrained(cache_folder=str(tmp_path / "cache"))(batch)
        bilm = pretrained(cache_folder=str(tmp_path / "cache"))
        passes = count_passes(bilm)
        second = bilm(batch)
        assert not passes
        for output in (first, second):
            assert all(
                torch.equal(*pair)
                for pair in zip(output.layers, pretrained()(batch).layers, strict=True)
            )
        assert bilm(batch).layers[0] is second.layers[0]

    def test_the_cache_folder_may_come_from_the_environment(
        self, pretrained, batch, tmp_path, monkeypatch
    ):
        monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "environment"))
        pretrained(cache_folder=str(tmp_path / "config"))(batch)
        assert [entry.name for entry in tmp_path.iterdir()] == ["config"]
        pretrained()(batch)
        assert (tmp_path / "environment").is_dir()

    def test_a_cache_may_keep_float16(self, pretrained, batch, tmp_path):
        expected = pretrained()(batch).layers[-1].half().float()
        for _ in range(2):
            bilm = pretrained(
                cache_folder=str(tmp_path), cache_dtype="float16", cache_max_bytes=10**8
            )
            assert torch.equal(bilm(batch).layers[-1], expected)
