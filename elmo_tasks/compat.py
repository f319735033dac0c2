"""Modules and names of earlier versions, which are importable for one release and log a `DeprecationWarning`."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MODULES", "NAMES", "find_old_modules", "install", "renamed"]

MODULES: dict[str, tuple[str, ...]] = {
    "bilm.digest": ("bilm.weights",),
    "bilm.kernels.freed_memory": ("bilm.process",),
    "bilm.kernels.frozen": ("bilm.frozen_value",),
    "bilm.lstm.recurrence": ("bilm.lstm.bidirectional_layer",),
    "bilm.lstm.steps": ("bilm.lstm.cell",),
    "data.elmo_token_indexer": ("data.token_indexers",),
    "modules.contextual.pretrained_bilm": ("modules.contextual.contextual_bilm",),
    "modules.elmo_token_embedder": ("modules.token_embedders",),
    "modules.recurrent.cells": ("modules.recurrent.encoders",),
    "modules.recurrent.recurrence": ("modules.recurrent.recurrent_layer",),
    "modules.span_ranking": ("models.span_ranking",),
    "modules.squad_attention": ("models.squad",),
    "spacy_tasks": ("spacy.tasks",),
    "text.bytes": ("text.lines",),
    "training": ("trainer", "metrics"),
    "training.callbacks": ("trainer.callbacks",),
    "training.frozen_once_checkpointer": ("trainer.frozen_once_checkpointer",),
    "training.metrics": ("metrics",),
    "training.metrics.coref_scores": ("metrics.coref_scores",),
    "training.metrics.perplexity": ("metrics.perplexity",),
    "training.metrics.spans": ("metrics.spans",),
    "training.optimization": ("trainer.optimization",),
    "vectors.elmo_embedder": ("vectors.legacy_embedder",),
    "vectors.spacy_bilm": ("spacy.pipeline",),
    "vectors.spacy_component": ("spacy.component",),
    "vectors.spacy_tok2vec": ("spacy.tok2vec",),
    "vectors.trained_models": ("trained_models",),
}
"""For each old module of this package, the modules that now have its names."""
NAMES = {
    "PretrainedBilm": "modules.contextual.contextual_bilm.ContextualBilm",
    "Recurrence": "modules.recurrent.recurrent_layer.RecurrentLayerFunction",
    "RecurrenceFunction": "bilm.lstm.bidirectional_layer.ProjectedLstmFunction",
    "TransformerIndexer": "data.token_indexers.TransformerIndexer",
}
"""For each old name, its new module and name."""
_PACKAGE = __package__


class _OldModules(MetaPathFinder, Loader):
    """Makes modules that look up their names in the new ones."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # Packages without a folder, so nothing but this finder finds the modules in them.
        is_old = fullname.removeprefix(f"{_PACKAGE}.") in MODULES and fullname.startswith(f"{_PACKAGE}.")
        return ModuleSpec(fullname, self, is_package=True) if is_old else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        places = [f"{_PACKAGE}.{new}" for new in MODULES[old.removeprefix(f"{_PACKAGE}.")]]
        warnings.warn(f"{old} is now {' and '.join(places)}", DeprecationWarning, stacklevel=2)
        found = [import_module(place) for place in places]

        def look_up(name: str) -> Any:
            for new in found:
                if hasattr(new, name):
                    return getattr(new, name)
            return renamed(old, name)

        module.__getattr__ = look_up  # type: ignore[method-assign]


def find_old_modules() -> None:
    """Lets `import` find the old modules. First, because a checkout may still have the folder of an old package."""
    sys.meta_path.insert(0, _OldModules())


def renamed(module: str, name: str) -> Any:
    """What had this name in a module: its `__getattr__`."""
    if name not in NAMES:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warnings.warn(f"{name} is now {_PACKAGE}.{NAMES[name]}", DeprecationWarning, stacklevel=3)
    place, _, new = NAMES[name].rpartition(".")
    return getattr(import_module(f"{_PACKAGE}.{place}"), new)


def install() -> None:
    """
    Does what `import allennlp_today` does, or warns that it is not installed. Installations from before it was a
    package name this function as an extension of torch, whose import would otherwise fail.
    """
    try:
        import_module("allennlp_today")
    except ImportError:
        message = (
            "AllenNLP's repairs are now the package allennlp_today: run the two commands in docs/installing.md again"
        )
        warnings.warn(message, stacklevel=2)
