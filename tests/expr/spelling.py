"""A schema, filters bound to it, and nodes as Catalyst spells them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from indextables.expr.bind import bind

SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float64()),
        ("r", pa.float32()),
        ("dec", pa.decimal128(10, 2)),
        ("b", pa.string()),
        ("dt", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("bo", pa.bool_()),
        ("bin", pa.binary()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])),
        ("arr", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int32())),
    ]
)
ZONE = "America/New_York"


def bound(source: Any) -> Any:
    return bind(source, SCHEMA, time_zone=ZONE)


def attr(*name: str) -> dict[str, Any]:
    return {"op": "attr", "name": list(name)}


def node(op: str, *children: Any, **more: Any) -> dict[str, Any]:
    return {"op": op, "children": list(children), **more}


def value(kind: str, literal: Any) -> dict[str, Any]:
    return {"op": "lit", "type": kind, "value": literal}
