"""The page, by Gradio."""

from collections.abc import Callable, Sequence
from typing import Any

import gradio
from gradio.themes.utils import colors

from elmo_tasks.demo.demo import Demo
from elmo_tasks.demo.endpoints import LIMITS, add_endpoints
from elmo_tasks.demo.errors import for_the_page
from elmo_tasks.demo.languages import Example
from elmo_tasks.demo.projection import METHODS
from elmo_tasks.demo.rendering import (
    header_html,
    likelihood_html,
    map_html,
    mixes_html,
    neighbors_html,
    predictions_html,
    similarity_html,
)
from elmo_tasks.demo.task_archive import TaskArchive
from elmo_tasks.demo.views import with_differences

__all__ = ["make_page", "make_theme"]

# Of events of the page, which have no names in the API.
_EVENT: dict[str, Any] = {"api_visibility": "private", **LIMITS}
_MAX_WAITING = 64
# On a narrow page some tabs are in a menu, whose button has no name for screen readers.
_NAME_OF_MENU = """
() => {
  const name = () => document.querySelectorAll(".overflow-menu > button").forEach((menu) => {
    menu.setAttribute("aria-label", "More tabs");
  });
  name();
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
}
"""


def make_page(demo: Demo) -> gradio.Blocks:
    """
    # Returns

    `gradio.Blocks`
        The page with all of its tabs, and the functions over HTTP.
    """
    with gradio.Blocks(title="ELMo", analytics_enabled=False) as page:
        gradio.HTML(header_html(demo.bilm))
        with gradio.Tabs():
            with gradio.Tab("Words in context"):
                _words_in_context(page, demo)
            for archives in demo.archives.values():
                with gradio.Tab(archives[0].task.title):
                    _task(demo, archives)
            with gradio.Tab("What ELMo looks at"):
                _layers_and_likelihood(demo)
        add_endpoints(demo)
        page.load(None, js=_NAME_OF_MENU)
    page.queue(max_size=_MAX_WAITING, api_open=False)
    return page


def make_theme() -> gradio.themes.Base:
    """A theme with the fonts of the system, and colours with enough contrast."""
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
        button_primary_background_fill_hover="*primary_800",
        button_primary_background_fill_dark="*primary_700",
        button_primary_background_fill_hover_dark="*primary_800",
        button_primary_text_color="white",
        button_primary_text_color_dark="white",
    )


def _words_in_context(page: gradio.Blocks, demo: Demo) -> None:
    first = next(iter(demo.examples), Example("", ()))
    sentences = gradio.Textbox("\n".join(first.sentences), label="Sentences, one a line", lines=3, max_lines=12)
    with gradio.Row(equal_height=True):
        word = gradio.Textbox(first.word, label="Word, which is in each sentence", scale=2)
        method = gradio.Radio(
            [(name.upper(), name) for name in METHODS], value="pca", label="Map by", visible=len(METHODS) > 1
        )
        button = gradio.Button("Compare", variant="primary")
    with gradio.Row():
        choices = [gradio.Button(f"Example: {example.word}", size="sm") for example in demo.examples]
    similarity, places, neighbors = gradio.HTML(), gradio.HTML(), gradio.HTML()

    def compare(text: str, of_word: str) -> str:
        return similarity_html(demo.similarity(_lines(text), of_word.strip()))

    def draw(text: str, of_word: str, by: Any) -> str:
        return map_html(demo.map(_lines(text), of_word.strip(), by))

    def look_up(text: str, of_word: str) -> str:
        return neighbors_html(demo.neighbors(_lines(text), of_word.strip()))

    def chain(trigger: Callable[..., Any]) -> None:
        """One after the other, so that an error is shown once."""
        event = trigger(for_the_page(compare), [sentences, word], similarity, **_EVENT)
        event = event.success(for_the_page(draw), [sentences, word, method], places, **_EVENT)
        event.success(for_the_page(look_up), [sentences, word], neighbors, **_EVENT)

    chain(button.click)
    chain(word.submit)
    if demo.examples:
        chain(page.load)
    for choice, example in zip(choices, demo.examples, strict=True):
        values = "\n".join(example.sentences), example.word
        chain(choice.click(_constant(values), None, [sentences, word], **_EVENT).then)
    method.change(for_the_page(draw), [sentences, word, method], places, **_EVENT)


def _task(demo: Demo, archives: Sequence[TaskArchive]) -> None:
    task = archives[0].task
    texts = [
        gradio.Textbox(
            value, label=name.capitalize(), lines=1 if most == min(task.inputs.values()) else 4, max_lines=12
        )
        for (name, most), value in zip(task.inputs.items(), task.examples[0], strict=True)
    ]
    button = gradio.Button("Predict", variant="primary")
    with gradio.Row():
        choices = [gradio.Button(f"Example {number}", size="sm") for number in range(1, len(task.examples) + 1)]
    result = gradio.HTML()

    def predict(*values: str) -> str:
        predictions = demo.predict(task.name, *values)["predictions"]
        views = with_differences([task.view(found["prediction"]) for found in predictions])
        return predictions_html([found["archive"] for found in predictions], views)

    for trigger in (button.click, *(text.submit for text in texts)):
        trigger(for_the_page(predict), texts, result, **_EVENT)
    for choice, values in zip(choices, task.examples, strict=True):
        filled = choice.click(_constant(values if len(values) > 1 else values[0]), None, texts, **_EVENT)
        filled.then(for_the_page(predict), texts, result, **_EVENT)


def _layers_and_likelihood(demo: Demo) -> None:
    of_archives = [
        (archive.name, archive.task.title, archive.mixes())
        for archives in demo.archives.values()
        for archive in archives
    ]
    gradio.HTML(mixes_html(of_archives))
    gradio.Markdown("## How probable the biLM finds each word")
    if isinstance(demo.language_model, str):
        gradio.HTML(likelihood_html(demo.language_model))
        return
    first = next(iter(demo.examples), None)
    sentence = gradio.Textbox(first.sentences[0] if first else "", label="Sentence")
    button = gradio.Button("Score", variant="primary")
    result = gradio.HTML()

    def score(text: str) -> str:
        return likelihood_html(demo.likelihood(text))

    for trigger in (button.click, sentence.submit):
        trigger(for_the_page(score), sentence, result, **_EVENT)


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value
