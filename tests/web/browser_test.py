"""The page in a browser: Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from elmo_tasks.predictors.pictures import picture
from elmo_tasks.predictors.results import Roles

pytest.importorskip("gradio")
sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
# It would set `window.ran` if any part of it was read as HTML.
SCRIPT = '<img src=x onerror="window.ran=1"><script>window.ran=2</script><b onclick="ran=3">it</b>'
TEXT = f'Ann said {SCRIPT} in Rome. He met "Bob" & sang &lt;i&gt;.'
TABS = {
    "Named entities": ["Text"],
    "Semantic roles": ["Text"],
    "Entailment": ["Premise", "Hypothesis"],
    "Sentiment": ["Text"],
    "Questions": ["Question", "Passage"],
    "Coreference": ["Text"],
}
# Elements of displaCy with a label of a span: the text, the left edge, and the right one.
LABELS = """[...document.querySelectorAll("span")]
    .filter(span => span.style.zIndex == 10)
    .map(span => {
        const box = span.getBoundingClientRect();
        return [span.innerText.trim(), box.left, box.right, box.top];
    })"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Any]:
    """The page, which may neither load anything from elsewhere nor have an error."""
    page = browser.new_page()
    problems: list[str] = []

    def note_address(request: Any) -> None:
        if not request.url.startswith((url, "data:", "blob:")):
            problems.append(request.url)

    page.on("request", note_address)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.goto(url)
    yield page
    assert problems == []
    page.close()


def tab(page: Any, title: str) -> Any:
    page.get_by_role("tab", name=title, exact=True).click()
    return page.get_by_role("tabpanel").filter(visible=True)


def press(panel: Any, name: str) -> None:
    panel.get_by_role("button", name=name, exact=True).click()


def test_every_tab_shows_texts_as_texts(page, archives):
    tabs = page.get_by_role("tab")
    sync_api.expect(tabs).to_have_count(len(TABS) + 1)
    assert set(tabs.all_inner_texts()) == {"Words in context", *TABS}
    tasks = {archive.predictor.title: archive.trained for archive in archives}
    for title, names in TABS.items():
        panel = tab(page, title)
        for name in names:
            panel.get_by_label(name, exact=True).fill(TEXT)
        press(panel, "Predict")
        expected = ["onerror"]
        if title == "Sentiment":
            stars = tasks[title](TEXT)["probabilities"]
            expected = [f"{share:.2f}" for share in stars.values()]
        for text in expected:
            sync_api.expect(panel).to_contain_text(text)
        assert "<script>" not in panel.inner_html()
        assert page.evaluate("window.ran") is None


def test_words_in_context_are_compared(page, comparer):
    text = f"{SCRIPT} They play .\nA play <b>opens</b> ."
    panel = tab(page, "Words in context")
    panel.get_by_label("Sentences, one per line", exact=True).fill(text)
    panel.get_by_label("Word, which is in each sentence", exact=True).fill("play")
    panel.get_by_label("layer 1", exact=True).check()
    press(panel, "Compare")
    neighbors = comparer.compare(text, "play", "layer 1").neighbors
    for cell in neighbors["occurrence 2"][:3]:
        sync_api.expect(panel).to_contain_text(cell)
    assert page.evaluate("window.ran") is None


def test_an_error_is_shown_as_a_sentence(page):
    panel = tab(page, "Named entities")
    panel.get_by_label("Text", exact=True).fill(" ")
    press(panel, "Predict")
    sync_api.expect(page.get_by_text("expected a text, got no words")).to_be_visible()
    panel = tab(page, "Words in context")
    panel.get_by_label("Word, which is in each sentence", exact=True).fill(SCRIPT)
    press(panel, "Compare")
    sync_api.expect(page.get_by_text(SCRIPT).last).to_be_visible()
    assert page.evaluate("window.ran") is None


def test_labels_do_not_overlap(browser):
    labels = ["ARG1", "ARGM-MOD", "V", "ARGM-PRP"]
    roles = []
    for word, start, label in zip(["It", "is", "as", "we"], [0, 3, 6, 9], labels, strict=True):
        roles.append({"text": word, "start": start, "end": start + 2, "label": label})
    predicate = {"verb": "as", "start": 6, "end": 8, "roles": roles}
    html = picture(Roles(), "It is as we", [predicate], "en")
    page = browser.new_page()
    page.set_content(html)
    boxes = page.evaluate(LABELS)
    page.close()
    assert [text for text, _, _, _ in boxes] == labels
    assert len({top for _, _, _, top in boxes}) == 1
    for (_, _, right, _), (_, left, _, _) in pairwise(boxes):
        assert right <= left
