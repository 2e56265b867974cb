"""New values for columns: SQL expressions over a row, computed as Spark would.

``{"v": "v + 1", "m": "'text'"}`` gives for each column an expression. A text is SQL; a number, a
date or ``None`` is itself, and ``col(...)`` and ``lit(...)`` are what they are everywhere. The
value becomes the type of its column by ANSI rules: what does not fit is an error, never a guess.
What has no exact computation here (see ``functions``) is refused before anything is read. A nested
column can be copied from one of the same type, or be NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.errors import IndexTablesError, PlanningError
from indextables.expr import filters as f
from indextables.expr.arrays import read_column
from indextables.expr.coercion import NotComputableError
from indextables.expr.expressions import as_value
from indextables.expr.functions import compute
from indextables.expr.predicate import Column
from indextables.expr.scope import Scope
from indextables.expr.sqltext import parse_value
from indextables.expr.typed import Compiler
from indextables.expr.typednode import Typed
from indextables.naming import plain_field


@dataclass(frozen=True)
class Assignment:
    """The new value of one column."""

    field: pa.Field
    typed: Typed | None
    copied: Column | None = None

    def over(self, batch: pa.RecordBatch) -> Any:
        """The value for each row."""
        if self.copied is not None:
            return read_column(batch, self.copied)
        if self.typed is None:
            return pa.nulls(batch.num_rows, self.field.type)
        found = compute(self.typed, batch)
        if not self.field.nullable and found.null_count:
            raise PlanningError(f"column '{self.field.name}' is required and would become NULL")
        return found


def row_scope(fields: Iterable[pa.Field]) -> Scope:
    """What an expression may read: rows in the user's names, as readers give them."""
    return Scope(pa.schema(list(map(plain_field, fields))))


def bind_assignments(
    values: Mapping[str, Any], table: pa.Schema, row: Scope, *, path: str | None = None
) -> dict[str, Assignment]:
    """The assignments by column of ``table``; ``row`` is what expressions may read."""
    columns = Scope(table, case_sensitive=row.case_sensitive)
    found: dict[str, Assignment] = {}
    for name, value in values.items():
        (column,) = columns.fields_of((name,))
        if column.name in found:
            raise PlanningError(f"column '{column.name}' is set twice", path=path)
        found[column.name] = _assignment(column, value, row, path)
    if not found:
        raise PlanningError("nothing is set", path=path, hint="Give a column and its new value")
    return found


def _assignment(column: pa.Field, value: Any, row: Scope, path: str | None) -> Assignment:
    expression = parse_value(value) if isinstance(value, str) else as_value(value)
    if isinstance(expression, f.Attribute):
        source = row.column(expression.path)
        if source.dtype == column.type:
            return Assignment(column, None, source)
    if isinstance(expression, f.Lit) and expression.value is None:
        if not column.nullable:
            raise PlanningError(f"column '{column.name}' is required and cannot be NULL", path=path)
        return Assignment(column, None)
    try:
        typed = Compiler(row).compile(f.Cast(expression, column.type))
    except NotComputableError:
        raise PlanningError(
            f"the value of '{column.name}' cannot be computed here: {expression!r}",
            path=path,
            hint="Use UPDATE or MERGE INTO through Spark, or a simpler expression",
        ) from None
    except IndexTablesError as error:
        error.path = error.path or path
        raise
    return Assignment(column, typed)


def bind_condition(value: Any, row: Scope, *, path: str | None = None) -> Typed:
    """A condition over the same kind of row; NULL is not TRUE."""
    expression = parse_value(value) if isinstance(value, str) else as_value(value)
    try:
        return Compiler(row).condition(expression)
    except NotComputableError:
        raise PlanningError(
            f"the condition cannot be decided here: {expression!r}",
            path=path,
            hint="Use MERGE INTO through Spark, or a simpler condition",
        ) from None
