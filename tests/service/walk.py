"""Do everything on the page in a browser: `python -m tests.service.walk URL CHROMIUM FOLDER`.

The store is LUBM(1). Screenshots go to the folder, unless it is `-`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from playwright.sync_api import Locator, expect, sync_playwright

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
DEPARTMENT = "http://www.Department0.University0.edu"
PREFIX = f"PREFIX ub: <{UB}>\n"
STAFF = (
    PREFIX + "SELECT ?x ?name {\n  ?x a ub:Professor ; ub:name ?name ;\n"
    f"     ub:memberOf <{DEPARTMENT}>\n}} ORDER BY ?x LIMIT 12"
)
HEADS = PREFIX + f"SELECT ?x {{ ?x ub:headOf <{DEPARTMENT}> }}"
CHAIR = f"@prefix ub: <{UB}> .\n<{DEPARTMENT}/Ann> ub:headOf <{DEPARTMENT}> ."


def walk(url: str, chromium: str, shots: str) -> None:
    """Walk through the six views; fails if one does not work, or the browser reports an error."""
    problems: list[str] = []

    def foreign(address: str) -> list[str]:
        return [] if address.startswith((url, "blob:")) else [address]

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1200, "height": 820})
        page = context.new_page()
        page.set_default_timeout(120_000)
        expect.set_options(timeout=120_000)
        page.on("console", lambda m: problems.extend([m.text] if m.type == "error" else []))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda r: problems.extend(foreign(r.url)))

        def shot(name: str) -> None:
            if shots != "-":
                page.screenshot(path=str(Path(shots) / f"serve-{name}.png"), caret="initial")

        def view(number: int, name: str) -> Locator:
            page.keyboard.press(f"Alt+{number}")
            tab = page.get_by_role("tab", name=name, exact=True)
            expect(tab).to_have_attribute("aria-selected", "true")
            return page.locator(f"#view-{name.lower().replace(' ', '-')}")

        def write(query: str) -> None:
            page.locator(".cm-content").click()
            page.keyboard.press("Control+a")
            page.keyboard.insert_text(query)

        page.goto(url)
        expect(page.locator(".store")).to_contain_text("facts")
        page.wait_for_load_state("networkidle")

        # Ask: completion, which declares the prefix; a table, by keyboard; a graph; the plan;
        # a download
        result = page.locator(".result")
        write("SELECT ?x { ?x a ")
        page.keyboard.type("AssistantP")
        expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text(
            "univ-bench:AssistantProfessor"
        )
        page.wait_for_timeout(500)  # the editor ignores keys just after the list opened
        page.keyboard.press("Enter")
        expect(page.locator(".cm-content")).to_contain_text(f"PREFIX univ-bench: <{UB}>")
        page.keyboard.type(" } LIMIT 3")
        page.keyboard.press("Control+Enter")
        expect(result).to_contain_text("3 rows")
        write(STAFF)
        page.keyboard.press("Control+Enter")
        expect(result).to_contain_text("12 rows")
        shot("ask")
        page.get_by_role("button", name="Show the plan").click()
        expect(result).to_contain_text("SELECT")
        write(PREFIX + f"SELECT ?s ?p ?o {{ ?s ub:headOf <{DEPARTMENT}> ; ?p ?o }} LIMIT 40")
        page.get_by_role("button", name="Run").click()
        expect(result.locator(".badge.explicit").first).to_be_visible()
        expect(result.locator(".badge.derived").first).to_be_visible()
        write(f"DESCRIBE <{DEPARTMENT}/FullProfessor0>")
        page.get_by_role("button", name="Run").click()
        expect(result.locator("svg.graph .resource").first).to_be_visible()
        expect(result.locator("svg.graph line.derived").first).to_be_attached()
        shot("graph")
        page.get_by_role("button", name="Zoom in").click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Turtle", exact=True).click()
        assert "FullProfessor0" in Path(download.value.path()).read_text()
        page.get_by_role("button", name="Table", exact=True).click()
        expect(result.locator(".badge.explicit").first).to_be_visible()
        expect(result.locator(".badge.derived").first).to_be_visible()

        # Why: from a triple anywhere, and by name; unfold by keyboard
        row = result.locator("tr", has_text="worksFor").first
        row.get_by_role("button", name=re.compile("^Why")).click()
        expect(page.locator("dialog .node").first).to_be_visible()
        page.keyboard.press("Escape")
        why = view(2, "Why")
        page.get_by_label("Fact", exact=True).fill(
            f"[<{DEPARTMENT}/FullProfessor0>, a, univ-bench:Faculty]"
        )
        page.keyboard.press("Enter")
        nodes = why.locator(".node")
        expect(nodes.first).to_be_visible()
        expect(why.locator(".step")).to_contain_text("If ")
        shot("why")
        before = nodes.count()
        nodes.first.focus()
        page.keyboard.press("Enter")
        expect(nodes).to_have_count(1)
        page.keyboard.press("Enter")
        expect(nodes).to_have_count(before)
        page.keyboard.press("ArrowDown")
        expect(nodes.nth(1)).to_be_focused()
        page.get_by_role("button", name="Find contradictions").click()
        expect(why).to_contain_text("There are no contradictions")

        # What if: preview, contradiction, drop, commit
        what_if = view(3, "What if")
        page.get_by_label("Facts to insert").fill(
            CHAIR + f"\nub:Course owl:disjointWith ub:Person . <{DEPARTMENT}/Ann> a ub:Course ."
        )
        page.get_by_role("button", name="What would follow?").click()
        expect(what_if).to_contain_text("is contradicted")
        expect(what_if.locator(".node").first).to_be_visible()
        shot("what-if")
        page.get_by_role("button", name="Drop").click()
        page.get_by_label("Facts to insert").fill(CHAIR)
        page.get_by_role("button", name="What would follow?").click()
        expect(what_if).to_contain_text("univ-bench:Chair")
        page.get_by_role("button", name="Commit").click()
        expect(page.locator(".done")).to_contain_text("Committed as version 2")

        # What was committed has declared a prefix.
        # History: the time line, the changes, a query at an older version, undo
        history = view(4, "History")
        history.get_by_role("button", name="2", exact=True).click()
        expect(history.locator(".changes")).to_contain_text("Ann ub:headOf")
        shot("history")
        page.get_by_role("button", name="Undo").click()
        expect(history.locator(".done")).to_contain_text("Undone")
        history.get_by_role("button", name="2", exact=True).click()
        page.get_by_role("button", name="Query this version").click()
        expect(page.get_by_label("at version")).to_have_value("2")
        write(HEADS)
        page.keyboard.press("Control+Enter")
        expect(result).to_contain_text("2 rows, version 2")
        page.get_by_label("at version").fill("")
        page.get_by_role("button", name="Run").click()
        expect(result).to_contain_text("1 row, version 3")

        # Live: commits of somebody else, as they come
        live = view(5, "Live")
        expect(page.get_by_role("status")).to_have_text("connected")
        for name in ("Dan", "Eve"):
            text = f"{PREFIX} INSERT DATA {{ <{DEPARTMENT}/{name}> ub:worksFor <{DEPARTMENT}> }}"
            sent = context.request.post(url + "/sparql", form={"update": text})
            assert sent.ok, sent.text()
            expect(page.locator(".commits")).to_contain_text(f"{name} a ub:Employee")
        expect(live.locator("svg.bars .up").first).to_be_visible()
        shot("live")

        # Schema: the tree, the rules and facts of a class
        schema = view(6, "Schema")
        page.locator(".tree").get_by_role("button", name="ub:Faculty", exact=True).click()
        expect(schema).to_contain_text("What is said about it")
        expect(schema.locator(".tree .badge.derived").first).to_be_visible()
        expect(schema.locator(".details .rule").first).to_be_visible()
        shot("schema")

        # On a phone, in the dark: nothing is wider than the screen
        page.set_viewport_size({"width": 380, "height": 740})
        page.emulate_media(color_scheme="dark")
        for number in range(1, 7):
            page.keyboard.press(f"Alt+{number}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 380, number
        view(4, "History")
        shot("phone")
        background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert background != "rgb(255, 255, 255)", background
        browser.close()

    # Chromium's editing commands set a style when text replaces a selection; the policy blocks it.
    problems = [text for text in problems if not text.startswith("Applying inline style")]
    assert not problems, problems


if __name__ == "__main__":
    walk(*sys.argv[1:4])
