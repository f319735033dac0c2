"""One-line errors for `allennlp`, and a warning for mistyped overrides."""

import difflib
import logging
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from traceback import walk_tb
from typing import Any, NoReturn

from allennlp_today.files import numbered_lines
from allennlp_today.import_hooks import Module, after_import, replaces
from allennlp_today.plugins import entry_points

logger = logging.getLogger(__name__)

_MORE = "ALLENNLP_DEBUG=1 shows where"

# Hints for messages that say less than the user needs, whatever the type of the error.
_HINTS = {
    r"not found in vocab namespace|Incompatible sizes found for parameter"
    r"|index \d+ is out of bounds for dimension 1": (
        "the model was trained with different words or labels"
    ),
    r"does not match the configuration we're recovering": (
        "to change it, edit config.json in the folder of the run, and train with that file and "
        "--recover"
    ),
    r"(index out of range in self|is out of bounds).*--extend-vocab": (
        "the data have labels that the model was not trained with: new labels need a new training"
    ),
    r"parameter group that doesn't match the size of optimizer's group": (
        "the frozen weights differ from those of the checkpoint: to freeze different ones, start "
        "a new training from its weights, with an initializer of type 'pretrained'"
    ),
    r'key "(data_loader|token_embedders)" is required'
    r"|Extra parameters passed to TrainModel|was not a `Params`": (
        "this looks like a config of AllenNLP 0.x, which had `iterator` and other names"
    ),
    r"cannot import name '\w+' from 'allennlp|No module named 'allennlp(_models)?\."
    r"|No super class method found": (
        "this code is for a different version of AllenNLP, probably 0.x or 1.x: 2.10.1 is installed"
    ),
    r"heuristic for guessing the right token ids": (
        'this model needs a token indexer of type "single_id", and if its words are not embedded, '
        'a token embedder of type "empty" with the same name'
    ),
    r"Torch not compiled with CUDA|accelerator device when none|CUDA GPUs|NVIDIA driver": (
        "to use the CPU, pass --cuda-device -1, or to train -o '{\"trainer.cuda_device\": -1}'"
    ),
}


@after_import("allennlp.commands")
def end_in_one_line(commands: Module) -> None:
    """
    Symptom: a mistake in a config or in data, a missing file and Ctrl-C print forty lines of
    traceback. Cause: `allennlp.commands.main` catches nothing. Errors from torch and from user code
    keep their traceback, and `ALLENNLP_DEBUG=1` shows every traceback. A program that calls
    `main()` gets the error itself: only the command line passes `prog`.
    """

    @replaces(commands, "main")
    def main(original: Any, prog: str | None = None) -> None:
        try:
            original(prog)
        except BaseException as error:
            if prog is not None:
                _end(error)
            raise


def _end(error: BaseException) -> None:
    """Exits with a one-line message if that is enough for the error, and returns otherwise."""
    from allennlp.common.checks import ConfigurationError

    if os.environ.get("ALLENNLP_DEBUG"):
        return
    command = " ".join(["allennlp", *sys.argv[1:2]])
    message = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        _end_by_signal(signal.SIGINT, command, message)
    if type(error).__name__ == "SigTermReceived":
        _end_by_signal(signal.SIGTERM, command, message)
    packages = _packages_of(error)
    hint = _hint_for(message)
    # A proxy's refusal, or a login page instead of an answer, raises errors of httpx, of json, or a
    # `KeyError`.
    if hint is None and "huggingface_hub" in packages:
        hint = "no usable answer from the hub"
    is_for_the_user = isinstance(error, ConfigurationError | OSError)
    if isinstance(error, ValueError | ImportError):
        is_for_the_user |= packages[-1] in _packages_with_messages()
    if hint is not None:
        sys.exit(f"{command}: error: {message} ({hint}; {_MORE})")
    if is_for_the_user:
        sys.exit(f"{command}: error: {message} ({_MORE})")


def _end_by_signal(number: signal.Signals, command: str, message: str) -> NoReturn:
    """Exits as a shell expects it of a command that a signal has ended."""
    if not message:
        message = "interrupted: run it again"
        if command == "allennlp train":
            message += " with --recover to resume"
    print(f"\n{command}: {message}", file=sys.stderr)
    sys.exit(128 + number)


def _packages_of(error: BaseException) -> list[str]:
    """The packages of the functions that an error passed through, the one that raised it last."""
    packages = []
    for frame, _ in walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
        packages.append(module.partition(".")[0])
    return packages


def _packages_with_messages() -> set[str]:
    """The packages whose `ValueError`s and `ImportError`s have messages for the user."""
    packages = {"allennlp", "allennlp_models", "allennlp_today"}
    for entry in entry_points("allennlp.plugins"):
        packages.add(entry.module.partition(".")[0])
    return packages


def _hint_for(message: str) -> str | None:
    # One of the patterns also looks for this option.
    searched = f"{message} --extend-vocab" if "--extend-vocab" in sys.argv else message
    for pattern, hint in _HINTS.items():
        if re.search(pattern, searched):
            return hint
    return None


@after_import("allennlp.common.params")
def warn_of_mistyped_overrides(params: Module) -> None:
    """
    Symptom: `allennlp train -o '{"trainer.num_epoch": 1}'` trains for all epochs of the config.
    Cause: `with_overrides` adds any key, and a constructor with `**kwargs` drops unknown arguments.
    Now a key that is not in the config but resembles one that is logs a warning.
    """

    # `original` is the config here, as in AllenNLP.
    @replaces(params, "with_overrides")
    def with_overrides(
        wrapped: Any, /, original: Any, overrides_dict: dict[str, Any], prefix: str = ""
    ) -> Any:
        # For nested keys, `with_overrides` calls itself with a prefix.
        if not prefix:
            _warn_of_unknown_keys(overrides_dict, params.Params(original).as_flat_dict())
        return wrapped(original, overrides_dict, prefix)


def _warn_of_unknown_keys(overrides: Iterable[str], known_keys: Mapping[str, Any]) -> None:
    for override in overrides:
        if any(f"{key}.".startswith(f"{override}.") for key in known_keys):
            continue
        for nearest in difflib.get_close_matches(override, known_keys, n=1, cutoff=0.9):
            logger.warning("%s is not in the config: did you mean %s?", override, nearest)


@after_import("allennlp.commands.predict")
def read_predictor_input_like_data(predict: Module) -> None:
    """
    Symptom: `allennlp predict` prints a traceback for JSON lines in UTF-16 or Latin-1, or with a
    byte order mark. Cause: it opens the file in the encoding of the system. Now UTF-8 and UTF-16
    are read, and an error names the line that is neither.
    """

    @replaces(predict._PredictManager, "_get_json_data")
    def _get_json_data(original: Any, self: Any) -> Iterator[dict[str, Any]]:
        if self._input_file == "-":
            yield from original(self)
            return
        for _, line in numbered_lines(predict.cached_path(self._input_file)):
            if line.strip():
                yield self._predictor.load_line(line)
