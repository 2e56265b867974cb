"""Run in a process of its own: writes and searches where files may not grow (RLIMIT_FSIZE).

    space.py <folder> <setting or -> <bytes>

Prints, as JSON, what came of each and what is left in the work folder.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables
from indextables.errors import IndexTablesError
from indextables.splits.read.reader import forget_readers

rng = random.Random(5)
ROWS = 4000
WORDS = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(20 * ROWS)]
DATA = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "msg": [" ".join(WORDS[20 * i : 20 * i + 20]) for i in range(ROWS)],
    }
)


def outcome(verb: Callable[[], Any]) -> Any:
    try:
        found = verb()
        return found if isinstance(found, int) else str(found)
    except IndexTablesError as error:
        return {"error": type(error).__name__, "text": str(error)}
    except Exception as error:
        return {"error": f"bare {type(error).__name__}", "text": str(error)}


def main() -> None:
    folder, setting, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    options: dict[str, Any] = {"spark.indextables.storage.fsync": "false"}
    if setting != "-":
        options["spark.indextables.indexWriter.tempDirectoryPath"] = setting
    path = str(folder / "t")
    indextables.write(DATA, path, text=["msg"], options=options)
    indextables.open(path, options=options).count("msg indexquery 'nothing'")
    forget_readers()
    before = sorted(str(p) for p in folder.rglob("*") if p.is_file())
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    table = indextables.open(path, options=options)
    always = {**options, "spark.indextables.deletionVector.maxShare": 0}
    rewriting = indextables.open(path, options=always)
    found = {
        "written": outcome(lambda: indextables.write(DATA, path, options=options)),
        "searched": outcome(lambda: table.count("msg indexquery 'abcdefgh~1'")),
        "merged": outcome(lambda: rewriting.delete("id > 3000")),
    }
    forget_readers()
    after = sorted(str(p) for p in folder.rglob("*") if p.is_file())
    found["left"] = [p for p in after if p not in before]
    found["gone"] = [p for p in before if p not in after]
    found["temp"] = tempfile.gettempdir()
    found["rows"] = indextables.open(path, options=options).count()
    print(json.dumps(found), flush=True)
    os._exit(0)


main()
