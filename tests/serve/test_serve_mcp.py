"""The MCP server, asked by the SDK's own client: in this process, and over standard input."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from mcp import Client, StdioServerParameters

import indextables
from indextables.errors import ConfigError
from indextables.serve.mcp import server
from indextables.serve.questions import Limits, Questions


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mcp") / "events"
    rows = {
        "id": list(range(50)),
        "host": [f"h{i % 3}" for i in range(50)],
        "m": [f"word{i} {'timeout' if i % 10 == 0 else 'fine'}" for i in range(50)],
        "x": [float("nan")] + [i / 2 for i in range(1, 50)],
    }
    indextables.write(pa.table(rows), place, text=["m"])
    return place


def asked(client: Client, work: Callable[[Client], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        async with client as connected:
            return await work(connected)

    return asyncio.run(go())


def call(path: Path, tool: str, **arguments: Any) -> Any:
    """What a tool answers, or the text of its error."""
    limits = Limits(most_rows=20)

    async def work(client: Client) -> Any:
        result = await client.call_tool(tool, arguments)
        texts = [part.text for part in result.content]
        if result.is_error:
            return "\n".join(texts)
        found = result.structured_content
        return found["result"] if found is not None and set(found) == {"result"} else found

    return asked(Client(server(Questions.over([str(path)], limits=limits))), work)


def test_every_tool_looks_and_none_changes(path: Path) -> None:
    async def work(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = asked(Client(server(Questions.over([str(path)]))), work)
    assert {tool.name for tool in tools} == {
        "list_tables", "describe_table", "search", "select_rows", "count_rows", "aggregate",
        "explain",
    }  # fmt: skip
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
    assert all(tool.description for tool in tools)


def test_answers(path: Path) -> None:
    assert call(path, "list_tables")[0]["rows"] == 50
    described = call(path, "describe_table", table="events")
    assert {c["name"]: c["indexed"] for c in described["columns"]}["m"] == "text"
    hits = call(path, "search", table="events", query="timeout", where="id > 5", limit=3)
    assert len(hits["rows"]) == 3
    assert all("timeout" in row["m"] and row["_score"] > 0 for row in hits["rows"])
    assert call(path, "count_rows", table="events", where="m TEXTSEARCH 'timeout'") == 5
    found = call(
        path, "aggregate", table="events", aggregates={"n": "count", "most": ["max", "id"]},
        group_by=["host"],
    )  # fmt: skip
    assert found["rows"][0] == {"host": "h0", "n": 17, "most": 48}
    assert call(path, "explain", table="events", where="id = 3")


def test_answers_are_bounded_and_plain(path: Path) -> None:
    found = call(path, "select_rows", table="events", limit=1000)
    assert (len(found["rows"]), found["cut"]) == (20, True)
    assert found["plan"] == {"splits": 1, "read": 1, "stages": found["plan"]["stages"]}
    first = call(path, "select_rows", table="events", where="id = 0")
    assert first["rows"][0]["x"] == "nan"
    none = call(path, "select_rows", table="events", where="id = 99")
    assert (none["rows"], none["cut"], none["plan"]["read"]) == ([], False, 0)


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("count_rows", {"table": "other"}, "no table 'other' is served here"),
        ("count_rows", {"table": "../../etc"}, "is served here"),
        ("count_rows", {"table": "events", "where": "nope = 1"}, "ITX-4101"),
        ("select_rows", {"table": "events", "limit": 0}, "limit 0"),
        ("search", {"table": "events", "query": "AND ("}, "ITX-41"),
        ("aggregate", {"table": "events", "aggregates": {"n": "median"}}, "median"),
    ],
)
def test_errors_carry_their_code_and_advice(
    path: Path, tool: str, arguments: dict[str, Any], says: str
) -> None:
    assert says in call(path, tool, **arguments)


def test_over_standard_input(path: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "indextables.cli.main", "mcp", str(path)]
    )

    async def work(client: Client) -> Any:
        return await client.call_tool("count_rows", {"table": "events"})

    answer = asked(Client(command), work)
    assert json.loads(answer.content[0].text) == 50


def test_no_table_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no table is named"):
        Questions.over([])
