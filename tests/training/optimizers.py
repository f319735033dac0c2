"""A network for tests of optimizers: tuned word vectors, of which a batch has few, and a layer."""

import copy
from typing import Any

import torch
from allennlp.common import Params
from allennlp.training.optimizers import Optimizer


class Network(torch.nn.Module):
    def __init__(self, n_words: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(n_words, 10)
        self.layer = torch.nn.Linear(10, 6)
        self.never_used = torch.nn.Linear(2, 2)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.layer(self.words(words)).logsumexp(-1)


def networks(n_words: int) -> list[Network]:
    """Two that are equal."""
    torch.manual_seed(0)
    network = Network(n_words)
    return [network, copy.deepcopy(network)]


def made(name: str, network: Network, **options: Any) -> Optimizer:
    """The optimizer of that name, as a config makes it."""
    params = Params({"type": name, **copy.deepcopy(options)})
    return Optimizer.from_params(params, model_parameters=list(network.named_parameters()))
