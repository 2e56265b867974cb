"""Many keys at once: the rows of a table whose column holds one of them.

The keys become one ``IN`` list, bound as any filter is. Statistics of the log, cross-references and
key maps drop the splits that hold none of them; a split that is opened cuts the list down to the
keys that its own filter may hold (``splits/read/narrowing.py``) and looks up just those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import PlanningError
from indextables.expr.filters import In
from indextables.expr.predicate import FALSE, conjunction
from indextables.table import execute

if TYPE_CHECKING:
    from indextables.table.table import Table


def lookup(table: Table, keys: Any, on: str, columns: Sequence[str] | None, where: Any) -> pa.Table:
    """The rows with one of the keys."""
    from indextables.planner import Planner

    planner = Planner(table, xref_router=table.xref_router, parallelism=execute.parallelism(table))
    values = _values(keys)
    asked = planner.bind(In(on, values)) if values else FALSE
    if not values:
        planner.bind(In(on, [None]))
    plan = planner.plan(conjunction([asked, planner.bind(where)]), columns=columns)
    table.last_plan = plan
    return execute.collect(table, plan)


def _values(keys: Any) -> list[Any]:
    """The distinct keys without NULL."""
    if isinstance(keys, str | bytes):
        raise PlanningError("the keys of a lookup are a list, not one text", hint="Write [key]")
    if isinstance(keys, pa.Array | pa.ChunkedArray):
        keys = keys.unique().to_pylist()
    elif hasattr(keys, "to_pylist"):
        keys = keys.to_pylist()
    try:
        return [key for key in dict.fromkeys(keys) if key is not None]
    except TypeError as error:
        raise PlanningError(f"the keys of a lookup are a list of values: {error}") from error
