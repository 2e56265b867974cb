from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MAX_TERM_BYTES: int

class Tokens(NamedTuple):
    """Flat tokens of an array: those of value i are ``offsets[i]:offsets[i + 1]``."""

    offsets: NDArray[np.int64]
    texts: pa.Array
    positions: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

class HashSet:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, hashes: NDArray[np.uint64]) -> None: ...
    def add_tokens(
        self,
        array: Any,
        field: str,
        tokenizer: str,
        token_length: int = 255,
        kind: str | int = "xxh64",
    ) -> None: ...
    def to_numpy(self) -> NDArray[np.uint64]: ...

def tokenize(array: Any, tokenizer: str, token_length: int = 255) -> Tokens: ...
