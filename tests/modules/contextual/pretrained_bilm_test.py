import copy
import gc
import json
import pickle
import weakref

import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.bilm.many_langs import read_any_options
from elmo_tasks.modules import PretrainedBilm
from tests.bilm.many_langs.models import SENTENCES, layers_by_hand, write_model
from tests.paths import TINY_BILM


class TestPretrainedBilm:
    def test_it_computes_the_layers_of_the_files(self, pretrained, batch, fixtures_root):
        """Oracle: `Bilm.from_files`."""
        folder = TINY_BILM
        bilm = Bilm.from_files(folder / "options.json", folder / "weights.hdf5").requires_grad_(False)
        expected = bilm(batch)
        output = pretrained()(batch)
        assert torch.equal(output.mask, expected.mask)
        assert all(torch.equal(*pair) for pair in zip(output.layers, expected.layers, strict=True))
        assert pretrained().num_layers == len(expected.layers)
        assert pretrained().get_output_dim() == expected.layers[0].size(-1)

    def test_a_model_of_many_langs_is_read_and_is_whole_in_its_state(self, tmp_path):
        """Oracle: the formulas in NumPy; the second time without the model's files, as in an archive."""
        folder = write_model(tmp_path / "model")
        options = read_any_options(folder / "config.json").to_dict()
        made = PretrainedBilm.from_params(Params({"options": options, "pretrained_file": f"{folder}/encoder.pkl"}))
        again = PretrainedBilm(options)
        again.load_state_dict(made.state_dict())
        for sentence in SENTENCES:
            for bilm in (made, again):
                # Shape: (n_layers, n_words, dim)
                found = torch.cat(bilm(bilm.bilm.word_rows.batch([sentence])).layers).numpy()
                np.testing.assert_allclose(found, layers_by_hand(folder, sentence), rtol=0, atol=2e-6)

    def test_it_is_made_from_a_config(self, tiny_options, tiny_weights, batch, pretrained):
        """Oracle: the one made in Python."""
        made = PretrainedBilm.from_params(Params({"options": tiny_options, "pretrained_file": tiny_weights}))
        assert torch.equal(made(batch).layers[-1], pretrained()(batch).layers[-1])

    def test_a_frozen_one_has_no_gradients(self, pretrained, batch):
        """Oracle: no parameter requires one, no output has one."""
        frozen = pretrained()
        assert not any(parameter.requires_grad for parameter in frozen.parameters())
        assert not any(layer.requires_grad for layer in frozen(batch).layers)

    def test_one_that_is_not_frozen_is_trained(self, pretrained, batch):
        """Oracle: all parameters have a gradient that is not zero, after each of two passes over a batch."""
        trained = pretrained(requires_grad=True)
        for _ in range(2):
            trained.zero_grad()
            sum(layer.square().sum() for layer in trained(batch).layers).backward()
            for name, parameter in trained.named_parameters():
                assert parameter.grad.abs().max() > 0, name

    def test_one_that_is_unfrozen_later_is_trained(self, pretrained, batch):
        """Oracle: a gradient, although an earlier pass without one is still kept."""
        bilm = pretrained()
        bilm(batch)
        bilm.requires_grad_(True)
        assert bilm(batch).layers[-1].requires_grad

    def test_a_batch_is_run_once(self, pretrained, batch, count_passes):
        """Oracle: the number of runs of the biLM, and the same tensors."""
        bilm = pretrained()
        passes = count_passes(bilm)
        first, second = bilm(batch), bilm(batch)
        assert len(passes) == 1
        assert all(ours is theirs for ours, theirs in zip(first.layers, second.layers, strict=True))

    @pytest.mark.parametrize("stateful", [False, True])
    def test_two_places_of_one_that_is_trained_share_a_pass(self, pretrained, batch, count_passes, stateful):
        """Oracle: the runs of the biLM; the gradients of the sum of two runs that know nothing of each other."""
        trained, other = (pretrained(requires_grad=True, stateful=stateful).train() for _ in range(2))
        passes = count_passes(trained)
        for step in range(1, 3):
            for bilm, batches in ((trained, (batch, batch)), (other, (batch,))):
                bilm.zero_grad()
                first = bilm(batches[0]).layers[-1]
                second = bilm(batches[1]).layers[-1] if len(batches) == 2 else first
                (first.square().sum() + 2 * second.square().sum()).backward()
            assert len(passes) == step
            for ours, theirs in zip(trained.parameters(), other.parameters(), strict=True):
                torch.testing.assert_close(ours.grad, theirs.grad)

    def test_another_batch_is_run_though_it_is_equal(self, pretrained, batch, count_passes):
        """Oracle: the number of runs: comparing the ids could cost more than it saves."""
        bilm = pretrained()
        passes = count_passes(bilm)
        copied = batch.clone()
        assert torch.equal(bilm(batch).layers[-1], bilm(copied).layers[-1])
        assert len(passes) == 2

    def test_two_batches_alive_at_once_do_not_mix(self, pretrained, batch):
        """Oracle: a biLM that sees only one of them."""
        other = sentences_to_character_ids([["Other"], ["words", "here"], []])
        bilm = pretrained()
        for ids in (batch, other, batch, other):
            assert torch.equal(bilm(ids).layers[-1], pretrained()(ids).layers[-1])

    @pytest.mark.parametrize(
        "change",
        [
            lambda bilm: bilm.bilm.forward_layers[0].kernel.mul_(0.5),
            lambda bilm: bilm.load_state_dict({k: v * 0.5 for k, v in bilm.state_dict().items()}),
            lambda bilm: bilm.load_state_dict({k: v * 0.5 for k, v in bilm.state_dict().items()}, assign=True),
            lambda bilm: setattr(bilm.bilm.forward_layers[0].kernel, "data", bilm.bilm.forward_layers[0].kernel * 0.5),
        ],
        ids=["in place", "load_state_dict", "exchanged", "data"],
    )
    def test_new_weights_are_seen(self, pretrained, batch, count_passes, change):
        """Oracle: the number of runs, and the layers of a biLM that had the new weights from the start."""
        bilm = pretrained()
        passes = count_passes(bilm)
        before = bilm(batch).layers[-1]
        with torch.no_grad():
            change(bilm)
        after = bilm(batch).layers[-1]
        assert len(passes) == 2
        assert not torch.equal(before, after)
        fresh = pretrained()
        fresh.load_state_dict(bilm.state_dict())
        assert torch.equal(after, fresh(batch).layers[-1])

    def test_a_batch_changed_in_place_is_run_again(self, pretrained, batch):
        """Oracle: the layers of a new biLM."""
        bilm = pretrained()
        bilm(batch)
        batch[0] = batch[0].flip(0)
        assert torch.equal(bilm(batch).layers[-1], pretrained()(batch).layers[-1])

    def test_a_bilm_moved_to_another_type_is_run_again(self, pretrained, batch):
        """Oracle: the type of the layers."""
        bilm = pretrained()
        bilm(batch)
        assert bilm.double()(batch).layers[-1].dtype == torch.float64

    def test_the_layers_are_freed_with_the_batch(self, pretrained, batch):
        """Oracle: a weak reference to a layer."""
        bilm = pretrained()
        ids = batch.clone()
        layer = weakref.ref(bilm(ids).layers[-1])
        gc.collect()
        assert layer() is not None
        del ids
        gc.collect()
        assert layer() is None

    def test_it_runs_in_inference_mode(self, pretrained, batch):
        """Oracle: the layers without it; tensors made in it do not count their changes."""
        expected = pretrained()(batch).layers[-1]
        bilm = pretrained()
        with torch.inference_mode():
            ids = batch.clone()
            assert torch.equal(bilm(ids).layers[-1], expected)
            assert torch.equal(bilm(ids).layers[-1], expected)

    def test_after_inference_mode_its_layers_are_good_for_gradients(self, pretrained, batch):
        """Oracle: the gradient of a factor, the sum of the layer."""
        bilm, factor = pretrained(), torch.ones((), requires_grad=True)
        with torch.inference_mode():
            bilm(batch)
        layer = bilm(batch).layers[-1]
        (factor * layer).sum().backward()
        torch.testing.assert_close(factor.grad, layer.sum())

    def test_a_copy_is_independent(self, pretrained, batch):
        """Oracle: the same output at first; then a change of the copy does not show in the original."""
        bilm = pretrained()
        before = bilm(batch).layers[-1].clone()
        copied = copy.deepcopy(bilm)
        assert torch.equal(copied(batch).layers[-1], before)
        with torch.no_grad():
            copied.bilm.forward_layers[0].kernel.mul_(0.5)
        assert not torch.equal(copied(batch).layers[-1], before)
        assert torch.equal(bilm(batch).layers[-1], before)

    def test_it_can_be_pickled(self, pretrained, batch):
        """Oracle: the same output after the round trip."""
        bilm = pretrained()
        before = bilm(batch).layers[-1]
        assert torch.equal(pickle.loads(pickle.dumps(bilm))(batch).layers[-1], before)

    def test_the_state_is_the_weights_alone(self, pretrained, batch):
        """Oracle: the names of the parameters, before and after a pass."""
        bilm = pretrained()
        names = [name for name, _ in bilm.named_parameters()]
        assert list(bilm.state_dict()) == names
        bilm(batch)
        assert list(bilm.state_dict()) == names

    def test_a_stateful_one_continues_where_it_ended(self, pretrained, batch):
        """Oracle: the stateless one for the first batch; for the second something else."""
        bilm, stateless = pretrained(stateful=True), pretrained()
        again = batch.clone()
        assert torch.equal(bilm(batch).layers[-1], stateless(batch).layers[-1])
        assert not torch.equal(bilm(again).layers[-1], stateless(again).layers[-1])

    def test_a_stateful_one_that_was_reset_starts_again(self, pretrained, batch):
        """Oracle: the stateless one, for a batch whose layers of before are known."""
        bilm, again = pretrained(stateful=True), batch.clone()
        bilm(batch), bilm(again)
        bilm.bilm.reset_states()
        assert torch.equal(bilm(again).layers[-1], pretrained()(batch).layers[-1])

    def test_a_frozen_one_without_weights_is_an_error(self, pretrained, batch):
        """Oracle: the message names the two remedies."""
        bilm = pretrained(pretrained_file=None)
        with pytest.raises(ConfigurationError, match=r"never loaded.*'pretrained_file'.*'requires_grad'"):
            bilm(batch)

    def test_weights_may_come_from_a_state(self, pretrained, batch):
        """Oracle: the biLM whose state it is."""
        bilm = pretrained(pretrained_file=None)
        bilm.load_state_dict(pretrained().state_dict())
        assert torch.equal(bilm(batch).layers[-1], pretrained()(batch).layers[-1])

    def test_weights_may_come_from_the_state_of_a_larger_module(self, pretrained, batch):
        """Oracle: the biLM whose state it is, as in a model's archive."""
        larger = torch.nn.ModuleDict({"a": torch.nn.ModuleDict({"bilm": pretrained(pretrained_file=None)})})
        larger.load_state_dict(torch.nn.ModuleDict({"a": torch.nn.ModuleDict({"bilm": pretrained()})}).state_dict())
        assert torch.equal(larger["a"]["bilm"](batch).layers[-1], pretrained()(batch).layers[-1])

    def test_a_state_without_the_weights_is_an_error(self, pretrained, batch):
        """Oracle: the error of a biLM whose weights were never loaded, or only in part."""
        state = pretrained().state_dict()
        for loaded in ({}, dict(list(state.items())[1:])):
            larger = torch.nn.ModuleDict({"bilm": pretrained(pretrained_file=None)})
            larger.load_state_dict({f"bilm.{name}": value for name, value in loaded.items()}, strict=False)
            with pytest.raises(ConfigurationError, match="never loaded"):
                larger["bilm"](batch)

    def test_random_weights_may_be_trained(self, pretrained, batch):
        """Oracle: no error, also where they are frozen after a step; before the first step it is one (`no_grad`)."""
        bilm = pretrained(pretrained_file=None, requires_grad=True).train()
        assert bilm(batch).layers[-1].requires_grad
        assert not bilm.requires_grad_(False)(batch).layers[-1].requires_grad
        bilm = pretrained(pretrained_file=None, requires_grad=True).requires_grad_(False)
        with pytest.raises(ConfigurationError, match=r"never loaded.*'no_grad' in the trainer"):
            bilm.train()(batch)

    def test_options_that_are_a_path_are_an_error(self, pretrained, fixtures_root):
        """Oracle: the message says how to import them."""
        path = str(TINY_BILM / "options.json")
        with pytest.raises(ConfigurationError, match=f"options: import '{path}'"):
            pretrained(options=path)
        with pytest.raises(ConfigurationError, match=f"options: import '{path}'"):
            PretrainedBilm.from_params(Params({"options": path}))

    def test_options_without_a_key_are_an_error(self, pretrained, tiny_options):
        """Oracle: the message names the key."""
        options = copy.deepcopy(tiny_options)
        del options["lstm"]["dim"]
        with pytest.raises(ConfigurationError, match="dim"):
            pretrained(options=options)

    def test_weights_of_another_bilm_are_an_error(self, pretrained, tiny_options, tiny_weights):
        """Oracle: the message names the file and the key."""
        options = json.loads(json.dumps(tiny_options))
        options["lstm"]["dim"] += 1
        with pytest.raises(ConfigurationError) as error:
            pretrained(options=options)
        assert tiny_weights in str(error.value)
        assert "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0" in str(error.value)

    def test_a_cache_folder_makes_a_later_run_compute_nothing(self, pretrained, batch, count_passes, tmp_path):
        """Oracle: the runs of the biLM, and its layers without a cache, bit for bit."""
        first = pretrained(cache_folder=str(tmp_path / "cache"))(batch)
        bilm = pretrained(cache_folder=str(tmp_path / "cache"))
        passes = count_passes(bilm)
        second = bilm(batch)
        assert not passes
        for output in (first, second):
            assert all(torch.equal(*pair) for pair in zip(output.layers, pretrained()(batch).layers, strict=True))
        assert bilm(batch).layers[0] is second.layers[0]

    def test_a_training_between_is_seen_by_the_cache(self, pretrained, batch, tmp_path):
        """Oracle: a copy without a cache, where the weights were changed without a trace, as fused optimizers do."""
        bilm = pretrained(cache_folder=str(tmp_path / "cache"))
        before = bilm(batch.clone()).layers[-1]
        bilm.bilm.requires_grad_(True)
        bilm(batch.clone())
        next(bilm.bilm.forward_layers.parameters()).data.mul_(2)
        bilm.bilm.requires_grad_(False)
        alone = pretrained()
        alone.load_state_dict(bilm.state_dict())
        found, expected = (each(batch.clone()).layers[-1] for each in (bilm, alone))
        assert torch.equal(found, expected) and not torch.equal(found, before)

    def test_the_cache_folder_may_come_from_the_environment(self, pretrained, batch, tmp_path, monkeypatch):
        """Oracle: the folder that is made; that of the config takes precedence."""
        monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "environment"))
        pretrained(cache_folder=str(tmp_path / "config"))(batch)
        assert [entry.name for entry in tmp_path.iterdir()] == ["config"]
        pretrained()(batch)
        assert (tmp_path / "environment").is_dir()

    @pytest.mark.parametrize("value", [None, ""])
    def test_without_a_folder_nothing_is_kept(self, pretrained, batch, count_passes, monkeypatch, value):
        """Oracle: the runs of a second biLM."""
        if value is not None:
            monkeypatch.setenv("ELMO_TASKS_CACHE", value)
        pretrained()(batch)
        bilm = pretrained()
        passes = count_passes(bilm)
        bilm(batch)
        assert len(passes) == 1

    def test_a_cache_may_keep_float16(self, pretrained, batch, tmp_path):
        """Oracle: the layers in float16, exactly; the same in the first run and in the second."""
        expected = pretrained()(batch).layers[-1].half().float()
        for _ in range(2):
            bilm = pretrained(cache_folder=str(tmp_path), cache_dtype="float16", cache_max_bytes=10**8)
            assert torch.equal(bilm(batch).layers[-1], expected)

    def test_a_cache_is_copied_and_pickled_with_its_bilm(self, pretrained, batch, tmp_path):
        """Oracle: other weights in the copy: their layers, not those of the original."""
        bilm = pretrained(cache_folder=str(tmp_path))
        before = bilm(batch).layers[-1]
        for other in (copy.deepcopy(bilm), pickle.loads(pickle.dumps(bilm))):
            assert torch.equal(other(batch).layers[-1], before)
            other.load_state_dict({name: value * 0.5 for name, value in bilm.state_dict().items()})
            expected = pretrained()
            expected.load_state_dict(other.state_dict())
            assert torch.equal(other(batch.clone()).layers[-1], expected(batch).layers[-1])
            assert torch.equal(bilm(batch.clone()).layers[-1], before)

    def test_a_trained_one_caches_nothing(self, pretrained, batch, tmp_path):
        """Oracle: gradients, and no file."""
        assert pretrained(cache_folder=str(tmp_path / "cache"), requires_grad=True)(batch).layers[-1].requires_grad
        assert not (tmp_path / "cache").exists()

    def test_a_cache_folder_of_another_machine_does_no_harm(self, tiny_options, pretrained, batch, tmp_path, caplog):
        """Oracle: the layers without a cache; one warning, which names the folder; no folder is made."""
        folder = str(tmp_path / "home" / "user" / "cache")
        bilm = PretrainedBilm.from_params(Params({"options": tiny_options, "cache_folder": folder}))
        bilm.load_state_dict(pretrained().state_dict())
        for ids in (batch, batch.clone()):
            assert torch.equal(bilm(ids).layers[-1], pretrained()(batch).layers[-1])
        assert [record.levelname for record in caplog.records if folder in record.getMessage()] == ["WARNING"]
        assert not list(tmp_path.iterdir())

    def test_a_missing_file_is_an_error(self, pretrained, tmp_path):
        """Oracle: the message names the file."""
        with pytest.raises(ConfigurationError, match=str(tmp_path / "nothing.hdf5")):
            pretrained(pretrained_file=str(tmp_path / "nothing.hdf5"))
