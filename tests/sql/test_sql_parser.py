"""The grammar: every command and clause, spellings, comments, quotes, and pointed errors."""

from __future__ import annotations

import pytest

from indextables.errors import CommandSyntaxError
from indextables.sql import commands as c
from indextables.sql import is_command
from indextables.sql.parser import parse

T = c.TableName(path="s3://b/t")
P = "'s3://b/t'"

CASES: list[tuple[str, c.Command]] = [
    (f"MERGE SPLITS {P}", c.MergeSplits(T)),
    (
        f"merge splits {P} where d = '2024-01-01' and h in (1, 2) target size 100M "
        "max dest splits 5 max source splits per merge 10 precommit",
        c.MergeSplits(T, "d = '2024-01-01' and h in (1, 2)", 100 << 20, 5, 10, True),
    ),
    (f"MERGE SPLITS {P} TARGET SIZE 1G;", c.MergeSplits(T, target_size=1 << 30)),
    (f"MERGE SPLITS {P} TARGET SIZE 1048576", c.MergeSplits(T, target_size=1 << 20)),
    (f"PURGE INDEXTABLE {P}", c.Purge(T)),
    (
        f"PURGE INDEXTABLE {P} OLDER THAN 7 DAYS TRANSACTION LOG RETENTION 30 HOURS DRY RUN",
        c.Purge(T, 168, 30, True),
    ),
    (f"DROP INDEXTABLES PARTITIONS FROM {P} WHERE m > 9", c.DropPartitions(T, "m > 9")),
    (f"DROP TANTIVY4SPARK PARTITIONS FROM {P} WHERE m > 9", c.DropPartitions(T, "m > 9")),
    (f"CHECKPOINT INDEXTABLES {P}", c.Checkpoint(T)),
    (f"COMPACT INDEXTABLES {P}", c.Checkpoint(T, compact=True)),
    (f"TRUNCATE INDEXTABLES TIME TRAVEL {P} DRY RUN", c.TruncateTimeTravel(T, True)),
    (
        "REPAIR INDEXFILES TRANSACTION LOG '/a/_transaction_log' AT LOCATION '/b/_transaction_log'",
        c.RepairLog("/a/_transaction_log", "/b/_transaction_log"),
    ),
    (f"INDEX CROSSREFERENCES FOR {P}", c.IndexCrossReferences(T)),
    (
        f"INDEX CROSSREFERENCES FOR {P} WHERE d = 'x' FILTER TYPE FUSE16 FORCE REBUILD "
        "MAX XREF BUILDS 3 DRY RUN",
        c.IndexCrossReferences(T, "d = 'x'", "fuse16", True, 3, True),
    ),
    (f"DESCRIBE INDEXTABLES STATE {P}", c.DescribeState(T)),
    (f"DESCRIBE INDEXTABLES TRANSACTION LOG {P}", c.DescribeLog(T)),
    (
        f"DESCRIBE INDEXTABLES TRANSACTION LOG {P} INCLUDE ALL XREFS LIMIT 5",
        c.DescribeLog(T, True, True, 5),
    ),
    (f"DESCRIBE INDEXTABLES COMPONENT SIZES {P} WHERE p = 1", c.DescribeComponentSizes(T, "p = 1")),
    (f"DESCRIBE INDEXTABLES STATS COVERAGE {P}", c.DescribeStatsCoverage(T)),
    (f"DESCRIBE INDEXTABLES INDEXES {P}", c.DescribeIndexes(T)),
    ("DESCRIBE INDEXTABLES ENVIRONMENT", c.DescribeEnvironment()),
    ("DESCRIBE INDEXTABLES DISK CACHE", c.DescribeDiskCache()),
    ("DESCRIBE INDEXTABLES STORAGE STATS", c.DescribeStorageStats()),
    ("INVALIDATE INDEXTABLES TRANSACTION LOG CACHE", c.InvalidateCache()),
    (f"INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR {P}", c.InvalidateCache(T)),
    ("FLUSH INDEXTABLES DISK CACHE", c.FlushDiskCache()),
    ("FLUSH INDEXTABLES SEARCHER CACHE", c.FlushSearcherCache()),
    (f"PREWARM INDEXTABLES CACHE {P}", c.Prewarm(T)),
    (
        f"PREWARM INDEXTABLES CACHE {P} FOR SEGMENTS (TERM_DICT, postings) ON FIELDS (a, 'b') "
        "WITH PERWORKER PARALLELISM OF 4 WHERE p = 1 ASYNC MODE",
        c.Prewarm(T, ("TERM_DICT", "POSTINGS"), ("a", "b"), 4, "p = 1", True),
    ),
    (f"DELETE FROM {P} WHERE x = 'it''s'", c.Delete(T, "x = 'it''s'")),
    (f"DELETE FROM {P} WHERE TRUE", c.Delete(T, "TRUE")),
    (f"TRUNCATE TABLE {P}", c.Truncate(T)),
    (f"RESTORE {P} TO VERSION 3", c.Restore(T, 3)),
    (f"RESTORE INDEXTABLES {P} TO TIMESTAMP '2024-01-01'", c.Restore(T, None, "2024-01-01")),
    (f"DOCTOR {P}", c.Doctor(T)),
    (f"DOCTOR INDEXTABLES {P}", c.Doctor(T)),
    (
        f"ALTER TABLE {P} SET TBLPROPERTIES ('minReaderVersion' = '3', a = 'b')",
        c.SetProperties(T, {"minReaderVersion": "3", "a": "b"}),
    ),
    (f"CREATE INDEX ON {P} (email)", c.CreateIndex(T, ("email",))),
    (f"CREATE INDEX ix ON {P} (a, `b c`)", c.CreateIndex(T, ("a", "b c"), "ix")),
    (f"DROP INDEX ON {P} (email)", c.DropIndex(T, ("email",))),
    (f"REINDEX {P} ON data(email)", c.Reindex(T, ("email",))),
    (f"REINDEX {P}", c.Reindex(T)),
    (
        f"INDEX SPLITS FOR {P} (email) WHERE p = 1 FORCE REBUILD DRY RUN",
        c.IndexSplits(T, ("email",), "p = 1", True, True),
    ),
]


@pytest.mark.parametrize(("text", "command"), CASES, ids=[t[:50] for t, _ in CASES])
def test_commands(text: str, command: c.Command) -> None:
    assert is_command(text)
    assert parse(text) == command
    bare = text.rstrip(";")
    assert parse(f"-- a comment\n{bare} /* another */ ;") == command


def test_names_go_through_the_catalog() -> None:
    assert parse("MERGE SPLITS db.t").table == c.TableName(parts=("db", "t"))
    assert parse("MERGE SPLITS `my db`.t").table == c.TableName(parts=("my db", "t"))


def test_quotes_and_escapes_in_paths() -> None:
    assert parse(r"MERGE SPLITS '/a\'b'").table.path == "/a'b"
    assert parse('MERGE SPLITS "/a b"').table.path == "/a b"
    assert parse("MERGE SPLITS '/a''b'").table.path == "/a'b"


def test_clause_words_inside_strings_and_brackets_do_not_end_a_predicate() -> None:
    text = f"MERGE SPLITS {P} WHERE a = 'TARGET SIZE' AND (b = 1 OR c = 2) TARGET SIZE 1M"
    found = parse(text)
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
        "",
        "'unclosed",
    ],
)
def test_everything_else_is_sparks(text: str) -> None:
    assert not is_command(text)
