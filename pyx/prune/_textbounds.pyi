from typing import Any

import numpy as np
from numpy.typing import NDArray

def text_ends(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    valid: NDArray[np.uint8],
    whole: NDArray[np.uint8],
    byte_ordered: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    keys: NDArray[np.int64],
    known: NDArray[np.uint8],
    is_open: NDArray[np.uint8],
    upper: bool = False,
) -> None: ...
def common_prefix(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    known: NDArray[np.uint8],
    seed: Any,
) -> int: ...
def text_keys(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    known: NDArray[np.uint8],
    is_open: NDArray[np.uint8],
    skip: int,
    keys: NDArray[np.int64],
) -> None: ...
def prefix_key(text: Any, to_end: bool = False) -> int: ...
def scan_truncated(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], valid: NDArray[np.uint8], name: bytes
) -> NDArray[np.int8]: ...
def scan_loose(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], valid: NDArray[np.uint8]
) -> NDArray[np.uint8]: ...
