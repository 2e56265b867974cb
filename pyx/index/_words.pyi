from typing import Any

import numpy as np
from numpy.typing import NDArray

def term_numbers(
    dictionary: Any,
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint64]]: ...
def pack_block(
    texts: Any,
    ends: NDArray[np.int64],
    first: int,
    stop: int,
    rows: NDArray[np.uint32],
    lists: NDArray[np.uint64],
    postings: Any,
    places: NDArray[np.uint64] | None,
    positions: Any,
) -> bytes: ...
def unpack_block(raw: Any, count: int, has_positions: bool, most: int) -> tuple[Any, ...]: ...
