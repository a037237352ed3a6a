"""Do everything on the page in a browser: `python -m tests.service.walk URL CHROMIUM FOLDER`.

Screenshots go to the folder, unless it is `-`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.service.servers import EMPLOYEES, PREFIX


def walk(url: str, chromium: str, shots: str) -> None:
    """Walk through the six views; fails if one does not work, or the browser reports an error."""
    problems: list[str] = []

    def foreign(address: str) -> list[str]:
        return [] if address.startswith((url, "blob:")) else [address]

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1200, "height": 820})
        page = context.new_page()
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        page.on("console", lambda m: problems.extend([m.text] if m.type == "error" else []))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda r: problems.extend(foreign(r.url)))

        def shot(name: str) -> None:
            if shots != "-":
                page.screenshot(path=str(Path(shots) / f"{name}.png"), caret="initial")

        def view(number: int, name: str) -> None:
            page.keyboard.press(f"Alt+{number}")
            tab = page.get_by_role("tab", name=name, exact=True)
            expect(tab).to_have_attribute("aria-selected", "true")

        page.goto(url)
        expect(page.locator(".store")).to_contain_text("facts")
        page.wait_for_load_state("networkidle")

        # Ask: completion, a table, by keyboard; a graph; the plan; a download
        editor = page.locator(".cm-content")
        editor.click()
        page.keyboard.press("Control+a")
        page.keyboard.type(PREFIX + "SELECT ?x { ?x a :Empl")
        expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text(":Employee")
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(EMPLOYEES)
        page.keyboard.press("Control+Enter")
        expect(page.locator(".result")).to_contain_text("2 rows")
        shot("ask")
        page.get_by_role("button", name="Show the plan").click()
        expect(page.locator(".result")).to_contain_text("SELECT")
        editor.click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text("DESCRIBE <http://example.org/ann>")
        page.get_by_role("button", name="Run").click()
        expect(page.locator(".result .badge.explicit").first).to_be_visible()
        expect(page.locator(".result .badge.derived").first).to_be_visible()
        expect(page.locator("svg.graph circle").first).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("button", name="Turtle", exact=True).click()
        assert "ann" in Path(download.value.path()).read_text()
        shot("graph")

        # Why: from a triple anywhere, and by name; unfold by keyboard
        row = page.locator(".result tr", has_text="worksFor")
        row.get_by_role("button", name=re.compile("^Why")).click()
        expect(page.locator("dialog .node").first).to_be_visible()
        page.keyboard.press("Escape")
        view(2, "Why")
        page.get_by_label("Fact", exact=True).fill("[:ann, a, :Person]")
        page.keyboard.press("Enter")
        nodes = page.locator("#view-why .node")
        expect(nodes.first).to_be_visible()
        before = nodes.count()
        folded = page.locator("#view-why .node[aria-expanded=false]")
        if folded.count():
            folded.first.focus()
            page.keyboard.press("Enter")
            assert nodes.count() > before
        expect(page.locator("#view-why .step")).to_contain_text("If ")
        shot("why")

        # What if: preview, contradiction, drop, commit
        view(3, "What if")
        page.get_by_label("Facts to insert").fill(":cat :headOf :lab . :cat a :Robot .")
        page.get_by_role("button", name="What would follow?").click()
        expect(page.locator("#view-what-if")).to_contain_text("is contradicted")
        expect(page.locator("#view-what-if .node").first).to_be_visible()
        shot("what-if")
        page.get_by_role("button", name="Drop").click()
        page.get_by_label("Facts to insert").fill(":cat :headOf :lab .")
        page.get_by_role("button", name="What would follow?").click()
        page.get_by_role("button", name="Commit").click()
        expect(page.locator(".done")).to_contain_text("Committed as version 2")

        # History: the time line, the changes, a query at an older version, undo
        view(4, "History")
        page.locator("#view-history").get_by_role("button", name="2", exact=True).click()
        expect(page.locator("#view-history .changes")).to_contain_text("[:cat, :headOf, :lab]")
        shot("history")
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#view-history .done")).to_contain_text("Undone")
        page.locator("#view-history").get_by_role("button", name="2", exact=True).click()
        page.get_by_role("button", name="Query this version").click()
        expect(page.get_by_label("at version")).to_have_value("2")
        page.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(EMPLOYEES)
        page.keyboard.press("Control+Enter")
        expect(page.locator(".result")).to_contain_text("3 rows, version 2")

        # Live: commits of somebody else, as they come
        view(5, "Live")
        expect(page.get_by_role("status")).to_have_text("connected")
        for name in ("dan", "eve"):
            sent = context.request.post(
                url + "/sparql",
                form={"update": f"{PREFIX} INSERT DATA {{ :{name} :worksFor :lab }}"},
            )
            assert sent.ok, sent.text()
            expect(page.locator(".commits")).to_contain_text(f"[:{name}, a, :Employee]")
        expect(page.locator("#view-live svg.bars").first).to_be_visible()
        shot("live")

        # Schema: the tree, the facts of a class
        view(6, "Schema")
        page.locator(".tree").get_by_role("button", name=":Employee", exact=True).click()
        expect(page.locator("#view-schema")).to_contain_text("What is said about it")
        shot("schema")

        # On a phone, in the dark: nothing is wider than the screen
        page.set_viewport_size({"width": 380, "height": 740})
        page.emulate_media(color_scheme="dark")
        for number in range(1, 7):
            page.keyboard.press(f"Alt+{number}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 380, number
        view(6, "Schema")
        shot("phone")
        background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert background != "rgb(255, 255, 255)", background
        browser.close()

    # Chromium's editing commands set a style when text replaces a selection; the policy blocks it.
    problems = [text for text in problems if not text.startswith("Applying inline style")]
    assert not problems, problems


if __name__ == "__main__":
    walk(*sys.argv[1:4])
