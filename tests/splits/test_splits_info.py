"""``split.json`` of newer writers: refused as not understood, not called damaged."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from indextables.errors import CorruptFileError, ProtocolError
from indextables.mapping import DocMapping
from indextables.splits.format.info import IndexField, SplitInfo

SCHEMA = pa.schema([("id", pa.int64())])


def body() -> dict[str, Any]:
    fields = {"id": IndexField("id", "i64", "f0")}
    info = SplitInfo(SCHEMA, 1, DocMapping.for_schema(SCHEMA), {}, fields, {"id": 0})
    found: dict[str, Any] = json.loads(info.to_json())
    return found


def read(changed: dict[str, Any]) -> SplitInfo:
    return SplitInfo.from_json(json.dumps(changed).encode(), "a.split")


def test_what_we_write_is_read() -> None:
    assert read(body()).num_rows == 1


@pytest.mark.parametrize(
    ("field", "named"),
    [({"kind": "vector"}, "kind 'vector'"), ({"quantized": True}, "quantized")],
)
def test_an_index_nobody_knows_is_refused_by_name(field: dict[str, Any], named: str) -> None:
    changed = body()
    changed["index"]["fields"][0].update(field)
    with pytest.raises(ProtocolError, match=named) as caught:
        read(changed)
    assert caught.value.path == "a.split"
    assert "Upgrade" in str(caught.value)


@pytest.mark.parametrize("change", [{"format": "another"}, {"version": 99}])
def test_a_newer_format_is_refused_by_name(change: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="format"):
        read({**body(), **change})


def test_damage_is_still_damage() -> None:
    changed = body()
    del changed["index"]["fields"][0]["kind"]
    with pytest.raises(CorruptFileError):
        read(changed)
