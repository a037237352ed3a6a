"""Keep Arrow from loading pandas, which the embedded engine does not use.

Arrow looks for pandas at its first conversion, to recognize its arrays. Where pandas is installed,
this loads it: 0.25 s for nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

own_process = False  # whether this process runs one command and nothing else


class _Absent(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def skip_pandas() -> None:
    """Let Arrow find no pandas; others still may, and a process with other work is left alone."""
    if not own_process or "pandas" in sys.modules:
        return
    import pyarrow as pa

    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(absent)
