"""The page of `allennlp elmo-demo` in Chromium, as its users see it."""

import re
from typing import Any

import pytest

from tests.browser.conftest import EVIL

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TABS = ["Words in context", "Named entities", "Entailment", "What ELMo looks at"]
# Of Gradio's own tabs and footer.
KNOWN = {"aria-hidden-focus", "image-redundant-alt"}


def go_to(page: Any, tab: str) -> None:
    """Opens a tab; on a narrow page some are in a menu."""
    found = page.get_by_role("tab", name=tab, exact=True)
    if not found.is_visible():
        page.locator(".overflow-menu > button").click()
        found = page.locator(".overflow-dropdown button", has_text=tab)
    found.click()
    page.get_by_role("tabpanel").filter(visible=True).first.wait_for()


def compute(page: Any, tab: str) -> Any:
    """Presses the button of a tab, and returns the panel with its result."""
    go_to(page, tab)
    panel = page.get_by_role("tabpanel").filter(visible=True)
    panel.get_by_role("button", name=re.compile("^(Predict|Compare|Score)$")).click()
    shown = {TABS[0]: ".elmo-strip", TABS[1]: ".elmo-text", TABS[2]: ".elmo-answer", TABS[3]: ".elmo-likelihood"}
    panel.locator(shown[tab]).first.wait_for()
    return panel


class TestWordsInContext:
    def test_a_word_is_compared(self, open_page):
        """Oracle: by hand: the occurrences, their numbers, a map and neighbours for each of three layers."""
        page = open_page()
        page.get_by_label("Sentences, one a line").fill("The bank lends money .\nWe sat on the bank , a steep bank .")
        page.get_by_label("Word, which is in each sentence").fill("bank")
        page.get_by_role("button", name="Compare").click()
        page.locator(".elmo-sentences li", has_text="a steep bank").first.wait_for()
        assert page.locator(".elmo-sentences li").count() == 3
        numbers = page.locator(".elmo-heat").first.locator("tbody td").all_inner_texts()
        assert len(numbers) == 9 and numbers[::4] == ["1.00"] * 3
        page.locator(".elmo-map").nth(2).wait_for()
        page.locator("h3", has_text="3. … sat on").wait_for()
        assert page.locator(".elmo-neighbors").count() == 9

    def test_examples_are_one_click_away(self, open_page):
        """Oracle: the sentences of the example."""
        page = open_page()
        page.get_by_role("button", name="Example: gift").click()
        page.locator(".elmo-sentences mark", has_text="gift").first.wait_for()
        assert "birthday gift" in page.get_by_label("Sentences, one a line").input_value()

    def test_errors_are_sentences(self, open_page):
        """Oracle: the messages, in which markup is shown."""
        page = open_page()
        word, sentences = page.get_by_label("Word, which"), page.get_by_label("Sentences, one a line")
        for text, of_word, message in [
            ("They play .", "<img src=x onerror=alert(1)>", "but is '<img src=x onerror=alert(1)>'"),
            ("They play .", "bank", "'bank' is not in sentence 1, whose words are: They play ."),
            ("", "bank", "there must be at least one sentence, but there is none"),
            ("word " * 10_000, "word", "must have at most 200 words, but has 10,000: shorten it"),
        ]:
            sentences.fill(text)
            word.fill(of_word)
            page.get_by_role("button", name="Compare").click()
            page.get_by_test_id("toast-body").filter(has_text=message).first.wait_for()
            assert "Traceback" not in page.content()


class TestTabs:
    # Contrast depends on the theme, and places on the width: each of them once.
    @pytest.mark.parametrize(("theme", "width"), [("light", 1200), ("dark", 390)])
    def test_each_can_be_read(self, open_page, save_screenshot, theme, width):
        """
        Oracle: axe, for contrast and the rest, in both themes; no result is wider than a phone; a screenshot of each is
        kept.
        """
        from axe_playwright_python.sync_playwright import Axe

        page = open_page(width, theme)
        for tab in TABS:
            compute(page, tab)
            # What is still computed is pale, and the indicator of progress fades out.
            page.wait_for_function("!document.querySelector('.pending')")
            page.wait_for_function(
                "document.getAnimations().every(one => one.playState !== 'running'"
                " || one.effect.getComputedTiming().iterations === Infinity)"
            )
            name = f"{tab.lower().replace(' ', '-')}-{theme}-{width}"
            assert save_screenshot(page, name).stat().st_size > 10_000
            found = Axe().run(page).response["violations"]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["id"] not in KNOWN] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        is_dark = page.evaluate("document.body.classList.contains('dark')")
        assert is_dark == (theme == "dark")

    def test_models_are_side_by_side_and_names_are_not_run(self, open_page):
        """Oracle: the names of both archives as they are; random models differ, which is marked; the title."""
        page = open_page()
        panel = compute(page, "Named entities")
        names = panel.locator("h2").all_inner_texts()
        assert names == [EVIL.replace("/", "∕"), "ner_elmo"]
        left, right = (panel.locator("section").nth(number).bounding_box() for number in (0, 1))
        assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]
        assert panel.get_by_text("The models differ").is_visible() and panel.locator(".elmo-differs").count() > 0
        assert page.title() == "ELMo"

    def test_attention_is_a_table_of_both_sentences(self, open_page):
        """Oracle: the words of the two sentences as rows and columns."""
        panel = compute(open_page(), "Entailment")
        rows = panel.locator(".elmo-heat").first.locator("tbody th").all_inner_texts()
        columns = panel.locator(".elmo-heat").first.locator("thead th").all_inner_texts()
        assert (" ".join(rows), " ".join(columns)) == ("Two dogs run across a green field .", "Animals are outside .")

    def test_layers_and_likelihood_are_shown(self, open_page):
        """Oracle: the weights of both places; a row for each word and each end of the sentence."""
        panel = compute(open_page(), "What ELMo looks at")
        assert panel.get_by_text("At the input of the encoder").count() == 1
        assert panel.get_by_text("At the output of the encoder").count() == 1
        assert panel.get_by_text("This model has no ELMo.").count() == 2
        assert (
            panel.locator(".elmo-likelihood tbody tr").count()
            == len(["They", "play", "football", "on", "Saturdays", "."]) + 2
        )


class TestKeyboard:
    def test_everything_is_reached_without_a_mouse(self, open_page):
        """Oracle: the focus: from the tabs to the text, the word and the buttons; Enter computes."""
        page = open_page()

        def focused() -> str:
            element = "document.activeElement"
            return str(page.evaluate(f"{element}.innerText || {element}.closest('label')?.innerText || ''")).strip()

        def tab_to(name: str) -> None:
            for _ in range(12):
                page.keyboard.press("Tab")
                if focused().startswith(name):
                    return
            pytest.fail(f"{name} cannot be reached with the key Tab")

        tab_to("Sentences")
        page.keyboard.press("Control+A")
        page.keyboard.type("A gift for music .")
        tab_to("Word")
        page.keyboard.press("Control+A")
        page.keyboard.type("gift")
        page.keyboard.press("Enter")
        page.locator(".elmo-sentences li", has_text="A gift for music .").wait_for()
        tab_to("Compare")
        tab_to("Example: bank")
        page.keyboard.press("Enter")
        page.locator(".elmo-sentences mark", has_text="bank").first.wait_for()
        page.get_by_role("tab", name="Words in context").focus()
        tab_to("Named entities")
        page.keyboard.press("Enter")
        tab_to("Sentence")
        page.keyboard.press("Enter")
        page.get_by_role("tabpanel").filter(visible=True).locator(".elmo-text").first.wait_for()
