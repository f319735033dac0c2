import copy

import pytest
import torch
from allennlp.common import Params
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.modules import ElmoTokenEmbedder
from tests.paths import TINY_BILM


class TestElmoTokenEmbedder:
    @pytest.mark.parametrize("weights", [[0.0, 0.0, 0.0], [1.0, -2.0, 0.5]])
    def test_it_equals_allennlp_on_a_first_batch(self, pretrained, batch, weights):
        """Only the first batch, because AllenNLP's `Elmo` carries its state over to later ones."""
        from allennlp.modules.elmo import Elmo

        folder = TINY_BILM
        theirs = Elmo(
            str(folder / "options.json"),
            str(folder / "weights.hdf5"),
            num_output_representations=1,
            dropout=0,
            scalar_mix_parameters=weights,
        )
        ours = ElmoTokenEmbedder(pretrained())
        ours.mix.layer_weights.data.copy_(torch.tensor(weights))
        expected = theirs(batch)["elmo_representations"][0]
        assert ours.get_output_dim() == expected.size(-1)
        torch.testing.assert_close(ours(batch), expected, rtol=0, atol=1e-5)

    def test_dropout_zeroes_units_and_scales_the_others_in_training_only(self, pretrained):
        torch.manual_seed(0)
        ids = BYTES.batch([["word"] * 50])
        embedder = ElmoTokenEmbedder(pretrained(), dropout=0.25)
        plain = ElmoTokenEmbedder(pretrained())(ids)
        assert torch.equal(embedder.eval()(ids), plain)
        dropped = embedder.train()(ids)
        kept = dropped != 0
        torch.testing.assert_close(dropped[kept], plain[kept] / 0.75)
        # With 800 units, the rate has a standard deviation of 0.015.
        assert kept.float().mean() == pytest.approx(0.75, abs=0.07)

    def test_a_copy_of_two_places_still_shares_its_bilm(self, pretrained, batch, count_passes):
        bilm = pretrained()
        places = torch.nn.ModuleList([ElmoTokenEmbedder(bilm), ElmoTokenEmbedder(bilm)])
        places[0](batch)
        copied = copy.deepcopy(places)
        assert copied[0].bilm is copied[1].bilm is not bilm
        passes = count_passes(copied[0].bilm)
        again = batch.clone()
        assert torch.equal(copied[0](again), places[0](batch))
        copied[1](again)
        assert len(passes) == 1


class TestFromParams:
    @pytest.fixture
    def config(self, environment, tiny_options, tiny_weights):
        return {"type": "elmo", "options": tiny_options, "pretrained_file": tiny_weights}

    @pytest.mark.parametrize("layers", ["mix", "top", 1])
    @pytest.mark.parametrize("layer_norm", [None, "token", "batch"])
    def test_all_arguments_are_read(self, config, pretrained, batch, layers, layer_norm):
        values = {"layers": layers, "layer_norm": layer_norm, "dropout": 0.5}
        embedder = TokenEmbedder.from_params(Params({**config, **values})).eval()
        expected = ElmoTokenEmbedder(pretrained(), layers=layers, layer_norm=layer_norm).eval()
        assert torch.equal(embedder(batch), expected(batch))
        assert (embedder.train()(batch) == 0).sum() > (expected(batch) == 0).sum()

    @pytest.mark.parametrize("indexer", ["elmo", "elmo_characters"])
    def test_a_plain_crf_tagger_is_trained_with_it(self, config, fixtures_root, indexer):
        import allennlp_models.tagging  # noqa: F401
        from allennlp.data import Batch, DatasetReader, Vocabulary
        from allennlp.models import Model

        torch.manual_seed(0)
        reader = DatasetReader.from_params(
            Params(
                {
                    "type": "conll2003",
                    "convert_to_coding_scheme": "BIOUL",
                    "token_indexers": {"elmo": {"type": indexer}},
                }
            )
        )
        instances = list(reader.read(str(fixtures_root / "ner" / "dev.txt")))[:8]
        model = Model.from_params(
            vocab=Vocabulary.from_instances(instances),
            params=Params(
                {
                    "type": "crf_tagger",
                    "text_field_embedder": {"token_embedders": {"elmo": config}},
                    "encoder": {
                        "type": "lstm",
                        "input_size": 16,
                        "hidden_size": 8,
                        "bidirectional": True,
                    },
                }
            ),
        )
        data = Batch(instances)
        data.index_instances(model.vocab)
        tensors = data.as_tensor_dict()
        elmo = model.text_field_embedder.token_embedder_elmo
        bilm_before = {name: value.clone() for name, value in elmo.bilm.state_dict().items()}
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
        loss = model(**tensors)["loss"]
        loss.backward()
        optimizer.step()
        assert elmo.mix.layer_weights.abs().min() > 0
        assert elmo.mix.gamma != 1
        assert all(
            torch.equal(value, bilm_before[name]) for name, value in elmo.bilm.state_dict().items()
        )
        assert model(**tensors)["loss"] < loss
