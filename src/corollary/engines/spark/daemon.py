"""Fork Spark's Python workers from a process that has preloaded the modules of tasks.

A fresh worker takes a second or two of a core to import the engine and load its compiled kernels,
and Spark starts one for every core and every Python step of a task. Forked workers inherit both.
The session names the modules (`PRELOAD`), so this module does not depend on the code of tasks.
Sessions built elsewhere start fresh workers.
"""

from __future__ import annotations

import os
from importlib import import_module

from pyspark.daemon import manager

PRELOAD = "COROLLARY_PRELOAD"  # names of modules, separated by commas


def settings(*modules: str) -> dict[str, str]:
    """Return the settings of a session whose workers preload modules.

    >>> settings("json")["spark.executorEnv.COROLLARY_PRELOAD"]
    'json'
    """
    return {
        "spark.python.daemon.module": __name__,
        f"spark.executorEnv.{PRELOAD}": ",".join(modules),
    }


def main() -> None:
    """Load the modules, then fork workers on Spark's request."""
    for name in filter(None, os.environ.get(PRELOAD, "").split(",")):
        import_module(name)
    manager()


if __name__ == "__main__":
    main()
