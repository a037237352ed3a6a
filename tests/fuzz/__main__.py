"""`make fuzz`: run the fuzzing lanes in turn for a given time.

A lane is a module of this package with a function `run(seed)` (see `lane`). Every lane gets an
equal share of the time. A failure is printed with the command that reproduces it, and the search
continues; the exit status is 1 if there were failures.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from collections import Counter
from importlib import import_module
from pkgutil import iter_modules
from random import SystemRandom

import tests.fuzz
from corollary.errors import CorollaryWarning
from tests.fuzz.lane import Lane

_SUPPORT = {"__main__", "lane"}
LANES = sorted(
    module.name for module in iter_modules(tests.fuzz.__path__) if module.name not in _SUPPORT
)


def _load(name: str) -> Lane:
    lane: Lane = import_module(f"tests.fuzz.{name}").run
    return lane


def main() -> int:
    """Run lanes until the time is over; print the figures of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lanes", nargs="*", help=f"of {', '.join(LANES)} (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, help="first seed (default: drawn at random)")
    options = parser.parse_args()
    warnings.simplefilter("ignore", CorollaryWarning)  # about data that no rule reads
    if unknown := set(options.lanes) - set(LANES):
        parser.error(f"unknown lane {', '.join(sorted(unknown))}: choose from {', '.join(LANES)}")
    first = options.seed if options.seed is not None else SystemRandom().randrange(2**32)
    names = options.lanes or LANES
    print(f"seed {first}, lanes {', '.join(names)}", flush=True)
    seeds = dict.fromkeys(names, first)
    spent = dict.fromkeys(names, 0.0)
    totals: dict[str, Counter[str]] = {name: Counter(failures=0) for name in names}
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        name = min(names, key=lambda lane: spent[lane])
        started, seed = time.monotonic(), seeds[name]
        try:
            totals[name].update(_load(name)(seed))
        except Exception:
            totals[name]["failures"] += 1
            traceback.print_exc()
            print(
                f"reproduce: python -m tests.fuzz --seconds 0.001 --seed {seed} {name}",
                file=sys.stderr,
                flush=True,
            )
        seeds[name] = seed + 1
        spent[name] += time.monotonic() - started
    for name in names:
        print(json.dumps({"lane": name, "seconds": round(spent[name]), **totals[name]}))
    return int(any(figures["failures"] for figures in totals.values()))


if __name__ == "__main__":
    sys.exit(main())
