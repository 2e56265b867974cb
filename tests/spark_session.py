"""One Spark session for all tests that ask for it, and what counts as going wrong in it.

Spark repairs or hides much: code that does not compile is interpreted, a task that fails is tried
again, and only the log tells. So the fallback of code generation is off, and an ERROR in the
driver's log fails the test that caused it. A test that provokes errors says which with
``@pytest.mark.driver_errors("part of the message", ...)``; it also fails when none of them comes.
Warnings are errors as everywhere, apart from Spark's own that are named in ``SPARKS_OWN``.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

SPARKS_OWN = (
    "PySpark does not yet fully support pandas:FutureWarning",
    "Cannot infer the eval type from type hints:UserWarning",
)
"""Filters of warnings that Spark's Python code gives, whatever we do."""
OLDER_SPARKS_OWN = (
    "Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
    "unclosed <socket:ResourceWarning",
)
"""PySpark before 4.2 leaves the sockets of results to the garbage collector."""
CONSEQUENCES = (
    "aborting job",
    "Aborting commit for partition",
    "Aborted commit for partition",
    "is aborting.",
    "aborted.",
)
"""What Spark logs about a job after the error that an expecting test has named."""
LATE = ("Stage cancelled", *CONSEQUENCES[1:3])
"""What tasks log that Spark cancels after an error; it may come when the next test runs already."""
MARK = "\x01"
LINE = MARK + "%c{1}: %m%n%throwable{40}"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "driver_errors(*texts): ERRORs in Spark's log are expected")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    own = SPARKS_OWN if spark_minor() >= (4, 2) else (*SPARKS_OWN, *OLDER_SPARKS_OWN)
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            for text in own:
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{text}"))
            if shutil.which("java") is None:
                item.add_marker(pytest.mark.skip(reason="java is missing"))


def spark_minor() -> tuple[int, int]:
    """The minor of the PySpark that the tests run on."""
    from importlib.metadata import version

    from indextables.spark.compat import minor_of

    return minor_of(version("pyspark"))


class DriverLog:
    """The ERRORs of the driver's log since they were last taken."""

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        jvm = session._jvm
        self._writer = jvm.java.io.StringWriter()
        core = jvm.org.apache.logging.log4j.core
        layout = core.layout.PatternLayout.newBuilder().withPattern(LINE).build()
        level = jvm.org.apache.logging.log4j.Level.ERROR
        builder = core.appender.WriterAppender.newBuilder()
        appender = builder.setName("tests").setTarget(self._writer).setLayout(layout).build()
        appender.start()
        root = jvm.org.apache.logging.log4j.LogManager.getRootLogger().get()
        root.addAppender(appender, level, None)
        self._context.setLogLevel("ERROR")

    def taken(self) -> list[str]:
        """Each ERROR with the first lines of its exception."""
        text = self._writer.toString()
        if text:
            self._writer.getBuffer().setLength(0)
        return [part.strip() for part in text.split(MARK) if part.strip()]

    def settle(self) -> None:
        """Wait for tasks that a failed job left running: what they log belongs to this test."""
        store = self._context._jsc.sc().statusStore()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            executors = store.executorList(True)
            if not any(executors.apply(i).activeTasks() for i in range(executors.size())):
                return
            time.sleep(0.05)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = started(str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()


def started(warehouse: str) -> Any:
    """A registered session whose log is watched."""
    from pyspark.sql import SparkSession

    import indextables.spark

    session: Any = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.codegen.fallback", "false")
        .config("spark.sql.inMemoryColumnarStorage.partitionPruning", "false")
        .config("spark.sql.parquet.filterPushdown", "false")
        .config("spark.sql.warehouse.dir", warehouse)
        .getOrCreate()
    )
    session.driver_log = DriverLog(session)
    assert indextables.spark.register(session) == 2
    return session


@pytest.fixture(autouse=True)
def errors_in_the_log_count(request: pytest.FixtureRequest) -> Iterator[None]:
    """No ERROR in Spark's log, but for the expected ones."""
    yield
    if "spark" not in request.fixturenames:
        return
    log = request.getfixturevalue("spark").driver_log
    marker = request.node.get_closest_marker("driver_errors")
    if marker is None:
        assert [e for e in log.taken() if not any(text in e for text in LATE)] == []
        return
    log.settle()
    found = log.taken()
    assert any(text in e for text in marker.args for e in found), "no such ERROR came"
    allowed = (*marker.args, *CONSEQUENCES)
    assert [e for e in found if not any(text in e for text in allowed)] == []
