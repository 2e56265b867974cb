"""What is known about a split and a predicate, and how two such facts combine.

``CANNOT_MATCH``: no row is TRUE. ``MUST_MATCH``: every row is TRUE. ``MAY_MATCH``: anything, and
the answer to everything unknown. In this order a conjunction is as weak as its weakest part and a
disjunction as strong as its strongest, which is minimum and maximum. A verdict is never negated:
"no row is TRUE" says nothing about how many are FALSE, because rows can be NULL.

Verdicts are about the rows a split was written with, deleted ones included, so they hold for any
of them that are left. Counts are not: ``live_records`` says how many are.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

CANNOT_MATCH = 0
MAY_MATCH = 1
MUST_MATCH = 2

NAMES = ("CANNOT_MATCH", "MAY_MATCH", "MUST_MATCH")

Verdicts: TypeAlias = npt.NDArray[np.uint8]
Selection: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]

# Facts about one column in one split, as the kernels read them.
NO_NULL = 1
ALL_NULL = 2
EMPTY = 4
HAS_LOW = 8
HAS_HIGH = 16
HIGH_OPEN = 32


def all_may_match(count: int) -> Verdicts:
    """Nothing is known about any of them."""
    return np.full(count, MAY_MATCH, np.uint8)


def name_of(verdict: int) -> str:
    """``CANNOT_MATCH``, ``MAY_MATCH`` or ``MUST_MATCH``."""
    return NAMES[verdict]
