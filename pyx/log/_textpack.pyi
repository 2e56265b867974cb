from typing import Any

import numpy as np
import numpy.typing as npt

Buffer = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
UInt32s = npt.NDArray[np.uint32]
Unsigned = npt.NDArray[np.unsignedinteger[Any]]
Packed = tuple[
    npt.NDArray[np.uint8] | None,
    list[bytes] | None,
    Unsigned | None,
    list[tuple[int, Unsigned | None]],
    npt.NDArray[np.uint8] | None,
    UInt32s | None,
]

class TextPacker:
    def __init__(self, n: int, is_raw: bool = False) -> None: ...
    def finish(self) -> Packed | None: ...

def pack_texts(
    data: Buffer, starts: UInt32s, lengths: UInt32s, is_raw: bool = False
) -> Packed | None: ...
