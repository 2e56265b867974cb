"""The order of a write: sent, raced, failed, and conditions that hold any character."""

from __future__ import annotations

import datetime
import multiprocessing
import pickle
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables import columnindex, maintenance
from indextables.config import Config
from indextables.errors import CommitConflictError, SchemaMismatchError, TableExistsError
from indextables.expr.filters import EqualTo, IsNull
from indextables.log.log import TransactionLog
from indextables.splits.write.split_writer import SplitWriter
from indextables.sql.executor import execute
from indextables.table.order import WriteOrder

DATA = pa.table({"id": pa.array([1, 2], pa.int64()), "k": ["a", "b"]})
EVIL = ["C:\\new", "C:\new", "it's", "' OR p IS NOT NULL) -- ", "\\' OR true --", "b\\", "Zoë ☃"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def order_of(path: str, data: pa.Table = DATA, **settings: Any) -> WriteOrder:
    return WriteOrder(path, data.schema, **settings).decide()


# -- one order -------------------------------------------------------------------------------------


def test_an_order_is_sent_and_run_elsewhere(path: str) -> None:
    order = order_of(path, partition_by=("k",))
    there = pickle.loads(pickle.dumps(order))
    adds = there.write(DATA.to_batches())
    result = pickle.loads(pickle.dumps(order)).commit(adds)
    assert (result.version, result.commit_id) == (1, order.job_id)
    assert set(result.files) == {a.path for a in adds}
    assert indextables.open(path).to_arrow().sort_by("id").to_pylist() == DATA.to_pylist()


def test_committing_again_finds_the_first_commit(path: str) -> None:
    for mode in ("error", "append", "overwrite"):
        order = order_of(path if mode == "error" else path + mode, mode=mode)
        adds = order.write(DATA.to_batches())
        first = order.commit(adds)
        again = order.commit(adds)
        assert (again.version, again.already_committed) == (first.version, True)


def test_splits_have_the_defined_column_indexes(path: str) -> None:
    indextables.write(DATA, path)
    log = TransactionLog.open(path)
    columnindex.create_index(log, "k")
    order = pickle.loads(pickle.dumps(order_of(path)))
    order.commit(order.write(DATA.to_batches()))
    assert str(columnindex.index_coverage(log, "k")).startswith("k: 2/2")


def test_a_tables_own_settings_hold_for_every_writer(path: str) -> None:
    schema = DATA.schema
    TransactionLog.create(path, schema, configuration={"spark.indextables.write.rowsPerSplit": "1"})
    assert len(indextables.write(DATA, path).files) == 2
    assert len(indextables.write(DATA, path, rows_per_split=10).files) == 1


# -- a failed write --------------------------------------------------------------------------------


def failing() -> Iterator[pa.RecordBatch]:
    yield from DATA.to_batches()
    raise RuntimeError("the source broke")


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore"])
def test_a_failed_first_write_leaves_no_table(path: str, mode: str) -> None:
    reader = pa.RecordBatchReader.from_batches(DATA.schema, failing())
    with pytest.raises(RuntimeError, match="broke"):
        indextables.write(reader, path, mode=mode)
    assert not TransactionLog.exists(path)
    assert not [p for p in Path(path).rglob("*") if p.is_file()]
    assert indextables.write(DATA, path, mode="error").version == 1


def test_a_writer_without_room_leaves_no_table(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(SplitWriter, "finish", full)
        with pytest.raises(Exception, match="No space left"):
            indextables.write(DATA, path)
    assert not TransactionLog.exists(path)
    assert indextables.write(DATA, path, mode="error").version == 1


def test_bad_partition_columns_leave_no_table(path: str) -> None:
    with pytest.raises(indextables.IndexTablesError, match="nope"):
        indextables.write(DATA, path, partition_by=["nope"])
    assert not TransactionLog.exists(path)


def test_errors_name_the_table(path: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    indextables.write(pa.table({"id": [1]}, schema=schema), path)
    with pytest.raises(SchemaMismatchError, match="holds NULL") as caught:
        indextables.write(pa.table({"id": pa.array([None], pa.int64())}), path)
    assert caught.value.path == path


# -- races -----------------------------------------------------------------------------------------


def test_the_loser_of_a_creation_appends(path: str) -> None:
    """Both decide while there is no table; both write; both commit."""
    orders = [order_of(path, mode=mode) for mode in ("append", "append", "overwrite")]
    written = [order.write(DATA.to_batches()) for order in orders]
    counts = []
    for order, adds in zip(orders, written, strict=True):
        order.commit(adds)
        counts.append(indextables.open(path).count())
    assert counts == [2, 4, 2]


def test_error_and_ignore_keep_their_meaning_in_a_race(path: str) -> None:
    orders = {mode: order_of(path, mode=mode) for mode in ("append", "error", "ignore")}
    written = {mode: order.write(DATA.to_batches()) for mode, order in orders.items()}
    orders["append"].commit(written["append"])
    with pytest.raises(TableExistsError, match="already there"):
        orders["error"].commit(written["error"])
    assert orders["ignore"].commit(written["ignore"]).already_committed
    assert indextables.open(path).count() == 2
    assert not any(Path(path, add.path).exists() for add in written["ignore"])


@pytest.mark.parametrize(
    ("settings", "data"),
    [
        ({"partition_by": ("k",)}, DATA),
        ({}, pa.table({"id": pa.array([1], pa.int32()), "k": ["a"]})),
        ({}, pa.table({"ID": pa.array([1], pa.int64()), "k": ["a"]})),
    ],
)
def test_a_loser_that_does_not_fit_commits_nothing(
    path: str, settings: dict[str, Any], data: pa.Table
) -> None:
    loser = order_of(path, data, **settings)
    adds = loser.write(data.to_batches())
    indextables.write(DATA, path)
    with pytest.raises(CommitConflictError, match="changed while the rows were written"):
        loser.commit(adds)
    assert indextables.open(path).count() == 2


def test_a_table_that_grew_meanwhile_is_no_conflict(path: str) -> None:
    indextables.write(DATA, path)
    order = order_of(path)
    adds = order.write(DATA.to_batches())
    wider = DATA.append_column("extra", pa.array([7, 8], pa.int64()))
    indextables.write(wider, path, merge_schema=True)
    order.commit(adds)
    found = indextables.open(path).to_arrow()
    assert found.num_rows == 6
    assert found["extra"].null_count == 4


def test_two_that_widen_one_table_both_do(path: str) -> None:
    indextables.write(DATA, path)
    merge = Config({"write.mergeSchema": True})
    datas = [DATA.append_column(n, pa.array([1, 2], pa.int64())) for n in ("x", "y")]
    orders = [order_of(path, data, config=merge) for data in datas]
    for order, data in zip(orders, datas, strict=True):
        order.commit(order.write(data.to_batches()))
    assert indextables.open(path).schema.names == ["id", "k", "x", "y"]
    assert indextables.open(path).count("x IS NOT NULL") == 2


def test_a_table_that_was_replaced_meanwhile_is_a_conflict(path: str, tmp_path: Path) -> None:
    indextables.write(DATA, path)
    order = order_of(path)
    adds = order.write(DATA.to_batches())
    Path(path).rename(tmp_path / "old")
    indextables.write(DATA, path)
    with pytest.raises(CommitConflictError, match="another table"):
        order.commit(adds)


def _append(path: str, start: Any, done: Any) -> None:
    start.wait()
    try:
        indextables.write(DATA, path)
        done.put(None)
    except Exception as error:
        done.put(repr(error))


def test_processes_that_create_one_table_all_append(path: str) -> None:
    context = multiprocessing.get_context("spawn")
    start, done = context.Event(), context.Queue()
    workers = [context.Process(target=_append, args=(path, start, done)) for _ in range(3)]
    for worker in workers:
        worker.start()
    start.set()
    outcomes = [done.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert outcomes == [None] * 3
    assert indextables.open(path).count() == 6


# -- conditions ------------------------------------------------------------------------------------


def quoted(value: str) -> str:
    """As a user writes the value in SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fill(path: str, values: list[Any], dtype: pa.DataType | None = None) -> None:
    data = pa.table({"id": range(len(values)), "p": pa.array(values, dtype or pa.string())})
    indextables.write(data, path, partition_by=["p"])


def left(path: str) -> list[int]:
    return sorted(indextables.open(path).to_arrow(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize("at", range(len(EVIL)), ids=lambda at: repr(EVIL[at]))
def test_every_verb_removes_exactly_what_its_text_names(tmp_path: Path, at: int) -> None:
    others = [i for i in range(len(EVIL)) if i != at]
    text = f"p = {quoted(EVIL[at])}"
    verbs = {
        "delete": lambda p: indextables.open(p).delete(text),
        "drop": lambda p: maintenance.drop_partitions(TransactionLog.open(p), text),
        "drop filter": lambda p: maintenance.drop_partitions(
            TransactionLog.open(p), EqualTo("p", EVIL[at])
        ),
        "delete filter": lambda p: indextables.open(p).delete(EqualTo("p", EVIL[at])),
        "sql": lambda p: execute(f"DROP INDEXTABLES PARTITIONS FROM '{p}' WHERE {text}"),
        "sql delete": lambda p: execute(f"DELETE FROM '{p}' WHERE {text}"),
    }
    for name, verb in verbs.items():
        place = str(tmp_path / name)
        fill(place, EVIL)
        verb(place)
        assert left(place) == others, name


@pytest.mark.parametrize("value", EVIL, ids=repr)
def test_replace_where_replaces_exactly_what_it_names(path: str, value: str) -> None:
    fill(path, EVIL)
    row = pa.table({"id": pa.array([99], pa.int64()), "p": [value]})
    indextables.write(row, path, mode="overwrite", replace_where=f"p = {quoted(value)}")
    at = EVIL.index(value)
    assert left(path) == [*(i for i in range(len(EVIL)) if i != at), 99]


TYPED = [
    (pa.date32(), [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)], "date'1969-12-31'"),
    (
        pa.timestamp("us", "UTC"),
        [datetime.datetime(2024, 1, 1, 5, 30), datetime.datetime(2024, 1, 1)],
        "timestamp'2024-01-01 05:30:00'",
    ),
    (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("1.50")], "-1.5"),
]


@pytest.mark.parametrize("case", TYPED, ids=lambda case: str(case[0]))
def test_typed_partitions(path: str, case: tuple[pa.DataType, list[Any], str]) -> None:
    dtype, values, text = case
    fill(path, [*values, None], dtype)
    row = pa.table({"id": pa.array([99], pa.int64()), "p": pa.array(values[:1], dtype)})
    indextables.write(row, path, mode="overwrite", replace_where=f"p = {text}")
    assert left(path) == [1, 2, 99]
    maintenance.drop_partitions(TransactionLog.open(path), IsNull("p"))
    assert left(path) == [1, 99]
