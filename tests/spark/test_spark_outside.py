"""Executors in other processes, and Spark Connect: each in a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
    assert found["workers"] == []
    assert found["search"] == found["function"] == found["where"]
    assert found["sums"] == 2
    assert found["distinct"] == 2
    assert found["joined"] == 3
    assert found["names"] == []
    assert found["state"].endswith("/table")


def test_local_cluster_with_two_workers(tmp_path: Path) -> None:
    check(run("cluster", tmp_path))


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """A master and two workers that look like two machines; its address."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home, address = Path(pyspark.__file__).parent, f"spark://127.0.0.1:{port}"
    master = ["org.apache.spark.deploy.master.Master", "--port", str(port)]
    workers = [
        ["org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g", "-d", str(folder), address]
    ] * 2
    hosts = ("127.0.0.1", "127.0.0.1", "127.0.0.2")
    running = []
    try:
        for (name, *rest), host in zip([master, *workers], hosts, strict=True):
            command = [str(home / "bin" / "spark-class"), name, "--host", host, *rest]
            running.append(
                subprocess.Popen(
                    [*command[:4], "--webui-port", "0", *command[4:]],
                    env={**os.environ, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        yield address
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="needs a second loopback address")
def test_speculation_commits_one_attempt(tmp_path: Path) -> None:
    """Both attempts of a task write their splits; the table has the rows of one."""
    with standalone_cluster(tmp_path) as address:
        found = run(address, tmp_path)
    assert found["attempts"] == ["attempt-1-0", "attempt-1-1"]
    assert found["ids"] == list(range(80))
    assert found["splits"] == 16


def test_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    check(run("connect", tmp_path))
