from typing import Any

import numpy as np
import numpy.typing as npt

Narrowed = tuple[int, npt.NDArray[np.unsignedinteger[Any]] | None, npt.NDArray[np.bool_] | None]

def pack_ints(values: npt.NDArray[np.int64], missing: int) -> Narrowed | None: ...
