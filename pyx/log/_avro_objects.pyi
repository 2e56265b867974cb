from typing import Any

import numpy as np
import numpy.typing as npt

Buffer = bytes | bytearray | memoryview
Int64s = npt.NDArray[np.int64]

def scan_container(data: Buffer) -> tuple[dict[str, bytes], Int64s, Int64s, Int64s]: ...
def decode_objects(program: Any, data: Buffer, count: int) -> list[Any]: ...
