from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from indextables.native._textpack import Packed

Int64s = npt.NDArray[np.int64]

MISSING: int

class EntryColumns:
    rows: int
    ints: Int64s
    path_hashes: npt.NDArray[np.uint64]
    def texts(self, field: int) -> Packed | None: ...
    def lists(self, field: int) -> Packed | None: ...
    def map_keys(self, field: int) -> list[str]: ...
    def map_texts(self, field: int, key: int) -> Packed | None: ...
    def map_present(self, field: int) -> npt.NDArray[np.uint8]: ...

def decode_entries(
    program: Any, blocks: Iterable[Any], counts: list[int], sizes: list[int] | None = None
) -> EntryColumns: ...
