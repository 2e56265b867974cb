"""Address columns in SQL: order and networks are those of addresses; other engines are refused."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import indextables
from indextables import col
from indextables.errors import IndexTablesError, PlanningError, TypeMismatchError

ODD = [
    None,
    "",
    "no address",
    "010.1.1.1",
    "::1",
    "2001:db8::1",
    "2001:DB8::ff",
    "::ffff:66.249.3.4",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[str | None]]:
    rng = Random(66)
    ips: list[str | None] = list(ODD)
    ips += [
        f"66.{rng.choice([248, 249, 250])}.{rng.randrange(256)}.{rng.randrange(256)}"
        for _ in range(300)
    ]
    path = tmp_path_factory.mktemp("addresses") / "t"
    rows = [{"id": i, "ip": ip, "msg": "seen"} for i, ip in enumerate(ips)]
    indextables.write(rows[:150], path, ip=["ip"], text=["msg"])
    indextables.write(rows[150:], path)
    return indextables.open(path), ips


def number(text: str | None) -> int | None:
    try:
        address = ipaddress.ip_address(text or "")
    except ValueError:
        return None
    return int(address) if address.version == 6 else (0xFFFF << 32) + int(address)


def between(ips: list[str | None], low: str, high: str) -> list[int]:
    first, last = number(low), number(high)
    assert first is not None
    assert last is not None
    return [i for i, ip in enumerate(ips) if (n := number(ip)) is not None and first <= n <= last]


def found(table: Any, where: Any) -> list[int]:
    return sorted(table.to_arrow(where, ["id"])["id"].to_pylist())


def test_ranges_and_networks_compare_addresses(made: tuple[Any, list[str | None]]) -> None:
    table, ips = made
    network = between(ips, "66.249.0.0", "66.249.255.255")
    assert len(network) > 50
    for where in (
        "ip BETWEEN '66.249.0.0' AND '66.249.255.255'",
        "ip >= '66.249.0.0' AND ip < '66.250.0.0'",
        "ip = '66.249.0.0/16'",
        "ip IN ('66.249.0.0/17', '66.249.128.0/17')",
        "ip = '66.249.*.*'",
        "ip INDEXQUERY '66.249.0.0/16'",
        (col("ip") >= "66.249.0.0") & (col("ip") <= "66.249.255.255"),
    ):
        assert found(table, where) == network, where
        assert table.count(where) == len(network)


def test_the_opposite_leaves_out_nulls(made: tuple[Any, list[str | None]]) -> None:
    table, ips = made
    network = set(between(ips, "66.249.0.0", "66.249.255.255"))
    others = [i for i, ip in enumerate(ips) if ip is not None and i not in network]
    assert found(table, "ip != '66.249.0.0/16'") == others
    assert found(table, "NOT (ip = '66.249.0.0/16')") == others
    assert found(table, "ip NOT IN ('66.249.0.0/16')") == others
    addresses = [i for i in others if number(ips[i]) is not None]
    assert found(table, "ip NOT BETWEEN '66.249.0.0' AND '66.249.255.255'") == addresses


def test_one_address_and_other_texts_are_texts(made: tuple[Any, list[str | None]]) -> None:
    table, ips = made
    assert found(table, "ip = '::1'") == [ips.index("::1")]
    assert found(table, "ip = 'no address'") == [2]
    assert found(table, "ip IN ('', '::1')") == [1, 4]


def test_an_end_that_is_no_address_is_refused(made: tuple[Any, list[str | None]]) -> None:
    table, _ = made
    for where in ("ip > '66.249'", "ip BETWEEN '66.249.0.0' AND 'z'", "ip < '10.0.0.0/8'"):
        with pytest.raises(TypeMismatchError, match="not an address"):
            table.count(where)
    with pytest.raises(PlanningError, match="inside an expression"):
        table.count("CASE WHEN ip > '1.1.1.1' THEN id ELSE 0 END = 1")


@pytest.mark.parametrize(
    "query",
    [
        "2001:db8::/32",
        "2001:db8::1 OR 2001:DB8:0::ff",
        "ip:2001:db8::/32",
        "[2001:db8:: TO 2001:db8::ffff]",
    ],
)
def test_networks_of_ipv6_in_search_strings(made: tuple[Any, list[str | None]], query: str) -> None:
    table, ips = made
    wanted = [ips.index("2001:db8::1"), ips.index("2001:DB8::ff")]
    assert found(table, f"ip INDEXQUERY '{query}'") == wanted


def test_a_word_before_a_colon_is_still_a_field(made: tuple[Any, list[str | None]]) -> None:
    table, _ = made
    with pytest.raises(IndexTablesError, match="unknown field 'abc'"):
        table.count("ip INDEXQUERY 'abc:1'")
    with pytest.raises(IndexTablesError, match="unknown field '2001'"):
        table.count("msg INDEXQUERY '2001:db8::1'")


def test_select_compares_addresses_or_refuses(made: tuple[Any, list[str | None]]) -> None:
    pytest.importorskip("duckdb")
    table, ips = made
    network = len(between(ips, "66.249.0.0", "66.249.255.255"))

    def count(where: str) -> int:
        asked = f"SELECT count(*) AS n FROM t WHERE {where}"
        answer: int = indextables.sql(None, asked, tables={"t": table})["n"][0].as_py()
        return answer

    assert count("ip BETWEEN '66.249.0.0' AND '66.249.255.255'") == network
    assert count("ip = '66.249.0.0/16' AND id >= 0") == network
    assert count("ip = '::1'") == 1
    with pytest.raises(PlanningError, match="as texts"):
        count("CASE WHEN ip > '66.249.0.0' THEN TRUE END")
    with pytest.raises(PlanningError, match="INDEXQUERY"):
        indextables.sql(None, "SELECT ip < '66.249.0.0' AS b FROM t", tables={"t": table})


def test_engines_that_compare_texts_are_refused(made: tuple[Any, list[str | None]]) -> None:
    duckdb = pytest.importorskip("duckdb")
    pl = pytest.importorskip("polars")
    table, _ = made
    with duckdb.connect() as connection:
        connection.register("events", table.dataset())
        asked = "SELECT count(*) FROM events WHERE ip "
        assert connection.sql(asked + "= '::1'").fetchall() == [(1,)]
        with pytest.raises(Exception, match="as texts"):
            connection.sql(asked + "> '66.249.0.0'").fetchall()
    lazy = indextables.scan_polars(table.path)
    with pytest.raises(Exception, match="as texts"):
        lazy.filter(pl.col("ip") == "66.249.0.0/16").collect()


def test_spark_is_refused() -> None:
    from indextables.expr.filters import parse_filters
    from indextables.expr.ipbind import refuse_for
    from indextables.mapping import DocMapping, FieldMapping

    mapping = DocMapping((FieldMapping("ip", "ip"),))
    node = {"op": "GreaterThan", "children": [
        {"op": "attr", "name": ["IP"], "type": "string"},
        {"op": "lit", "value": "66.249.0.0", "type": "string"},
    ]}  # fmt: skip
    with pytest.raises(PlanningError, match="Spark would compare"):
        refuse_for("Spark", parse_filters(node), mapping)


def test_a_folder_named_by_a_path(tmp_path: Path) -> None:
    """Deleting by network removes the network, not what sorts near it."""
    rows = [{"ip": ip} for ip in ("66.249.3.1", "66.2.1.1", "9.9.9.9", None)]
    indextables.write(rows, tmp_path / "t", ip=["ip"])
    table = indextables.open(tmp_path / "t")
    assert table.delete("ip = '66.249.0.0/16'").rows_deleted == 1
    assert table.refresh().count() == 3
