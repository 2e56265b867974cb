"""Behaviours of the JVM IndexTables replayed as black boxes, each named after its suite."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import indextables.spark as it
from indextables.table import open_table

TEXT = {"spark.indextables.indexing.typemap.text": "content"}


class Box:
    """A session and a folder for tables."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.path = str(folder / "t")

    def write(
        self, query: str, by: Sequence[str] = (), mode: str = "append", **options: Any
    ) -> None:
        rows = int(options.pop("rows", 1000))
        given = {"spark.indextables.write.rowsPerSplit": rows, **options}
        writer = self.spark.sql(query).coalesce(1).write.format("indextables").mode(mode)
        writer = writer.options(**given)
        (writer.partitionBy(*by) if by else writer).save(self.path)

    @property
    def frame(self) -> Any:
        return self.spark.read.format("indextables").load(self.path)

    def sql(self, query: str) -> list[Any]:
        text = query.format(t=f"indextables.`{self.path}`")
        return sorted(map(tuple, self.spark.sql(text).collect()), key=repr)

    def ids(self, where: str) -> list[int]:
        return sorted(r[0] for r in self.sql(f"select id from {{t}} where {where}"))


@pytest.fixture
def box(spark: Any, tmp_path: Path) -> Box:
    return Box(spark, tmp_path)


DOCS = """select * from values
(1, 'machine learning basics', 'a', 10), (2, 'deep learning', 'b', 20),
(3, 'data engineering', 'a', 30), (4, 'machine shop', 'b', 40), (5, null, 'a', 50)
as t(id, content, part, n)"""


def docs(box: Box) -> Box:
    box.write(DOCS, by=["part"], **TEXT)
    return box


def test_01_index_query_boolean(box: Box) -> None:
    docs(box)
    assert box.ids("content indexquery 'machine' or content indexquery 'deep'") == [1, 2, 4]
    assert box.ids("content indexquery 'machine' and part = 'a'") == [1]
    assert box.ids("not content indexquery 'machine' and part = 'a'") == [3, 5]
    assert box.ids("(content indexquery 'learning' or n = 30) and not part = 'b'") == [1, 3]


def test_02_search_operator(box: Box) -> None:
    box.write("select 1 id, 'naïve straße' content, 'x' textsearch", **TEXT)
    assert box.ids("content TextSearch 'naïve'") == [1]
    assert box.ids("`content` TEXTSEARCH 'straße'") == [1]
    assert box.ids("textsearch FIELDMATCH 'x'") == [1]
    assert box.ids("content TEXTSEARCH ''") in ([], [1])


def test_03_index_query_non_existent_field(box: Box) -> None:
    docs(box)
    with pytest.raises(Exception, match=r"nofield"):
        box.ids("content indexquery 'nofield:x'")
    assert box.ids("content indexquery 'deep'") == [2]


def test_04_index_query_invalid_syntax(box: Box) -> None:
    docs(box)
    for bad in ("(machine", "[a TO", 'content:"open'):
        with pytest.raises(Exception, match=r"ITX-"):
            box.spark.sql(
                f"select * from indextables.`{box.path}` where content indexquery '{bad}'"
            )._jdf.queryExecution().sparkPlan()


def test_05_index_query_cte(box: Box) -> None:
    docs(box)
    query = """with m as (select * from {t} where content indexquery 'machine'),
    n as (select id from m where n > 10) select count(*) from n join m using (id)"""
    assert box.sql(query) == [(1,)]


def test_06_wildcard_query(box: Box) -> None:
    docs(box)
    assert box.ids("content indexquery 'mach*'") == [1, 4]
    assert box.ids("content indexquery '*ing'") == [1, 2, 3]
    assert box.ids("content indexquery 'm?chine'") == [1, 4]
    assert box.ids("content indexquery '(mach* OR deep) AND learn*'") == [1, 2]


def test_07_index_query_all_safety_check(box: Box) -> None:
    columns = ", ".join(f"'w{i}' c{i}" for i in range(12))
    box.write(f"select 1 id, {columns}")
    with pytest.raises(Exception, match=r"maxUnqualifiedFields|fields"):
        box.ids("* indexquery 'w3'")
    key = "spark.indextables.indexquery.indexall.maxUnqualifiedFields"
    frame = box.spark.read.format("indextables").option(key, "0").load(box.path)
    assert frame.filter("indexquery(_indexall, 'w3')").count() == 1


def test_08_null_filters(box: Box) -> None:
    box.write(
        "select id, if(id % 2 = 0, null, id) n, if(id % 3 = 0, null, 'x') s from range(12)",
        **{"spark.indextables.indexing.nonfastfields": "n,s"},
    )
    assert box.ids("n is null") == [0, 2, 4, 6, 8, 10]
    assert box.ids("s is not null and n is not null") == [1, 5, 7, 11]
    assert box.ids("not (n = 5)") == [1, 3, 7, 9, 11]


@pytest.mark.parametrize("switch", ["true", "false"])
def test_09_string_pattern_pushdown(box: Box, switch: str) -> None:
    box.write("select * from values (1, 'a%b'), (2, 'a_b'), (3, 'axb'), (4, 'C:\\\\d') as t(id, s)")
    for kind in ("Pattern", "StartsWith", "EndsWith", "Contains"):
        box.spark.conf.set(f"spark.indextables.filter.string{kind}.pushdown", switch)
    try:
        assert box.ids("s like 'a%'") == [1, 2, 3]
        assert box.ids(r"s like 'a\%b'") == [1]
        assert box.ids("s like '%b'") == [1, 2, 3]
        assert box.ids("s like '%x%'") == [3]
        assert box.ids("s = 'C:\\\\d'") == [4]
    finally:
        for kind in ("Pattern", "StartsWith", "EndsWith", "Contains"):
            box.spark.conf.unset(f"spark.indextables.filter.string{kind}.pushdown")


def test_10_count_from_the_log(box: Box) -> None:
    box.write("select id, id % 3 p from range(1000)", by=["p"], rows=100)
    for split in Path(box.path).rglob("*.split"):
        split.write_bytes(b"")
    assert box.frame.count() == 1000
    assert box.frame.filter("p = 1").count() == 333
    assert box.sql("select p, count(*) from {t} group by p") == [(0, 334), (1, 333), (2, 333)]


def test_11_count_by_date_partition(box: Box) -> None:
    box.write(
        "select id, date_add(date'2024-01-30', cast(id % 4 as int)) d from range(40)", by=["d"]
    )
    found = box.sql("select d, count(*) from {t} group by d")
    assert found == [(dt.date(2024, 1, 30) + dt.timedelta(i), 10) for i in range(4)]
    assert box.frame.filter("d >= '2024-02-01'").count() == 20


def test_12_aggregates_and_groups(box: Box) -> None:
    box.write("select id, id % 2 a, id % 3 b, id / 2 x from range(60)", rows=10)
    assert box.sql("select count(*), sum(id), min(x), max(x), avg(id) from {t} where a = 1") == [
        (30, 900, 0.5, 29.5, 30.0)
    ]
    assert len(box.sql("select a, b, count(*), sum(id) from {t} group by a, b")) == 6


def test_12_more_than_a_thousand_groups(box: Box) -> None:
    box.write("select id, id % 2500 g from range(5000)")
    assert box.sql("select count(*), min(c) from (select g, count(*) c from {t} group by g)") == [
        (2500, 2)
    ]


def test_13_buckets_with_empty_splits(box: Box) -> None:
    box.write(
        "select id, id * 1.0 price, timestamp'2024-01-01' + make_interval(0,0,0,0,id) at, "
        "id % 2 k from range(48)",
        rows=12,
    )
    box.write("select id, price, at, k from {t} where false".format(t=f"indextables.`{box.path}`"))
    query = "select indextables_histogram(price, 12) h, k, count(*) from {t} group by h, k"
    assert box.sql(query) == [(float(h), k, 6) for h in (0, 12, 24, 36) for k in (0, 1)]
    query = "select indextables_date_histogram(at, '1d') d, count(*) from {t} group by d"
    assert [n for _, n in box.sql(query)] == [24, 24]


def test_14_limits_are_exact(box: Box) -> None:
    box.write("select id, id % 7 k from range(1000)", rows=100)
    for n in (1, 5, 250, 251, 999, 5000):
        assert len(box.frame.limit(n).collect()) == min(n, 1000)
    assert len(box.frame.filter("k = 3").limit(100).collect()) == 100
    assert len(box.frame.collect()) == 1000


def test_15_truncated_statistics_skip_safely(box: Box) -> None:
    long = "x" * 40
    box.write(f"select id, concat('{long}', id) s from range(20)", rows=5)
    assert box.ids(f"s = '{long}7'") == [7]
    assert box.ids(f"s > '{long}8'") == [9]
    assert len(box.ids(f"s >= '{long}'")) == 20
    assert box.ids(f"s in ('{long}3', 'y')") == [3]
    adds = open_table(box.path).snapshot.files()
    assert all(len(a.max_values["s"]) <= 32 for a in adds)


def test_16_microsecond_timestamps(box: Box) -> None:
    box.write("""select id, timestamp_micros(1704067200000000 + id) at from range(10)""", rows=3)
    assert box.ids("at = timestamp'2024-01-01 00:00:00.000004'") == [4]
    assert box.ids("at > timestamp'2024-01-01 00:00:00.000007'") == [8, 9]
    assert it.last_plan(box.spark).report.splits_selected <= 2


def test_17_ip_addresses(box: Box) -> None:
    box.write(
        "select * from values (1, '10.0.0.1'), (2, '10.0.1.7'), (3, '192.168.0.1'), "
        "(4, '2001:db8::1') as t(id, ip)",
        **{"spark.indextables.indexing.typemap.ip": "ip"},
    )
    assert box.ids("ip = '10.0.0.1'") == [1]
    assert box.ids("ip indexquery '10.0.0.0/16'") == [1, 2]
    assert box.ids("ip indexquery '\"2001:db8::/32\"'") == [4]
    assert [r.ip for r in box.frame.filter("id = 1").collect()] == ["10.0.0.1"]


def test_18_nested_fields(box: Box) -> None:
    box.write(
        """select id, named_struct('name', concat('u', id), 'age', id) who,
    array(id, id + 1) xs, map('k', id) m from range(10)""",
        rows=3,
    )
    assert box.ids("who.name = 'u3'") == [3]
    assert box.ids("who.age > 7") == [8, 9]
    assert box.ids("array_contains(xs, 5L)") == [4, 5]
    assert box.ids("m['k'] = 6") == [6]
    assert box.sql("select max(who.age), sum(who.age) from {t}") == [(9, 45)]


def test_19_option_validation(box: Box) -> None:
    with pytest.raises(Exception, match=r"nope"):
        box.write("select 1 id", **{"spark.indextables.indexing.typemap.nope": "text"})
    with pytest.raises(Exception, match=r"token"):
        box.write(
            "select 1 id, 'x' s",
            **{
                "spark.indextables.indexing.typemap.s": "text",
                "spark.indextables.indexing.text.maxTokenLength": "70000",
            },
        )
    box.write(
        "select 1 id, 'ab abcdef' s",
        **{
            "spark.indextables.indexing.typemap.s": "text",
            "spark.indextables.indexing.text.maxTokenLength": "3",
        },
    )
    assert box.ids("s textsearch 'ab'") == [1]
    assert box.ids("s textsearch 'abcdef'") == []


def test_20_column_name_rules(box: Box) -> None:
    with pytest.raises(Exception, match=r"(?i)duplicate|ambiguous|already exists"):
        box.write("select 1 as Id, 2 as id")
    box.write("select 1 as UserId, 'x' as `Name`")
    assert box.frame.filter("userid = 1 and NAME = 'x'").count() == 1


def test_21_typed_partition_predicates(box: Box) -> None:
    box.write("select id, cast(id % 12 + 1 as int) month from range(48)", by=["month"])
    assert len(box.ids("month >= 9")) == 16
    assert len(box.ids("month between 10 and 12")) == 12
    assert len(box.ids("month = 1")) == 4
    query = "select * from {t} where month > 9".format(t=f"indextables.`{box.path}`")
    box.spark.sql(query).filter("id < 0").write.format("indextables").mode("overwrite").option(
        "replaceWhere", "month > 9"
    ).save(box.path)
    assert box.frame.count() == 36


def test_22_merge_keeps_all_rows(box: Box) -> None:
    box.write("select id, id % 2 p from range(100)", by=["p"], rows=5)
    before = open_table(box.path).snapshot.num_files
    open_table(box.path).merge(target_size=1 << 30)
    table = open_table(box.path)
    assert table.snapshot.num_files < before
    assert box.ids("true") == list(range(100))
    assert {f.partition_values["p"] for f in table.snapshot.files()} == {"0", "1"}


def test_23_a_damaged_split_is_skipped_and_kept(box: Box) -> None:
    box.write("select id from range(40)", rows=10)
    broken = Path(box.path, next(iter(open_table(box.path).snapshot.files())).path)
    good = broken.read_bytes()
    broken.write_bytes(b"\0" * len(good))
    for _ in range(2):
        box.spark.sql(f"MERGE SPLITS '{box.path}'").collect()
        snapshot = open_table(box.path).snapshot
        assert snapshot.num_files == 2
        assert broken.name in {Path(f.path).name for f in snapshot.files()}
    broken.write_bytes(good)
    assert box.ids("true") == list(range(40))


def test_24_purge_keeps_what_is_live(box: Box) -> None:
    box.write("select id from range(10)")
    box.write("select id from range(5)", mode="overwrite")
    open_table(box.path).purge(dry_run=True)
    open_table(box.path).purge()
    assert box.ids("true") == list(range(5))


def test_25_truncated_history_keeps_the_data(box: Box) -> None:
    box.write("select id from range(10)")
    box.write("select id + 10 id from range(5)")
    open_table(box.path).checkpoint()
    assert box.ids("true") == list(range(15))


def test_26_a_repaired_log_swaps_in(box: Box) -> None:
    box.write("select id from range(40)", rows=10)
    assert box.frame.count() == 40
    Path(box.path, next(iter(open_table(box.path).snapshot.files())).path).unlink()
    source, target = f"{box.path}/_transaction_log", f"{box.path}-new/_transaction_log"
    statement = f"REPAIR INDEXFILES TRANSACTION LOG '{source}' AT LOCATION '{target}'"
    result = box.spark.sql(statement).collect()[0]
    assert (result.total_splits, result.missing_splits) == (4, 1)
    shutil.rmtree(source)
    shutil.move(target, source)
    assert box.frame.count() == 30
    assert len(box.ids("true")) == 30


def test_27_concurrent_writers(box: Box) -> None:
    from concurrent.futures import ThreadPoolExecutor

    box.write("select id from range(1)")
    with ThreadPoolExecutor(3) as pool:
        list(
            pool.map(lambda i: box.write(f"select id + {i} * 100 + 100 id from range(5)"), range(3))
        )
    assert box.frame.count() == 16


def test_28_one_mapping_for_all_splits(box: Box) -> None:
    docs(box)
    box.write(DOCS, by=["part"])
    snapshot = open_table(box.path).snapshot
    assert len({snapshot.doc_mapping(i) for i in range(snapshot.num_files)}) == 1


@pytest.mark.driver_errors("DIVIDE_BY_ZERO")
def test_29_overwrites_are_all_or_nothing(box: Box) -> None:
    docs(box)
    query = "select cast(1 / (id - 3) as int) id, 'x' content, 'a' part, 1 n from range(5)"
    with pytest.raises(Exception, match=r"DIVIDE|division"):
        box.write(query, mode="overwrite")
    assert box.ids("true") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_30_results_equal_with_and_without_xref(box: Box, enabled: str) -> None:
    off = {"spark.indextables.xref.autoIndex.enabled": "false"}
    box.write("select id, concat('key', id) k from range(200)", rows=10, **off)
    open_table(box.path).build_xref()
    given = {
        "spark.indextables.xref.query.enabled": enabled,
        "spark.indextables.xref.query.minSplitsForXRef": "1",
    }
    frame = box.spark.read.format("indextables").options(**given).load(box.path)
    assert [r.id for r in frame.filter("k = 'key77'").collect()] == [77]
    plan = it.last_plan(box.spark)
    assert len(plan) == 1 if enabled == "true" else len(plan) >= 1
    assert frame.filter("k = 'absent'").count() == 0
