"""The initializers of a model's config, and the frozen biLM that they may match."""

import json
import re
from typing import Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.nn import Initializer, InitializerApplicator
from allennlp.nn.initializers import PretrainedModelInitializer

from elmo_tasks.modules.contextual.contextual_model import ContextualModel

__all__ = ["initialize"]


def initialize(model: torch.nn.Module, initializer: Optional[InitializerApplicator]) -> None:
    """
    Applies the initializers of a config. A frozen biLM, or a transformer in its place, has the weights of another
    model afterwards if an initializer "pretrained" matches all of them.

    # Parameters

    model : `torch.nn.Module`
        The model, with all of its parts.
    initializer : `InitializerApplicator`, optional
        `None`: nothing is done.

    # Raises

    `ConfigurationError`
        If weights of a frozen biLM that were loaded would be replaced by random or constant ones.
    """
    if initializer is None:
        return
    frozen = {
        prefix: module
        for prefix, module in model.named_modules()
        if isinstance(module, ContextualModel) and not any(weight.requires_grad for weight in module.parameters())
    }
    found = {prefix: _matching(initializer, prefix, module) for prefix, module in frozen.items()}
    for prefix, module in frozen.items():
        others = [name for name, by in found[prefix].items() if not isinstance(by, PretrainedModelInitializer | None)]
        if module.has_weights and others:
            raise ConfigurationError(
                f"an initializer must leave the frozen biLM's weights, which were loaded, but one matches {others[0]}: "
                f'add "prevent_regexes": {json.dumps([re.escape(prefix)])} to the initializer, '
                "or set 'requires_grad' to true"
            )
    initializer(model)
    for prefix, module in frozen.items():
        if all(isinstance(by, PretrainedModelInitializer) for by in found[prefix].values()):
            module.has_weights = True


def _matching(
    applicator: InitializerApplicator, prefix: str, module: ContextualModel
) -> dict[str, Optional[Initializer]]:
    """By the name of each weight in the model, its initializer, as AllenNLP finds it: the first that matches."""
    prevented = applicator._prevent_regex
    return {
        name: None
        if prevented is not None and re.search(prevented, name)
        else next((by for regex, by in applicator._initializers if re.search(regex, name)), None)
        for name, _ in module.named_parameters(prefix)
    }
