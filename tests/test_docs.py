"""The documentation says what is true."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import corollary
from corollary.algorithms.modular import recognize
from corollary.cli.reference import reference
from corollary.errors import CODES, CorollaryError, InvalidProgram
from corollary.lang.program import Program

ROOT = Path(__file__).parent.parent
ERRORS = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (E\d+): .*\n((?:(?!^##).*\n?)*)", ERRORS, re.MULTILINE))
EXAMPLES = {
    code: example
    for code, text in SECTIONS.items()
    for example in re.findall(r"```dl\n(.*?)```", text, re.DOTALL)
}


def test_every_code_is_documented_with_its_meaning() -> None:
    assert dict(re.findall(r"^### (E\d+): (.*)$", ERRORS, re.MULTILINE)) == CODES
    assert {code for code in CODES if code < "E300"} == set(EXAMPLES)
    assert {code for code, text in SECTIONS.items() if text.count("```") < 2} == set()


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_of_errors(code: str) -> None:
    with pytest.raises(InvalidProgram) as caught:
        Program.parse(EXAMPLES[code])
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
    # On a busy machine the first round may take a second, and then it is told of.
    found = re.sub(r"^stratum .*\n", "", found, flags=re.MULTILINE)
    assert code in found
    # Seconds and the memory in use are never the same twice.
    varying = r"\d+(\.\d)? (s\b|[KMG]iB)"
    assert re.sub(varying, "N", found) == re.sub(varying, "N", expected)


@pytest.mark.parametrize("code", PYTHON)
def test_examples_in_python(code: str) -> None:
    with pytest.raises(CorollaryError) as caught:
        exec(PYTHON[code], {})
    assert caught.value.code == code


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_programs_in_the_docs_parse(path: Path) -> None:
    if path.name != "errors.md":
        for example in re.findall(r"```dl\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            Program.parse(example)


PAGES = [
    *sorted((ROOT / "docs" / "algorithms").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("explain", "generate", "getting-started", "modules", "sparql", "store")
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_sessions_of_the_pages(page: Path, tmp_path: Path) -> None:
    """Commands begin with `$`, their further lines with `>`; what they print follows."""
    for session in re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        commands, output = "", ""
        for line in session.splitlines(keepends=True):
            if line.startswith(("$ ", "> ")):
                commands += line[2:]
            else:
                output += line
        found = shell(commands, tmp_path).stdout
        if output:
            assert found == output
        else:
            assert found.startswith("commit  algorithm")


SESSIONS = [
    page
    for page in sorted((ROOT / "docs").glob("*.md"))
    if "```python\n>>>" in page.read_text("utf-8")
]


# The pages about Spark share the session of the other tests on Spark.
_ON_SPARK = (pytest.mark.spark, pytest.mark.xdist_group("spark"))


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, id=p.stem, marks=_ON_SPARK if p.stem == "spark" else ()) for p in SESSIONS],
)
def test_python_sessions(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page that begin with a prompt are one session."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    session = "\n".join(re.findall(r"```python\n(>>>.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    assert test.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


PYTHON_PAGES = (
    "explain.md",
    "hybrid.md",
    "knowledge-base.md",
    "modules.md",
    "rdflib.md",
    "sparql.md",
    "specialize.md",
    "store.md",
    "tutorials/ontology.md",
)


@pytest.mark.parametrize("name", PYTHON_PAGES)
def test_python_in_the_docs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of a page run one after the other; the block that follows is what one prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recognize, "_registered", [])
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for code, output in re.findall(r"```python\n(.*?)```\n(?:```\n(.*?)```)?", text, re.DOTALL):
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
    done = shell(command.removeprefix("$ "), tmp_path)
    assert done.stdout == "".join(output)


def test_the_commands_of_the_readme(tmp_path: Path) -> None:
    for commands, output in blocks("sh"):  # one after the other, in the same folder
        assert shell(commands.replace(".venv/bin/", ""), tmp_path).stdout == output


def test_the_python_of_the_readme(tmp_path: Path) -> None:
    [(code, output)] = blocks("python")
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    assert shell(f"{sys.executable} example.py", tmp_path).stdout == output


def test_the_python_of_the_rule_sets(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "rulesets.md").read_text(encoding="utf-8")
    [(code, output)] = blocks("python", text)
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


def shell(commands: str, folder: Path, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    here = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": here + os.pathsep + os.environ["PATH"]}
    return subprocess.run(
        ["sh", "-ec", commands],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=check,
    )


def modules() -> list[str]:
    found = pkgutil.walk_packages(corollary.__path__, "corollary.")
    return [module.name for module in found]


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


@pytest.mark.slow
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", tmp_path],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "index.html").exists()
