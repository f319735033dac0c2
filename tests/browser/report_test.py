"""`docs/report.html` in Chromium, as its readers see it."""

from typing import Any

import pytest

from tests.paths import CHECKOUT

pytestmark = [pytest.mark.browser, pytest.mark.slow]

REPORT = CHECKOUT / "docs" / "report.html"


class TestReport:
    @pytest.mark.parametrize(("theme", "width"), [("light", 1200), ("dark", 390)])
    def test_it_is_read_without_an_error_and_without_a_network(self, browser, save_screenshot, theme, width):
        """
        Oracle: the console, the requests, axe; what is folded opens; wide tables scroll by themselves; it has under
        3 MB.
        """
        from axe_playwright_python.sync_playwright import Axe

        messages: list[str] = []
        requests: list[str] = []
        with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme) as context:
            context.set_default_timeout(180_000)
            page: Any = context.new_page()
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.on("request", lambda request: request.url.startswith("data:") or requests.append(request.url))
            page.goto(REPORT.as_uri())
            folded = page.locator("details")
            for number in range(folded.count()):
                if folded.nth(number).get_attribute("open") is None:
                    folded.nth(number).locator("summary").first.click()
                assert folded.nth(number).get_attribute("open") is not None
            assert page.locator("table").count() > 3
            found = Axe().run(page).response["violations"]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            save_screenshot(page, f"report-{theme}-{width}")
        assert messages == []
        assert requests == [REPORT.as_uri()]
        assert REPORT.stat().st_size < 3_000_000
