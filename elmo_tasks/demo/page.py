"""The page, made of Gradio's components, and its server: on this machine, without a network."""

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from html import escape
from typing import Any

import gradio
import pandas as pd
from gradio.themes.utils import colors
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmo_tasks.analysis import LanguageModel
from elmo_tasks.demo.tasks import Task, TaskArchive
from elmo_tasks.demo.words import Words

__all__ = ["make_page", "serve"]

_MAX_CHARACTERS = 20_000
_MAX_WAITING = 64
# The browser refuses whatever is not from this server. Gradio makes scripts of strings.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; frame-ancestors 'self'"
)


def make_page(
    words: Words,
    examples: list[list[str]],
    archives: Sequence[TaskArchive] = (),
    language_model: LanguageModel | None = None,
) -> gradio.Blocks:
    """The page; each of its functions is one over HTTP too. Archives of one task are side by side."""
    tasks: dict[str, list[TaskArchive]] = {}
    for archive in archives:
        tasks.setdefault(archive.task.name, []).append(archive)
    with gradio.Blocks(title="ELMo", analytics_enabled=False) as page:
        gradio.Markdown("# ELMo: words in context")
        with gradio.Tab("Words in context"):
            _words_tab(words, examples)
        for of_task in tasks.values():
            with gradio.Tab(of_task[0].task.title):
                _task_tab(of_task[0].task, of_task)
        if mixes := [mix for archive in archives for mix in archive.mixes()]:
            with gradio.Tab("Layer weights"):
                gradio.Dataframe(pd.DataFrame(mixes).fillna(""), label="What each model has learned to look at")
        if language_model is not None:
            with gradio.Tab("Likelihood"):
                _likelihood_tab(words, language_model)
    page.queue(max_size=_MAX_WAITING, api_open=False)
    return page


def _words_tab(words: Words, examples: list[list[str]]) -> None:
    with gradio.Row():
        sentences = _textbox("Sentences, one per line", lines=3)
        with gradio.Column():
            word = _textbox("Word, which is in each sentence")
            layer = gradio.Radio(words.layers, value=words.layers[-1], label="Layer of neighbours and map")
    inputs = [sentences, word, layer]
    button = gradio.Button("Compare", variant="primary")
    if examples:
        sentences.value, word.value = examples[0]
    gradio.Examples(examples, [sentences, word], cache_examples=False)
    cosines = gradio.Dataframe(label="Cosines of the word's vectors")
    neighbors = gradio.Dataframe(label="Nearest neighbours", wrap=True)
    scatter = gradio.ScatterPlot(
        x="x", y="y", color="of", tooltip=["sentence"], height=400, label="Occurrences in the sentences and the index"
    )
    _on(button, words.compare, inputs, [cosines, neighbors, scatter], "words")


def _task_tab(task: Task, archives: Sequence[TaskArchive]) -> None:
    inputs = [_textbox(name.capitalize(), lines=1 if name != "passage" else 5) for name in task.inputs]
    button = gradio.Button("Predict", variant="primary")
    gradio.Examples(task.examples, inputs, cache_examples=False)
    agreement = gradio.Markdown(visible=len(archives) > 1)
    outputs = []
    with gradio.Row():
        for archive in archives:
            with gradio.Column(min_width=320):
                outputs += task.components(archive.name)

    def predict(*texts: str) -> list[Any]:
        predictions = [archive.predict(*texts) for archive in archives]
        shown = [task.values(prediction) for prediction in predictions]
        return ["The models agree." if _same(shown) else "The models differ.", *(v for vs in shown for v in vs)]

    _on(button, predict, inputs, [agreement, *outputs], task.name)


def _same(shown: list[list[Any]]) -> bool:
    """Whether all models show the same marks, or have the same best label."""
    firsts = [values[0] for values in shown]
    if isinstance(firsts[0], dict):
        firsts = [max(first, key=first.get) for first in firsts]
    return all(str(first) == str(firsts[0]) for first in firsts)


def _likelihood_tab(words: Words, language_model: LanguageModel) -> None:
    sentence = _textbox("Sentence")
    button = gradio.Button("Score", variant="primary")
    table = gradio.Dataframe(label="Log-likelihood of each word, in nats")

    def score(text: str) -> pd.DataFrame:
        found = language_model.score_words(words.tokenized(text))
        rows = {"word": [*found.words, "(boundary)"], "forward": [*found.forward, found.end]}
        return pd.DataFrame({**rows, "backward": [*found.backward, found.begin]}).round(2)

    _on(button, score, [sentence], [table], "likelihood")


def _textbox(label: str, lines: int = 1) -> gradio.Textbox:
    return gradio.Textbox(label=label, lines=lines, max_lines=12, max_length=_MAX_CHARACTERS)


def _on(button: gradio.Button, function: Callable[..., Any], inputs: list[Any], outputs: list[Any], name: str) -> None:
    """One request is computed at a time: more would be slower on a CPU, and use more memory."""

    @wraps(function)
    def answer(*values: Any) -> Any:
        try:
            return function(*values)
        except (ValueError, OSError) as error:
            # Gradio shows the message as HTML.
            raise gradio.Error(escape(str(error), quote=False), print_exception=False) from error

    triggers = [button.click, *(box.submit for box in inputs if isinstance(box, gradio.Textbox))]
    gradio.on(triggers, answer, inputs, outputs, api_name=name, concurrency_limit=1, concurrency_id="elmo")


def serve(page: gradio.Blocks, host: str = "127.0.0.1", port: int = 7860, *, blocks: bool = True) -> None:
    """Serves the page until the process is interrupted."""
    # Gradio's own deprecation warnings.
    warnings.filterwarnings("ignore", module="gradio")
    middleware = [Middleware(_WithPolicy)]
    if host in ("127.0.0.1", "localhost"):
        # No other site can have its name resolved to this machine and read the answers.
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"]))
    page.launch(
        server_name=host,
        server_port=port,
        share=False,
        ssr_mode=False,
        show_error=True,
        max_file_size="1kb",
        footer_links=["api", "settings"],
        theme=_theme(),
        app_kwargs={"middleware": middleware, "openapi_url": None},
        prevent_thread_lock=not blocks,
    )


def _theme() -> gradio.themes.Base:
    """The fonts of the system, and colours with enough contrast."""
    theme = gradio.themes.Default(
        primary_hue=colors.blue,
        secondary_hue=colors.blue,
        neutral_hue=colors.slate,
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    )
    return theme.set(
        body_text_color_subdued="*neutral_600",
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_dark="*primary_700",
        button_primary_text_color="white",
        button_primary_text_color_dark="white",
    )


class _WithPolicy:
    """Adds the policy to each response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Content-Security-Policy"] = _POLICY
            await send(message)

        await self._app(scope, receive, send_with_policy)
