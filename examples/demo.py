"""A few hundred thousand log rows, written with Spark in many splits, then searched.

Run it with ``make demo``. It prints what each query had to open and how long it took, next to the
same query over the same rows as Parquet.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

ROWS = int(os.environ.get("INDEXTABLES_DEMO_ROWS", "300000"))
ROWS_PER_SPLIT = 1500
WORDS = ("request", "server", "timeout", "retry", "cache", "database", "queue", "session", "token")
ROUNDS = 3


def start_spark(folder: str) -> Any:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        sys.exit("Spark needs Java 17 or newer (Debian: apt install openjdk-17-jre-headless)")
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("indextables demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", folder)
    )
    with errors_to(Path(folder, "spark.log")):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def errors_to(file: Path) -> Iterator[None]:
    """What a process that starts meanwhile writes to standard error goes to a file for good."""
    sys.stderr.flush()
    kept = os.dup(2)
    with file.open("wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def log_rows(spark: Any) -> Any:
    """Log rows computed by Spark itself: time, service, level, status, ids and a message."""
    words = ", ".join(f"'{w}'" for w in WORDS)
    pick = f"element_at(array({words}), cast(pmod(hash(id, {{0}}), {len(WORDS)}) as int) + 1)"
    message = "concat_ws(' ', " + ", ".join(pick.format(i) for i in range(6)) + ", concat('n', id))"
    return spark.range(0, ROWS, 1, 8).selectExpr(
        "timestamp_micros(1767225600000000 + id * 250000) as ts",
        "concat('svc-', cast(pmod(hash(id, 91), 20) as string)) as service",
        "element_at(array('INFO', 'WARN', 'ERROR'), cast(pmod(hash(id, 92), 3) as int) + 1) level",
        "cast(200 + 100 * pmod(hash(id, 93), 4) as int) as status",
        "round(pmod(hash(id, 94), 100000) / 100, 2) as latency",
        "md5(cast(id as string)) as request_id",
        f"{message} as message",
    )


@contextmanager
def watched(label: str, total: int, done: Callable[[], int]) -> Iterator[None]:
    """A progress bar that looks, four times a second, how far the work of the block is."""
    from indextables.progress import progress

    over = threading.Event()

    def look() -> None:
        while not over.wait(0.25):
            bar.advance(done() - bar.done)

    with progress(label, total) as bar:
        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
            bar.advance(total - bar.done)


def write(frame: Any, table: str, parquet: str) -> None:
    import indextables

    def splits() -> int:
        return sum(1 for _ in Path(table).glob("*.split"))

    started = time.perf_counter()
    with watched("writing splits", ROWS // ROWS_PER_SPLIT, splits):
        (
            frame.write.format("indextables")
            .option("spark.indextables.indexing.typemap.text", "message")
            .option("spark.indextables.write.rowsPerSplit", ROWS_PER_SPLIT)
            .option("spark.indextables.storage.fsync", "false")
            .save(table)
        )
    ours = time.perf_counter() - started
    started = time.perf_counter()
    with watched(
        "the same as Parquet", 8, lambda: sum(1 for _ in Path(parquet).rglob("*.parquet"))
    ):
        frame.write.parquet(parquet)
    written = indextables.open(table).snapshot.num_files
    print(f"{ROWS:,} rows in {written} splits: {ours:.1f} s")
    print(f"the same as Parquet: {time.perf_counter() - started:.1f} s")


def best(query: Callable[[], Any], ran: list[float]) -> tuple[float, Any]:
    """The fastest of a few runs, and the answer; each run is added to ``ran``."""
    answer = None
    for _ in range(ROUNDS):
        started = time.perf_counter()
        answer = query()
        ran.append(time.perf_counter() - started)
    return min(ran[-ROUNDS:]), answer


def compare(title: str, ours: Callable[[], Any], parquet: Callable[[], Any]) -> None:
    ran: list[float] = []
    with watched(title, 2 * ROUNDS, lambda: len(ran)):
        fast, found = best(ours, ran)
        slow, expected = best(parquet, ran)
    same = "same answer" if sorted(found, key=str) == sorted(expected, key=str) else "DIFFERENT"
    print(f"\n{title}")
    print(f"  indextables {fast * 1e3:8.0f} ms   {len(found)} rows, {same}")
    print(f"  parquet     {slow * 1e3:8.0f} ms   {slow / fast:.1f}x")


def run(spark: Any, folder: str) -> None:
    import indextables.spark as it

    print(f"layer {it.register(spark)} serves")
    table, parquet = f"{folder}/logs", f"{folder}/logs.parquet"
    write(log_rows(spark), table, parquet)
    spark.read.format("indextables").load(table).createOrReplaceTempView("logs")
    spark.read.parquet(parquet).createOrReplaceTempView("parquet_logs")

    one = ROWS // 2
    needle = f"select * from {{}} where request_id = md5('{one}')"
    text = f"select count(*) from logs where message TEXTSEARCH 'timeout AND n{one}'"
    like = (
        "select count(*) from parquet_logs "
        f"where message like '%timeout%' and message like '% n{one}'"
    )
    groups = "select status, count(*), max(latency) from {} where service = 'svc-3' group by status"

    def sql(query: str) -> Callable[[], Any]:
        return lambda: spark.sql(query).collect()

    compare("one request id", sql(needle.format("logs")), sql(needle.format("parquet_logs")))
    plan = it.last_plan(spark)
    if plan is not None:
        print()
        print(plan.explain())
    compare("words in messages", sql(text), sql(like))
    compare("an aggregate", sql(groups.format("logs")), sql(groups.format("parquet_logs")))


NEXT = """
Try next:
  python examples/debian_packages.py      ten questions about Debian's packages, without Spark
  indextables ingest app.log logs --text message, then indextables serve logs
  docs/start.md                           the same in five minutes, step by step"""


def main() -> None:
    folder = tempfile.mkdtemp(prefix="indextables-demo-")
    started = time.perf_counter()
    print(f"{ROWS:,} log rows go into many small splits, and are then searched; Spark starts ...")
    sys.stdout.flush()
    spark = start_spark(folder)
    try:
        run(spark, folder)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{time.perf_counter() - started:.0f} s in all")
    print(NEXT)


if __name__ == "__main__":
    main()
