"""The Avro schemas of a state, and how any writer's schema becomes a decode program.

Real tables come from several generations of writers: fields are added, reordered, sometimes
missing, and their field ids disagree with the documents. A reader therefore goes by the schema
inside each file and by field *names* alone. ``compile_schema`` turns that schema into a flat
program of nodes which the native decoder walks: known fields go to columns, everything else is
skipped by its type, whatever it is.

A known field whose type does not fit counts as absent, because a lost statistic costs time, not
rows; for ``path``, ``size``, ``partitionValues`` and ``deletionVector`` it is an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from indextables.errors import CorruptFileError
from indextables.log.read.columns import FIELD_BY_NAME, UNKNOWN_FIELDS

_STRING_MAP = {"type": "map", "values": "string"}
_STRING_LIST = {"type": "array", "items": "string"}


def _required(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number, **more}


def _optional(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


FILE_ENTRY: dict[str, Any] = {
    "type": "record",
    "name": "FileEntry",
    "namespace": "io.indextables.state",
    "fields": [
        _required(100, "path", "string"),
        _required(101, "partitionValues", _STRING_MAP),
        _required(102, "size", "long"),
        _required(103, "modificationTime", "long"),
        _required(104, "dataChange", "boolean"),
        _optional(110, "stats", "string"),
        _optional(111, "minValues", _STRING_MAP),
        _optional(112, "maxValues", _STRING_MAP),
        _optional(113, "numRecords", "long"),
        _optional(120, "footerStartOffset", "long"),
        _optional(121, "footerEndOffset", "long"),
        _required(124, "hasFooterOffsets", "boolean", default=False),
        _optional(132, "splitTags", _STRING_LIST),
        _optional(134, "numMergeOps", "int"),
        _optional(135, "docMappingRef", "string"),
        _optional(136, "uncompressedSizeBytes", "long"),
        _required(140, "addedAtVersion", "long"),
        _required(141, "addedAtTimestamp", "long"),
        _optional(150, "companionSourceFiles", _STRING_LIST),
        _optional(151, "companionDeltaVersion", "long"),
        _optional(152, "companionFastFieldMode", "string"),
        _optional(123, "deleteOpstamp", "long"),
        _optional(133, "docMappingJson", "string"),
        _optional(137, "timeRangeStart", "string"),
        _optional(138, "timeRangeEnd", "string"),
        _optional(160, "hotcacheStartOffset", "long"),
        _optional(161, "hotcacheLength", "long"),
        _optional(162, "tags", _STRING_MAP),
        _optional(163, UNKNOWN_FIELDS, "string"),
        _optional(164, "deletionVector", "string"),
    ],
}

_BOUNDS = {
    "type": "record",
    "name": "PartitionBoundsItem",
    "fields": [
        {"name": "min", "type": ["null", "string"], "default": None},
        {"name": "max", "type": ["null", "string"], "default": None},
    ],
}
_MANIFEST_INFO = {
    "type": "record",
    "name": "ManifestInfoItem",
    "fields": [
        {"name": "path", "type": "string"},
        {"name": "numEntries", "type": "long"},
        {"name": "minAddedAtVersion", "type": "long"},
        {"name": "maxAddedAtVersion", "type": "long"},
        {
            "name": "partitionBounds",
            "type": ["null", {"type": "map", "values": _BOUNDS}],
            "default": None,
        },
        {"name": "tombstoneCount", "type": "long", "default": 0},
        {"name": "liveEntryCount", "type": "long", "default": -1},
    ],
}
STATE_MANIFEST: dict[str, Any] = {
    "type": "record",
    "name": "StateManifest",
    "namespace": "io.indextables.state",
    "fields": [
        {"name": "formatVersion", "type": "int"},
        {"name": "stateVersion", "type": "long"},
        {"name": "createdAt", "type": "long"},
        {"name": "numFiles", "type": "long"},
        {"name": "totalBytes", "type": "long"},
        {"name": "manifests", "type": {"type": "array", "items": _MANIFEST_INFO}},
        {"name": "tombstones", "type": _STRING_LIST, "default": []},
        {"name": "schemaRegistry", "type": _STRING_MAP, "default": {}},
        {"name": "protocolVersion", "type": "int", "default": 4},
        {"name": "metadata", "type": ["null", "string"], "default": None},
        {"name": "extras", "type": ["null", "string"], "default": None},
    ],
}

# -- decode programs ----------------------------------------------------------------------------

NULL, BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, STRING = range(8)
FIXED, ENUM, ARRAY, MAP, UNION, RECORD = range(8, 14)
_PRIMITIVES = {
    "null": NULL,
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "bytes": BYTES,
    "string": STRING,
}
SINK_SKIP, SINK_INT, SINK_TEXT, SINK_MAP, SINK_LIST = range(5)
_SINKS = {
    "int": SINK_INT,
    "bool": SINK_INT,
    "text": SINK_TEXT,
    "vector": SINK_TEXT,
    "map": SINK_MAP,
    "list": SINK_LIST,
}
_MUST_FIT = frozenset(("path", "size", "partitionValues", "deletionVector"))
_MOST_NODES = 10_000
_DEEPEST = 64


@dataclass(slots=True)
class Program:
    """Nodes ``(op, a, b)``: ``a`` is an item, a size, or the first of ``b`` children.

    ``names`` are the field names of records, beside their children. ``sinks`` gives for each
    top-level field the kind of column and its number among the columns of that kind.
    """

    nodes: list[tuple[int, int, int]] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    sinks: list[tuple[int, int]] = field(default_factory=list)
    columns: dict[str, list[str]] = field(default_factory=dict)

    def node_array(self) -> npt.NDArray[np.int32]:
        return np.array(self.nodes, np.int32).reshape(-1, 3)

    def child_array(self) -> npt.NDArray[np.int32]:
        return np.array(self.children, np.int32)


def compile_schema(schema: Any) -> Program:
    """The decode program of a parsed schema; node 0 is its root."""
    compiler = _Compiler()
    try:
        compiler.node(schema, "", 0)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise CorruptFileError(f"the Avro schema is malformed: {error!r}") from None
    return compiler.program


def compile_entries(schema_text: bytes | str) -> Program:
    """The program that takes file entries apart into columns."""
    try:
        schema = json.loads(schema_text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"the Avro schema is not JSON: {error}") from None
    program = compile_schema(schema)
    if program.nodes[0][0] != RECORD:
        raise CorruptFileError("the Avro schema of file entries is not a record")
    _assign_sinks(program)
    return program


class _Compiler:
    def __init__(self) -> None:
        self.program = Program()
        self._named: dict[str, int] = {}

    def node(self, schema: Any, space: str, depth: int) -> int:
        program = self.program
        if depth > _DEEPEST or len(program.nodes) >= _MOST_NODES:
            raise CorruptFileError("the Avro schema is nested too deeply or too large")
        if isinstance(schema, str):
            return self._by_name(schema, space)
        number = len(program.nodes)
        program.nodes.append((NULL, 0, 0))
        if isinstance(schema, list):
            branches = [self.node(branch, space, depth + 1) for branch in schema]
            program.nodes[number] = (UNION, self._children(branches), len(branches))
            return number
        kind = schema["type"]
        if kind in ("record", "error"):
            self._record(number, schema, space, depth)
        elif kind in ("enum", "fixed"):
            self._register(number, schema, space)
            size = len(schema["symbols"]) if kind == "enum" else int(schema["size"])
            if not 0 <= size < 1 << 31:
                raise ValueError(f"{kind} of size {size}")
            program.nodes[number] = (ENUM if kind == "enum" else FIXED, size, 0)
        elif kind in ("array", "map"):
            item = self.node(schema["items" if kind == "array" else "values"], space, depth + 1)
            program.nodes[number] = (ARRAY if kind == "array" else MAP, item, 0)
        else:
            program.nodes.pop()
            return self.node(kind, space, depth + 1)
        return number

    def _by_name(self, name: str, space: str) -> int:
        primitive = _PRIMITIVES.get(name)
        if primitive is not None:
            self.program.nodes.append((primitive, 0, 0))
            return len(self.program.nodes) - 1
        full = name if "." in name or not space else f"{space}.{name}"
        return self._named[full] if full in self._named else self._named[name]

    def _register(self, number: int, schema: Any, space: str) -> str:
        name = schema["name"]
        if "." in name:
            space = name.rpartition(".")[0]
        else:
            space = schema.get("namespace", space) or ""
            name = f"{space}.{name}" if space else name
        self._named[name] = number
        return space

    def _record(self, number: int, schema: Any, space: str, depth: int) -> None:
        space = self._register(number, schema, space)
        names = [str(f["name"]) for f in schema["fields"]]
        nodes = [self.node(f["type"], space, depth + 1) for f in schema["fields"]]
        first = self._children(nodes, names)
        self.program.nodes[number] = (RECORD, first, len(nodes))

    def _children(self, nodes: list[int], names: list[str] | None = None) -> int:
        first = len(self.program.children)
        self.program.children += nodes
        self.program.names += names if names is not None else [None] * len(nodes)
        return first


def strange_fields(program: Program) -> list[str]:
    """Unknown top-level fields."""
    _, first, count = program.nodes[0]
    names = (program.names[k] for k in range(first, first + count))
    return [name for name in names if name and name not in FIELD_BY_NAME]


def _assign_sinks(program: Program) -> None:
    _, first, count = program.nodes[0]
    columns: dict[str, list[str]] = {"int": [], "text": [], "map": [], "list": []}
    for k in range(first, first + count):
        name = program.names[k] or ""
        sink = _sink_of(program, name, program.children[k])
        if sink == SINK_SKIP:
            program.sinks.append((SINK_SKIP, 0))
            continue
        kind = ("", "int", "text", "map", "list")[sink]
        program.sinks.append((sink, len(columns[kind])))
        columns[kind].append(name)
    for name in ("path", "size"):
        if not any(name in names for names in columns.values()):
            raise CorruptFileError(f"the Avro schema of file entries has no field '{name}'")
    program.columns = columns


def _sink_of(program: Program, name: str, node: int) -> int:
    known = FIELD_BY_NAME.get(name)
    if known is None:
        return SINK_SKIP
    sink = _SINKS[known.kind]
    if _fits(program, node, sink):
        return sink
    if name in _MUST_FIT:
        raise CorruptFileError(f"the Avro field '{name}' has a type that does not fit")
    return SINK_SKIP


def _fits(program: Program, node: int, sink: int) -> bool:
    op, a, b = program.nodes[node]
    if op == UNION:
        branches = [program.children[k] for k in range(a, a + b)]
        values = [n for n in branches if program.nodes[n][0] != NULL]
        return bool(values) and all(
            program.nodes[n][0] != UNION and _fits(program, n, sink) for n in values
        )
    if sink == SINK_INT:
        return op in (BOOLEAN, INT, LONG)
    if sink == SINK_TEXT:
        return op == STRING
    if sink == SINK_LIST:
        return op == ARRAY and program.nodes[a][0] == STRING
    return op == MAP and (program.nodes[a][0] == STRING or _fits(program, a, SINK_TEXT))
