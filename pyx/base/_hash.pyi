from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

HashKind = Literal["fxhash64", "xxh64"]

HASH_KINDS: dict[str, int]
HASH_NAMES: dict[int, str]

def fxhash64(data: str | bytes) -> int: ...
def xxh64(data: str | bytes, seed: int = 0) -> int: ...
def hash_term(field: str | bytes, value: str | bytes, kind: str | int = "fxhash64") -> int: ...
def hash_terms(
    field: str | bytes, values: Sequence[Any] | NDArray[Any] | Any, kind: str | int = "fxhash64"
) -> NDArray[np.uint64]: ...
def canonical_text(array: Any) -> Any: ...
