"""What the predictors of all tasks share: JSON lines, and errors that name the line."""

import json
from typing import ClassVar

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader
from allennlp.models import Model
from allennlp.predictors import Predictor

__all__ = ["JsonLinesPredictor"]


class JsonLinesPredictor(Predictor):
    """
    A predictor that says which line is broken, and what one looks like. With `--use-dataset-reader`,
    `allennlp predict` reads the files of the task instead.

    # Parameters

    model : `Model`
        The model.
    dataset_reader : `DatasetReader`
        The one it was trained with.
    """

    # What a line looks like.
    example: ClassVar[JsonDict]

    def __init__(self, model: Model, dataset_reader: DatasetReader) -> None:
        super().__init__(model, dataset_reader)
        self._n_lines = 0

    def load_line(self, line: str) -> JsonDict:
        """
        # Raises

        `ValueError`
            If the line is not a JSON object.
        """
        self._n_lines += 1
        try:
            inputs = json.loads(line)
            if not isinstance(inputs, dict):
                raise ValueError("no object")
        except ValueError as error:
            raise ValueError(
                f"line {self._n_lines} (empty ones not counted) must be a JSON object like "
                f"{json.dumps(self.example)}, but is {line.strip()!r:.100} ({error})"
            ) from None
        return inputs
