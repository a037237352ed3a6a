"""Commands go through the knowledge base, and do nothing twice."""

from __future__ import annotations

import ast
import importlib
import json
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.cli.main import main
from corollary.errors import Source
from corollary.knowledge_base.report import Report
from corollary.lang.program import Program

PACKAGE = Path(corollary.__file__).parent
DATA = "<urn:a> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:b> .\n<urn:x> a <urn:a> .\n"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a store, and files of changes."""
    monkeypatch.chdir(tmp_path)
    Path("a.ttl").write_text(DATA)
    Path("b.ttl").write_text("<urn:y> a <urn:a> .\n")
    Path("c.rdfp").write_text(
        "TX .\nD <urn:x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:a> .\nTC .\n"
        "TX .\nA <urn:x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:b> .\nTC .\n"
    )
    build = ["build", "store", "a.ttl", "--rules", "rdfs", "--engine", "columnar", "--quiet"]
    assert main(build) == 0


def imports(module: Path) -> set[str]:
    tree = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    return {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}


def test_commands_choose_no_reasoner() -> None:
    allowed = {"corollary.algorithms.registry", "corollary.algorithms.constraints"}
    allowed |= {"corollary.algorithms.reasoner", "corollary.reasoning.engines"}
    for module in (PACKAGE / "cli").glob("*.py"):
        for name in imports(module) - allowed:
            assert not name.startswith(("corollary.algorithms", "corollary.reasoning")), module


@pytest.mark.parametrize("package", ["cli", "knowledge_base"])
def test_modules_use_no_private_names_of_others(package: str) -> None:
    public = {"_asdict", "_replace", "_repr_html_"}  # of named tuples, and of notebooks
    for module in (PACKAGE / package).rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                owner = ast.unparse(node.value)
                is_own = owner in ("self", "cls", "super()", "after")  # of the same class
                is_dunder = node.attr.startswith("__")
                is_argparse = module.stem in ("main", "reference", "completion")
                allowed = is_own or is_dunder or is_argparse or node.attr in public
                assert allowed, f"{module}:{node.lineno}: {owner}.{node.attr}"


def test_an_update_parses_each_log_entry_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[Path] = Counter()
    read_text = Path.read_text

    def counted(path: Path, *arguments: Any, **options: Any) -> str:
        if path.parent.name == "_delta_log":
            reads[path.resolve()] += 1
        return read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", counted)
    assert main(["update", "store", "--insert", "b.ttl", "--changes", "-", "--quiet"]) == 0
    assert max(reads.values()) == 1


def test_stored_rules_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    parse = Program.parse

    def counted(text: str | Source) -> Program:
        texts.append(text.name if isinstance(text, Source) else "")
        return parse(text)

    monkeypatch.setattr(Program, "parse", counted)
    for flag in ("--insert", "--delete"):
        assert main(["update", "store", flag, "b.ttl", "--quiet"]) == 0
    assert sum(name.endswith("rules") for name in texts) <= 1


@pytest.mark.parametrize("change", [["--insert", "b.ttl"], ["--patch", "c.rdfp"]])
def test_an_update_shows_its_changes_from_memory(
    change: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("changes are read back")

    capsys.readouterr()
    with monkeypatch.context() as patch:
        for module in ("corollary.cli.update", "corollary.knowledge_base.differences"):
            for name in {"diff", "between"} & {*dir(importlib.import_module(module))}:
                patch.setattr(f"{module}.{name}", refuse)
        assert main(["update", "store", *change, "--changes", "-", "--trivial", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert main(["diff", "store", "1", "--trivial"]) == 0
    assert shown == capsys.readouterr().out != ""


def test_commands_report_alike(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    expected = {field.name for field in fields(Report)} | {"complete", "warnings"}
    commands = [
        ["run", "--rules", "rdfs", "--data", "a.ttl"],
        ["build", "other", "a.ttl", "--rules", "rdfs", "--engine", "columnar"],
        ["update", "store", "--insert", "b.ttl"],
    ]
    for command in commands:
        assert main([*command, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert expected <= {*report}
        assert report["facts"] > report["explicit"] > 0
    from corollary.knowledge_base.spark.built import Built

    assert issubclass(Built, Report)
