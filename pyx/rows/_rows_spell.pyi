from collections.abc import Callable
from typing import Any

import numpy as np

from indextables.native._rows_encode import Spelling
from indextables.native._rows_lexicon import Lexicon
from indextables.native._rows_pairs import PairTable

Array = np.ndarray[Any, Any]

class CodeSpelling(Spelling):
    def __init__(self, codes: Array) -> None: ...

class PairSpelling(Spelling):
    def __init__(self, table: PairTable) -> None: ...

class TemplateSpelling(Spelling):
    def __init__(self, shape: Lexicon) -> None: ...

class ZstdSpelling(Spelling):
    def __init__(self, compress: Callable[[bytes], bytes]) -> None: ...

def find_template(data: Array, offsets: Array) -> bytes | None: ...
