"""`allennlp predict`, line by line: AllenNLP's command with errors that name the line, and with `--keep-going`."""

import argparse
import codecs
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from inspect import signature
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, NamedTuple

from allennlp.commands.predict import _get_predictor, _PredictManager
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.predictors import Predictor

from elmo_tasks.commands.endings import endings_in_one_line
from elmo_tasks.compat.torch_fixes.subnormals import flushed_subnormals
from elmo_tasks.files.atomic_files import check_not_input
from elmo_tasks.files.text_lines import byte_lines, decoded
from elmo_tasks.unicode_text import in_nfc

__all__ = ["LineByLine", "predict"]

# What our predictors raise for a bad line; deeply nested JSON raises the second in those of other packages.
_BAD_LINE = (ValueError, RecursionError)
# What predictors that do not check their lines raise for missing keys and other types.
_UNCHECKED = (LookupError, TypeError, AttributeError)
# How Python says it of a class and an argument.
_UNEXPECTED = re.compile(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'")


def predict(arguments: argparse.Namespace) -> None:
    """
    Runs `allennlp predict`. The first bad line ends it with one line on stderr and status 1, after the predictions of
    the lines before it have been written. With `--keep-going` bad lines are a warning, and the status is 0.

    # Parameters

    arguments
        Those of AllenNLP's subcommand, `keep_going` and `nfc`.
    """
    with endings_in_one_line("predict", resume="the predictions so far are written; the same command starts over"):
        common_logging.FILE_FRIENDLY_LOGGING = arguments.file_friendly_logging
        if arguments.silent and not arguments.output_file:
            raise ConfigurationError("with --silent, predictions must have an --output-file, but none is named")
        if arguments.batch_size < 1:
            raise ConfigurationError(f"--batch-size must be at least 1, but is {arguments.batch_size}")
        if arguments.output_file:
            _check_output(Path(arguments.output_file), arguments)
        predictions = LineByLine(
            _predictor(arguments),
            arguments.input_file,
            arguments.output_file,
            arguments.batch_size,
            not arguments.silent,
            arguments.use_dataset_reader,
            arguments.multitask_head,
            keep_going=arguments.keep_going,
            nfc=arguments.nfc,
        )
        with flushed_subnormals():
            predictions.run()


def _check_output(output: Path, arguments: argparse.Namespace) -> None:
    """Before the archive is loaded, which takes long."""
    if not output.parent.is_dir():
        raise ConfigurationError(f"{output.parent} must be a folder, but is not: make it first")
    if output.is_dir():
        raise ConfigurationError(f"the output must be a file, but {output} is a folder: name a file in it")
    check_not_input(output, *filter(None, (arguments.input_file, arguments.archive_file, arguments.weights_file)))


def _predictor(arguments: argparse.Namespace) -> Predictor:
    """AllenNLP's, with errors that name `--predictor-args`."""
    try:
        given = json.loads(arguments.predictor_args.strip() or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise ConfigurationError(
            '--predictor-args must be a JSON object, such as \'{"language": "de"}\', but is '
            f"{arguments.predictor_args!r:.200}"
        )
    try:
        predictor = _get_predictor(arguments)
    except TypeError as error:
        # Its class is known only once the archive is loaded.
        found = _UNEXPECTED.search(str(error))
        kinds = {kind.__name__: kind for kind, _ in Predictor._registry[Predictor].values()}
        if found is None or found[1] not in kinds or found[2] not in given:
            raise
        known = [name for name in signature(kinds[found[1]]).parameters if name not in ("model", "dataset_reader")]
        raise ConfigurationError(
            f"--predictor-args must have arguments of {found[1]} ({', '.join(known)}), but has {found[2]!r}"
        ) from error
    # AllenNLP's own class, which a model has that names none, makes nothing of a line.
    if type(predictor) is Predictor and not arguments.use_dataset_reader:
        raise ConfigurationError(
            f"a model must have a predictor to read JSON lines, but a {type(predictor._model).__name__} has none: give "
            "its dataset reader a file with --use-dataset-reader, or name a predictor with --predictor"
        )
    return predictor


class _Item(NamedTuple):
    """A line or an instance, with its number, counted from 1."""

    number: int
    # What the console shows of it.
    shown: str
    # What the predictor takes, or why the line cannot be read.
    content: Any


class LineByLine(_PredictManager):
    """
    The loop of `allennlp predict`. Where a batch cannot be predicted, its lines are predicted one at a time, so that
    the bad one is known and the others are not lost.

    # Parameters

    predictor, input_file, output_file, arguments
        Those of AllenNLP's `_PredictManager`.
    keep_going
        Whether a bad line is written as `{"error": ..., "line": n}`; otherwise it is an error. Instances of a dataset
        reader, whose lines are not known, have `instance` in place of `line`.
    nfc
        Whether the texts of a line are put into Unicode's form NFC. Those of a dataset reader stay as in training.
    """

    def __init__(
        self,
        predictor: Predictor,
        input_file: str,
        output_file: str | None,
        *arguments: Any,
        keep_going: bool = False,
        nfc: bool = False,
    ) -> None:
        # AllenNLP would empty the output at once, before it looks at the input.
        super().__init__(predictor, input_file, None, *arguments)
        self._output_path = None if output_file is None else Path(output_file)
        self._keep_going = keep_going
        self._nfc = nfc
        self._unit = "line" if self._dataset_reader is None else "instance"
        self._source = "standard input" if self._input_file == "-" else self._input_file

    def run(self) -> None:
        """
        # Raises

        `ValueError`
            For the first bad line, with file and line, after those before it have been written; or if the file of a
            dataset reader cannot be read to its end. An output that is there stays if the first batch cannot be
            predicted.
        """
        n_bad = n_all = 0
        results = self._results()
        first = list(islice(results, 1))
        with ExitStack() as stack:
            if self._output_path is not None:
                self._output_file = stack.enter_context(open(self._output_path, "w", encoding="utf-8"))
            for n_all, (item, result) in enumerate(chain(first, results), start=1):
                if isinstance(result, Exception):
                    n_bad += 1
                    result = json.dumps({"error": self._message(result, item), self._unit: item.number}) + "\n"
                self._maybe_print_to_console_and_file(n_all - 1, result, item.shown)
        if n_bad:
            print(
                f"allennlp predict: warning: {n_bad} of {n_all} {self._unit}s of {self._source} could not be "
                "predicted: the output has their errors",
                file=sys.stderr,
            )

    def _results(self) -> Iterator[tuple[_Item, str | Exception]]:
        """Each item with its prediction; or, with `keep_going`, with its error."""
        items, predict = (
            (self._lines(), self._predict_json)
            if self._dataset_reader is None
            else (self._instances(), self._predict_instances)
        )
        for batch in _batches(items, self._batch_size):
            for item, result in zip(batch, self._predicted(batch, predict), strict=True):
                if isinstance(result, Exception) and not self._keep_going:
                    raise self._error(result, item)
                yield item, result

    def _predicted(
        self, batch: list[_Item], predict: Callable[[list[Any]], Iterator[str]]
    ) -> Iterator[str | Exception]:
        good = [item.content for item in batch if not isinstance(item.content, Exception)]
        try:
            results: list[str | Exception] = list(predict(good)) if good else []
        except (*_BAD_LINE, *_UNCHECKED) as error:
            results = [error] if len(good) == 1 else [_result_of(predict, content) for content in good]
        predictions = iter(results)
        for item in batch:
            yield item.content if isinstance(item.content, Exception) else next(predictions)

    def _lines(self) -> Iterator[_Item]:
        """The lines of the input that are not blank."""
        lines = (
            enumerate(sys.stdin.buffer, start=1) if self._input_file == "-" else byte_lines(cached_path(self._source))
        )
        for number, line in lines:
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            shown = line.decode(errors="replace").strip()
            if not shown:
                continue
            try:
                content = self._predictor.load_line(decoded(line, self._source, number) + "\n")
                if self._nfc:
                    content = _in_nfc(content, getattr(self._predictor, "verbatim", ()))
                shown = json.dumps(content)
            except (*_BAD_LINE, *_UNCHECKED) as error:
                # As JSON, since control characters of a file have no business on a terminal.
                shown, content = json.dumps(shown), error
            yield _Item(number, shown, content)

    def _instances(self) -> Iterator[_Item]:
        for number, instance in zip(count(1), self._get_instance_data(), strict=False):
            yield _Item(number, str(instance), instance)

    def _where(self, item: _Item) -> str:
        return f"{self._source}, {self._unit} {item.number}"

    def _message(self, error: Exception, item: _Item) -> str:
        if isinstance(error, RecursionError):
            return "a line must hold texts, lists and numbers only, but is nested too deeply"
        name = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        return f"{name}{error}".removeprefix(f"{self._where(item)}: ")

    def _error(self, error: Exception, item: _Item) -> Exception:
        if isinstance(error, _BAD_LINE):
            return ValueError(f"{self._where(item)}: {self._message(error, item)}")
        # It may be a mistake in the program: its traceback is needed.
        error.add_note(self._where(item))
        return error


def _in_nfc(content: Any, verbatim: tuple[str, ...]) -> Any:
    """A line in Unicode's form NFC, but for the values of some keys."""
    if not verbatim:
        return in_nfc(content)
    return {key: value if key in verbatim else in_nfc(value) for key, value in content.items()}


def _result_of(predict: Callable[[list[Any]], Iterator[str]], content: Any) -> str | Exception:
    try:
        (result,) = predict([content])
        return result
    except (*_BAD_LINE, *_UNCHECKED) as error:
        return error


def _batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in groups; those before an error of their source come before the error does."""
    batch: list[_Item] = []
    ended: Exception | None = None
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                yield batch
                batch = []
    except Exception as error:
        ended = error
    if batch:
        yield batch
    if ended is not None:
        raise ended
