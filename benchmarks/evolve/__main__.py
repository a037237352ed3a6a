"""`python -m benchmarks.evolve`: list streams, write them, and run systems over them."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.evolve import driver, record
from benchmarks.evolve.benchmark import SYSTEMS, command_of, make, missing
from benchmarks.evolve.generated import EXPECTED, GENERATORS
from benchmarks.evolve.streams import Stream
from benchmarks.report import DATA, Row, table


def parser() -> argparse.ArgumentParser:
    """The arguments of the subcommands."""
    whole = argparse.ArgumentParser(prog="evolve", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="the streams and systems found here")
    making = commands.add_parser("make", help="write streams as files")
    making.add_argument("folder", type=Path)
    making.add_argument("--scale", type=int, default=1, help="of generated streams (default: 1)")
    making.add_argument("--seed", type=int, default=0, help="of generated streams (default: 0)")
    for command in (listing, making):
        command.add_argument(
            "--histories",
            type=Path,
            default=DATA / "updates",
            help="folder of RDF Patch files (default: that of the recorded histories)",
        )
    running = commands.add_parser("run", help="replay streams")
    running.add_argument("streams", type=Path, nargs="+")
    running.add_argument("--system", action="append", choices=SYSTEMS, default=[])
    running.add_argument("--command", action="append", dest="commands", default=[])
    running.add_argument("--timeout", type=float, default=600, help="seconds for a stream")
    running.add_argument("--json", action="store_true", help="print JSON")
    recording = commands.add_parser(
        "record-history", help="record files of a git repository as an RDF Patch"
    )
    recording.add_argument("repository", type=Path, help="a clone")
    recording.add_argument("files", nargs="+", help="RDF files in it")
    recording.add_argument("--out", type=Path, required=True, help="NAME.rdfp.gz")
    showing = commands.add_parser("states", help="print the states on which systems agree")
    showing.add_argument("stream", type=Path)
    showing.add_argument("--system", action="append", choices=SYSTEMS, required=True)
    commands.add_parser("record", help="record the expected states of the generated streams")
    return whole


def main() -> int:
    """Run a subcommand; 1 if a system was wrong or failed."""
    options = parser().parse_args()
    match options.command:
        case "list":
            _list(options.histories)
        case "make":
            found = options.histories if options.histories.is_dir() else None
            for stream in make(
                options.folder, scale=options.scale, seed=options.seed, histories=found
            ):
                print(f"{stream.folder}: {len(stream.steps)} steps")
        case "run":
            return _run(options)
        case "record-history":
            number = record.record(options.repository, options.files, options.out)
            print(f"{options.out}: {number} transactions")
        case "states":
            for count, digest in _agreed(_opened(options.stream), options.system):
                print(f"{count}\t{digest}")
        case "record":
            _record()
    return 0


def _list(histories: Path) -> None:
    for name in GENERATORS:
        print(f"{name}\tgenerated")
    for patch in sorted(histories.glob("*.rdfp.gz")):
        print(f"history-{patch.name.removesuffix('.rdfp.gz')}\t{patch}")
    for system in SYSTEMS:
        print(f"system {system}\t{missing(system) or 'found'}")


def _opened(folder: Path) -> Stream:
    try:
        return Stream.open(folder)
    except OSError:
        sys.exit(
            f"{folder} is not a stream: it has no readable stream.json ('make' writes streams)"
        )


def _run(options: argparse.Namespace) -> int:
    systems = {name: command_of(name) for name in options.system}
    systems |= {command: shlex.split(command) for command in options.commands}
    if not systems:
        systems = {
            name: command_of(name)
            for name in SYSTEMS
            if not missing(name) and not SYSTEMS[name].slow
        }
    rows: list[Row] = []
    for folder in options.streams:
        stream = _opened(folder)
        for name, command in systems.items():
            row = driver.run(stream, command, timeout=options.timeout)
            rows.append({"stream": stream.name, "system": name} | row)
    print(json.dumps(rows, indent=1) if options.json else table(rows))
    return int(any("failed" in row or row["correct"] is False for row in rows))


def _agreed(stream: Stream, systems: Sequence[str]) -> list[tuple[int, str]]:
    """The states of a stream, on which all systems must agree."""
    first, *others = (driver.states(stream, command_of(system)) for system in systems)
    if any(other != first for other in others):
        sys.exit(f"{stream.name}: {', '.join(systems)} differ")
    return first


def _record() -> None:
    """Two systems that share no code must agree."""
    states = {}
    with tempfile.TemporaryDirectory() as folder:
        for stream in make(Path(folder)):
            states[stream.name] = _agreed(stream, ("naive", "duckdb"))
    lines = [
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(state)}" for state in found) + "\n ]"
        for name, found in states.items()
    ]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
