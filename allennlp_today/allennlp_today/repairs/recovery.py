"""Recovered trainings of AllenNLP 2.10.1: their vocabulary, checkpoints and settings."""

import inspect
import logging
import zipfile
from pathlib import Path
from typing import Any

from allennlp_today.import_hooks import Module, after_import, replaces
from allennlp_today.trust.unpacking import compare_checksums

__all__ = ["check_whole"]

logger = logging.getLogger(__name__)

_Words = dict[str, list[str]]


@after_import("allennlp.commands.train")
def number_words_as_before(train: Module) -> None:
    """
    Symptom: after a change of the data, or of the order of its lines, `--recover` continues with
    the weights of different words and labels. If their number differs, it advises to delete the
    folder.
    Cause: `TrainModel` numbers the words of the data again. Now words keep the numbers that they
    have in the run, and data with different words are an error.
    """

    @replaces(train.TrainModel, "from_partial_objects")
    def from_partial_objects(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        from allennlp.common import Lazy

        call = inspect.signature(original).bind(cls, *args, **kwargs)
        call.apply_defaults()
        folder = Path(call.arguments["serialization_dir"], "vocabulary")
        if _belongs_to_checkpoints(folder):
            lazy_vocabulary = call.arguments["vocabulary"]

            def construct(**extras: Any) -> Any:
                vocabulary = lazy_vocabulary.construct(**extras)
                _number_as_in(folder, vocabulary)
                return vocabulary

            call.arguments["vocabulary"] = Lazy(construct)
        return original(*call.args, **call.kwargs)


@after_import("allennlp.data.vocabulary")
def keep_vocabularies_of_checkpoints(vocabulary: Module) -> None:
    """
    Symptom: if `--recover` fails because the data have different words, the vocabulary of the run
    is lost.
    Cause: `save_to_files` overwrites it, although checkpoints belong to it.
    """

    @replaces(vocabulary.Vocabulary, "save_to_files")
    def save_to_files(original: Any, self: Any, directory: str) -> None:
        folder = Path(directory)
        if folder.name == "vocabulary" and _belongs_to_checkpoints(folder):
            # Not known earlier, because the constructor of a model may add words.
            _check_words(_words_in(folder, self), _words_of(self), folder)
        else:
            original(self, directory)


def _belongs_to_checkpoints(folder: Path) -> bool:
    return folder.is_dir() and any(folder.parent.glob("model_state_*.th"))


def _words_of(vocabulary: Any) -> _Words:
    """The words of each namespace in the order of their numbers, in the form that files have."""
    words_by_namespace = {}
    for namespace in vocabulary.get_namespaces():
        by_number = vocabulary.get_index_to_token_vocabulary(namespace)
        tokens = [by_number[number] for number in sorted(by_number)]
        words_by_namespace[namespace] = [_as_line(token) for token in tokens]
    return words_by_namespace


def _as_line(token: str) -> str:
    return token.replace("\n", "@@NEWLINE@@")


def _as_token(line: str) -> str:
    return line.replace("@@NEWLINE@@", "\n")


def _words_in(folder: Path, vocabulary: Any) -> _Words:
    """
    The words in the vocabulary of a folder, which has the padding and unknown tokens of
    `vocabulary`.
    """
    from allennlp.data import Vocabulary

    vocabulary_of_folder = Vocabulary.from_files(
        folder,
        padding_token=vocabulary._padding_token,
        oov_token=vocabulary._oov_token,
    )
    return _words_of(vocabulary_of_folder)


def _number_as_in(folder: Path, vocabulary: Any) -> None:
    """
    Gives the words of a vocabulary the order that they have in the vocabulary of a folder. Raises
    an error if they are not all there.
    """
    of_run = _words_in(folder, vocabulary)
    of_data = _words_of(vocabulary)
    for namespace, words in of_data.items():
        if not set(words) <= set(of_run.get(namespace, ())):
            _check_words(of_run, of_data, folder)
    for namespace, words in of_data.items():
        words_of_data = set(words)
        ordered = [word for word in of_run[namespace] if word in words_of_data]
        # Otherwise unchanged: the numbers of a transformer's pieces may have gaps.
        if ordered != words:
            tokens = [_as_token(word) for word in ordered]
            numbers = range(len(tokens))
            vocabulary._index_to_token[namespace] = dict(zip(numbers, tokens, strict=True))
            vocabulary._token_to_index[namespace] = dict(zip(tokens, numbers, strict=True))


def _check_words(of_run: _Words, of_data: _Words, folder: Path) -> None:
    """Raises an error if the words of the data are not those of a run."""
    from allennlp.common.checks import ConfigurationError

    for namespace in sorted(of_run.keys() | of_data.keys()):
        words_of_run = of_run.get(namespace, [])
        words_of_data = of_data.get(namespace, [])
        if words_of_run == words_of_data:
            continue
        differences = []
        if new := sorted(set(words_of_data) - set(words_of_run)):
            differences.append(f"{len(new)} new, such as {new[0]!r:.60}")
        if missing := sorted(set(words_of_run) - set(words_of_data)):
            differences.append(f"{len(missing)} missing, such as {missing[0]!r:.60}")
        difference = " and ".join(differences) or "a different order"
        raise ConfigurationError(
            "expected the data that this run was trained on, got different "
            f"{namespace}: {difference}; "
            f"use the same files, or train in a new folder: {folder.parent}"
        )


@after_import("allennlp.training.checkpointer")
def name_damaged_checkpoints(checkpointer: Module) -> None:
    """
    Symptom: a damaged checkpoint prints a traceback, or the advice to delete the folder of the run.
    Cause: `load_checkpoint` does not name the file. torch ignores its checksums.
    """

    @replaces(checkpointer.Checkpointer, "load_checkpoint")
    def load_checkpoint(original: Any, self: Any) -> Any:
        from allennlp.common.checks import ConfigurationError

        paths = [Path(path) for path in self.find_latest_checkpoint() or ()]
        try:
            for path in paths:
                check_whole(path)
        except ConfigurationError as error:
            names = " and ".join(path.name for path in paths)
            hint = f"delete {names}, and --recover continues from an earlier checkpoint"
            error.message += f" ({hint})"
            raise
        return original(self)


@after_import("allennlp.training.checkpointer")
def keep_no_checkpoints(checkpointer: Module) -> None:
    """
    Symptom: with `keep_most_recent_by_count: 0`, an epoch ends with an `AssertionError`.
    Cause: the trainer copies the best weights from a checkpoint that is no longer kept. Now it
    writes them.
    """

    @replaces(checkpointer.Checkpointer, "maybe_save_checkpoint")
    def maybe_save_checkpoint(original: Any, self: Any, *args: Any, **kwargs: Any) -> bool:
        is_saved = original(self, *args, **kwargs)
        return bool(is_saved) and self.find_latest_checkpoint() is not None


def check_whole(path: Path) -> None:
    """Raises an error that names a file of a run that is damaged or missing."""
    from allennlp.common.checks import ConfigurationError

    try:
        if not zipfile.is_zipfile(path):
            what = "a damaged file" if path.exists() else "no file"
            raise ConfigurationError(f"expected a file of a checkpoint, got {what}: {path}")
        compare_checksums(path)
    except (ValueError, zipfile.BadZipFile) as error:
        raise ConfigurationError(str(error)) from None


@after_import("allennlp.training.gradient_descent_trainer")
def apply_changed_settings(gradient_descent_trainer: Module) -> None:
    """
    Symptom: after a change of `num_epochs` in the config of a run, `--recover` trains the new
    epochs with a learning rate of 0. A changed learning rate silently has no effect.
    Cause: the checkpoint has the settings of the schedule and of the optimizer. Now the schedule
    has the length of the config, and a different learning rate logs a warning.
    """

    @replaces(gradient_descent_trainer.GradientDescentTrainer, "_maybe_restore_checkpoint")
    def restore(original: Any, self: Any) -> None:
        scheduler = self._learning_rate_scheduler
        total_steps = getattr(scheduler, "total_steps", None)
        rates_of_config = _rates(self)
        original(self)
        if total_steps is not None:
            scheduler.total_steps = total_steps
        for config_rate, checkpoint_rate in zip(rates_of_config, _rates(self), strict=True):
            if config_rate != checkpoint_rate:
                logger.warning(
                    "the learning rate %g of the config is ignored: --recover continues with that "
                    "of the checkpoint, %g",
                    config_rate,
                    checkpoint_rate,
                )
                return


def _rates(trainer: Any) -> list[float]:
    """The learning rates of the optimizer before any schedule."""
    groups = trainer.optimizer.param_groups
    if trainer._learning_rate_scheduler is None:
        return [group["lr"] for group in groups]
    return [group["initial_lr"] for group in groups if "initial_lr" in group]
