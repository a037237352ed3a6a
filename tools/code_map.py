"""Generate docs/code-map.md: every module with the first line of its docstring."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "code-map.md"

_INTRODUCTION = """\
# Code map

Every module with the first line of its docstring; `make code-map` generates this page.
[Architecture](architecture.md) explains how the packages fit together.
"""


def page(root: Path) -> str:
    """The page: a section per package, with a table of its modules."""
    packages = [package for top in top_packages(root) for package in packages_in(top)]
    return "\n".join([_INTRODUCTION, *(section(root, package) for package in packages)])


def top_packages(root: Path) -> list[Path]:
    """The packages of `src`, then `benchmarks`."""
    return [*sorted(path.parent for path in root.glob("src/*/__init__.py")), root / "benchmarks"]


def packages_in(folder: Path) -> Iterator[Path]:
    """A package and its subpackages, in order of their names."""
    if any(folder.glob("*.py")):
        yield folder
    for child in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield from packages_in(child)


def section(root: Path, package: Path) -> str:
    """The heading of a package, the first line of its docstring and the table of its modules."""
    init = package / "__init__.py"
    modules = sorted(path for path in package.glob("*.py") if path != init)
    name = package.relative_to(root).as_posix().removeprefix("src/")
    parts = [f"## `{name}`\n"]
    if init.exists() and first_line(init):
        parts.append(f"{first_line(init)}\n")
    if modules:
        rows = [f"| `{path.stem}` | {_cell(first_line(path))} |" for path in modules]
        parts.append("\n".join(["| module | description |", "| --- | --- |", *rows]) + "\n")
    return "\n".join(parts)


def first_line(module: Path) -> str:
    """The first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0]


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(ROOT), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
