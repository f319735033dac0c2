"""The page, built from Gradio components, and its server, which needs no network."""

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from html import escape
from itertools import chain
from typing import Any

import gradio
from gradio.components import Component
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response

from elmo_tasks.web.addresses import LOCAL_HOSTS
from elmo_tasks.web.tasks import TaskArchive
from elmo_tasks.web.words import Words

__all__ = ["make_page", "serve"]

MAX_CHARACTERS = 50_000
"""Of a text, as in the HTTP service."""
# The browser loads only what comes from this server. Gradio needs `unsafe-eval`, because it makes
# scripts from strings.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; frame-ancestors 'self'"
)


def make_page(
    words: Words, examples: list[list[str]], archives: Sequence[TaskArchive] = ()
) -> gradio.Blocks:
    """
    The page. Its functions can also be called over HTTP. Archives for the same task are shown side
    by side.
    """
    tasks: dict[str, list[TaskArchive]] = {}
    for archive in archives:
        tasks.setdefault(archive.trained.task, []).append(archive)
    with gradio.Blocks(
        title="ELMo: words in context and trained models", analytics_enabled=False
    ) as page:
        gradio.Markdown("# ELMo: words in context")
        with gradio.Tab("Words in context"):
            _words_tab(words, examples)
        for name, of_task in tasks.items():
            with gradio.Tab(of_task[0].predictor.title or name):
                _task_tab(name, of_task)
    return page


def _words_tab(words: Words, examples: list[list[str]]) -> None:
    layers = list(words.layers)
    with gradio.Row():
        sentences = gradio.Textbox(
            label="Sentences, one per line", lines=3, max_length=MAX_CHARACTERS
        )
        with gradio.Column():
            word = gradio.Textbox(label="Word, which is in each sentence")
            layer = gradio.Radio(layers, value=layers[-1], label="Layer of neighbours and map")
    inputs = [sentences, word, layer]
    button = gradio.Button("Compare", variant="primary")
    if examples:
        sentences.value, word.value = examples[0]
    # Without labels, Gradio 6.17 may show examples as empty cells, depending on the order of its
    # requests.
    gradio.Examples(
        examples,
        [sentences, word],
        cache_examples=False,
        example_labels=[each[1] for each in examples],
    )
    first = (
        words.compare(examples[0][0], examples[0][1], layers[-1])
        if examples
        else (None, None, None)
    )
    cosines = gradio.Dataframe(first[0], label="Cosines of the word's vectors")
    neighbors = gradio.Dataframe(first[1], label="Nearest neighbours", wrap=True)
    # With a label, the legend would not fit into the height.
    scatter = gradio.ScatterPlot(
        first[2],
        x="x",
        y="y",
        color="of",
        tooltip=["sentence"],
        height=400,
        title="Occurrences in the sentences and the index",
        x_title="first principal component",
        y_title="second",
        color_title="",
        show_label=False,
    )
    _on(button, words.compare, inputs, [cosines, neighbors, scatter], "words")


def _task_tab(name: str, archives: Sequence[TaskArchive]) -> None:
    task = archives[0].predictor
    gradio.Markdown(task.about)
    inputs = [
        gradio.Textbox(
            label=name.capitalize(), lines=5 if name == "passage" else 1, max_length=MAX_CHARACTERS
        )
        for name in task.inputs
    ]
    button = gradio.Button("Predict", variant="primary")
    examples = list(map(list, task.examples))
    if examples:
        for box, text in zip(inputs, examples[0], strict=True):
            box.value = text
        gradio.Examples(
            examples, inputs, cache_examples=False, example_labels=[each[0] for each in examples]
        )
    outputs: list[Component] = []
    with gradio.Row():
        for archive in archives:
            with gradio.Column(min_width=320):
                outputs += archive.components()

    def predict(*texts: str) -> dict[Component, Any]:
        values = chain.from_iterable(archive.values(*texts) for archive in archives)
        return dict(zip(outputs, values, strict=True))

    _on(button, predict, inputs, outputs, name)


def _on(
    button: gradio.Button,
    function: Callable[..., Any],
    inputs: list[Any],
    outputs: list[Any],
    name: str,
) -> None:
    """
    Only one request is computed at a time: parallel ones would be slower on a CPU and use more
    memory.
    """

    @wraps(function)
    def answer(*values: Any) -> Any:
        try:
            return function(*values)
        except (ValueError, OSError) as error:
            # Gradio shows the message as HTML.
            raise gradio.Error(escape(str(error), quote=False), print_exception=False) from error

    triggers = [button.click, *(box.submit for box in inputs if isinstance(box, gradio.Textbox))]
    gradio.on(
        triggers, answer, inputs, outputs, api_name=name, concurrency_limit=1, concurrency_id="elmo"
    )


def serve(
    page: gradio.Blocks, host: str = "127.0.0.1", port: int = 7860, *, blocks: bool = True
) -> None:
    """Serves the page until the process is interrupted."""
    middleware = [Middleware(BaseHTTPMiddleware, dispatch=_with_policy)]
    if host in LOCAL_HOSTS:
        # Prevents other sites from resolving their names to this machine to read the answers.
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=LOCAL_HOSTS))
    page.launch(
        server_name=host,
        server_port=port,
        share=False,
        ssr_mode=False,
        show_error=True,
        footer_links=["api", "settings"],
        theme=gradio.themes.Default(primary_hue="blue"),
        app_kwargs={"middleware": middleware, "openapi_url": None},
        prevent_thread_lock=not blocks,
    )


async def _with_policy(
    request: Request, respond: Callable[[Request], Awaitable[Response]]
) -> Response:
    response = await respond(request)
    response.headers["Content-Security-Policy"] = _POLICY
    return response
