"""A table on S3: write, search, explain, merge, clean up.

    python examples/s3.py s3://bucket/prefix

Credentials and endpoint come from the usual variables (``AWS_ACCESS_KEY_ID``,
``AWS_SECRET_ACCESS_KEY``, ``AWS_REGION``, ``AWS_ENDPOINT_URL`` for other servers). Everything below
the prefix is left there; use one of its own.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Iterator

import indextables

DAYS = 3
ROWS_PER_DAY = 400
PATH_STYLE = {"spark.indextables.s3.pathStyleAccess": "true"}


def requests(day: int) -> Iterator[dict[str, object]]:
    for i in range(ROWS_PER_DAY):
        number = day * ROWS_PER_DAY + i
        yield {
            "day": f"2026-01-{day + 1:02d}",
            "request": uuid.uuid5(uuid.NAMESPACE_OID, str(number)).hex,
            "status": 500 if number % 97 == 0 else 200,
            "message": f"upstream {'timed out' if number % 97 == 0 else 'answered'} after {i} ms",
        }


def main(uri: str) -> None:
    path = f"{uri.rstrip('/')}/requests"
    options = PATH_STYLE if "AWS_ENDPOINT_URL" in os.environ else None
    for day in range(DAYS):
        indextables.write(
            list(requests(day)),
            path,
            partition_by=["day"],
            text=["message"],
            rows_per_split=100,
            storage_options=options,
        )
    table = indextables.open(path, storage_options=options)
    print(table)

    started = time.perf_counter()
    found = table.to_arrow("message TEXTSEARCH '\"timed out\"'", columns=["day", "request"])
    print(f"\n{found.num_rows} timeouts in {time.perf_counter() - started:.2f} s")
    needle = found["request"][0].as_py()
    print("\n" + table.explain(f"request = '{needle}'"))

    merged = table.merge(target_size=64 << 20)
    table = table.refresh()
    print(f"\n{merged.metrics.merged_files} splits became {table.snapshot.num_files}")
    assert table.count("message TEXTSEARCH 'timed'") == found.num_rows


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
