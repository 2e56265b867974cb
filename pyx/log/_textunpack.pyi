import numpy as np
import numpy.typing as npt

def repeated_hashes(parts: list[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]: ...
def sort_hashes(
    hashes: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]: ...
def unpack_texts(
    skeletons: list[bytes],
    codes: npt.NDArray[np.uint16],
    valid: npt.NDArray[np.uint8],
    slots: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]: ...
