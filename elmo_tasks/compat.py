"""Modules and names of earlier versions, which can be imported for one release, with a `DeprecationWarning`."""

import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MODULES", "NAMES", "find_old_modules", "install", "renamed"]

MODULES = {
    "elmo_tasks.bilm.digest": "elmo_tasks.bilm.weights",
    "elmo_tasks.bilm.kernels.freed_memory": "elmo_tasks.bilm.process",
    "elmo_tasks.bilm.kernels.frozen": "elmo_tasks.bilm.frozen_value",
    "elmo_tasks.bilm.lstm.recurrence": "elmo_tasks.bilm.lstm.bidirectional_layer",
    "elmo_tasks.bilm.lstm.steps": "elmo_tasks.bilm.lstm.cell",
    "elmo_tasks.data.elmo_token_indexer": "elmo_tasks.data.token_indexers",
    "elmo_tasks.modules.contextual.pretrained_bilm": "elmo_tasks.modules.contextual.contextual_bilm",
    "elmo_tasks.modules.elmo_token_embedder": "elmo_tasks.modules.token_embedders",
    "elmo_tasks.modules.recurrent.cells": "elmo_tasks.modules.recurrent.encoders",
    "elmo_tasks.modules.recurrent.recurrence": "elmo_tasks.modules.recurrent.recurrent_layer",
    "elmo_tasks.modules.span_ranking": "elmo_tasks.models.span_ranking",
    "elmo_tasks.modules.squad_attention": "elmo_tasks.models.squad",
    "elmo_tasks.spacy_tasks": "elmo_tasks.spacy.tasks",
    "elmo_tasks.text.bytes": "elmo_tasks.text.lines",
    "elmo_tasks.training": "elmo_tasks.trainer elmo_tasks.metrics",
    "elmo_tasks.training.callbacks": "elmo_tasks.trainer.callbacks",
    "elmo_tasks.training.frozen_once_checkpointer": "elmo_tasks.trainer.frozen_once_checkpointer",
    "elmo_tasks.training.metrics": "elmo_tasks.metrics",
    "elmo_tasks.training.metrics.coref_scores": "elmo_tasks.metrics.coref_scores",
    "elmo_tasks.training.metrics.perplexity": "elmo_tasks.metrics.perplexity",
    "elmo_tasks.training.metrics.spans": "elmo_tasks.metrics.spans",
    "elmo_tasks.training.optimization": "elmo_tasks.trainer.optimization",
    "elmo_tasks.vectors.elmo_embedder": "elmo_tasks.vectors.legacy_embedder",
    "elmo_tasks.vectors.spacy_bilm": "elmo_tasks.spacy.pipeline",
    "elmo_tasks.vectors.spacy_component": "elmo_tasks.spacy.component",
    "elmo_tasks.vectors.spacy_tok2vec": "elmo_tasks.spacy.tok2vec",
    "elmo_tasks.vectors.trained_models": "elmo_tasks.trained_models",
}
"""For each old module, the new ones that have its names, separated by spaces."""
NAMES = {
    "PretrainedBilm": "elmo_tasks.modules.contextual.contextual_bilm.ContextualBilm",
    "Recurrence": "elmo_tasks.modules.recurrent.recurrent_layer.RecurrentLayerFunction",
    "RecurrenceFunction": "elmo_tasks.bilm.lstm.bidirectional_layer.ProjectedLstmFunction",
    "TransformerIndexer": "elmo_tasks.data.token_indexers.TransformerIndexer",
}
"""For each old name, its new module and name."""


class _OldModules(MetaPathFinder, Loader):
    """Makes modules with the names of the new ones."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        # Packages without a folder, so nothing but this finder finds the modules in them.
        return ModuleSpec(fullname, self, is_package=True) if fullname in MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        warnings.warn(f"{old} is now {MODULES[old]}", DeprecationWarning, stacklevel=2)
        for new in MODULES[old].split():
            names = vars(import_module(new))
            vars(module).update({name: names[name] for name in names if not name.startswith("__")})
        vars(module)["__getattr__"] = partial(renamed, old)


def find_old_modules() -> None:
    """Lets `import` find the old modules. First, because a checkout may still have the folder of an old package."""
    sys.meta_path.insert(0, _OldModules())


def renamed(module: str, name: str) -> Any:
    """What had this name in a module: its `__getattr__`."""
    if name not in NAMES:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warnings.warn(f"{name} is now {NAMES[name]}", DeprecationWarning, stacklevel=3)
    place, _, new = NAMES[name].rpartition(".")
    return getattr(import_module(place), new)


def install() -> None:
    """
    Does what `import allennlp_today` does, or warns that it is not installed. Installations from before it was a
    package name this function as an extension of torch, whose import would otherwise fail.
    """
    try:
        import_module("allennlp_today")
    except ImportError:
        remedy = "run the two commands in docs/installing.md again"
        warnings.warn(f"AllenNLP's repairs are now the package allennlp_today: {remedy}", stacklevel=2)
