"""The process that Python workers of Spark are forked from, with what tasks need loaded already.

A worker that starts by itself takes a second or two of a core to import the engine and to load its
compiled kernels, and Spark starts one for every core and every Python step of a task. Forked from
here they have all that. Which modules these are, the session says (`PRELOAD`): nothing here knows
what tasks run. Sessions that others have built do without.
"""

from __future__ import annotations

import os
from importlib import import_module

from pyspark.daemon import manager

PRELOAD = "COROLLARY_PRELOAD"  # names of modules, with commas between them


def settings(*modules: str) -> dict[str, str]:
    """What a session must be told so that its workers have modules loaded.

    >>> settings("json")["spark.executorEnv.COROLLARY_PRELOAD"]
    'json'
    """
    return {
        "spark.python.daemon.module": __name__,
        f"spark.executorEnv.{PRELOAD}": ",".join(modules),
    }


def main() -> None:
    """Load, then fork workers for as long as Spark asks for them."""
    for name in filter(None, os.environ.get(PRELOAD, "").split(",")):
        import_module(name)
    manager()


if __name__ == "__main__":
    main()
