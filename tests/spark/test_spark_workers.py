"""Do workers have the package? Found at registration, told with the cure, refused at planning."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

import indextables
import indextables.spark as it
from indextables.spark.driver import workers
from indextables.spark.driver.bridge import Bridge
from indextables.spark.driver.request import Access
from indextables.spark.driver.workers import SparkWorkerError, Watch, Worker, WorkerReport
from indextables.spark.tasks.reading import TaskReader

GOOD = Worker("h", "/py", "linux", indextables.__version__)
OLD = Worker("h", "/py", "linux", "0.0.9")
NONE = Worker("h", "/py", "linux", None, "ModuleNotFoundError: No module named 'indextables'")


def python(folder: Path, text: str) -> str:
    """A program that stands for another Python."""
    path = folder / "python3"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_our_own_python_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_asked", lambda _: pytest.fail("asked"))
    assert workers.local_report(sys.executable).workers == ()


def test_a_python_without_the_package(tmp_path: Path) -> None:
    other = python(tmp_path, f'exec "{sys.executable}" -S "$@"')
    (found,) = workers.local_report(other).problems
    assert "cannot import indextables" in found
    assert workers.local_report(str(tmp_path / "gone")).problems
    broken = python(tmp_path / "..", "exit 3")
    assert "cannot import indextables" in workers.local_report(broken).problems[0]


def test_another_version_is_a_problem(tmp_path: Path) -> None:
    answer = json.dumps({k: getattr(OLD, k) for k in OLD.__slots__})
    other = python(tmp_path, f"echo '{answer}'")
    assert "0.0.9" in workers.local_report(other).problems[0]


def test_what_is_wrong_is_warned_of_and_refused() -> None:
    watch = Watch()
    watch.note(WorkerReport((GOOD,)))
    watch.require()
    with pytest.warns(UserWarning, match="PYSPARK_PYTHON="):
        watch.note(WorkerReport((GOOD, NONE)))
    with pytest.raises(SparkWorkerError, match=r"cannot import indextables.*PYSPARK_PYTHON"):
        watch.require()
    watch.note(WorkerReport((GOOD,)))
    watch.require()
    text = str(WorkerReport((GOOD, OLD, NONE)))
    assert "problem: /py on h has indextables 0.0.9" in text
    assert "indextables missing" in text


def test_a_plan_for_such_workers_is_refused_before_it_starts(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    indextables.write([{"id": 1}], path)
    bridge = Bridge()
    body = {"options": {"path": path, "read.driver.maxSplits": "0"}, "session": {}}
    body |= {"timeZone": "UTC", "output": StructType().add("id", "long").json(), "filters": []}
    assert bridge.fetch("plan", json.dumps(body))[:1] == b"\0"
    bridge.workers.problem = "no package"
    answer = bridge.fetch("plan", json.dumps(body))
    assert answer[:1] == b"\1"
    assert b"ITX-6001" in answer
    body["options"] = {"path": path}
    assert bridge.fetch("plan", json.dumps(body))[:1] == b"\3"


def test_only_the_same_version_unpacks_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = TaskReader(Access("/t"), None, StructType(), [])
    packed = pickle.dumps(reader)
    assert pickle.loads(packed).access == reader.access
    monkeypatch.setattr(indextables, "__version__", "9.9.9")
    with pytest.raises(
        SparkWorkerError, match=r"driver has indextables .*, this worker .* 9\.9\.9"
    ):
        pickle.loads(packed)


def test_a_cluster_is_asked_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "check_workers", lambda *_: WorkerReport((NONE,)))
    started: list[Any] = []
    thread = SimpleNamespace(start=lambda: None)
    monkeypatch.setattr(
        workers.threading, "Thread", lambda target, args, daemon: started.append(target) or thread
    )
    watch = Watch()
    context = SimpleNamespace(master="spark://x:7077", pythonExec="python3")
    watch.start(SimpleNamespace(sparkContext=context))
    assert watch.problem is None
    with pytest.warns(UserWarning, match="cannot import"):
        started[0](None)
    assert watch.problem is not None
    Watch().start(SimpleNamespace())


def test_workers_of_a_session_are_asked_by_a_job(spark: Any) -> None:
    report = it.check_workers(spark)
    assert report.problems == ()
    assert {w.version for w in report.workers} == {indextables.__version__}


TRAP = """
import sys, warnings
from pyspark.sql import SparkSession
import indextables
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = spark.getOrCreate()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    layer = indextables.register(spark)
print("LAYER", layer)
print("WARNED", [str(w.message) for w in seen if "PYSPARK_PYTHON" in str(w.message)])
try:
    spark.range(3).write.format("indextables").mode("append").save(sys.argv[1])
except Exception as error:
    print("REFUSED", type(error).__name__, str(error)[:400].replace(chr(10), " "))
"""


def test_the_setting_asks_nobody(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(Watch, "start", lambda _, session: asked.append(session))
    for wanted in ("true", "false"):
        other = spark.newSession()
        other.conf.set("spark.indextables.spark.workers.check", wanted)
        assert it.register(other) == 2
    assert len(asked) == 1


def test_the_trap_of_a_virtualenv_that_is_not_active(tmp_path: Path) -> None:
    """``venv/bin/python app.py`` alone leaves workers with the first ``python3`` of the path."""
    python(tmp_path, f'exec "{sys.executable}" -S "$@"')
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    env |= {"PATH": f"{tmp_path}:{env['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", TRAP, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert lines["LAYER"] == "2", done.stderr[-3000:]
    assert f"PYSPARK_PYTHON={sys.executable}" in lines["WARNED"]
    assert "ITX-6001" in lines["REFUSED"]
