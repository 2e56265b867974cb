"""A Model Context Protocol server over standard input and output: agents may look, not touch.

Seven tools, all marked read-only, over the tables that were named when the server was started. The
answers are those of ``questions``, bounded; an error of ours reaches the agent as the error of the
tool, with its code and its advice, so that it can repair its question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from indextables import __version__
from indextables.errors import IndexTablesError, MissingLibraryError
from indextables.serve.questions import Questions

P = ParamSpec("P")
R = TypeVar("R")

INSTRUCTIONS = (
    "Tables of logs, events or documents that are searched by an index. Call list_tables and "
    "describe_table first. Conditions are Spark SQL over the columns, for example "
    "status = 500 AND message TEXTSEARCH 'timeout'; TEXTSEARCH works on columns indexed as text."
)


def server(questions: Questions) -> Any:
    """The server; ``run()`` serves until the input ends."""
    try:
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError:
        raise MissingLibraryError.of("the MCP SDK", "mcp") from None
    found = MCPServer("indextables", instructions=INSTRUCTIONS, version=__version__)
    looks = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    for tool in _tools(questions):
        found.tool(annotations=looks)(tool)
    return found


def _tools(questions: Questions) -> list[Callable[..., Any]]:
    def list_tables() -> list[dict[str, Any]]:
        """The tables: name, version, rows, splits, bytes."""
        return _told(questions.tables)

    def describe_table(table: str) -> dict[str, Any]:
        """The columns of a table, their types, and how each is indexed."""
        return _told(questions.describe, table)

    def search(table: str, query: str, where: str | None = None, limit: int = 10) -> dict[str, Any]:
        """The best rows for a search string such as: timeout AND host:web-1; with scores."""
        return _told(questions.search, table, query, where=where, limit=limit)

    def select_rows(
        table: str,
        where: str | None = None,
        columns: list[str] | None = None,
        limit: int = 10,
    ) -> dict[str, Any]:
        """Rows that match a Spark SQL condition, in no particular order."""
        return _told(questions.rows, table, where, columns, limit)

    def count_rows(table: str, where: str | None = None) -> int:
        """How many rows match a Spark SQL condition."""
        return _told(questions.count, table, where)

    def aggregate(
        table: str,
        aggregates: dict[str, str | list[str]],
        group_by: list[str] | None = None,
        where: str | None = None,
        limit: int = 100,
    ) -> dict[str, Any]:
        """Aggregates by groups: {"n": "count", "most": ["max", "latency"]}, group_by ["host"]."""
        return _told(questions.aggregate, table, aggregates, group_by or (), where, limit)

    def explain(table: str, where: str) -> dict[str, Any]:
        """How many splits a condition needs, and which stage ruled out the others."""
        return _told(questions.explain, table, where)

    return [list_tables, describe_table, search, select_rows, count_rows, aggregate, explain]


def _told(ask: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """The answer, or the error as the agent is to read it."""
    try:
        return ask(*arguments, **named)
    except IndexTablesError as error:
        from mcp.server.mcpserver.exceptions import ToolError

        raise ToolError(str(error)) from None
