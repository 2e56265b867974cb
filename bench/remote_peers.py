"""One query over S3 in a fresh process: ``python remote_peers.py <peer> <query> <asked as JSON>``.

Prints the seconds from the end of the imports to the answer, by the clock and of the processor, the
processor time of the whole process with its imports, and the size of the answer. The same
rows lie in a table of ours, in a Lance dataset with an index for every asked column, and in a Delta
table that pyarrow reads (it has no text index: a word is a regular expression there).
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

KEY, SECRET, REGION = "AKIACOUNTINGTESTKEY", "counting-secret-value", "us-east-1"
TWO = ["ts", "message"]
Asked = dict[str, Any]


def our_options(endpoint: str) -> dict[str, str]:
    return {
        "spark.indextables.s3.endpoint": endpoint,
        "spark.indextables.aws.accessKey": KEY,
        "spark.indextables.aws.secretKey": SECRET,
        "spark.indextables.aws.region": REGION,
        "spark.indextables.s3.pathStyleAccess": "true",
    }


def object_store_options(endpoint: str) -> dict[str, str]:
    """For Lance and deltalake, which share a client."""
    return {
        "aws_endpoint": endpoint,
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "aws_region": REGION,
        "allow_http": "true",
        "aws_virtual_hosted_style_request": "false",
    }


class Ours:
    def __init__(self, asked: Asked) -> None:
        import obstore.store  # noqa: F401
        import tantivy  # noqa: F401

        import indextables
        import indextables.expr.sqlconvert
        import indextables.storage.obstore
        import indextables.table.table
        import indextables.xref.router

        self.asked, self.library = asked, indextables

    def open(self) -> Any:
        options = our_options(self.asked["endpoint"])
        return self.library.open(self.asked["path"], storage_options=options)

    def opened(self) -> int:
        return len(self.open().schema)

    def needle(self) -> int:
        return len(self.open().to_arrow(where=f"request_id = '{self.asked['id']}'"))

    def rare(self) -> int:
        word = self.asked["rare"]
        return len(self.open().to_arrow(where=f"message TEXTSEARCH '{word}'", columns=TWO))

    def both(self) -> int:
        rare, common = self.asked["rare"], self.asked["common"]
        return int(self.open().count(f"message TEXTSEARCH '{rare} {common}'"))

    def range(self) -> int:
        where = (
            f"ts >= TIMESTAMP '{self.asked['low']}' AND ts < TIMESTAMP '{self.asked['high']}'"
            " AND level = 'ERROR'"
        )
        return len(self.open().to_arrow(where=where, columns=TWO))

    def count(self) -> int:
        return int(self.open().count("level = 'ERROR' AND status >= 500"))

    def group(self) -> int:
        metrics = {"n": "count", "m": ("avg", "latency")}
        return len(self.open().aggregate(metrics, ["service"], where="level = 'ERROR'"))


class Lance:
    def __init__(self, asked: Asked) -> None:
        import lance
        import lance.query

        self.asked, self.library = asked, lance

    def open(self) -> Any:
        options = object_store_options(self.asked["endpoint"])
        return self.library.dataset(self.asked["path"], storage_options=options)

    def opened(self) -> int:
        return len(self.open().schema)

    def needle(self) -> int:
        return len(self.open().to_table(filter=f"request_id = '{self.asked['id']}'"))

    def _matching(self, words: str, columns: list[str]) -> int:
        query = self.library.query
        match = query.MatchQuery(words, "message", operator=query.FullTextOperator.AND)
        opened = self.open()
        found = opened.to_table(
            columns=columns, full_text_query=match, limit=self.asked["rows"], with_row_id=True
        )
        return len(found)

    def rare(self) -> int:
        return self._matching(self.asked["rare"], TWO)

    def both(self) -> int:
        return self._matching(f"{self.asked['rare']} {self.asked['common']}", [])

    def range(self) -> int:
        where = (
            f"ts >= TIMESTAMP '{self.asked['low']}' AND ts < TIMESTAMP '{self.asked['high']}'"
            " AND level = 'ERROR'"
        )
        return len(self.open().to_table(columns=TWO, filter=where))

    def count(self) -> int:
        return int(self.open().count_rows("level = 'ERROR' AND status >= 500"))

    def group(self) -> int:
        found = self.open().to_table(columns=["service", "latency"], filter="level = 'ERROR'")
        grouped = found.group_by("service").aggregate([("latency", "mean"), ("latency", "count")])
        return len(grouped)


class Delta:
    def __init__(self, asked: Asked) -> None:
        import deltalake
        import pyarrow.compute
        import pyarrow.dataset

        self.asked, self.library, self.pc = asked, deltalake, pyarrow.compute

    def open(self) -> Any:
        options = object_store_options(self.asked["endpoint"])
        return self.library.DeltaTable(self.asked["path"], storage_options=options)

    def opened(self) -> int:
        return len(self.open().schema().fields)

    def _table(self, where: Any, columns: list[str] | None = None) -> Any:
        return self.open().to_pyarrow_dataset().to_table(filter=where, columns=columns)

    def _word(self, word: str) -> Any:
        return self.pc.match_substring_regex(self.pc.field("message"), rf"\b{word}\b")

    def needle(self) -> int:
        return len(self._table(self.pc.field("request_id") == self.asked["id"]))

    def rare(self) -> int:
        return len(self._table(self._word(self.asked["rare"]), TWO))

    def both(self) -> int:
        where = self._word(self.asked["rare"]) & self._word(self.asked["common"])
        return int(self.open().to_pyarrow_dataset().count_rows(filter=where))

    def range(self) -> int:
        from datetime import datetime

        field = self.pc.field
        low, high = (datetime.fromisoformat(self.asked[end]) for end in ("low", "high"))
        kept = (field("ts") >= low) & (field("ts") < high) & (field("level") == "ERROR")
        return len(self._table(kept, TWO))

    def count(self) -> int:
        field = self.pc.field
        kept = (field("level") == "ERROR") & (field("status") >= 500)
        return int(self.open().to_pyarrow_dataset().count_rows(filter=kept))

    def group(self) -> int:
        found = self._table(self.pc.field("level") == "ERROR", ["service", "latency"])
        grouped = found.group_by("service").aggregate([("latency", "mean"), ("latency", "count")])
        return len(grouped)


PEERS: dict[str, Callable[[Asked], Any]] = {"ours": Ours, "lance": Lance, "delta": Delta}


def main() -> None:
    warnings.simplefilter("ignore")
    peer, query, asked = sys.argv[1:]
    ready = PEERS[peer](json.loads(asked))
    start, worked = time.perf_counter(), time.process_time()
    size = getattr(ready, query)()
    found = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - worked,
        "whole": time.process_time(),
        "size": size,
    }
    print(json.dumps(found), flush=True)
    # Threads of a client library may outlive the interpreter, which then ends the process loudly.
    os._exit(0)


if __name__ == "__main__":
    main()
