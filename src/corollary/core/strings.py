"""Arrow arrays of strings as bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Offsets = npt.NDArray[np.int64]


def string_bytes(array: pa.Array) -> tuple[Offsets, npt.NDArray[np.uint8]]:
    """The offsets of strings in their concatenated bytes, and these bytes, which are not copied.

    >>> offsets, data = string_bytes(pa.array(["ab", "c", "de"]).slice(1))
    >>> offsets.tolist(), data.tobytes()
    ([0, 1, 3], b'cde')
    """
    if not pa.types.is_large_string(array.type):
        array = array.cast(pa.large_binary())  # has the same buffers
    _, offset_buffer, byte_buffer = array.buffers()
    if not len(array):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset :][: len(array) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return offsets - first, np.empty(0, np.uint8)
    return offsets - first, np.frombuffer(byte_buffer, np.uint8)[first:last]
