"""Tests of the initializers of a config."""

import json
import re
from typing import Any

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.nn import InitializerApplicator
from allennlp.nn.initializers import ConstantInitializer, PretrainedModelInitializer

from elmo_tasks.modules import initialize


class Tagger(Model):
    """A linear layer and a biLM."""

    def __init__(self, bilm: torch.nn.Module) -> None:
        super().__init__(Vocabulary())
        self.projection = torch.nn.Linear(2, 2)
        self.elmo = bilm

    def forward(self, **kwargs: Any) -> dict[str, Any]:
        return {}


@pytest.fixture
def pretrained_initializer(pretrained, tmp_path):
    """Takes weights of a tagger whose biLM was loaded."""
    other = Tagger(pretrained())
    torch.save(other.state_dict(), tmp_path / "best.th")
    return PretrainedModelInitializer(str(tmp_path / "best.th"))


class TestInitialize:
    def test_a_frozen_bilm_may_have_the_weights_of_another_model(self, pretrained, pretrained_initializer, batch):
        """Oracle: the biLM that the other model has; without all of its weights it stays one that was never loaded."""
        tagger = Tagger(pretrained(pretrained_file=None))
        initialize(tagger, InitializerApplicator([("elmo", pretrained_initializer)]))
        assert torch.equal(tagger.elmo(batch).layers[-1], pretrained()(batch).layers[-1])
        in_part = Tagger(pretrained(pretrained_file=None))
        initialize(in_part, InitializerApplicator([("elmo", pretrained_initializer)], ["projection"]))
        with pytest.raises(ConfigurationError, match="never loaded"):
            in_part.elmo(batch)

    def test_the_weights_of_a_frozen_bilm_are_not_replaced_by_others(self, pretrained, batch):
        """Oracle: the message, and the weights as they were; with its remedy the rest of the model is initialized."""
        tagger, everything = Tagger(pretrained()), [("", ConstantInitializer(3.0))]
        with pytest.raises(ConfigurationError, match=r'matches elmo\.bilm\..*"prevent_regexes": \["elmo"\]'):
            initialize(tagger, InitializerApplicator(everything))
        larger = torch.nn.ModuleDict({"below": tagger})
        with pytest.raises(ConfigurationError, match=r"matches below\.elmo") as error:
            initialize(larger, InitializerApplicator(everything))
        (regex,) = json.loads(str(error.value).partition('"prevent_regexes": ')[2].partition(" to the")[0])
        assert re.fullmatch(regex, "below.elmo")
        initialize(tagger, InitializerApplicator(everything, ["elmo"]))
        assert (tagger.projection.weight == 3).all()
        assert torch.equal(tagger.elmo(batch).layers[-1], pretrained()(batch).layers[-1])

    def test_one_that_is_trained_is_initialized(self, pretrained):
        """Oracle: by hand."""
        tagger = Tagger(pretrained(requires_grad=True))
        initialize(tagger, InitializerApplicator([("", ConstantInitializer(3.0))]))
        assert all((weight == 3).all() for weight in tagger.parameters())

    def test_none_change_nothing(self, pretrained):
        """Oracle: the weights before."""
        tagger = Tagger(pretrained())
        before = {name: value.clone() for name, value in tagger.state_dict().items()}
        initialize(tagger, None)
        initialize(tagger, InitializerApplicator([("no such weight", ConstantInitializer(3.0))]))
        assert all(torch.equal(before[name], value) for name, value in tagger.state_dict().items())
