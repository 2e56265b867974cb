import numpy as np
import numpy.typing as npt

def scan_counts(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    valid: npt.NDArray[np.uint8],
    kind: str,
    column: str,
) -> npt.NDArray[np.int64]: ...
