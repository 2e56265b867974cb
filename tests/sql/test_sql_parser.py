"""The grammar: every command and clause, spellings, comments, quotes, and pointed errors."""

from __future__ import annotations

from typing import Any

import pytest

from indextables import verbs
from indextables.errors import CommandSyntaxError
from indextables.sql import is_command
from indextables.sql.parser import Statement, TableName, parse

T = TableName(path="s3://b/t")
P = "'s3://b/t'"

CASES: list[tuple[str, verbs.Verb[Any]]] = [
    (f"MERGE SPLITS {P}", verbs.splits.MergeSplits()),
    (
        f"merge splits {P} where d = '2024-01-01' and h in (1, 2) target size 100M "
        "max dest splits 5 max source splits per merge 10 precommit",
        verbs.splits.MergeSplits("d = '2024-01-01' and h in (1, 2)", 100 << 20, 5, 10, True),
    ),
    (f"MERGE SPLITS {P} TARGET SIZE 1G;", verbs.splits.MergeSplits(target_size=1 << 30)),
    (f"MERGE SPLITS {P} TARGET SIZE 1048576", verbs.splits.MergeSplits(target_size=1 << 20)),
    (f"PURGE INDEXTABLE {P}", verbs.splits.Purge()),
    (
        f"PURGE INDEXTABLE {P} OLDER THAN 7 DAYS TRANSACTION LOG RETENTION 30 HOURS DRY RUN",
        verbs.splits.Purge(168, 30, True),
    ),
    (f"DROP INDEXTABLES PARTITIONS FROM {P} WHERE m > 9", verbs.splits.DropPartitions("m > 9")),
    (f"DROP TANTIVY4SPARK PARTITIONS FROM {P} WHERE m > 9", verbs.splits.DropPartitions("m > 9")),
    (f"CHECKPOINT INDEXTABLES {P}", verbs.logs.Checkpoint()),
    (f"COMPACT INDEXTABLES {P}", verbs.logs.Compact()),
    (f"TRUNCATE INDEXTABLES TIME TRAVEL {P} DRY RUN", verbs.logs.TruncateTimeTravel(True)),
    (
        "REPAIR INDEXFILES TRANSACTION LOG '/a/_transaction_log' AT LOCATION '/b/_transaction_log'",
        verbs.logs.RepairLog("/b/_transaction_log"),
    ),
    (f"INDEX CROSSREFERENCES FOR {P}", verbs.indexes.IndexCrossReferences()),
    (
        f"INDEX CROSSREFERENCES FOR {P} WHERE d = 'x' FILTER TYPE FUSE16 FORCE REBUILD "
        "MAX XREF BUILDS 3 DRY RUN",
        verbs.indexes.IndexCrossReferences("d = 'x'", True, True, "fuse16", 3),
    ),
    (f"DESCRIBE INDEXTABLES STATE {P}", verbs.looking.DescribeState()),
    (f"DESCRIBE INDEXTABLES TRANSACTION LOG {P}", verbs.looking.DescribeLog()),
    (
        f"DESCRIBE INDEXTABLES TRANSACTION LOG {P} INCLUDE ALL XREFS LIMIT 5",
        verbs.looking.DescribeXRefs(5),
    ),
    (
        f"DESCRIBE INDEXTABLES COMPONENT SIZES {P} WHERE p = 1",
        verbs.looking.DescribeComponentSizes("p = 1"),
    ),
    (f"DESCRIBE INDEXTABLES STATS COVERAGE {P}", verbs.looking.DescribeStatsCoverage()),
    (f"DESCRIBE HISTORY {P}", verbs.looking.DescribeHistory()),
    (f"DESCRIBE HISTORY {P} LIMIT 2", verbs.looking.DescribeHistory(2)),
    (f"SHOW PARTITIONS {P}", verbs.looking.ShowPartitions()),
    (f"ANALYZE TABLE {P} COMPUTE STATISTICS", verbs.looking.AnalyzeTable()),
    (f"ANALYZE TABLE {P} COMPUTE STATISTICS FOR ALL COLUMNS", verbs.looking.AnalyzeTable()),
    (f"DESCRIBE INDEXTABLES INDEXES {P}", verbs.indexes.DescribeIndexes()),
    ("DESCRIBE INDEXTABLES ENVIRONMENT", verbs.looking.DescribeEnvironment()),
    ("DESCRIBE INDEXTABLES DISK CACHE", verbs.caches.DescribeDiskCache()),
    ("DESCRIBE INDEXTABLES STORAGE STATS", verbs.looking.DescribeStorageStats()),
    ("INVALIDATE INDEXTABLES TRANSACTION LOG CACHE", verbs.caches.InvalidateCache()),
    (f"INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR {P}", verbs.caches.InvalidateCache()),
    ("FLUSH INDEXTABLES DISK CACHE", verbs.caches.FlushDiskCache()),
    ("FLUSH INDEXTABLES SEARCHER CACHE", verbs.caches.FlushSearcherCache()),
    (f"PREWARM INDEXTABLES CACHE {P}", verbs.caches.Prewarm()),
    (
        f"PREWARM INDEXTABLES CACHE {P} FOR SEGMENTS (TERM_DICT, postings) ON FIELDS (a, 'b') "
        "WITH PERWORKER PARALLELISM OF 4 WHERE p = 1 ASYNC MODE",
        verbs.caches.Prewarm(("TERM_DICT", "postings"), ("a", "b"), 4, "p = 1", True),
    ),
    (f"DELETE FROM {P} WHERE x = 'it''s'", verbs.splits.Delete("x = 'it''s'")),
    (f"DELETE FROM {P} WHERE TRUE", verbs.splits.Delete("TRUE")),
    (f"TRUNCATE TABLE {P}", verbs.splits.Truncate()),
    (f"RESTORE {P} TO VERSION 3", verbs.splits.Restore(3)),
    (
        f"RESTORE INDEXTABLES {P} TO TIMESTAMP '2024-01-01'",
        verbs.splits.Restore(None, "2024-01-01"),
    ),
    (f"DOCTOR {P}", verbs.looking.Doctor()),
    (f"DOCTOR INDEXTABLES {P}", verbs.looking.Doctor()),
    (
        f"ALTER TABLE {P} SET TBLPROPERTIES ('minReaderVersion' = '3', a = 'b')",
        verbs.logs.SetProperties({"minReaderVersion": "3", "a": "b"}),
    ),
    (f"CREATE INDEX ON {P} (email)", verbs.indexes.CreateIndex(("email",))),
    (f"CREATE INDEX ix ON {P} (a, `b c`)", verbs.indexes.CreateIndex(("a", "b c"))),
    (f"DROP INDEX ON {P} (email)", verbs.indexes.DropIndex(("email",))),
    (f"REINDEX {P} ON data(email)", verbs.indexes.Reindex(("email",))),
    (f"REINDEX {P}", verbs.indexes.Reindex()),
    (
        f"INDEX SPLITS FOR {P} (email) WHERE p = 1 FORCE REBUILD DRY RUN",
        verbs.indexes.IndexSplits(("email",), "p = 1", True, True),
    ),
]


@pytest.mark.parametrize(("text", "command"), CASES, ids=[t[:50] for t, _ in CASES])
def test_commands(text: str, command: verbs.Verb[Any]) -> None:
    assert is_command(text)
    expected = Statement(command, table_of(text))
    assert parse(text) == expected
    bare = text.rstrip(";")
    assert parse(f"-- a comment\n{bare} /* another */ ;") == expected


def table_of(text: str) -> TableName | None:
    if "REPAIR" in text:
        return TableName(path="/a/_transaction_log")
    return T if P in text else None


def test_names_go_through_the_catalog() -> None:
    assert parse("MERGE SPLITS db.t").table == TableName(parts=("db", "t"))
    assert parse("MERGE SPLITS `my db`.t").table == TableName(parts=("my db", "t"))


def named(text: str) -> TableName:
    found = parse(text).table
    assert found is not None
    return found


def test_quotes_and_escapes_in_paths() -> None:
    assert named(r"MERGE SPLITS '/a\'b'").path == "/a'b"
    assert named('MERGE SPLITS "/a b"').path == "/a b"
    assert named("MERGE SPLITS '/a''b'").path == "/a'b"


def test_clause_words_inside_strings_and_brackets_do_not_end_a_predicate() -> None:
    text = f"MERGE SPLITS {P} WHERE a = 'TARGET SIZE' AND (b = 1 OR c = 2) TARGET SIZE 1M"
    found: Any = parse(text).verb
    assert found.where == "a = 'TARGET SIZE' AND (b = 1 OR c = 2)"
    assert found.target_size == 1 << 20


@pytest.mark.parametrize(
    ("text", "position", "word"),
    [
        ("MERGE SPLTS '/a'", 6, "SPLITS"),
        ("MERGE SPLITS", 12, "a path"),
        ("MERGE SPLITS '/a' TARGET SIZE big", 30, "1G"),
        ("PURGE INDEXTABLE '/a' OLDER THAN 7 WEEKS", 35, "DAYS"),
        ("DESCRIBE INDEXTABLES STTE '/a'", 21, "STATE"),
        ("DROP INDEXTABLES PARTITIONS FROM '/a'", 37, "WHERE"),
        ("MERGE SPLITS '/a' DRY RUN", 18, "the end"),
        ("FROBNICATE '/a'", 0, "MERGE"),
        ("MERGE SPLITS '/a", 13, ""),
        ("INDEX CROSSREFERENCES FOR '/a' FILTER TYPE BLOOM", 43, "FUSE8"),
    ],
)
def test_mistakes_point_at_their_place(text: str, position: int, word: str) -> None:
    with pytest.raises(CommandSyntaxError) as caught:
        parse(text)
    assert caught.value.position == position
    assert word in str(caught.value)
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
        "DELETE FROM t WHERE x = 1",
        "DESCRIBE t",
        "DESCRIBE TABLE EXTENDED t",
        "DROP TABLE t",
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
        "TRUNCATE TABLE t",
        "CREATE INDEX i ON t (a)",
        "DESCRIBE indextables.`/a`",
        "",
        "'unclosed",
    ],
)
def test_everything_else_is_sparks(text: str) -> None:
    assert not is_command(text)
