import numpy as np
from numpy.typing import NDArray

KINDS: dict[str, int]

def parse_keys(
    kind: str,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    valid: NDArray[np.uint8],
    out: NDArray[np.int64],
    known: NDArray[np.uint8],
    trusted: NDArray[np.uint8],
    scale: int = 0,
    upper: bool = False,
) -> None: ...
def parse_double_keys(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    valid: NDArray[np.uint8],
    out: NDArray[np.int64],
    known: NDArray[np.uint8],
    upper: bool = False,
    single: bool = False,
    as_bound: bool = True,
) -> None: ...
def double_key(value: float) -> int: ...
