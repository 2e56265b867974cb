"""Answers about tables as a whole: what one is, making and replacing it, changing it, its facts.

The log is the truth. What Spark's catalog holds of a named table (``entry``) is its name, its place
and whether its files are the catalog's; it is sent along with each question, and everything else
that Spark shows of the table comes from the log.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from indextables.config import PREFIX, Config
from indextables.errors import SchemaMismatchError, TableNotFoundError
from indextables.log.actions.schema_registry import COLUMN_INDEX_PREFIX, REGISTRY_PREFIX
from indextables.log.read.snapshot import TABLE_MAPPING, Snapshot
from indextables.naming import stored_name, user_mapping
from indextables.spark.driver.opened import OpenScans
from indextables.spark.driver.quick import as_stream
from indextables.spark.driver.request import asks_for_feed
from indextables.spark.driver.scan import Request
from indextables.spark.driver.tables import SHARED
from indextables.spark.tasks.searching import FIELD_NOTE
from indextables.table.definition import Definition
from indextables.table.feed import feed_schema
from indextables.types import schema_to_json

FACTS = ("history", "splits", "partitions", "xrefs")


class TableAnswers:
    """The part of the bridge that knows tables; scans are the other part's."""

    opened: OpenScans

    def _describe(self, body: Mapping[str, Any]) -> dict[str, Any]:
        request = Request(body)
        if "definition" in body:
            return _planned(request)
        may_be_missing = body.get("forWrite") or "declaredSchema" in body
        try:
            snapshot = self.opened.current(request)
        except TableNotFoundError:
            if not may_be_missing or "entry" in body:
                raise
            return _virtual(request)
        if asks_for_feed(body["options"]):
            return _feed(request, snapshot)
        return {
            "path": request.access.path,
            "schema": noted(visible(snapshot.schema, request), snapshot),
            "partitionColumns": list(snapshot.partition_columns),
            "properties": {**_place(request), **shown_properties(snapshot)},
            "acceptAnySchema": bool(body.get("forWrite") and body.get("byName", True)),
        }

    def _exists(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"exists": SHARED.exists(Request(body).access)}

    def _define(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make or replace a table without rows, or take one over that is there."""
        from indextables.table.order import WriteOrder
        from indextables.table.write_options import indexing_options

        access = Request(body).access
        definition = Definition.of(body["definition"])
        if not definition.replaces and SHARED.exists(access):
            _check_same(SHARED.log(access).snapshot(), definition)
            return {}
        config = Config.of(access.config, definition.settings)
        _require_columns(definition, access.path)
        WriteOrder(
            access.path,
            definition.schema,
            definition.partition_by or (),
            "overwrite" if definition.replaces else "error",
            indexing_options(config),
            config,
            dict(access.storage_options),
            definition=definition,
        ).decide().define()
        return {}

    def _alter(self, body: Mapping[str, Any]) -> dict[str, Any]:
        from indextables.spark.driver.altering import alter

        alter(SHARED.log(Request(body).access), body["changes"])
        return {}

    def _forget(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A table was dropped or moved: what is known of it is not true any more."""
        SHARED.forget(Request(body).access)
        return {}

    def _factsSchema(self, body: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"schema": json.loads(schema_to_json(facts(body).schema))}

    def _facts(self, body: Mapping[str, Any]) -> dict[str, Any]:
        rows = facts(body).combine_chunks().to_batches()
        return {"rows": base64.b64encode(as_stream(rows)).decode(), "story": {}}


def facts(body: Mapping[str, Any]) -> pa.Table:
    """The rows of a metadata table."""
    from indextables.maintenance import describe_log
    from indextables.maintenance import facts as known

    log = SHARED.log(Request(body).access)
    match body["kind"]:
        case "history":
            return known.describe_history(log)
        case "splits":
            return known.splits(log)
        case "partitions":
            return known.partitions(log)
        case _:
            return describe_log.describe_xrefs(log)


def visible(schema: pa.Schema, request: Request) -> pa.Schema:
    """The columns a reader sees: all, or those fixed at load."""
    chosen = request.access.config["read.columns"]
    if not chosen or request.body.get("forWrite"):
        return schema
    from indextables.spark.source import chosen_fields

    return chosen_fields(schema, chosen)


def noted(schema: pa.Schema, snapshot: Snapshot) -> dict[str, Any]:
    """Spark's schema, in which text says how it is indexed, for searches above scans."""
    found: dict[str, Any] = json.loads(schema_to_json(schema))
    mapping = snapshot.table_mapping
    for column, spark in zip(schema, found["fields"], strict=True):
        known = None if mapping is None else mapping.get(stored_name(column))
        if known is not None and pa.types.is_string(column.type):
            spark["metadata"] = {**spark["metadata"], FIELD_NOTE: json.dumps(known.to_dict())}
    return found


def shown_properties(snapshot: Snapshot) -> dict[str, str]:
    """The properties as users set them, and the settings by which columns are indexed."""
    from indextables.table.write_options import settings_of

    own = (TABLE_MAPPING, COLUMN_INDEX_PREFIX, REGISTRY_PREFIX, "indextables.columnMapping.")
    configuration = snapshot.metadata.configuration
    shown = {k: v for k, v in configuration.items() if not k.startswith(own)}
    mapping = snapshot.table_mapping
    if mapping is not None:
        mine = user_mapping(mapping, snapshot.schema)
        found = settings_of(mine, snapshot.schema, snapshot.partition_columns)
        family = f"{PREFIX}indexing."
        if found is not None:
            shown = {k: v for k, v in shown.items() if not k.lower().startswith(family)}
            shown.update({PREFIX + k: v for k, v in found.items()})
    if snapshot.metadata.description is not None:
        shown["comment"] = snapshot.metadata.description
    return shown


def _place(request: Request) -> dict[str, str]:
    """Where the table is and whose its files are, as Spark's reserved properties say it."""
    found = {"provider": "indextables", "location": request.access.path}
    entry = request.body.get("entry")
    if entry is None or not entry["managed"]:
        found["external"] = "true"
    else:
        found["is_managed_location"] = "true"
    if entry is not None and entry["owner"]:
        found["owner"] = entry["owner"]
    return found


def _planned(request: Request) -> dict[str, Any]:
    """A table that a statement makes or replaces, as it will be."""
    definition = request.body["definition"]
    return {
        "path": request.access.path,
        "schema": json.loads(definition["schema"]),
        "partitionColumns": list(definition["partitionColumns"]),
        "properties": _place(request),
        "acceptAnySchema": True,
    }


def _feed(request: Request, snapshot: Snapshot) -> dict[str, Any]:
    """The change feed of a table, as a table that can only be read."""
    return {
        "path": request.access.path,
        "schema": json.loads(schema_to_json(feed_schema(snapshot.schema))),
        "partitionColumns": [],
        "properties": _place(request),
        "acceptAnySchema": False,
        "feed": True,
    }


def _virtual(request: Request) -> dict[str, Any]:
    """A table that the next write will create."""
    declared = request.body.get("declaredSchema")
    schema = json.loads(declared) if declared else {"type": "struct", "fields": []}
    return {
        "path": request.access.path,
        "schema": schema,
        "partitionColumns": list(request.body.get("partitionColumns", ())),
        "properties": _place(request),
        "acceptAnySchema": not schema["fields"] or bool(request.body.get("forWrite")),
    }


def _require_columns(definition: Definition, path: str) -> None:
    if not definition.schema.names:
        raise SchemaMismatchError(
            "the new table has no columns and there is no table to take over",
            path=path,
            hint="List the columns, or give the LOCATION of a table that exists",
        )


def _check_same(snapshot: Snapshot, definition: Definition) -> None:
    """A table that is there is named as it is; a statement that says otherwise is refused."""
    if not definition.schema.names:
        return
    there = [(f.name.lower(), f.type) for f in snapshot.schema]
    said = [(f.name.lower(), f.type) for f in definition.schema]
    names = tuple(p.lower() for p in definition.partition_by or ())
    columns_differ = there != said
    if columns_differ or names != tuple(p.lower() for p in snapshot.partition_columns):
        what = "columns" if columns_differ else "partition columns"
        raise SchemaMismatchError(
            f"there is a table with other {what} already",
            hint="Leave the columns out to take it over as it is, or choose another LOCATION. "
            "Nothing was changed",
        )
