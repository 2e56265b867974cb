import numpy as np
import numpy.typing as npt

Buffer = bytes | bytearray | memoryview | npt.NDArray[np.uint8]

UInt32s = npt.NDArray[np.uint32]

def pack_texts(
    data: Buffer, starts: UInt32s, lengths: UInt32s
) -> tuple[list[bytes], npt.NDArray[np.unsignedinteger] | None, list[tuple[int, npt.NDArray[np.unsignedinteger] | None]]] | None: ...
def gather_texts(
    data: Buffer, starts: UInt32s, lengths: UInt32s, check_utf8: bool = True
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.unsignedinteger]]: ...
def hash_texts(data: Buffer, starts: UInt32s, lengths: UInt32s) -> npt.NDArray[np.uint64]: ...
def sort_hashes(hashes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], UInt32s]: ...
def unpack_texts(
    skeletons: list[bytes],
    codes: npt.NDArray[np.uint16],
    valid: npt.NDArray[np.uint8],
    slots: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]: ...
