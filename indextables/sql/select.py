"""Whole SELECT statements without Spark: DuckDB runs them over our scans.

``SELECT host, count(*) FROM '/data/events' WHERE message TEXTSEARCH 'timeout' GROUP BY host``

The text is parsed as Spark SQL (strings and search operators by our own rules) and handed to
DuckDB as a tree in its dialect. A table is a path in quotes or backticks (also after
``indextables.``), or a name from ``tables``. Each stands in the query as a dataset, into which
DuckDB pushes columns and simple conditions. Nothing else can be read: DuckDB runs without access to
files or the network.

DuckDB knows nothing of text search. Two rules give searches their meaning:

* A condition of the WHERE clause that holds a search or compares addresses, belongs to one table
  that no outer join can fill with NULLs, and otherwise holds only conditions that mean the same
  here and there, is answered by the scan of that table, exactly, and leaves the statement.
  Addresses that are compared anywhere else are refused.
* Every other search becomes a function of the columns that it asks, which evaluates the same
  predicate on the values that DuckDB passes: right anywhere, at the price of reading them.

Everything that is not a search follows DuckDB: integer division, NULL order, implicit casts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot.expressions as exp

from indextables.errors import (
    IndexTablesError,
    MissingLibraryError,
    PlanningError,
    QuerySyntaxError,
)
from indextables.expr import filters as f
from indextables.expr.evaluate import evaluate
from indextables.expr.infix import EVERY, OPERATORS
from indextables.expr.ipbind import asked_addresses, refuse_for
from indextables.expr.predicate import Predicate, referenced_columns
from indextables.expr.sqlconvert import Converter
from indextables.expr.sqltext import parse_statement
from indextables.planner import Planner

if TYPE_CHECKING:
    from indextables.table import Table

OURS = "indextables"
_COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ, exp.Between, exp.In)


@dataclass
class _Source:
    """One table of the statement, under the name that DuckDB knows it by."""

    name: str
    table: Table
    where: list[f.Filter] = field(default_factory=list)

    def has(self, column: str) -> bool:
        return column.lower() in (name.lower() for name in self.table.schema.names)


@dataclass(frozen=True)
class _Search:
    """A search as a function; as everywhere it is never NULL, and FALSE where there is no text."""

    name: str
    predicate: Predicate
    table: Table

    @property
    def schema(self) -> pa.Schema:
        columns = referenced_columns(self.predicate)
        return pa.schema([self.table.schema.field(name) for name in columns])

    def __call__(self, *values: Any) -> pa.Array:
        arrays = [v.cast(f.type) for v, f in zip(values, self.schema, strict=True)]
        batches = pa.table(arrays, schema=self.schema).combine_chunks().to_batches()
        found = [evaluate(self.predicate, b, mapping=self.table.mapping) for b in batches]
        return pc.fill_null(pa.chunked_array(found, pa.bool_()), False)


def is_query(text: str) -> bool:
    """Does a statement ask for rows?"""
    words = text.lstrip().lstrip("(").lstrip().split(None, 1)
    return bool(words) and words[0].upper() in ("SELECT", "WITH", "FROM", "VALUES")


def select(
    text: str,
    tables: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """The rows of a SELECT statement."""
    from indextables.table import open_table

    def opened(path: str) -> Table:
        return open_table(path, storage_options=storage_options, options=options)

    query = Query(text, dict(tables or {}), opened)
    return query.run()


class Query:
    """One statement on its way to DuckDB."""

    def __init__(self, text: str, tables: Mapping[str, Any], opened: Any) -> None:
        self.text = text
        self.tables = {name.lower(): given for name, given in tables.items()}
        self.opened = opened
        self.tree, self.strings = parse_statement(text)
        self.sources: dict[str, _Source] = {}
        self.functions: list[_Search] = []

    # -- from the text to DuckDB's dialect --------------------------------------------------------

    def prepared(self) -> str:
        """The statement as DuckDB gets it; sources and functions are known afterwards."""
        if not isinstance(self.tree, exp.Query):
            raise QuerySyntaxError("this is not a SELECT statement", query=self.text)
        self._name_tables()
        for scope in list(self.tree.find_all(exp.Select)):
            self._push(scope)
        self._refuse_addresses()
        for call in list(self.tree.find_all(exp.Anonymous)):
            if call.name.lower() in OPERATORS:
                self._as_function(call)
        return str(self._restored(self.tree).sql("duckdb"))

    def _restored(self, node: Any) -> Any:
        """A copy with the strings that the stand-ins stand for; units of time are words by now."""
        copy = node.copy()
        for text in list(copy.find_all(exp.Literal, exp.Var)):
            if isinstance(text, exp.Var) or text.is_string:
                text.set("this", self._string(text.name))
        return copy

    def _shown(self, node: Any) -> str:
        return str(self._restored(node).sql("spark"))

    def _string(self, stand_in: str) -> str:
        return self.strings[int(stand_in[1:])] if stand_in.startswith("#") else stand_in

    def _name_tables(self) -> None:
        local = {cte.alias_or_name.lower() for cte in self.tree.find_all(exp.CTE)}
        for node in list(self.tree.find_all(exp.Table)):
            if not isinstance(node.this, exp.Identifier):
                raise self._refused(f"the table function {self._shown(node.this)}")
            if node.name.lower() in local and not node.db:
                continue
            source = self._source(node)
            alias = node.alias or _short_name(self._string(node.name))
            new = exp.Table(this=exp.to_identifier(source.name), alias=_alias(alias))
            for kept in ("joins", "pivots", "sample"):
                new.set(kept, node.args.get(kept))
            node.replace(new)

    def _source(self, node: Any) -> _Source:
        name = f"__table_{len(self.sources)}"
        given = self.tables.get(node.name.lower()) if not node.db else None
        if given is None and not (node.this.args.get("quoted") or node.db.lower() == OURS):
            raise PlanningError(
                f"'{node.name}' is a table name and nothing says where it is",
                hint="Give the path in quotes, or pass tables={'name': path}",
            )
        path = self._string(node.name)
        table = self.opened(path) if given is None else given
        if isinstance(table, str) or hasattr(table, "__fspath__"):
            table = self.opened(str(table))
        found = self.sources[name] = _Source(name, table)
        return found

    def _refused(self, what: str) -> PlanningError:
        return PlanningError(
            f"{what} cannot be used here", hint="A table is the path of an indextables table"
        )

    # -- searches ---------------------------------------------------------------------------------

    def _push(self, scope: Any) -> None:
        """Give what the scans can answer exactly to the scans."""
        where = scope.args.get("where")
        tables = dict(self._scope_tables(scope))
        if where is None or not tables:
            return
        kept = []
        for part in list(_conjuncts(where.this)):
            ours = _has_search(part) or self._asks_addresses(part, tables)
            source = self._only_source(part, tables) if ours else None
            pushed = None if source is None else self._exact(part, source)
            if source is None or pushed is None:
                kept.append(part)
            else:
                source.where.append(pushed)
        if kept:
            where.set("this", exp.and_(*kept, copy=False))
        else:
            scope.set("where", None)

    def _asks_addresses(self, part: Any, tables: dict[str, tuple[_Source, bool]]) -> bool:
        """Does a condition compare addresses, which DuckDB would compare as texts?"""
        found = self._converted(part)
        sources = [source for source, _ in tables.values()]
        return any(True for s in sources for _ in asked_addresses(found, s.table.mapping))

    def _refuse_addresses(self) -> None:
        """What compares addresses where the scans cannot answer it."""
        for kind in _COMPARISONS:
            for node in self.tree.find_all(kind):
                if not node.find(exp.Query):
                    for source in self.sources.values():
                        refuse_for("DuckDB", self._converted(node), source.table.mapping)

    def _scope_tables(self, scope: Any) -> Iterator[tuple[str, tuple[_Source, bool]]]:
        """Alias to (source, may an outer join fill it with NULLs) of the tables of one SELECT."""
        first = scope.args.get("from_") or scope.args.get("from")
        joins = scope.args.get("joins") or []
        nodes = [part.this for part in (first, *joins) if part is not None]
        sides = ["", *(str(join.args.get("side") or "").upper() for join in joins)]
        for number, node in enumerate(nodes):
            if not isinstance(node, exp.Table) or node.name not in self.sources:
                continue
            filled = sides[number] in ("LEFT", "FULL") or any(
                side in ("RIGHT", "FULL") for side in sides[number + 1 :]
            )
            yield node.alias.lower(), (self.sources[node.name], filled)

    def _only_source(self, part: Any, tables: dict[str, tuple[_Source, bool]]) -> _Source | None:
        """The one table that all columns of a condition belong to."""
        if part.find(exp.Query):
            return None
        owners = {self._owner(column, tables) for column in part.find_all(exp.Column)}
        owner = owners.pop() if len(owners) == 1 else None
        if owner is None:
            return None
        source, filled = tables[owner]
        return None if filled else source

    def _owner(self, column: Any, tables: dict[str, tuple[_Source, bool]]) -> str | None:
        qualifier = column.table.lower()
        if qualifier:
            return qualifier if qualifier in tables else None
        if column.name == EVERY:
            return next(iter(tables)) if len(tables) == 1 else None
        owners = [alias for alias, (source, _) in tables.items() if source.has(column.name)]
        return owners[0] if len(owners) == 1 else None

    def _exact(self, part: Any, source: _Source) -> f.Filter | None:
        """The condition as a filter, if all of it means the same here as in DuckDB."""
        found = self._converted(part)
        if not isinstance(found, f.Filter) or not _means_the_same(found, source.table.schema):
            return None
        Planner(source.table).bind(found)
        return found

    def _converted(self, part: Any) -> f.Expression:
        plain = part.copy()
        for column in plain.find_all(exp.Column):
            column.set("table", None)
        return Converter(self.strings).expression(plain)

    def _as_function(self, call: Any) -> None:
        """A search that DuckDB has to ask, as a function of the columns that it reads."""
        scope = call.find_ancestor(exp.Select)
        tables = dict(self._scope_tables(scope)) if scope is not None else {}
        source = self._anywhere(call, tables)
        if source is None:
            raise PlanningError(
                f"nothing says how {self._shown(call)} is to be searched",
                hint="Search a column of a table, not one that the statement computes, and write "
                "alias.column where several tables have it",
            )
        predicate = Planner(source.table).bind(self._converted(call))
        name = f"__search_{len(self.functions)}"
        search = _Search(name, predicate, source.table)
        self.functions.append(search)
        qualifier = next(iter(call.find_all(exp.Column))).table or None
        columns = [exp.column(c, table=qualifier, quoted=True) for c in search.schema.names]
        call.replace(exp.Anonymous(this=name, expressions=columns))

    def _anywhere(self, call: Any, tables: dict[str, tuple[_Source, bool]]) -> _Source | None:
        owners = {self._owner(column, tables) for column in call.find_all(exp.Column)}
        owner = owners.pop() if len(owners) == 1 else None
        return tables[owner][0] if owner is not None else None

    # -- running ----------------------------------------------------------------------------------

    def run(self) -> pa.Table:
        """The rows."""
        duckdb = _duckdb()
        text = self.prepared()
        settings = {"enable_external_access": "false", "lock_configuration": "true"}
        with duckdb.connect(":memory:", config=settings) as connection:
            for source in self.sources.values():
                dataset = source.table.dataset(source.where or None)
                connection.register(source.name, dataset)
            for function in self.functions:
                types = [_duckdb_type(column.type) for column in function.schema]
                connection.create_function(
                    function.name, function, types, "BOOLEAN", type="arrow", null_handling="special"
                )
            try:
                return _arrow(connection.sql(text))
            except duckdb.Error as error:
                raise _as_ours(error, self.text) from error


def _duckdb_type(dtype: pa.DataType) -> str:
    """DuckDB's name of the type of a column that is searched."""
    if pa.types.is_string(dtype):
        return "VARCHAR"
    raise PlanningError(
        f"a search of a {dtype} column has to be answered by the scan",
        hint="Put the search into the WHERE clause, joined to the rest by AND",
    )


def _means_the_same(found: f.Expression, schema: pa.Schema) -> bool:
    """Is a condition built of searches and of plain comparisons of a column with a like value?"""
    match found:
        case f.And() | f.Or() | f.Not():
            return all(_means_the_same(child, schema) for child in found.children())
        case f.TextFilter():
            return True
        case f.IsNull() | f.IsNotNull():
            return True
        case f.EqualTo() | f.LessThan() | f.LessThanOrEqual() | f.GreaterThan():
            return _is_plain(found, schema)
        case f.GreaterThanOrEqual() | f.Like():
            return _is_plain(found, schema)
        case _:
            return False


def _is_plain(found: f.Expression, schema: pa.Schema) -> bool:
    children = found.children()
    if len(children) < 2 or not isinstance(children[0], f.Attribute):
        return False
    column, value = children[0], children[1]
    names = {name.lower(): name for name in schema.names}
    if len(column.path) != 1 or column.path[0].lower() not in names:
        return False
    dtype = schema.field(names[column.path[0].lower()]).type
    if not isinstance(value, f.Lit) or isinstance(value.value, bool):
        return False
    if isinstance(value.value, str):
        return bool(pa.types.is_string(dtype))
    return isinstance(value.value, int) and bool(pa.types.is_integer(dtype))


def _conjuncts(node: Any) -> Iterator[Any]:
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.And | exp.Paren):
        yield from _conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _has_search(node: Any) -> bool:
    return any(call.name.lower() in OPERATORS for call in node.find_all(exp.Anonymous))


def _short_name(path: str) -> str:
    """How the statement may call a table that it gave no alias: the last part of its path."""
    return path.rstrip("/").rpartition("/")[2].partition("@")[0] or path


def _alias(name: str) -> Any:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingLibraryError.of("DuckDB", "duckdb") from None
    return duckdb


def _arrow(answer: Any) -> pa.Table:
    """The rows of a result, whichever name this release of DuckDB has for it."""
    fetch = getattr(answer, "to_arrow_table", None) or answer.fetch_arrow_table
    found: pa.Table = fetch()
    return found


def _as_ours(error: Any, text: str) -> IndexTablesError:
    message = str(error).partition("\n")[0]
    return PlanningError(
        f"DuckDB cannot run this statement: {message}", hint=f"The statement was: {text.strip()}"
    )
