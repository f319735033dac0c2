"""
Deferred imports of heavy modules, which AllenNLP imports on every start for functions that most
runs never call.
"""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from allennlp_today.import_hooks import around_import, temporary_modules

_BERT = "transformers.models.bert.modeling_bert"

# Importing module -> the modules to import later. The importing module only calls or indexes the
# names that it imports from them, reads their attributes, or uses them in annotations.
DEFERRED_IMPORTS: dict[str, tuple[str, ...]] = {
    # The model classes of transformers import torch._dynamo and torch.distributed.tensor, which
    # import sympy.
    "allennlp.modules.transformer.activation_layer": (_BERT,),
    "allennlp_models.generation.models.bart": ("transformers.models.bart.modeling_bart",),
    "allennlp_models.lm.modules.language_model_heads.bert": (_BERT,),
    "allennlp_models.lm.modules.language_model_heads.gpt2": (
        "transformers.models.gpt2.modeling_gpt2",
    ),
    "allennlp_models.structured_prediction.models.srl_bert": (_BERT,),
    "transformers.model_debugging_utils": ("torch.distributed.tensor",),
    "allennlp.common.cached_transformers": ("transformers",),
    # scipy.stats and sklearn, for metrics.
    "allennlp.fairness.bias_direction": ("sklearn",),
    "allennlp.fairness.bias_mitigators": ("sklearn",),
    "allennlp.fairness.fairness_metrics": ("scipy.stats",),
    "allennlp.training.metrics.auc": ("sklearn",),
    "allennlp.training.metrics.spearman_correlation": ("scipy.stats",),
    "allennlp_models.coref.metrics.conll_coref_scores": ("scipy.optimize",),
    "allennlp_models.rc.tools.drop": ("scipy.optimize",),
    "transformers.data.metrics": ("scipy.stats", "sklearn.metrics"),
    # nltk, for its class of trees.
    "allennlp.training.metrics.evalb_bracketing_scorer": ("nltk",),
    "allennlp_models.classification.dataset_readers.stanford_sentiment_tree_bank": ("nltk.tree",),
    "allennlp_models.common.ontonotes": ("nltk",),
    "allennlp_models.structured_prediction.dataset_readers.penn_tree_bank": (
        "nltk.corpus.reader.bracket_parse",
        "nltk.tree",
    ),
    "allennlp_models.structured_prediction.models.constituency_parser": ("nltk",),
    "allennlp_models.structured_prediction.predictors.constituency_parser": ("nltk",),
}


@around_import(*DEFERRED_IMPORTS)
def defer_imports(module: str) -> Iterator[None]:
    """
    Symptom: `allennlp --help` takes nearly twice as much CPU time, to import SciPy, scikit-learn,
    nltk and torch's compiler. Cause: AllenNLP imports all of its modules on every start. Now the
    first use of a name imports its module.
    """
    # Programs without AllenNLP also import some of these modules.
    if "allennlp" not in sys.modules:
        yield
        return
    deferred = {name: _DeferredModule(name) for name in DEFERRED_IMPORTS[module]}
    with temporary_modules(deferred):
        yield


class _DeferredModule(ModuleType):
    """A module that has not been imported."""

    def __getattr__(self, name: str) -> "_Deferred":
        if name.startswith("__"):  # Read by the import system about this module itself.
            raise AttributeError(name)
        return _Deferred(self.__name__, name)


class _Deferred:
    """An attribute of a module that has not been imported; the first use imports it."""

    def __init__(self, module: str, name: str) -> None:
        self._module_name = module
        self._name = name

    def _resolve(self) -> Any:
        module = importlib.import_module(self._module_name)
        try:
            return getattr(module, self._name)
        except AttributeError:
            return importlib.import_module(f"{self._module_name}.{self._name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._resolve(), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._resolve()(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._resolve()[key]

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._resolve())

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        # A class that derives from a deferred one needs it immediately.
        return (self._resolve(),)
