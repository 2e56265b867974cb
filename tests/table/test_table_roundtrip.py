"""Random tables of all types through every kind of write: each version is what a model says it is.

The model is a list of rows by version. Writes append, overwrite everything, replace the partitions
of a condition, or overwrite dynamically the partitions the new rows touch; all of it with a
partition column that may be null. Old versions stay readable.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "splits"))

from splitkit import same, tables

import indextables

PARTS = ["a", "b/c", "ü=", None]
DYNAMIC = {"spark.indextables.write.partitionOverwriteMode": "dynamic"}
WRITES = ("append", "overwrite", "replace", "dynamic")


@st.composite
def frames(draw: st.DrawFn, parts: list[str | None] | None = None) -> pa.Table:
    """All types, a partition column and a running number."""
    table = draw(tables(max_rows=5))
    count = table.num_rows
    chosen = draw(st.lists(st.sampled_from(parts or PARTS), min_size=count, max_size=count))
    return table.append_column("part", pa.array(chosen, pa.string()))


class Model:
    """What every version of the table should hold."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.versions: dict[int, pa.Table] = {}
        self.rows: pa.Table | None = None
        self.next = 0

    def numbered(self, data: pa.Table) -> pa.Table:
        numbers = range(self.next, self.next + data.num_rows)
        self.next += data.num_rows
        return data.append_column("row", pa.array(numbers, pa.int64()))

    def write(self, how: str, data: pa.Table) -> None:
        data = self.numbered(data)
        settings: dict[str, Any] = {"mode": "append" if how == "append" else "overwrite"}
        kept = self.rows
        parts = data["part"].to_pylist()
        if how == "overwrite" or kept is None:
            kept = data.schema.empty_table()
        elif how == "replace":
            settings["replace_where"] = "part = 'a'"
            kept = _without(kept, ["a"])
        elif how == "dynamic":
            settings["options"] = DYNAMIC
            kept = _without(kept, parts)
        known = {"text": ["txt"], "ip": ["ip"], "json": ["js"]}
        result = indextables.write(data, self.path, partition_by=["part"], **known, **settings)
        self.rows = pa.concat_tables([kept, data])
        self.versions[result.version] = self.rows

    def check(self) -> None:
        for version, rows in self.versions.items():
            found = indextables.open(self.path, version=version).to_arrow(columns=rows.schema.names)
            found = found.sort_by("row")
            for name in rows.schema.names:
                assert same(found[name], rows[name]), (version, name)


def _without(rows: pa.Table, parts: list[str | None]) -> pa.Table:
    return rows.filter(pa.array([p not in parts for p in rows["part"].to_pylist()]))


@settings(max_examples=8)
@given(first=frames(), steps=st.lists(st.sampled_from(WRITES), max_size=3), data=st.data())
def test_every_version_holds_its_rows(
    first: pa.Table, steps: list[str], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(str(Path(folder) / "t"))
        model.write("append", first)
        for how in steps:
            model.write(how, data.draw(frames(["a"] if how == "replace" else None)))
        model.check()
