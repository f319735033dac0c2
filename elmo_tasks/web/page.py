"""The page, built from Gradio components, and its server, which needs no network."""

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from html import escape
from typing import Any

import gradio
from gradio.components import Component
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response

from elmo_tasks.web.addresses import LOCAL_HOSTS
from elmo_tasks.web.tasks import DemoTask
from elmo_tasks.web.word_comparer import WordComparer

__all__ = ["make_page", "serve"]

MAX_CHARACTERS = 50_000
"""The most characters of a text, as in the HTTP service."""
# The browser loads only what comes from this server. Gradio needs `unsafe-eval`, because it makes
# scripts from strings.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "frame-ancestors 'self'"
)


def make_page(
    comparer: WordComparer, examples: list[list[str]], demo_tasks: Sequence[DemoTask] = ()
) -> gradio.Blocks:
    """
    The page. Its functions can also be called over HTTP. Models of the same task are shown side by
    side.
    """
    demos_by_task: dict[str, list[DemoTask]] = {}
    for demo in demo_tasks:
        demos_by_task.setdefault(demo.trained.task, []).append(demo)
    title = "ELMo: words in context and trained models"
    with gradio.Blocks(title=title, analytics_enabled=False) as page:
        gradio.Markdown("# ELMo: words in context")
        with gradio.Tab("Words in context"):
            _words_tab(comparer, examples)
        for name, demos_of_task in demos_by_task.items():
            with gradio.Tab(demos_of_task[0].predictor.title or name):
                _task_tab(name, demos_of_task)
    return page


def _words_tab(comparer: WordComparer, examples: list[list[str]]) -> None:
    layers = list(comparer.layers)
    with gradio.Row():
        sentences = gradio.Textbox(
            label="Sentences, one per line", lines=3, max_length=MAX_CHARACTERS
        )
        with gradio.Column():
            word = gradio.Textbox(label="Word, which is in each sentence")
            layer = gradio.Radio(layers, value=layers[-1], label="Layer of neighbours and map")
    inputs = [sentences, word, layer]
    button = gradio.Button("Compare", variant="primary")
    values: tuple[Any, ...] = (None, None, None)
    if examples:
        example_text, example_word = examples[0]
        sentences.value = example_text
        word.value = example_word
        values = comparer.compare(example_text, example_word, layers[-1])
    # Without labels, Gradio 6.17 may show examples as empty cells, depending on the order of its
    # requests.
    gradio.Examples(
        examples,
        [sentences, word],
        cache_examples=False,
        example_labels=[example_word for _, example_word in examples],
    )
    cosines_value, neighbors_value, points_value = values
    cosines = gradio.Dataframe(cosines_value, label="Cosines of the word's vectors")
    neighbors = gradio.Dataframe(neighbors_value, label="Nearest neighbours", wrap=True)
    # With a label, the legend would not fit into the height.
    scatter = gradio.ScatterPlot(
        points_value,
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
    _on(button, comparer.compare, inputs, [cosines, neighbors, scatter], "words")


def _task_tab(name: str, demos: Sequence[DemoTask]) -> None:
    predictor = demos[0].predictor
    gradio.Markdown(predictor.about)
    boxes = []
    for input_name in predictor.inputs:
        box = gradio.Textbox(
            label=input_name.capitalize(),
            lines=5 if input_name == "passage" else 1,
            max_length=MAX_CHARACTERS,
        )
        boxes.append(box)
    button = gradio.Button("Predict", variant="primary")
    examples = list(map(list, predictor.examples))
    if examples:
        for box, text in zip(boxes, examples[0], strict=True):
            box.value = text
        labels = [example[0] for example in examples]
        gradio.Examples(examples, boxes, cache_examples=False, example_labels=labels)
    outputs: list[Component] = []
    with gradio.Row():
        for demo in demos:
            with gradio.Column(min_width=320):
                outputs += demo.components()

    def predict(*texts: str) -> dict[Component, Any]:
        values = []
        for demo in demos:
            values += demo.values(*texts)
        return dict(zip(outputs, values, strict=True))

    _on(button, predict, boxes, outputs, name)


def _on(
    button: gradio.Button,
    function: Callable[..., Any],
    inputs: list[Any],
    outputs: list[Any],
    name: str,
) -> None:
    """
    Calls `function` when the button or Return is pressed. Only one request is computed at a time:
    parallel ones would be slower on a CPU and use more memory.
    """

    @wraps(function)
    def answer(*values: Any) -> Any:
        try:
            return function(*values)
        except (ValueError, OSError) as error:
            # Gradio shows the message as HTML.
            raise gradio.Error(escape(str(error), quote=False), print_exception=False) from error

    triggers = [button.click]
    for component in inputs:
        if isinstance(component, gradio.Textbox):
            triggers.append(component.submit)
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
