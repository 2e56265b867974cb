"""Executors in other processes, and Spark Connect: each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "outside.py"


def run(kind: str, folder: Path) -> dict[str, Any]:
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), kind, str(folder)],
        capture_output=True,
        text=True,
        timeout=500,
        env=environment,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, done.stdout[-2000:] + done.stderr[-4000:]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return found


def check(found: dict[str, Any]) -> None:
    assert sorted(found["needle"]) == [77, 78]
    assert found["again"] == 200
    assert found["groups"] == [["0", 100], ["1", 100]]
    assert found["where"] == sum(i % 7 == 3 for i in range(200))
    assert found["view"] == [[3, 200]]
    assert found["plain"] == [1, 200]
    assert found["layer"] == 2
    assert found["search"] == found["function"] == found["where"]
    assert found["sums"] == 2
    assert found["state"].endswith("/table")


def test_local_cluster_with_two_workers(tmp_path: Path) -> None:
    check(run("cluster", tmp_path))


def test_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    check(run("connect", tmp_path))
