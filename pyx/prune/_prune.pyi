import numpy as np
from numpy.typing import NDArray

Verdicts = NDArray[np.uint8]
Selection = NDArray[np.int32]

class TextRanges:
    count: int
    def __init__(self, ends: list[tuple[bytes, int, int] | None]) -> None: ...

class TextColumn:
    def __init__(
        self,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        keys: NDArray[np.int64],
    ) -> None: ...

def relate_ranges(
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
    facts: NDArray[np.uint8],
    selection: Selection | None,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    on_disjoint: int,
    on_inside: int,
) -> Verdicts: ...
def relate_texts(
    lows: TextColumn,
    highs: TextColumn,
    facts: NDArray[np.uint8],
    selection: Selection | None,
    ranges: TextRanges,
    on_disjoint: int,
    on_inside: int,
) -> Verdicts: ...
def test_nulls(
    facts: NDArray[np.uint8], selection: Selection | None, is_null: bool
) -> Verdicts: ...
def gather(codes: NDArray[np.int32], table: Verdicts, selection: Selection | None) -> Verdicts: ...
def narrow(selection: Selection | None, verdicts: Verdicts) -> Selection: ...
def zone_bounds(
    lows: NDArray[np.int64], highs: NDArray[np.int64], facts: NDArray[np.uint8], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]: ...
def zone_codes(
    codes: NDArray[np.int32], size: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def gather_zones(
    lows: NDArray[np.int32], highs: NDArray[np.int32], table: Verdicts
) -> Verdicts: ...
def expand_zones(verdicts: Verdicts, n: int, size: int) -> Selection | None: ...
