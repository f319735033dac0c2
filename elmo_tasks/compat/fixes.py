"""
Tables of the fixes: which function is applied to which modules, and when.

Each fix is one function with a docstring that names the symptom, its cause, and where it was seen.
`ELMO_TASKS_WITHOUT_FIXES` switches fixes off by their names, with commas between them.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

from elmo_tasks.compat import archives, errors, placeholders, startup, third_party, training
from elmo_tasks.compat.deferred_imports import DEFERRED_IMPORTS, defer
from elmo_tasks.compat.import_hooks import Module, after_import, around_import

__all__ = ["AFTER_IMPORT", "AROUND_IMPORT", "register"]

# Fix -> the modules with functions that it replaces after their import. The order counts where several replace one.
AFTER_IMPORT: dict[Callable[[Module], None], tuple[str, ...]] = {
    startup.check_versions: ("allennlp", "allennlp_models"),
    startup.add_our_plugin: ("allennlp.common.plugins",),
    startup.bring_back_elmo_embedder: ("allennlp.commands",),
    startup.import_submodules_quickly: ("allennlp.common.util",),
    startup.skip_scripts_of_allennlp_models: ("allennlp.common.util",),
    archives.load_archives_safely: ("allennlp.models.archival",),
    archives.read_configs_as_json: ("allennlp.models.archival", "allennlp.training.util"),
    archives.refuse_unregistered_types: ("allennlp.common.registrable",),
    archives.remember_packages: ("allennlp.common.util",),
    errors.end_in_one_line: ("allennlp.commands",),
    errors.warn_of_mistyped_overrides: ("allennlp.common.params",),
    third_party.accept_add_special_tokens: ("allennlp.common.cached_transformers",),
    third_party.accept_numbers_in_checkpoints: ("allennlp.training.checkpointer",),
    third_party.accept_verbose_reduce_on_plateau: ("allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers",),
    training.end_recovered_runs_that_had_ended: ("allennlp.training.gradient_descent_trainer",),
    training.lock_in_context_of_workers: ("allennlp.data.data_loaders.multiprocess_data_loader",),
    training.write_archives_whole: ("allennlp.models.archival",),
    training.write_best_weights_whole: ("allennlp.training.gradient_descent_trainer",),
}

# Context manager -> the modules that it is around the import of.
AROUND_IMPORT: dict[Callable[[], AbstractContextManager[None]], tuple[str, ...]] = {
    placeholders.replace_missing_packages: (
        "allennlp.data.image_loader",
        "allennlp.modules.vision.grid_embedder",
        "allennlp.modules.vision.region_detector",
        "allennlp.nn.checkpoint.fairscale_checkpoint_wrapper",
        "allennlp.nn.parallel.fairscale_fsdp_accelerator",
    ),
    third_party.restore_transformers_adamw: ("allennlp.training.optimizers",),
}


def register() -> None:
    """Registers the fixes; each is applied when its modules are imported."""
    without = set(filter(None, os.environ.get("ELMO_TASKS_WITHOUT_FIXES", "").split(",")))
    names = {fix.__name__ for fix in (*AFTER_IMPORT, *AROUND_IMPORT, defer)}
    if unknown := without - names:
        raise ValueError(f"ELMO_TASKS_WITHOUT_FIXES: expected names among {sorted(names)}, got {sorted(unknown)}")
    for surroundings, modules in AROUND_IMPORT.items():
        for module in () if surroundings.__name__ in without else modules:
            around_import(module, surroundings)
    for module, deferred in () if defer.__name__ in without else DEFERRED_IMPORTS.items():
        around_import(module, defer(*deferred))
    for fix, modules in AFTER_IMPORT.items():
        for module in () if fix.__name__ in without else modules:
            after_import(module, fix)
