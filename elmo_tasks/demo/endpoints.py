"""The functions of the demo as JSON over HTTP."""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import gradio

from elmo_tasks.demo.demo import Demo
from elmo_tasks.demo.errors import for_the_api
from elmo_tasks.demo.task_archive import Task

__all__ = ["LIMITS", "add_endpoints"]

LIMITS: dict[str, Any] = {"concurrency_id": "demo", "concurrency_limit": 1}
"""Of all functions together, on the page and over HTTP."""


def add_endpoints(demo: Demo) -> None:
    """Adds the functions to the page that is being made, under their names and those of the tasks."""
    functions = (demo.similarity, demo.neighbors, demo.map, demo.layer_weights, demo.likelihood)
    for function in functions:
        gradio.api(for_the_api(function), api_name=function.__name__, **LIMITS)
    for archives in demo.archives.values():
        task = archives[0].task
        gradio.api(for_the_api(_prediction(demo, task)), api_name=task.name, **LIMITS)


def _prediction(demo: Demo, task: Task) -> Callable[..., dict[str, Any]]:
    """A function with an argument for each text of the task, from which Gradio takes their names."""

    def predict(*texts: str) -> dict[str, Any]:
        return demo.predict(task.name, *texts)

    names = list(task.inputs)
    predict.__doc__ = f"{task.title}: the predictions of all archives of this task."
    predict.__annotations__ = {**dict.fromkeys(names, str), "return": dict[str, Any]}
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=str) for name in names]
    predict.__signature__ = Signature(parameters, return_annotation=dict[str, Any])  # type: ignore[attr-defined]
    return predict
