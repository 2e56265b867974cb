"""Do Spark's Python workers have this package, in the same version?

Tasks that read and write run in Python processes which Spark starts on its executors, and plans of
streams and of layer 1 in processes beside the driver. Each takes the Python that ``PYSPARK_PYTHON``
names, or else the first ``python3`` on the path, which is rarely the one of a virtualenv that was
not activated. Found out late, that is a ``ModuleNotFoundError`` deep in a log.

On a local session the workers are processes of this machine with this environment, so asking their
Python directly is exact, and it is asked only where it is not plainly our own. On a cluster a job
of one task asks, in the background: registration does not wait for executors. Whatever is found
is warned of once, and a plan that needs workers is refused with the same words.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import types
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import indextables
from indextables.errors import IndexTablesError

PROBE = """
import json, os, socket, sys, sysconfig
found = {"host": socket.gethostname(), "python": sys.executable, "version": None, "error": None,
         "platform": sysconfig.get_platform() + " " + str(sys.implementation.cache_tag)}
try:
    import indextables
    from indextables.native import _hash
    found["version"] = indextables.__version__
except Exception as error:
    found["error"] = type(error).__name__ + ": " + str(error)
"""
RECIPES = "docs/deploying.md"


class SparkWorkerError(IndexTablesError):
    """Spark's Python workers cannot run our tasks."""

    code = "ITX-6001"


@dataclass(frozen=True, slots=True)
class Worker:
    """One Python that Spark runs our tasks with."""

    host: str
    python: str
    platform: str
    version: str | None
    error: str | None = None

    @property
    def problem(self) -> str | None:
        """Why it cannot serve; none if it can."""
        where = f"{self.python} on {self.host}"
        if self.version is None:
            return f"{where} cannot import indextables ({self.error})"
        if self.version != indextables.__version__:
            ours = indextables.__version__
            return f"{where} has indextables {self.version}, the driver has {ours}"
        return None


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What the workers of a session run."""

    workers: tuple[Worker, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(sorted({w.problem for w in self.workers if w.problem is not None}))

    def __str__(self) -> str:
        lines = [
            f"{w.host}: {w.python}, indextables {w.version or 'missing'}, {w.platform}"
            for w in self.workers
        ]
        return "\n".join([*lines, *(f"problem: {p}" for p in self.problems)])


def check_workers(spark: Any, tasks: int = 2) -> WorkerReport:
    """Ask the workers of a session what they run; this is a Spark job of some tasks."""
    from pyspark.sql.functions import udf

    frame = spark.range(0, tasks, 1, tasks).select(udf(_probing(), "string")("id").alias("w"))
    found = {row.w for row in frame.collect()}
    return WorkerReport(tuple(Worker(**json.loads(text)) for text in sorted(found)))


def _probing() -> Any:
    """The probe as a function that pickles as code: workers need nothing of ours to run it."""
    names: dict[str, Any] = {}
    lines = "".join(f"    {line}\n" for line in PROBE.strip().splitlines())
    exec(f"def probe(_):\n{lines}    return json.dumps(found)\n", names)
    probe: types.FunctionType = names["probe"]
    probe.__module__ = "__main__"
    return probe


def local_report(python: str) -> WorkerReport:
    """What workers of a local session run, asked without Spark."""
    place = shutil.which(python)
    if place is None:
        nothing = Worker("this machine", python, "unknown", None, "there is no such program")
        return WorkerReport((nothing,))
    return WorkerReport(()) if _is_ours(place) else WorkerReport((_asked(place),))


def _is_ours(place: str) -> bool:
    """Is this the Python of this process: the same file, in the same virtualenv?"""
    same_folder = os.path.dirname(os.path.abspath(place)) == os.path.dirname(sys.executable)
    return same_folder and os.path.realpath(place) == os.path.realpath(sys.executable)


@cache
def _asked(place: str) -> Worker:
    try:
        done = subprocess.run(
            [place, "-c", PROBE + "print(json.dumps(found))"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return Worker(**json.loads(done.stdout.splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        return Worker("this machine", place, sysconfig.get_platform(), None, str(error))


def mismatch(version: str) -> SparkWorkerError:
    """A worker was given what another version packed."""
    ours = indextables.__version__
    told = f"the driver has indextables {version}, this worker ({sys.executable}) has {ours}"
    return SparkWorkerError(told, hint="Install the same version for drivers and executors")


class Watch:
    """What is known of the workers of one session."""

    def __init__(self) -> None:
        self.problem: str | None = None

    def start(self, spark: Any) -> None:
        """Find out: at once where that is cheap, in the background on a cluster."""
        try:
            context = spark.sparkContext
            local = str(context.master).startswith("local") and "-cluster" not in context.master
            python = str(context.pythonExec)
        except Exception:
            return
        if local:
            self.note(local_report(python))
            return
        threading.Thread(target=self._ask, args=(spark,), daemon=True).start()

    def _ask(self, spark: Any) -> None:
        with contextlib.suppress(Exception):
            self.note(check_workers(spark, 1))

    def note(self, report: WorkerReport) -> None:
        """Keep what is wrong and warn of it; workers that are found sound are used again."""
        self.problem = "; ".join(report.problems) or None
        if self.problem is not None:
            warnings.warn(f"Spark's Python workers: {self.problem}. {cure()}", stacklevel=2)

    def require(self) -> None:
        """Refuse a plan that needs workers which cannot serve."""
        if self.problem is not None:
            told = f"Spark's Python workers cannot run this: {self.problem}"
            raise SparkWorkerError(told, hint=cure())


def cure() -> str:
    """What to do about workers without the package."""
    return (
        f"Before the session starts, set the environment variable PYSPARK_PYTHON={sys.executable} "
        "on this machine, or the path of a Python that has indextables "
        f"{indextables.__version__} on every node; or send a packed virtualenv with spark.archives "
        f"({RECIPES})"
    )
