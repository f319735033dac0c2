"""Errors as sentences, on the page and over HTTP."""

import logging
from collections.abc import Callable
from functools import wraps
from html import escape
from typing import ParamSpec, TypeVar

import gradio

__all__ = ["for_the_api", "for_the_page"]

logger = logging.getLogger(__name__)

_P = ParamSpec("_P")
_R = TypeVar("_R")

_UNEXPECTED = "the demo could not compute this, and it is not the fault of your text: its terminal says why"


def for_the_api(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, whose errors are those of Gradio with the sentence as it is."""
    return _with_sentences(function, str)


def for_the_page(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same with a sentence that is escaped, since Gradio takes it as HTML."""
    return _with_sentences(function, escape)


def _with_sentences(function: Callable[_P, _R], shown: Callable[[str], str]) -> Callable[_P, _R]:
    @wraps(function)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except (ValueError, ImportError, OSError) as error:
            raise gradio.Error(shown(str(error)), print_exception=False) from error
        except Exception as error:
            logger.exception("an unexpected error of the demo")
            raise gradio.Error(_UNEXPECTED, print_exception=False) from error

    return wrapped
