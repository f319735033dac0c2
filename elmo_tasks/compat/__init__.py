"""
AllenNLP 2.10.1 and allennlp-models 2.10.1 on the Python, torch, spaCy, NumPy and transformers of today.

torch calls `install` at the end of `import torch` (entry point `torch.backends` in setup.cfg), and AllenNLP
imports torch before anything that needs a fix; so `allennlp`, `python -m allennlp`, spawned data loader workers
and distributed workers are all covered, and nobody has to import this package. It is imported while torch still
is, so at the top of its modules it imports nothing but the standard library and wrapt.

Each fix is one function, whose docstring says which symptom it cures, what causes it and where it was seen. The
two tables below say when each is applied. Nothing is replaced before the module concerned is imported: with torch
alone, nothing happens at all.
"""

import sys
from collections.abc import Callable

from elmo_tasks.compat import (
    placeholders,
    processes,
    spacy_models,
    startup,
    third_party,
    torch_fixes,
    versions,
)
from elmo_tasks.compat.deferred_imports import DEFERRED_IMPORTS, defer
from elmo_tasks.compat.import_hooks import Module, Surroundings, after_import, around_import

__all__ = ["install"]

# Module -> what replaces some of its functions once it has been imported.
AFTER_IMPORT: dict[str, tuple[Callable[[Module], None], ...]] = {
    "allennlp.commands.train": (
        processes.end_distributed_workers_cleanly,
        processes.refuse_evaluation_after_distributed_training,
    ),
    "allennlp.common.cached_transformers": (third_party.accept_add_special_tokens,),
    "allennlp.common.file_utils": (torch_fixes.load_tensor_cache,),
    "allennlp.common.plugins": (startup.add_our_plugin,),
    "allennlp.common.util": (
        torch_fixes.name_cuda_devices,
        spacy_models.use_blank_spacy_models,
        startup.import_submodules_quickly,
    ),
    "allennlp.data.data_loaders.multiprocess_data_loader": (processes.lock_in_context_of_workers,),
    "allennlp.modules.seq2vec_encoders.cnn_encoder": (torch_fixes.encode_characters_in_single_precision,),
    "allennlp.nn.parallel.ddp_accelerator": (
        torch_fixes.clip_norm_of_sparse_gradients,
        torch_fixes.use_current_amp,
    ),
    "allennlp.training.checkpointer": (torch_fixes.load_pickled_training_state,),
    "allennlp.training.gradient_descent_trainer": (
        torch_fixes.clip_norm_of_sparse_gradients,
        torch_fixes.use_current_amp,
    ),
    "allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers": (torch_fixes.accept_verbose_reduce_on_plateau,),
    "allennlp.training.util": (torch_fixes.clip_norm_of_sparse_gradients,),
    "allennlp_models.structured_prediction.dataset_readers.penn_tree_bank": (third_party.allow_penn_treebank_files,),
}

# Module -> what must be so while it is being imported.
AROUND_IMPORT: dict[str, Surroundings] = {
    "allennlp": startup.pause_garbage_collection,
    "allennlp.commands": startup.pause_garbage_collection,
    "allennlp.data.image_loader": placeholders.import_or_replace_torchvision,
    "allennlp.modules.vision.grid_embedder": placeholders.import_or_replace_torchvision,
    "allennlp.modules.vision.region_detector": placeholders.import_or_replace_torchvision,
    "allennlp.nn.checkpoint.fairscale_checkpoint_wrapper": placeholders.import_or_replace_fairscale,
    "allennlp.nn.parallel.fairscale_fsdp_accelerator": placeholders.import_or_replace_fairscale,
    "allennlp.training.optimizers": third_party.restore_transformers_adamw,
    "allennlp.version": versions.check_allennlp_version,
    "allennlp_models": versions.check_allennlp_models_version,
    "allennlp_models.rc.tools.narrativeqa": third_party.do_not_download_nltk_data,
    "rouge.rouge": third_party.stand_in_for_pkg_resources,
    "rouge.rouge_augmented": third_party.stand_in_for_pkg_resources,
    **{module: defer(*deferred) for module, deferred in DEFERRED_IMPORTS.items()},
}

_installed = False


def install() -> None:
    """
    Registers all fixes, once. Called by torch; call it yourself, before AllenNLP is imported, only if you have
    switched that off with `TORCH_DEVICE_BACKEND_AUTOLOAD=0`.

    # Raises

    RuntimeError
        If AllenNLP has been imported already: its modules have taken functions from each other that are too late
        to fix.
    """
    global _installed
    if _installed:
        return
    if "allennlp.version" in sys.modules:
        raise RuntimeError(
            "elmo_tasks.compat.install() has to be called before AllenNLP is imported, and 'allennlp' is imported "
            "already. Remedy: import torch, or call it, first; and do not set TORCH_DEVICE_BACKEND_AUTOLOAD=0."
        )
    for module, surroundings in AROUND_IMPORT.items():
        around_import(module, surroundings)
    for module, fixes in AFTER_IMPORT.items():
        for fix in fixes:
            after_import(module, fix)
    _installed = True
