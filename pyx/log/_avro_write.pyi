from typing import Any

import numpy as np
import numpy.typing as npt

KINDS: dict[str, int]

class EntryEncoder:
    rows: int
    def __init__(
        self, fields: list[tuple[str, Any, list[tuple[str | None, Any]]]], rows: int
    ) -> None: ...
    def encode(self, rows: npt.NDArray[np.int64]) -> bytes: ...
