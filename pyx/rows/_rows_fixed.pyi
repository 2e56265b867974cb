from typing import Any

import numpy as np

from indextables.native._rows_blocks import BlockSet, Spans

Array = np.ndarray[Any, Any]

class Dictionaries:
    def __init__(self, owners: list[Any], which: Array) -> None: ...

def decode_fixed(
    blocks: BlockSet,
    spans: Spans,
    item_bits: int,
    dictionaries: Dictionaries,
    out: Array,
    validity: Array,
) -> int: ...
def decode_validity(blocks: BlockSet, spans: Spans, validity: Array) -> int: ...
def decode_lists(blocks: BlockSet, spans: Spans, offsets: Array, validity: Array) -> Spans: ...
