from typing import Any

import numpy as np
from numpy.typing import NDArray

def probe_bucket(
    raw: Any, remainder: int, bits: int, splits: int, origin: int = 0
) -> tuple[int, NDArray[np.uint32] | None, int] | None: ...
def decode_bucket(
    raw: Any, bits: int, splits: int, origin: int = 0
) -> tuple[
    NDArray[np.uint64],
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.uint32],
    NDArray[np.int32],
]: ...
def encode_bucket(
    remainders: NDArray[np.uint64],
    codes: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint32],
    blocks: NDArray[np.int32],
    bits: int,
    splits: int,
    most: int,
) -> bytearray: ...
