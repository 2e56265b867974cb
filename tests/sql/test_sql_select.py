"""SELECT without Spark: searches mean the same wherever they stand, nothing else can be read."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import IndexTablesError, PlanningError
from indextables.sql.select import Query
from indextables.table.table import Table

ROWS = 120
WORDS = ["timeout", "fine", "disk", "Full"]


def message(i: int) -> str | None:
    return None if i % 13 == 5 else f"{WORDS[i % 3]} {WORDS[i % 4]} n{i}"


def holds(i: int, word: str) -> bool:
    """A search is never NULL: a row without text does not match."""
    return word.lower() in (message(i) or "").lower().split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("select")
    for start in range(0, ROWS, 40):
        numbers = range(start, start + 40)
        rows = {
            "id": list(numbers),
            "host": [f"h{i % 5}" for i in numbers],
            "m": [message(i) for i in numbers],
        }
        indextables.write(pa.table(rows), place / "events", text=["m"])
    hosts = {"host": ["h1", "h2", "x"], "note": ["disk failed", "it's", "c\\d"]}
    indextables.write(pa.table(hosts), place / "hosts", text=["note"])
    return place


def ask(folder: Path, text: str, **options: Any) -> list[tuple[Any, ...]]:
    filled = text.replace("EVENTS", f"'{folder}/events'").replace("HOSTS", f"'{folder}/hosts'")
    found = indextables.sql(None, filled, **options)
    return [tuple(row.values()) for row in found.to_pylist()]


def test_groups_joins_windows_and_ctes(folder: Path) -> None:
    hits = [i for i in range(ROWS) if holds(i, "timeout")]
    counts = sorted((f"h{k}", sum(i % 5 == k for i in hits)) for k in range(5))
    assert ask(
        folder,
        "SELECT host, count(*) FROM EVENTS WHERE m TEXTSEARCH 'timeout' GROUP BY host ORDER BY 1",
    ) == [c for c in counts if c[1]]
    joined = "SELECT e.id FROM EVENTS e JOIN HOSTS h ON e.host = h.host WHERE "
    assert ask(
        folder, joined + "e.m TEXTSEARCH 'timeout' AND h.note TEXTSEARCH 'disk' ORDER BY 1"
    ) == [(i,) for i in hits if i % 5 == 1]
    assert ask(
        folder,
        "WITH x AS (SELECT id, row_number() OVER (ORDER BY id DESC) r FROM EVENTS "
        "WHERE m TEXTSEARCH 'timeout') SELECT id FROM x WHERE r = 1",
    ) == [(hits[-1],)]


def test_a_search_keeps_its_meaning_where_no_scan_can_answer_it(folder: Path) -> None:
    hits = [i for i in range(ROWS) if holds(i, "timeout")]
    assert ask(folder, "SELECT sum(CASE WHEN m TEXTSEARCH 'timeout' THEN 1 END) FROM EVENTS") == [
        (len(hits),)
    ]
    assert ask(
        folder,
        "SELECT h.host, count(e.id) FROM HOSTS h LEFT JOIN EVENTS e "
        "ON e.host = h.host AND e.m TEXTSEARCH 'timeout' GROUP BY 1 ORDER BY 1",
    ) == [
        ("h1", len([i for i in hits if i % 5 == 1])),
        ("h2", len([i for i in hits if i % 5 == 2])),
        ("x", 0),
    ]
    left = "SELECT h.host FROM HOSTS h LEFT JOIN EVENTS e ON e.host = h.host AND e.id > 900 WHERE "
    filled = [("h1",), ("h2",), ("x",)]
    assert ask(folder, left + "NOT e.m TEXTSEARCH 'timeout' ORDER BY 1") == filled
    assert ask(folder, left + "e.m TEXTSEARCH 'timeout'") == []
    assert ask(
        folder,
        "SELECT count(*) FROM EVENTS WHERE id IN (SELECT id FROM EVENTS WHERE m TEXTSEARCH 'disk')",
    ) == [(sum(bool(holds(i, "disk")) for i in range(ROWS)),)]


def condition(rng: random.Random, depth: int) -> tuple[str, Any]:
    """A condition, and what it says of a row."""
    if depth == 0:
        word, number = rng.choice(WORDS), rng.randrange(ROWS)
        return rng.choice(
            [
                (f"m TEXTSEARCH '{word}'", lambda i: holds(i, word)),
                (f"id < {number}", lambda i: i < number),
                (f"id % 7 = {number % 7}", lambda i: i % 7 == number % 7),
                (f"host = 'h{number % 5}'", lambda i: i % 5 == number % 5),
            ]
        )
    one, first = condition(rng, depth - 1)
    two, second = condition(rng, depth - 1)
    kind = rng.choice(["AND", "OR", "NOT"])

    def truth(i: int) -> bool:
        if kind == "NOT":
            return not first(i)
        return (first(i) and second(i)) if kind == "AND" else (first(i) or second(i))

    return (f"NOT ({one})" if kind == "NOT" else f"(({one}) {kind} ({two}))"), truth


def test_random_conditions(folder: Path, rng: random.Random) -> None:
    for _ in range(25):
        text, truth = condition(rng, rng.randrange(1, 4))
        wanted = [(i,) for i in range(ROWS) if truth(i)]
        assert ask(folder, f"SELECT id FROM EVENTS WHERE {text} ORDER BY id") == wanted, text
        shown = ask(folder, f"SELECT id, {text} FROM EVENTS ORDER BY id")
        assert shown == [(i, truth(i)) for i in range(ROWS)], text


def prepared(folder: Path, text: str) -> tuple[Query, str]:
    query = Query(text.replace("EVENTS", f"'{folder}/events'"), {}, lambda path: opened(path))
    return query, query.prepared()


def opened(path: str) -> Table:
    return indextables.open(path)


def test_what_a_scan_answers_leaves_the_statement(folder: Path) -> None:
    query, text = prepared(folder, "SELECT id FROM EVENTS WHERE m TEXTSEARCH 'disk' AND id > 3")
    (source,) = query.sources.values()
    assert len(source.where) == 1
    assert "search" not in text.lower()
    assert "id > 3" in text
    assert not query.functions
    query, text = prepared(folder, "SELECT id FROM EVENTS WHERE m TEXTSEARCH 'disk' OR id % 2 = 0")
    assert "__search_0" in text.lower()
    assert len(query.functions) == 1


def test_strings_names_and_tables(folder: Path) -> None:
    assert ask(folder, r"SELECT note FROM HOSTS WHERE note = 'c\\d'") == [("c\\d",)]
    assert ask(folder, r"SELECT host FROM HOSTS WHERE note = 'it\'s';") == [("h2",)]
    assert ask(folder, f"SELECT events.id FROM indextables.`{folder}/events` WHERE id = 4") == [
        (4,)
    ]
    table = indextables.open(folder / "events")
    for given in (table, str(folder / "events"), folder / "events"):
        assert ask(folder, "SELECT max(id) FROM e", tables={"e": given}) == [(ROWS - 1,)]
    assert ask(folder, "SELECT id FROM EVENTS WHERE false") == []
    assert ask(folder, "SELECT date_trunc('DAY', DATE '2024-05-01') IS NOT NULL") == [(True,)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "cannot be used here"),
        ("SELECT * FROM nowhere", "nothing says where it is"),
        ("SELECT nope FROM EVENTS", "nope"),
        ("SELECT * FROM '/no/such/table'", "no transaction log"),
        ("SELECT id FROM EVENTS WHERE host TEXTSEARCH 'x'", "tokenised"),
        ("SELECT 1 FROM (SELECT m FROM EVENTS LIMIT 5) t WHERE t.m TEXTSEARCH 'x'", "nothing says"),
        ("SELECT id FROM EVENTS WHERE", "not SQL"),
        ("SELECT 1; SELECT 2", "one only"),
        ("SELECT content FROM read_text('/etc/passwd')", "cannot be used here"),
    ],
)
def test_what_cannot_be_run_says_why(folder: Path, text: str, says: str) -> None:
    with pytest.raises(IndexTablesError, match=says):
        ask(folder, text)


def test_files_cannot_be_reached_through_functions(folder: Path) -> None:
    with pytest.raises(PlanningError):
        ask(folder, "SELECT getenv('HOME'), id FROM EVENTS WHERE id IN (SELECT 1 FROM glob('/*'))")
