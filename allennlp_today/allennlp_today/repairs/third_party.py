"""
What torch, nltk, spaCy and others changed or removed after AllenNLP 2.10.1, and what cannot be
pickled.
"""

import importlib
import os
import re
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from allennlp_today.files import reason_of
from allennlp_today.import_hooks import (
    WITHOUT,
    Module,
    after_import,
    around_import,
    replace,
    replaces,
)
from allennlp_today.trust import is_untrusted


@after_import("allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers")
def accept_verbose_reduce_on_plateau(pytorch_lr_schedulers: Module) -> None:
    """
    Symptom: the scheduler `reduce_on_plateau` raises `unexpected keyword argument 'verbose'`.
    Cause: torch has removed the argument (seen with torch 2.13). Configs may still set it, without
    effect.
    """
    import torch

    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau

    def without_verbose(verbose: bool = False, **arguments: Any) -> Any:
        return plateau(**arguments)

    @replaces(pytorch_lr_schedulers.ReduceOnPlateauLearningRateScheduler, "__init__")
    def initialize(original: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        with mock.patch.object(torch.optim.lr_scheduler, "ReduceLROnPlateau", without_verbose):
            original(*args, **kwargs)


@after_import("allennlp.training.checkpointer")
def accept_numbers_in_checkpoints(checkpointer: Module) -> None:
    """
    Symptom: `allennlp train --recover` raises `UnpicklingError: Weights only load failed`. Cause:
    `torch.load` refuses NumPy numbers by default since torch 2.6. Now they are read in this one
    place, by functions of our own: NumPy's types and arrays would let a pickle read memory. An
    error names the files.
    """

    @replaces(checkpointer.Checkpointer, "load_checkpoint")
    def load_checkpoint(original: Any, self: Any) -> Any:
        import torch
        from allennlp.common.checks import ConfigurationError

        numbers: list[Any] = [(_NumberType, "numpy.dtype")]
        # NumPy 1 and 2.
        numbers += [(_number, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")]
        try:
            with torch.serialization.safe_globals(numbers):
                return original(self)
        except (ConfigurationError, OSError):
            raise
        except Exception as error:
            files = " and ".join(self.find_latest_checkpoint() or [])
            # Not a `RuntimeError`, for which the trainer advises to delete the folder.
            message = f"expected tensors and numbers ({reason_of(error)}): {files}"
            raise ConfigurationError(message) from error


class _NumberType:
    """What a checkpoint says of the type of a NumPy number: a letter and the number of bytes."""

    def __init__(self, code: str, *flags: object) -> None:
        if not re.fullmatch("[biuf][1248]", code):
            raise ValueError(f"expected a type of numbers, got {code!r:.20}")
        self.code = code

    def __setstate__(self, state: tuple[object, str]) -> None:
        """The byte order; the rest is for types of other values."""
        _, order, *_ = state
        if order not in ("<", ">", "=", "|"):
            raise ValueError(f"expected a byte order, got {order!r:.20}")
        self.code = f"{order}{self.code}"


def _number(number_type: _NumberType, content: bytes) -> Any:
    import numpy

    (number,) = numpy.frombuffer(content, numpy.dtype(number_type.code))
    return number


@after_import("allennlp.training.callbacks.wandb")
def start_runs_of_wandb(wandb: Module) -> None:
    """
    Symptom: the callback `wandb` raises `module 'wandb.util' has no attribute 'generate_id'`.
    Cause: current releases of wandb lack this function. Now the callback has an id of its own.
    """

    @replaces(wandb.WandBCallback, "on_start")
    def on_start(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        if self._run_id is None:
            self._run_id = secrets.token_hex(4)
        original(self, *args, **kwargs)


@after_import("allennlp.training.gradient_descent_trainer")
def silence_warnings_of_amp(gradient_descent_trainer: Module) -> None:
    """
    Symptom: every epoch prints `FutureWarning: torch.cuda.amp.autocast(args...) is deprecated`.
    Cause: the trainer uses it also without mixed precision. The new name does the same.
    """
    warnings.filterwarnings("ignore", r"`torch\.cuda\.amp", FutureWarning)


@after_import(
    "allennlp.training.gradient_descent_trainer",
    "allennlp.training.util",
    "allennlp.nn.parallel.ddp_accelerator",
)
def clip_sparse_gradients(module: Module) -> None:
    """
    Symptom: a training with `sparse: true` and `grad_norm` raises
    `Could not run 'aten::linalg_vector_norm' with arguments from the 'SparseCPU' backend`. Cause:
    `clip_grad_norm_` of torch (seen with 2.13) computes no norm of a sparse gradient.
    """

    @replaces(module, "clip_grad_norm_")
    def clip_grad_norm(original: Any, parameters: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        # torch only reads the attribute `grad` of a parameter, and scales it in place.
        clipped = [parameters] if hasattr(parameters, "grad") else list(parameters)
        for i, parameter in enumerate(clipped):
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
                clipped[i] = SimpleNamespace(grad=parameter.grad.values())
        return original(clipped, *args, **kwargs)


@after_import("allennlp.common.file_utils")
def write_tensor_caches_that_can_be_read(file_utils: Module) -> None:
    """
    Symptom: reading from a `TensorCache`, the `feature_cache_dir` of readers of images, raises
    `UnpicklingError: Unsupported operand 149`. Cause: it writes pickle's newest protocol, but since
    torch 2.6 `torch.load` reads only protocol 2. Caches that were written without this fix must be
    deleted.
    """
    pickle = SimpleNamespace(dumps=file_utils.pickle.dumps, HIGHEST_PROTOCOL=2)
    replace(file_utils, "pickle", pickle)


@around_import("allennlp.common.file_utils", "allennlp.common.plugins")
def import_without_a_home(module: str) -> Iterator[None]:
    """
    Symptom: `import allennlp` raises `Could not determine home directory` in a container that runs
    as an arbitrary user. Cause: without HOME and an entry in /etc/passwd, a user has no home
    folder, where AllenNLP has its cache.
    """
    try:
        Path.home()
    except RuntimeError:
        # Not a folder that others may write to, because the home folder can list plugins.
        with mock.patch.object(Path, "home", lambda: Path("/nonexistent")):
            yield
    else:
        yield


@after_import("allennlp.common.file_utils")
def open_local_files_without_a_cache(file_utils: Module) -> None:
    """
    Symptom: with a home folder that is read-only or missing, `allennlp predict` and other commands
    that only read local files end with `No such file or directory: '/nonexistent/.allennlp'`.
    Cause: cached-path creates its cache before it looks at the path. What does need the cache names
    the variable.
    """

    @replaces(file_utils, "cached_path")
    def cached_path(
        original: Callable[..., str],
        url_or_filename: str | os.PathLike[str],
        cache_dir: str | Path | None = None,
        extract_archive: bool = False,
        force_extract: bool = False,
    ) -> str:
        # The original is the guard, which decides while an archive that is not trusted is loaded.
        if is_untrusted():
            return original(url_or_filename, cache_dir, extract_archive, force_extract)
        path = Path(url_or_filename).expanduser()
        if path.is_dir() or (path.exists() and not extract_archive):
            return str(path)
        folder = str(cache_dir or file_utils.CACHE_DIRECTORY)
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = (
                f"{error.strerror}, for the cache of AllenNLP: set ALLENNLP_CACHE_ROOT to a folder"
            )
            raise type(error)(error.errno, message, folder) from None
        return original(url_or_filename, cache_dir, extract_archive, force_extract)


@after_import("allennlp.data.vocabulary")
def read_vocabularies_without_a_warning(vocabulary: Module) -> None:
    """
    Symptom: a model in a folder that is read-only warns
    `Lacking permissions required to obtain lock`. Cause: AllenNLP locks the folder of a vocabulary
    to read it, with a file in the folder. It may be missing.
    """
    warnings.filterwarnings("ignore", "Lacking permissions required to obtain lock", UserWarning)


@after_import("allennlp.common.util")
def name_missing_spacy_models(util: Module) -> None:
    """
    Symptom: without a network, `SpacyTokenizer()` and other uses of a spaCy model that is not
    installed end with errors of connections, or silently with exit code 1. Cause: AllenNLP
    downloads the model, and spaCy's command for it ends the process if it cannot.
    """

    @replaces(util, "spacy_download")
    def download(original: Callable[..., None], name: str, *args: Any, **kwargs: Any) -> None:
        # The original is the guard.
        if is_untrusted():
            return original(name, *args, **kwargs)
        try:
            original(name, *args, **kwargs)
        except (Exception, SystemExit) as error:
            raise OSError(
                f"the spaCy model {name} is not installed, and cannot be downloaded now: "
                f"python -m spacy download {name} "
                f"(from a file: pip install {name}-VERSION-py3-none-any.whl)"
            ) from error


@after_import("overrides")
def override_other_signatures(overrides: Module) -> None:
    """
    Symptom: projects for AllenNLP 1 and 2 raise
    `TypeError: text_to_instance: `inputs` must be present`. Cause: AllenNLP required overrides
    3.1.0, which compared no signatures, but fails for some classes with Python 3.11 and later.
    Current releases compare them, and signatures of AllenNLP's own subclasses differ. Now they are
    compared only if `check_signature=True` is given.
    """
    _switch_off_signature_checks(overrides)


def _switch_off_signature_checks(overrides: Any) -> None:
    defaults = overrides.overrides.__kwdefaults__ or {}
    if "check_signature" in defaults:
        defaults["check_signature"] = False


# A project may import it before torch. The default also changes for names that are imported
# already.
if "overrides" in sys.modules and "override_other_signatures" not in WITHOUT:
    _switch_off_signature_checks(sys.modules["overrides"])


@after_import("allennlp.training.trainer")
def find_trainer_in_its_old_module(trainer: Module) -> None:
    """
    Symptom: a project for AllenNLP 2.0 raises
    `cannot import name 'GradientDescentTrainer' from 'allennlp.training.trainer'`. Cause: a later
    release moved the class to a new module, which imports this one.
    """

    def __getattr__(name: str) -> Any:
        if name == "GradientDescentTrainer":
            new_module = importlib.import_module("allennlp.training.gradient_descent_trainer")
            return new_module.GradientDescentTrainer
        raise AttributeError(f"module {trainer.__name__!r} has no attribute {name!r}")

    replace(trainer, "__getattr__", __getattr__)


@after_import("allennlp.data.dataset_readers.dataset_reader")
def accept_lazy_readers(dataset_reader: Module) -> None:
    """
    Symptom: a reader of a project for AllenNLP 1 raises `unexpected keyword argument 'lazy'`, or
    reads no instances. Cause: AllenNLP 2 removed the first two arguments of `DatasetReader`, `lazy`
    and `cache_directory`, and renamed `manual_multi_process_sharding`. Its data loaders have
    `max_instances_in_memory`.
    """

    @replaces(dataset_reader.DatasetReader, "__init__")
    def initialize(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        # By position, the first one is a number or None now.
        if args and isinstance(args[0], bool):
            args = args[2:]
        kwargs.pop("lazy", None)
        kwargs.pop("cache_directory", None)
        if "manual_multi_process_sharding" in kwargs:
            kwargs["manual_multiprocess_sharding"] = kwargs.pop("manual_multi_process_sharding")
        original(self, *args, **kwargs)


@after_import("allennlp.common.util")
def number_gpus(util: Module) -> None:
    """
    Symptom: `cuda_device: 0` without a GPU raises torch's `Cannot access accelerator device`, not
    AllenNLP's error. Cause: `torch.device(0)` is no longer a GPU of CUDA, but any accelerator, and
    must exist (seen with torch 2.13).
    """

    @replaces(util, "int_to_device")
    def int_to_device(original: Any, device: Any) -> Any:
        import torch

        if isinstance(device, int) and device >= 0:
            return torch.device("cuda", device)
        return original(device)


@after_import("allennlp_models.structured_prediction.dataset_readers.penn_tree_bank")
def read_trees_from_any_folder(penn_tree_bank: Module) -> None:
    """
    Symptom: the reader `ptb_trees` of the constituency parser raises
    `Security Violation [CorpusReader.__init__]: Unauthorized path`, or `NLTK will not read`. Cause:
    nltk (seen with 3.10) reads only files in the folders of `nltk.data.path` that no group may
    write.
    """

    @replaces(penn_tree_bank, "BracketParseCorpusReader")
    def reader(original: Any, root: str, fileids: list[str]) -> SimpleNamespace:
        import nltk

        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(nltk.data, "path", [folder]),
        ):
            for name in fileids:
                shutil.copyfile(Path(root, name), Path(folder, name))
                Path(folder, name).chmod(0o600)
            trees = list(original(root=folder, fileids=fileids).parsed_sents())
        return SimpleNamespace(parsed_sents=lambda: trees)


@after_import(
    "allennlp.modules.token_embedders.token_characters_encoder",
    "allennlp.modules.seq2vec_encoders.cnn_highway_encoder",
)
def pickle_character_encoders(module: Module) -> None:
    """
    Symptom: pickling a model with characters, for joblib or a spawned process, raises
    `Can't pickle local object 'TokenCharactersEncoder.__init__.<locals>.<lambda>'`. Cause: without
    dropout or layer normalisation, AllenNLP calls a lambda instead.
    """
    import torch

    if hasattr(module, "TokenCharactersEncoder"):
        encoder = module.TokenCharactersEncoder
    else:
        encoder = module.CnnHighwayEncoder

    @replaces(encoder, "__init__")
    def initialize(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        for attribute, value in list(vars(self).items()):
            if getattr(value, "__name__", "") == "<lambda>":
                setattr(self, attribute, torch.nn.Identity())
