"""Which streams a projection needs, and the Arrow type that comes out.

A name is a column, or a path into the fields of a struct (``s.a``, and ``s.a.b`` below it); several
paths into one column give one struct with just those fields, in the order of the schema. A column
whose own name contains dots is found before a path is tried. Naming no columns at all is a
projection too: batches then have rows but no columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from indextables.errors import UnknownColumnError
from indextables.splits.rows.layout import STRUCT, Stream


@dataclass(slots=True)
class Projected:
    """A stream with the children that are wanted and the Arrow type that comes out."""

    stream: Stream
    type: pa.DataType
    children: list[Projected]

    def walk(self) -> list[Stream]:
        """The streams that are read for this node."""
        return [self.stream, *(s for child in self.children for s in child.walk())]


def project(
    schema: pa.Schema, roots: list[Stream], columns: tuple[str, ...] | None, path: str | None
) -> tuple[list[Projected], pa.Schema]:
    """The projected streams in the order of ``columns``, and their schema."""
    if columns is None:
        return [_whole(root) for root in roots], schema
    by_name = {root.name: root for root in roots}
    asked: dict[str, list[tuple[str, ...]]] = {}
    for name in columns:
        column, *rest = [name] if name in by_name else name.split(".")
        if column not in by_name or not _exists(by_name[column], tuple(rest)):
            raise UnknownColumnError.of(name, schema.names, path=path)
        asked.setdefault(column, []).append(tuple(rest))
    nodes = [_pruned(by_name[column], paths) for column, paths in asked.items()]
    fields = [schema.field(node.stream.column).with_type(node.type) for node in nodes]
    return nodes, pa.schema(fields, metadata=schema.metadata)


def _whole(stream: Stream) -> Projected:
    return Projected(stream, stream.type, [_whole(child) for child in stream.children])


def _exists(stream: Stream, path: tuple[str, ...]) -> bool:
    if not path:
        return True
    if stream.kind != STRUCT:
        return False
    names = [field.name for field in stream.type.fields]
    return path[0] in names and _exists(stream.children[names.index(path[0])], path[1:])


def _pruned(stream: Stream, paths: list[tuple[str, ...]]) -> Projected:
    """The stream with only the fields that ``paths`` (from here down) name."""
    if () in paths:
        return _whole(stream)
    kept = []
    children = []
    for field, child in zip(stream.type.fields, stream.children, strict=True):
        below = [p[1:] for p in paths if p[0] == field.name]
        if below:
            node = _pruned(child, below)
            children.append(node)
            kept.append(field.with_type(node.type))
    return Projected(stream, pa.struct(kept), children)
