"""The documentation says what is true."""

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import corollary
from benchmarks import page as measurements
from benchmarks.__main__ import BENCHMARKS
from corollary.algorithms.modular import recognize
from corollary.cli.reference import reference
from corollary.errors import CODES, CorollaryError, InvalidProgram
from corollary.lang.program import Program
from tests.shell import shell

ROOT = Path(__file__).parent.parent
ERRORS = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (E\d+): .*\n((?:(?!^##).*\n?)*)", ERRORS, re.MULTILINE))
EXAMPLES = {
    code: (syntax, example)
    for code, text in SECTIONS.items()
    for syntax, example in re.findall(r"```(dl|srl)\n(.*?)```", text, re.DOTALL)
}


def test_every_code_is_documented_with_its_meaning() -> None:
    assert dict(re.findall(r"^### (E\d+): (.*)$", ERRORS, re.MULTILINE)) == CODES
    assert {code for code in CODES if code < "E300"} == set(EXAMPLES)
    assert {code for code, text in SECTIONS.items() if text.count("```") < 2} == set()


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print no progress, which a slow machine would add to stderr after a second."""
    monkeypatch.setattr("corollary.cli.progress.LINE_SECONDS", float("inf"))


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_of_errors(code: str) -> None:
    syntax, example = EXAMPLES[code]
    with pytest.raises(InvalidProgram) as caught:
        Program.parse(example, syntax=syntax)
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {code}


CONSOLE = {
    code: example
    for code, text in SECTIONS.items()
    for example in re.findall(r"```console\n(.*?)```", text, re.DOTALL)
}
PYTHON = {
    code: example
    for code, text in SECTIONS.items()
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
}


@pytest.mark.parametrize("code", CONSOLE)
def test_examples_on_the_command_line(code: str, tmp_path: Path) -> None:
    lines = CONSOLE[code].splitlines(keepends=True)
    commands = "".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    expected = "".join(line for line in lines if not line.startswith("$ "))
    found = shell(f"exec 2>&1\n{commands}", tmp_path, check=False).stdout
    assert code in found
    # Seconds and the memory in use are never the same twice.
    varying = r"\d+(\.\d)? (s\b|[KMG]iB)"
    assert re.sub(varying, "N", found) == re.sub(varying, "N", expected)


@pytest.mark.parametrize("code", PYTHON)
def test_examples_in_python(code: str) -> None:
    with pytest.raises(CorollaryError) as caught:
        exec(PYTHON[code], {})
    assert caught.value.code == code


# --- pages: every block is run, or says why not ---

DOCS = sorted((ROOT / "docs").rglob("*.md"))
# A block with the remark before it and the output after it, if it has these.
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"^```(?P<language>[^\n`]*)\n(?P<text>.*?)^```$(?:\n^```\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


def blocks_of(page: Path, language: str) -> list[re.Match[str]]:
    """The blocks of a page in a language that are to be run."""
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [block for block in found if block["language"] == language and not block["reason"]]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT / "docs").as_posix()


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=lambda page: page.name)
def test_every_block_is_run(page: Path) -> None:
    """The tests below run what has these languages; the others need a reason."""
    run = {
        "console",
        "python",
        "dl",
        "srl",
        "{toctree}",
        "{eval-rst}",
        "{include} ../ARCHITECTURE.md",
    }
    if page.name == "errors.md":  # messages of states that no example reaches: a full disk, …
        run |= {"text", ""}
    shell_is_run = page.name == "README.md"  # where output follows
    left = [
        block[0]
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8"))
        if block["language"] not in run
        and not block["reason"]
        and not (shell_is_run and block["language"] in ("sh", "") and block["output"])
    ]
    assert left == []


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_programs_in_the_docs_parse(page: Path) -> None:
    if page.name != "errors.md":
        for syntax in ("dl", "srl"):
            for block in blocks_of(page, syntax):
                Program.parse(block["text"], syntax=syntax)


PAGES = [page for page in DOCS if blocks_of(page, "console") and page.name != "errors.md"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_sessions_of_the_pages(page: Path, tmp_path: Path) -> None:
    """Commands begin with `$`, their further lines with `>`; what they print follows."""
    for session in blocks_of(page, "console"):
        commands, output = "", ""
        for line in session["text"].splitlines(keepends=True):
            if line.startswith(("$ ", "> ")):
                commands += line[2:]
            else:
                output += line
        found = shell(commands, tmp_path).stdout
        # A comparison of algorithms has times, and is not shown.
        assert found == output or (not output and found.startswith("commit  algorithm"))


def sessions_of(page: Path) -> list[str]:
    blocks = (block["text"] for block in blocks_of(page, "python"))
    return [text for text in blocks if text.startswith(">>>")]


# The pages about Spark share the session of the other tests on Spark.
_ON_SPARK = (pytest.mark.spark,)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=_ON_SPARK if page.stem == "spark" else ())
        for page in DOCS
        if sessions_of(page)
    ],
)
def test_python_sessions(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page that begin with a prompt are one session."""
    monkeypatch.chdir(tmp_path)
    session = "\n".join(sessions_of(page))
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    assert test.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def scripts_of(page: Path) -> list[tuple[str, str]]:
    """Blocks of Python without a prompt, and what they print."""
    found = [(block["text"], block["output"] or "") for block in blocks_of(page, "python")]
    return [(text, output) for text, output in found if not text.startswith(">>>")]


@pytest.mark.parametrize(
    "page", [p for p in DOCS if scripts_of(p) and p.name != "errors.md"], ids=name_of
)
def test_python_in_the_docs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of a page run one after the other; the block that follows is what one prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recognize, "_registered", [])
    names: dict[str, object] = {}
    for code, output in scripts_of(page):
        exec(code, names)
        assert capsys.readouterr().out == output


README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[tuple[str, str]]:
    """The blocks of a language in a text, each with the output that follows it."""
    return re.findall(rf"```{language}\n((?:(?!```).)*)```\n```\n(.*?)```", text, re.DOTALL)


def test_the_first_program_of_the_readme(tmp_path: Path) -> None:
    [(program, session)] = blocks("dl")
    (tmp_path / "network.dl").write_text(program, encoding="utf-8")
    command, *output = session.splitlines(keepends=True)
    installed = str(Path(sys.executable).with_name("corollary"))  # a process, as users have it
    words = [installed, *shlex.split(command)[2:]]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "".join(output)


def test_the_commands_of_the_readme(tmp_path: Path) -> None:
    for commands, output in blocks("sh"):  # one after the other, in the same folder
        assert shell(commands.replace(".venv/bin/", ""), tmp_path).stdout == output


def test_the_python_of_the_readme(tmp_path: Path) -> None:
    [(code, output)] = blocks("python")
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    assert shell(f"{sys.executable} example.py", tmp_path).stdout == output


def test_the_counts_of_the_rule_sets() -> None:
    text = (ROOT / "docs" / "rulesets.md").read_text(encoding="utf-8")
    for name, *counts in re.findall(
        r"^\| `([\w-]+)` .* (\d+), (\d+), (\d+) \|$", text, re.MULTILINE
    ):
        program = corollary.rules(name)
        sizes = (len(program.rules), len(program.facts), len(program.constraints))
        assert sizes == tuple(map(int, counts))


# Its example starts and stops a session: `engines/spark/test_session.py` runs it in a process.
_IN_A_PROCESS = "corollary.engines.spark.session"


def modules() -> list[str]:
    found = pkgutil.walk_packages(corollary.__path__, "corollary.")
    return [module.name for module in found if module.name != _IN_A_PROCESS]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_only_known_codes_are_raised() -> None:
    raised = {
        code
        for path in (ROOT / "src").rglob("*.py")
        if path.name != "errors.py"
        for code in re.findall(r'"(E[1-9]\d\d)"', path.read_text(encoding="utf-8"))
    }
    assert raised <= set(CODES)
    assert {code for code in CODES if code < "E400"} <= raised | {"E302"}


def test_the_page_of_the_command_line_is_what_the_commands_declare() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == reference(), "run: python -m corollary.cli.reference > docs/cli.md"


@pytest.mark.long
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", tmp_path],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "index.html").exists()


def test_the_page_of_measurements_has_what_was_saved() -> None:
    page = measurements.PAGE.read_text(encoding="utf-8")
    assert page == measurements.page(page), "run: python -m benchmarks.page"
    shown = set(re.findall(r"<!-- results: ([\w-]+) -->", page))
    assert shown >= set(BENCHMARKS)
    for name in shown:
        found = measurements.saved(name)
        assert found is None or {"command", "commit", "machine", "rows"} <= found.keys()
