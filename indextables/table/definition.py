"""What a statement says a table shall be, and what becomes of the table that stood there.

CREATE, REPLACE and AS SELECT bring a ``Definition``: columns with their comments and defaults,
partitioning, clustering, comment, properties. Settings of ours among the properties decide how
columns are indexed. Where a table is replaced, what the statement does not mention stays: other
properties, the comment, and for columns that keep name and type how they are indexed. The id stays
too, so that history, streams and time travel go on. ``overwriteSchema`` is a replacement that
mentions the columns of the data alone.

The metadata of the new table is made in one place, ``metadata``, and becomes the table's in the
commit that brings its rows and removes the old ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from indextables.config import PREFIX
from indextables.errors import ConfigError, SchemaMismatchError, UnknownColumnError
from indextables.log.actions import Action, DropIndex, Metadata
from indextables.log.actions.schema_registry import COLUMN_INDEX_PREFIX
from indextables.log.log import new_metadata
from indextables.log.read.snapshot import TABLE_MAPPING, Snapshot
from indextables.mapping import DocMapping, IndexingOptions
from indextables.naming import notes_of, plain_field, stored_name, user_mapping, with_notes
from indextables.types import normalize_schema, schema_from_json

CLUSTER_BY = PREFIX + "write.clusterBy"
"""The property that names the clustering columns."""
LIMITED_TEXT = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's note at a column of CHAR or VARCHAR, by which it checks what is written."""
OWN_PREFIX = "indextables."
_NO_PROPERTIES = frozenset(
    (
        "location", "provider", "comment", "owner", "external", "is_managed_location", "collation",
        "table_type", "path",
    )
)  # fmt: skip
_OPTION = "option."


@dataclass(frozen=True)
class Definition:
    """One table as a statement describes it; small and picklable."""

    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    partition_by: tuple[str, ...] | None = None
    """``None`` leaves the partitioning of a table that is replaced."""
    cluster_by: tuple[str, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    replaces: bool = False

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Definition:
        """The definition that Spark's catalog was given."""
        given = body["properties"]
        _refuse_collations(json.loads(body["schema"]))
        return cls(
            without_notes(schema_from_json(body["schema"])),
            tuple(body["partitionColumns"]),
            tuple(body["clusterBy"]),
            given.get("comment"),
            table_properties(given),
            bool(body["replaces"]),
        )

    @property
    def settings(self) -> dict[str, str]:
        """Our settings among the properties."""
        return {k: v for k, v in self.properties.items() if k.lower().startswith(PREFIX)}

    def metadata(self, old: Snapshot | None, indexing: IndexingOptions | None) -> Metadata:
        """The metadata of the table from now on."""
        schema = normalize_schema(self.schema)
        columns = self._partition_columns(old, schema)
        mapping = _mapping(schema, columns, indexing, old)
        facts = {**self.properties, TABLE_MAPPING: mapping.to_json()}
        if self.cluster_by:
            facts[CLUSTER_BY] = ",".join(spelled(self.cluster_by, schema, columns))
        if old is None:
            return new_metadata(schema, columns, facts, description=self.comment)
        made = new_metadata(schema, columns, {**_kept(old, schema), **facts})
        return replace(
            old.metadata,
            schema_string=made.schema_string,
            partition_columns=made.partition_columns,
            configuration=made.configuration,
            description=old.metadata.description if self.comment is None else self.comment,
        )

    def _partition_columns(self, old: Snapshot | None, schema: pa.Schema) -> tuple[str, ...]:
        if self.partition_by is not None:
            return self.partition_by
        named = {n.lower() for n in schema.names}
        before = () if old is None else old.partition_columns
        return before if all(p.lower() in named for p in before) else ()

    def dropped_indexes(self, old: Snapshot) -> Iterator[Action]:
        """Column indexes whose columns are gone or of another type now."""
        now = int(time.time() * 1000)
        stays = _staying(old, self.schema)
        for column, index in old.indexes.definitions.items():
            if column.lower() not in stays:
                yield DropIndex(index.id, column, now)


def table_properties(given: Mapping[str, str]) -> dict[str, str]:
    """The properties of the table; options to reach a store are the catalog's and stay there.

    Spark lists an option twice, with and without ``option.``; settings of ours may be either.
    """
    found: dict[str, str] = {}
    for key, value in given.items():
        name = key.removeprefix(_OPTION)
        ours = name.lower().startswith(PREFIX)
        if ours or not (key.startswith(_OPTION) or _OPTION + key in given):
            found[name] = value
    for name in list(found):
        if name.lower() in _NO_PROPERTIES:
            del found[name]
        elif name.startswith((OWN_PREFIX, "__")):
            raise ConfigError(
                f"'{name}' is kept by the table itself",
                hint=f"Settings begin with '{PREFIX}'; leave this one out",
            )
    return found


def _refuse_collations(node: Any) -> None:
    """Texts are compared by their bytes here; a column that says otherwise is not taken."""
    if isinstance(node, list):
        for item in node:
            _refuse_collations(item)
    elif isinstance(node, dict):
        if "__COLLATIONS" in node.get("metadata", {}):
            raise SchemaMismatchError(
                f"column '{node['name']}' has a collation, and texts are compared by bytes here",
                hint="Use STRING without COLLATE; TEXTSEARCH finds words in any case",
            )
        _refuse_collations([v for k, v in node.items() if k != "metadata"])


def without_notes(schema: pa.Schema) -> pa.Schema:
    """The schema with what users say of columns, and nothing of what we or Spark noted there."""
    return pa.schema([_without_notes(column) for column in schema])


def _without_notes(column: pa.Field) -> pa.Field:
    said = ("comment", "CURRENT_DEFAULT", "EXISTS_DEFAULT", LIMITED_TEXT)
    plain = plain_field(column)
    return with_notes(plain, {k: v for k, v in notes_of(plain).items() if k in said})


def spelled(names: tuple[str, ...], schema: pa.Schema, partitions: tuple[str, ...]) -> list[str]:
    """Clustering columns as the schema spells them; partition columns cannot be among them."""
    known = {n.lower(): n for n in schema.names}
    for name in names:
        if name.lower() not in known:
            raise UnknownColumnError.of(name, schema.names)
        if name.lower() in {p.lower() for p in partitions}:
            raise ConfigError(f"'{name}' is a partition column and cannot be a clustering column")
    return [known[name.lower()] for name in names]


def _staying(old: Snapshot, schema: pa.Schema) -> set[str]:
    """Columns that keep name and type, in lower case."""
    before = {f.name.lower(): f.type for f in old.schema if stored_name(f) == f.name}
    return {f.name.lower() for f in schema if before.get(f.name.lower()) == f.type}


def _kept(old: Snapshot, schema: pa.Schema) -> dict[str, str]:
    """Properties that a replacement leaves alone."""
    stays = _staying(old, schema)
    gone = {
        COLUMN_INDEX_PREFIX + column
        for column in old.indexes.definitions
        if column.lower() not in stays
    }
    own = {TABLE_MAPPING, CLUSTER_BY, *gone}
    return {k: v for k, v in old.metadata.configuration.items() if k not in own}


def _mapping(
    schema: pa.Schema,
    partitions: tuple[str, ...],
    indexing: IndexingOptions | None,
    old: Snapshot | None,
) -> DocMapping:
    """How the columns are indexed: as asked, else as before, else by their type."""
    wanted = DocMapping.for_schema(schema, partitions, indexing)
    if old is None or old.table_mapping is None:
        return wanted
    known = user_mapping(old.table_mapping, old.schema)
    named = {n.split(".")[0].lower() for n in (indexing.named_columns() if indexing else ())}
    stays = _staying(old, schema) - named
    before = [(f, known.get(f.name) if f.name.lower() in stays else None) for f in wanted.fields]
    return DocMapping(tuple(f if b is None else replace(b, name=f.name) for f, b in before))
