from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Buffer = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]

MISSING: int

class EntryColumns:
    data: Any
    rows: int
    ints: Int64s
    text_starts: UInt32s
    text_lengths: UInt32s
    list_starts: UInt32s
    list_lengths: UInt32s
    map_present: npt.NDArray[np.uint8]
    def map_columns(self, field: int) -> Iterator[tuple[str, UInt32s, UInt32s]]: ...

def scan_container(data: Buffer) -> tuple[dict[str, bytes], Int64s, Int64s, Int64s]: ...
def decode_entries(program: Any, data: Buffer, ends: Int64s, counts: Int64s) -> EntryColumns: ...
def decode_objects(program: Any, data: Buffer, count: int) -> list[Any]: ...
