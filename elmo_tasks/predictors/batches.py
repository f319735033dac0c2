"""Predictions and plain results of a task for many lines, which share batches."""

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from more_itertools import constrained_batches

from elmo_tasks.predictors.task import Task

__all__ = ["as_line", "ids_in", "parsed_line", "plain_results", "predictions_of_lines"]

# Lines of texts that are predicted together.
_LINES_AT_ONCE = 64

Predict = Callable[[list[Instance]], list[JsonDict]]


def as_line(content: Any) -> JsonDict:
    """A line, also from JSON that is not an object: then under an empty key, and an error for `parsed_line`."""
    return content if isinstance(content, dict) else {"": content}


def parsed_line(task: Task, line: JsonDict) -> Any:
    """What `parse` returns. An error has an example of a line, and the line's number if it is known."""
    try:
        return task.parse(line)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        texts = next(iter(task.examples), ["..."] * len(task.inputs))
        example = json.dumps(dict(zip(task.inputs, texts, strict=True)), ensure_ascii=False)
        found = json.dumps(line.get("", line), default=repr)[:200]
        expected = f"expected a line like {example} (or --use-dataset-reader), got {found}"
        message = str(error) if isinstance(error, ValueError) else expected
        raise ValueError(f"{message}: line {line['line']}" if "line" in line else message) from error


def predictions_of_lines(task: Task, lines: list[JsonDict], predict: Predict, *, keep_going: bool) -> list[JsonDict]:
    """The prediction of each line. With `keep_going`, a bad line has its error instead."""
    predictions: list[JsonDict] = [{} for _ in lines]
    parsed = {}
    for number, line in enumerate(lines):
        try:
            parsed[number] = parsed_line(task, line)
        except ValueError as error:
            if not keep_going:
                raise
            predictions[number] = {"error": str(error), "line": line.get("line")}
    outputs = _outputs(task, list(parsed.values()), predict)
    for number, of_line in zip(parsed, outputs, strict=True):
        predictions[number] = task.joined(parsed[number], of_line) | ids_in(lines[number])
    return predictions


def plain_results(
    task: Task, inputs: Iterable[tuple[tuple[str, ...], list[JsonDict]]], predict: Predict
) -> Iterator[Any]:
    """The plain result of each input, which is its texts and its lines."""
    for some in constrained_batches(inputs, _LINES_AT_ONCE, get_len=lambda each: len(each[1]) or 1, strict=False):
        parsed = [parsed_line(task, line) for line in chain.from_iterable(lines for _, lines in some)]
        outputs = iter(_outputs(task, parsed, predict))
        for texts, lines in some:
            of_text = list(chain.from_iterable(islice(outputs, len(lines))))
            yield task.plain(of_text or [copy.deepcopy(task.without_words)], *texts)


def _outputs(task: Task, parsed: list[Any], predict: Predict) -> list[list[JsonDict]]:
    """The finished outputs for the instances of each line."""
    instances = task.instances_of(parsed)
    outputs = iter(predict(list(chain.from_iterable(instances))))
    return [list(islice(outputs, len(of_line))) for of_line in instances]


def ids_in(values: JsonDict) -> JsonDict:
    """The identifiers of SNLI and SQuAD, which a line or the metadata of an instance may have."""
    return {key: values[key] for key in ("id", "pairID") if values.get(key) is not None}
