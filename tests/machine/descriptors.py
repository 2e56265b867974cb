"""Run in a process of its own: every verb of a table under a low limit of open files.

    descriptors.py <table> <limit> work        each verb once; prints what came of it as JSON
    descriptors.py <table> <limit> exhausted   each verb while no descriptor is left

The verbs run on a copy first, so that everything is imported before descriptors are scarce.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

import indextables
from indextables.errors import IndexTablesError
from indextables.log.read.cache import SHARED
from indextables.splits.read.reader import forget_readers

OPTIONS = {
    "spark.indextables.storage.fsync": "false",
    "spark.indextables.checkpoint.enabled": "false",
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.state.cache.enabled": "false",
    "spark.indextables.merge.maxSourceSplitsPerMerge": 50,
}


def fresh(path: str) -> indextables.Table:
    forget_readers()
    return indextables.open(path, options=OPTIONS)


def verbs(path: str) -> dict[str, Callable[[], Any]]:
    table = fresh(path)
    return {
        "rows": lambda: table.to_arrow().num_rows,
        "searched": lambda: table.count("msg indexquery 'word3'"),
        "best": lambda: table.search("word3", limit=1000).num_rows,
        "summed": lambda: table.aggregate({"s": ("sum", "id")}).to_pylist()[0]["s"],
        "top": lambda: table.top("id", 3, columns=["id"])["id"].to_pylist(),
        "doctor": lambda: sorted({(f.severity, f.check) for f in table.doctor()}),
        "purge": lambda: table.purge(dry_run=True).metrics.status,
        "index": lambda: len(table.index_splits(force=True)),
        "xref": lambda: [(r.action, r.source_splits_count) for r in table.build_xref(force=True)],
        "deleted": lambda: table.refresh().delete("id = 3").rows_deleted,
        "merged": lambda: table.refresh().merge().metrics.status,
    }


def outcome(verb: Callable[[], Any]) -> Any:
    try:
        return verb()
    except IndexTablesError as error:
        return {"error": type(error).__name__, "text": str(error)}
    except Exception as error:
        return {"error": f"bare {type(error).__name__}", "text": str(error)}


@contextlib.contextmanager
def no_descriptor_left() -> Iterator[None]:
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    try:
        yield
    finally:
        for fd in taken:
            os.close(fd)


def main() -> None:
    path, limit, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    shutil.copytree(path, path + "-first")
    for verb in verbs(path + "-first").values():
        verb()
    SHARED.invalidate()
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    found = {}
    for name, verb in verbs(path).items():
        forget_readers()
        if how == "exhausted":
            with no_descriptor_left():
                found[name] = outcome(verb)
        else:
            found[name] = outcome(verb)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    table = fresh(path)
    found |= {
        "kept open": after - before,
        "version": table.version,
        "skips": len(table.snapshot.skips),
        "xrefs": len(table.xrefs()),
        "count": table.count(),
        "files": len(list(table.snapshot.files())),
    }
    print(json.dumps(found))


main()
