"""
AllenNLP's own ELMo: its former class for vectors, and its module in archives. The entry point
`allennlp_today.repairs` imports this file at the end of `import torch`, so it imports only the
standard library.
"""

import importlib
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from allennlp_today.import_hooks import Module, after_import, replace, replaces
from allennlp_today.trust import loading, reading_from, refuse_outside

__all__ = ["bring_back_elmo_embedder", "take_elmo_from_the_archive"]


@after_import("allennlp.commands")
def bring_back_elmo_embedder(commands: Module) -> None:
    """
    Symptom: flair, SeqVec and bio_embeddings raise `No module named 'allennlp.commands.elmo'`.
    Cause: AllenNLP 1.0 removed the module; its class is now in this package.
    """

    def attribute(name: str) -> object:
        return getattr(importlib.import_module("elmo_tasks.vectors.legacy_embedder"), name)

    module = sys.modules["allennlp.commands.elmo"] = ModuleType("allennlp.commands.elmo")
    module.__dict__["__getattr__"] = attribute
    replace(commands, "elmo", module)


@after_import("allennlp.modules.elmo")
def take_elmo_from_the_archive(elmo: Module) -> None:
    """
    Symptom: an archive of a model with AllenNLP's ELMo cannot be loaded without a network, or if
    the addresses of the biLM in its config are dead.
    Cause: AllenNLP loads the biLM's weights from there first, and then again from the archive.
    """

    @replaces(elmo._ElmoBiLm, "__init__")
    def init(
        original: Any, self: Any, options_file: str, weight_file: str, *args: Any, **kwargs: Any
    ) -> None:
        if (archive := loading()) is None:
            return original(self, options_file, weight_file, *args, **kwargs)
        if os.path.isfile(options_file):
            refuse_outside(options_file)
        with tempfile.TemporaryDirectory() as folder:
            pretrained = importlib.import_module("elmo_tasks.vectors.pretrained")
            try:
                files = pretrained.write_archived(archive.weights, options_file, Path(folder))
            except ValueError:
                # A model with several biLMs.
                return original(self, options_file, weight_file, *args, **kwargs)
            with reading_from(Path(folder)):
                return original(self, *map(str, files), *args, **kwargs)
