from typing import Any

import numpy as np
from numpy.typing import NDArray

Placed = tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]

def decode_rows(data: Any, frequency: int, record: int, num_rows: int) -> NDArray[np.uint32]: ...
def decode_positions(data: Any, places: Any, frequency: int, num_rows: int) -> Placed: ...
def check_lists(
    postings: Any,
    lists: NDArray[np.uint64],
    rows: NDArray[np.uint32],
    record: int,
    num_rows: int,
    positions: Any = None,
    places: NDArray[np.uint64] | None = None,
) -> None: ...
def rows_in_both(few: NDArray[np.uint32], many: NDArray[np.uint32]) -> NDArray[np.uint32]: ...
def rows_in_order(terms: list[Placed]) -> NDArray[np.uint32]: ...
