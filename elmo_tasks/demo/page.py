"""The page: one tab per task, each of which is a function over HTTP too."""

import functools
import html
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# Before Gradio is imported.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import gradio
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from elmo_tasks.analysis.language_model import LanguageModel
from elmo_tasks.analysis.neighbors import NeighborIndex, build_index
from elmo_tasks.analysis.static_vectors import StaticVectors
from elmo_tasks.demo.tasks import TaskArchive
from elmo_tasks.demo.words import EXAMPLES, WordsInContext
from elmo_tasks.shipped import FIXTURES
from elmo_tasks.tokenization import blank_tokenizer
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["make_page", "serve"]

_SHIPPED_TEXT = Path(__file__).with_name("sentences.txt")
_MAX_CHARACTERS = 20_000
# Gradio's page has scripts and styles of its own in the text; nothing comes from, or goes to, any other host.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:"
)
_OPTIONS: dict[str, Any] = {"flagging_mode": "never", "cache_examples": False}


def make_page(
    archives: Sequence[Path],
    *,
    bilm: str,
    index: Path | None = None,
    glove: Path | None = None,
    language: str | None = None,
    folder: Path,
) -> gradio.TabbedInterface:
    """
    # Parameters

    archives
        Models; those of one task are next to each other.
    bilm
        A name or a folder.
    index
        One of `allennlp elmo-neighbors index` with the biLM's layers 0, 1, ... `None`: made of a small text that ships.
    glove
        Static vectors. `None`: English ones that ship.
    language
        spaCy's code, for the rules that split words. `None`: English, or Korean for `small-ko-open`.
    folder
        For an index that is made.
    """
    language = language or ("ko" if Path(bilm).name == "small-ko-open" else "en")
    # spaCy's `ko` needs other packages, and splits words into morphemes.
    rules = "xx" if language == "ko" else language
    elmo, split = Elmo.from_pretrained(bilm), blank_tokenizer(rules)
    if index is None:
        lines = _SHIPPED_TEXT.read_text(encoding="utf-8").splitlines()
        found = build_index(elmo, (line.split() for line in lines), folder, layers=range(elmo.n_layers))
    else:
        found = NeighborIndex(index)
        found.check_bilm(elmo)
    if glove is None and language == "en":
        (glove,) = (FIXTURES / "glove").glob("*.txt.gz")
    words = WordsInContext(elmo, split, found, StaticVectors(glove) if glove else None)
    tabs = {"Words in context": _words(words, EXAMPLES.get(language, []))}
    loaded = [TaskArchive(path, rules) for path in archives]
    for task in dict.fromkeys(archive.task for archive in loaded):
        tabs[task.title] = _task([archive for archive in loaded if archive.task is task])
    # A biLM without a softmax predicts no words.
    with suppress(ValueError, OSError):
        tabs["Likelihood"] = _likelihood(LanguageModel(bilm), split)
    return gradio.TabbedInterface(list(tabs.values()), list(tabs), title=f"ELMo: {Path(bilm).name}")


def serve(page: gradio.TabbedInterface, host: str, port: int, *, block: bool = True) -> str:
    """Serves the page, for this machine only unless `host` says otherwise. Returns its address."""
    hosts = ["127.0.0.1", "localhost", host] if host not in ("0.0.0.0", "::") else ["*"]
    page.queue(max_size=64)
    _, url, _ = page.launch(
        server_name=host,
        server_port=port,
        share=False,
        quiet=True,
        show_error=True,
        prevent_thread_lock=True,
        ssr_mode=False,
        theme=gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        app_kwargs={"middleware": [Middleware(TrustedHostMiddleware, allowed_hosts=hosts), Middleware(_Policy)]},
    )
    if block:
        print(f"ELMo is at {url} (Ctrl-C ends it)", flush=True)
        page.block_thread()
    return str(url)


class _Policy:
    """Adds a content security policy to every answer."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def with_policy(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Content-Security-Policy"] = _POLICY
            await send(message)

        await self._app(scope, receive, with_policy)


def _words(words: WordsInContext, examples: list[list[str]]) -> gradio.Interface:
    names = list(words.layers)
    return gradio.Interface(
        _shown(words.look_at),
        [
            gradio.Textbox(label="Sentences, one per line", lines=3, max_length=_MAX_CHARACTERS),
            gradio.Textbox(label="Word", max_length=100),
            gradio.Radio(names, value=names[-1], label="Layer of map and neighbours"),
        ],
        [
            gradio.Dataframe(label="Cosines by layer", wrap=True),
            gradio.ScatterPlot(x="x", y="y", color="source", tooltip=["sentence"], label="Map of occurrences"),
            gradio.Dataframe(label="Neighbours", wrap=True),
        ],
        examples=[[*example, names[-1]] for example in examples] or None,
        api_name="words",
        **_OPTIONS,
    )


def _task(archives: Sequence[TaskArchive]) -> gradio.Interface:
    task = archives[0].task

    def predict(*texts: str) -> Any:
        values = [archive.show(*texts) for archive in archives]
        return values if len(values) > 1 else values[0]

    return gradio.Interface(
        _shown(predict),
        [gradio.Textbox(label=name, lines=2, max_length=_MAX_CHARACTERS) for name in task.inputs],
        [task.component(archive.name) for archive in archives],
        examples=task.examples,
        article="\n\n".join(html.escape(line) for archive in archives for line in archive.mixes()),
        api_name=task.title.lower().replace(" ", "_"),
        **_OPTIONS,
    )


def _likelihood(model: LanguageModel, split: Callable[[str], list[str]]) -> gradio.Interface:
    def score(sentence: str) -> list[list[Any]]:
        scores = model.score_words(split(sentence))
        columns = zip(scores.words, scores.forward, scores.backward, scores.is_known, strict=True)
        return [[word, round(one, 2), round(other, 2), known] for word, one, other, known in columns]

    headers = ["word", "forward, nats", "backward, nats", "in the vocabulary"]
    return gradio.Interface(
        _shown(score),
        gradio.Textbox(label="sentence", max_length=_MAX_CHARACTERS),
        gradio.Dataframe(headers=headers, label="Log-likelihood of each word"),
        examples=[["She sat on the bank of the river ."]],
        api_name="likelihood",
        **_OPTIONS,
    )


def _shown(function: Callable[..., Any]) -> Callable[..., Any]:
    """Shows errors of input on the page, as text."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ValueError as error:
            raise gradio.Error(html.escape(str(error)), print_exception=False) from error

    return call
