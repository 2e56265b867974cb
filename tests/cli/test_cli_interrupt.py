"""Ctrl-C in the middle of a verb: exit code 130, the table as it was or as it should be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import indextables

OPTIONS = {"spark.indextables.xref.autoIndex.enabled": "false"}
CHILD = """
import signal, sys, time
from indextables.storage.local import LocalStore
from indextables.cli.main import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
call, *words = sys.argv[1:]
really = getattr(LocalStore, call)

def slowly(self, *given):
    print("here", flush=True)
    time.sleep(1)
    return really(self, *given)

setattr(LocalStore, call, slowly)
main(words)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "table")
    for i in range(3):
        ids = list(range(5 * i, 5 * i + 5))
        data = pa.table({"id": ids, "word": [f"w{i}" for i in ids]})
        indextables.write(data, place, text=["word"], options=OPTIONS)
    return place


def ids(path: str) -> list[int]:
    table = indextables.open(path)
    table.log.invalidate_cache()
    return sorted(table.refresh().to_arrow(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize(
    ("words", "call", "after"),
    [
        (("merge",), "put_file", range(15)),
        pytest.param(("delete", "id < 7"), "put_if_absent", range(7, 15), marks=pytest.mark.slow),
        pytest.param(("xref", "build"), "put", range(15), marks=pytest.mark.slow),
        pytest.param(
            ("purge", "--older-than-hours", "0"), "delete", range(15), marks=pytest.mark.slow
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_interrupted(
    path: str, tmp_path: Path, words: tuple[str, ...], call: str, after: range
) -> None:
    stray = Path(path) / "stray.split"
    stray.touch()
    verb, *rest = words
    group = [] if verb != "xref" else [rest.pop()]
    given = [verb, *group, path, *rest, "--set", "purge.retentionCheckEnabled=false"]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, call, *given],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "here\n"
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=60)
    assert child.returncode == 130, told
    assert "Traceback" not in told
    assert not list(scratch.glob("indextables-work-*"))
    assert ids(path) in (list(range(15)), list(after))
    assert not [f for f in indextables.open(path).doctor() if f.severity == "error"]

    from indextables.cli.main import main

    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 0
    assert ids(path) == list(after)
    assert stray.exists() == (verb != "purge")
