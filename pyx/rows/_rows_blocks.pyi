from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Buffer = bytes | bytearray | memoryview

def place_blocks(
    lengths: Array, crcs: Array, extents: Array, chunk_rows: Array, shifts: Array
) -> Array: ...
def locate(
    rows: Array, chunk_start: Array, shift: Array, first_block: Array
) -> tuple[Array, Spans]: ...
def require_slots(blocks: BlockSet, spans: Spans, item_bits: int, least: int = 0) -> None: ...

class BlockSet:
    count: int
    bad: int
    any_nulls: bool
    def __init__(
        self, segments: list[Any], segment_start: Array, segment_of: Array, table: Array
    ) -> None: ...
    def has_kind(self, kind: int) -> bool: ...
    def of_kind(self, kind: int) -> Sequence[int]: ...
    def bytes_of(self, i: int) -> bytes: ...
    def allowance_of(self, i: int) -> int: ...
    def replace(self, i: int, block: Buffer) -> None: ...

class Spans:
    block: Array
    start: Array
    stop: Array
    total: int
    def __init__(self, block: Array, start: Array, stop: Array) -> None: ...
