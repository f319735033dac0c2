import logging
from copy import deepcopy
from pathlib import Path

import pytest
import spacy
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Token, Vocabulary
from allennlp.data.fields import SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.predictors.verb_finder import VerbFinder

SENTENCE = ["Anna", "can", "sing", "songs"]


def write_spacy_model(folder: Path, tags: dict[str, str]) -> str:
    """A model of spaCy whose tagger knows some words by heart."""
    model = spacy.blank("en")
    ruler = model.add_pipe("attribute_ruler")
    for word, tag in tags.items():
        ruler.add([[{"LOWER": word}]], {"POS": tag})
    model.to_disk(folder)
    return str(folder)


def write_pos_archive(folder: Path, tags: dict[str, str], model_type: str = "elmo_pos") -> str:
    """An archive of a tagger that knows some words by heart: each word's vector is its tag."""
    import torch
    from allennlp.common import Params
    from allennlp.models import Model
    from allennlp.models.archival import archive_model

    text = TextField([Token(word) for word in tags], {"tokens": SingleIdTokenIndexer()})
    instance = Instance({"tokens": text, "tags": SequenceLabelField(list(tags.values()), text)})
    vocab = Vocabulary.from_instances([instance])
    n_words, n_tags = vocab.get_vocab_size("tokens"), vocab.get_vocab_size("labels")
    config = {
        "dataset_reader": {"type": "elmo_pos"},
        "model": {
            "type": model_type,
            "text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": n_tags}}},
            "encoder": {"type": "pass_through", "input_dim": n_tags},
        },
    }
    model = Model.from_params(vocab=vocab, params=Params(deepcopy(config["model"])))
    weight = torch.zeros(n_words, n_tags)
    for word, tag in tags.items():
        weight[vocab.get_token_index(word), vocab.get_token_index(tag, "labels")] = 1.0
    model.text_field_embedder.token_embedder_tokens.weight.data = weight
    model.tag_projection_layer._module.weight.data = torch.eye(n_tags)
    model.tag_projection_layer._module.bias.data.zero_()
    folder.mkdir()
    torch.save(model.state_dict(), folder / "best.th")
    vocab.save_to_files(str(folder / "vocabulary"))
    Params(config).to_file(str(folder / "config.json"))
    archive_model(str(folder), "best.th")
    return str(folder / "model.tar.gz")


class TestVerbFinder:
    def test_spacy_finds_verbs_and_auxiliaries(self, tmp_path):
        """Oracle: the tags by hand."""
        model = write_spacy_model(tmp_path / "model", {"can": "AUX", "sing": "VERB", "songs": "NOUN"})
        finder = VerbFinder(model)
        assert finder(SENTENCE) == [1, 2]
        assert finder(["songs"]) == finder([]) == []

    @pytest.mark.parametrize(
        ("model_type", "tags"),
        [
            ("elmo_pos", {"Anna": "PROPN", "can": "AUX", "sing": "VERB", "songs": "NOUN"}),
            ("simple_tagger", {"Anna": "NNP", "can": "MD", "sing": "VB", "songs": "NNS"}),
            ("elmo_pos", {"Anna": "NNP", "can": "VBZ", "sing": "VBG", "songs": "NNS"}),
        ],
        ids=["universal", "Penn", "Penn's forms"],
    )
    def test_an_archive_of_a_tagger_finds_them_in_its_place(self, environment, tmp_path, model_type, tags):
        """Oracle: the tags by hand; the missing model of spaCy is not needed."""
        finder = VerbFinder("no_such_model", write_pos_archive(tmp_path / "run", tags, model_type))
        assert finder(SENTENCE) == [1, 2]
        assert finder([]) == []

    def test_an_archive_without_tags_for_verbs_is_an_error(self, environment, tmp_path):
        """Oracle: the message names the archive and its tags."""
        archive = write_pos_archive(tmp_path / "run", {"Anna": "PER", "songs": "O"})
        with pytest.raises(
            ConfigurationError, match=r"model.tar.gz must have tags for verbs, VERB or VB, but has .*PER"
        ):
            VerbFinder("", archive)(SENTENCE)

    def test_without_any_model_the_tagger_that_ships_finds_them_and_the_log_says_so(self, monkeypatch, caplog):
        """Oracle: the verbs by hand; the warning names the model that is not installed, once."""
        monkeypatch.setattr(spacy.util, "is_package", lambda name: False)
        finder = VerbFinder()
        with caplog.at_level(logging.WARNING):
            assert finder(SENTENCE) == [1, 2]
            assert finder(["The", "old", "dog", "was", "sleeping", "."]) == [3, 4]
        assert [record.message for record in caplog.records if "en_core_web_sm is not installed" in record.message]
        assert len(caplog.records) == 1

    def test_spacys_model_takes_precedence_where_it_is_installed(self, monkeypatch, tmp_path):
        """Oracle: the tags by hand, which our tagger would not give."""
        model = write_spacy_model(tmp_path / "model", {"songs": "VERB"})
        load = spacy.load
        monkeypatch.setattr(spacy.util, "is_package", lambda name: name == "en_core_web_sm")
        monkeypatch.setattr(spacy, "load", lambda name, **kwargs: load(model, **kwargs))
        assert VerbFinder()(SENTENCE) == [3]

    def test_without_a_tagger_the_remedies_are_named(self, tmp_path):
        """Oracle: the message; nothing is wrong before a tagger is needed."""
        finder = VerbFinder("no_such_model")
        assert finder([]) == []
        with pytest.raises(ConfigurationError, match=r"'no_such_model' is not installed: .*download.* pos_model"):
            finder(SENTENCE)
        spacy.blank("en").to_disk(tmp_path / "blank")
        with pytest.raises(ConfigurationError, match=r"blank' has no tagger: .*download.* pos_model"):
            VerbFinder(str(tmp_path / "blank"))(SENTENCE)
