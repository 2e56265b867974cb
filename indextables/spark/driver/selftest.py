"""Does layer 2 give right answers on a Spark that it was never tested on?

Our Java side uses classes that Spark does not promise to keep. On a minor that our tests run on,
they are known to work. On a newer one they may compile and still be wrong, so before anything of
the user's is read, a small table in a folder of this process is asked questions whose answers are
known: counts, filters, two filters of one DataFrame, groups, a text search and, where tasks can see
the folder, rows that tasks read. A wrong answer or an error means that layer 1 serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from indextables.spark.driver.classes import ShimUnavailableError
from indextables.storage import workfolders

ROWS = 20


def run(spark: Any) -> None:
    """Raises ``ShimUnavailableError`` at the first answer that is not right."""
    import indextables

    folder = workfolders.new_folder("selftest")
    try:
        path = f"{folder}/table"
        words = ["disk" if i % 4 == 0 else "net" for i in range(ROWS)]
        data = pa.table({"id": range(ROWS), "k": [i % 2 for i in range(ROWS)], "m": words})
        indextables.write(data, path, text=["m"])
        for name, ask, expected in _questions(spark, path):
            found = ask()
            if found != expected:
                raise ShimUnavailableError(
                    f"its test of Spark {spark.version} failed: {name} gave {found!r} in place of "
                    f"{expected!r}"
                )
    finally:
        workfolders.release(folder)


def _questions(spark: Any, path: str) -> Iterator[tuple[str, Callable[[], Any], Any]]:
    table = spark.read.format("indextables").load(path)
    search = f"select count(*) from indextables.`{path}` where m TEXTSEARCH 'disk'"
    yield "a count", table.count, ROWS
    yield "a filter", lambda: _ids(table.filter("id = 3 or id = 5")), [3, 5]
    yield "no filter after a filter", lambda: len(_ids(table)), ROWS
    both = table.filter("id = 1").union(table.filter("id = 2"))
    yield "two filters", lambda: _ids(both), [1, 2]
    groups = table.groupBy("k").count()
    yield "groups", lambda: sorted(map(tuple, groups.collect())), [(0, 10), (1, 10)]
    yield "a text search", lambda: spark.sql(search).collect()[0][0], 5
    if str(spark.sparkContext.master).startswith("local"):
        reader = spark.read.format("indextables").option("read.driver.maxSplits", 0)
        tasks = reader.load(path).filter("id > 16")
        yield "rows of tasks", lambda: _ids(tasks), [17, 18, 19]
        yield "rows without columns", lambda: len(tasks.selectExpr("1 one").collect()), 3


def _ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())
