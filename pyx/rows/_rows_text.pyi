from typing import Any

import numpy as np

from indextables.native._rows_blocks import BlockSet, Spans
from indextables.native._rows_lexicon import Lexicon

Array = np.ndarray[Any, Any]

class Lexicons:
    def __init__(self, owners: list[Lexicon | None], which: Array) -> None: ...

def text_bound(blocks: BlockSet, spans: Spans, lexicons: Lexicons) -> int: ...
def decode_text(
    blocks: BlockSet, spans: Spans, lexicons: Lexicons, offsets: Array, out: Array, validity: Array
) -> int: ...
def zstd_parts(blocks: BlockSet, block: int) -> tuple[bytes, bytes, int]: ...
