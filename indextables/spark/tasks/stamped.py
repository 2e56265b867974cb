"""What goes to Spark's workers names the version that packed it.

A worker with another version of the package may unpack something else than was packed. So whatever
tasks get carries the version outside and everything else inside, and a worker compares before it
looks inside.
"""

from __future__ import annotations

import pickle
from typing import Any

import indextables


class Stamped:
    """Pickles so that only the same version unpacks it."""

    def __reduce__(self) -> tuple[Any, ...]:
        state = pickle.dumps(self.__getstate__())
        return unpacked, (indextables.__version__, type(self), state)


def unpacked(version: str, kind: Any, state: bytes) -> Any:
    """The object, in a worker that has this version."""
    if version != indextables.__version__:
        from indextables.spark.driver.workers import mismatch

        raise mismatch(version)
    made = kind.__new__(kind)
    made.__dict__.update(pickle.loads(state))
    return made
