"""
Tables of the fixes: which function is applied to which module of AllenNLP, and when.

Each fix is one function, whose docstring says which symptom it cures, what causes it and where it was seen.
"""

from collections.abc import Callable

from elmo_tasks.compat.allennlp_fixes import (
    archives,
    commands,
    former_modules,
    overrides,
    processes,
    scores,
    whole_files,
    word_vectors,
)
from elmo_tasks.compat.import_hooks import Module, Surroundings, after_import, around_import
from elmo_tasks.compat.package_fixes import placeholders, spacy_models, third_party
from elmo_tasks.compat.startup import garbage_collection, plugins, versions
from elmo_tasks.compat.startup.deferred_imports import DEFERRED_IMPORTS, defer
from elmo_tasks.compat.torch_fixes import changed_functions, mixed_precision, saved_files, subnormals

__all__ = ["AFTER_IMPORT", "AROUND_IMPORT", "register"]

# Module -> the functions that replace some of its own after its import.
AFTER_IMPORT: dict[str, tuple[Callable[[Module], None], ...]] = {
    "allennlp.commands.evaluate": (
        subnormals.flush_subnormals_in_evaluation,
        commands.take_batch_size_of_evaluate,
        commands.check_output_files_of_evaluate,
    ),
    "allennlp.commands.predict": (commands.predict_line_by_line,),
    "allennlp.commands": (commands.end_in_one_line, former_modules.find_elmo_as_attribute),
    "allennlp.commands.train": (
        subnormals.flush_subnormals_in_training,
        processes.end_distributed_workers_cleanly,
        processes.refuse_evaluation_after_distributed_training,
    ),
    "allennlp.common.cached_transformers": (third_party.accept_add_special_tokens,),
    "allennlp.common.file_utils": (saved_files.load_tensor_cache,),
    "allennlp.common.logging": (commands.keep_tracebacks_in_logs,),
    "allennlp.common.params": (
        overrides.refuse_unknown_overrides,
        overrides.say_what_overrides_must_be,
        whole_files.write_configs_whole,
    ),
    "allennlp.common.registrable": (archives.refuse_unregistered_types,),
    "allennlp.common.plugins": (plugins.add_our_plugin,),
    "allennlp.common.util": (
        changed_functions.name_cuda_devices,
        spacy_models.use_blank_spacy_models,
        plugins.search_current_folder_last,
        plugins.import_submodules_quickly,
        archives.remember_packages,
    ),
    "allennlp.data.data_loaders.multiprocess_data_loader": (
        processes.lock_in_context_of_workers,
        garbage_collection.load_instances_quickly,
    ),
    "allennlp.evaluation.evaluator": (scores.omit_scores_of_evaluations_without_labels,),
    "allennlp.models.archival": (archives.extract_safely, whole_files.write_archives_whole),
    "allennlp.modules.token_embedders.embedding": (word_vectors.limit_lines_of_word_vectors,),
    "allennlp.modules.seq2vec_encoders.cnn_encoder": (mixed_precision.encode_characters_in_single_precision,),
    "allennlp.nn.parallel.ddp_accelerator": (
        changed_functions.clip_norm_of_sparse_gradients,
        mixed_precision.use_current_amp,
    ),
    "allennlp.nn.util": (mixed_precision.accept_bfloat16,),
    "allennlp.training.checkpointer": (saved_files.load_training_state,),
    "allennlp.training.gradient_descent_trainer": (
        changed_functions.clip_norm_of_sparse_gradients,
        mixed_precision.use_current_amp,
        mixed_precision.allow_amp_without_cuda,
        whole_files.write_best_weights_whole,
        scores.refuse_training_without_labels,
        scores.refuse_trainings_that_cannot_end,
        scores.average_losses_of_recovered_epochs,
        scores.end_recovered_runs_that_had_ended,
    ),
    "allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers": (
        changed_functions.accept_verbose_reduce_on_plateau,
    ),
    "allennlp.training.util": (
        changed_functions.clip_norm_of_sparse_gradients,
        archives.read_config_as_json,
        scores.omit_scores_of_tests_without_labels,
    ),
    "allennlp_models.structured_prediction.dataset_readers.penn_tree_bank": (third_party.allow_penn_treebank_files,),
}

# Module -> the context manager around its import.
AROUND_IMPORT: dict[str, Surroundings] = {
    "allennlp": garbage_collection.import_quickly,
    "allennlp.commands": garbage_collection.import_quickly,
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
}


def register() -> None:
    """
    Registers the fixes of both tables, the deferred imports and the former modules: called by
    `elmo_tasks.compat.install` at the end of `import torch`. Fixes are applied when their modules are imported.
    """
    for module, surroundings in AROUND_IMPORT.items():
        around_import(module, surroundings)
    for module, deferred in DEFERRED_IMPORTS.items():
        around_import(module, defer(*deferred))
    for module, fixes in AFTER_IMPORT.items():
        for fix in fixes:
            after_import(module, fix)
    former_modules.register()
