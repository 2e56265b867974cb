"""Layer 2: the Java side of the data source, compiled in the driver, no jar and no javac.

Spark ships the Janino compiler for its own generated code. ``install`` hands it the Java sources of
this package (``classes.py``), puts the classes on the driver's class path and connects them to a
Python object that plans queries (``bridge.py``). Executors need nothing: they run Spark's own
reader of Python data sources. One JVM is compiled for once; a second session of the same JVM only
reconnects.

Classes cannot be taken off a class path. Where the rest fails after they are on it, they are
switched off: the provider then answers to another name and Spark finds layer 1 under ours.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from indextables.spark import compat
from indextables.spark.driver import selftest
from indextables.spark.driver.classes import ShimUnavailableError, class_path
from indextables.spark.sql.rewrite import java_pattern

CATALOG = "indextables"
SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
SESSION_CLASS = "io.indextables.IndexSessionCatalog"
_MARK = "indextables.shim.classes"


def install(spark: Any, callback: Any) -> None:
    """Compile and connect; raises ``ShimUnavailableError`` where that cannot be done."""
    jvm, gateway = jvm_of(spark)
    try:
        bridge = _load_classes(jvm, gateway, spark.version)
        _start_callbacks(gateway)
        bridge.connect(callback)
        _set_catalog(spark)
        parser = jvm.io.indextables.SqlParser
        parser.install(spark._jsparkSession, java_pattern(), session_key(spark))
        jvm.io.indextables.KnownRowsStrategy.install(spark._jsparkSession)
        if not compat.is_tested(spark.version):
            selftest.run(spark)
    except Exception as error:
        _switch_off(spark, jvm)
        if isinstance(error, ShimUnavailableError):
            raise
        told = f"the Java side does not fit Spark {spark.version}: {reason(error)}"
        raise ShimUnavailableError(told) from error


def jvm_of(spark: Any) -> tuple[Any, Any]:
    """The JVM of a session and the way into it; some platforms lock it away."""
    try:
        return spark._jvm, spark.sparkContext._gateway
    except Exception as error:
        told = f"this session does not give access to its JVM ({reason(error)})"
        raise ShimUnavailableError(told) from error


def reason(error: BaseException) -> str:
    """The line of an error that says what went wrong; py4j puts it below a line of its own."""
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else f"{cause.getClass().getName()}: {cause.getMessage()}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:2])[:400] if lines else type(error).__name__


def session_key(spark: Any) -> str:
    """How the Java side names a session to Python."""
    return str(id(spark))


def _load_classes(jvm: Any, gateway: Any, version: str) -> Any:
    """The bridge class, loaded on first use in this JVM."""
    if jvm.java.lang.System.getProperty(_MARK) is None:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        if not hasattr(loader, "addURL"):
            raise ShimUnavailableError(f"class loader {loader.getClass().getName()} is closed")
        place = class_path(jvm, gateway, version)
        loader.addURL(jvm.java.io.File(place).toURI().toURL())
        jvm.java.lang.System.setProperty(_MARK, place)
    return jvm.io.indextables.Bridge


def _start_callbacks(gateway: Any) -> None:
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway)


def _set_catalog(spark: Any) -> None:
    """Name the catalogs and load them now: threads that come later may not see their classes."""
    key = f"spark.sql.catalog.{CATALOG}"
    if spark.conf.get(key, None) is None:
        spark.conf.set(key, "io.indextables.IndexTablesCatalog")
    catalogs = spark._jsparkSession.sessionState().catalogManager()
    catalogs.catalog(CATALOG)
    if takes_session_catalog(spark):
        catalogs.catalog("spark_catalog")


def takes_session_catalog(spark: Any) -> bool:
    """Put ours in front of the session's catalog, unless another library's is there.

    Spark looks the setting up whenever it needs the catalog, so it may be set while it runs.
    """
    current = spark.conf.get(SESSION_CATALOG, "builtin")
    if current == "builtin":
        spark.conf.set(SESSION_CATALOG, SESSION_CLASS)
    elif current != SESSION_CLASS:
        warnings.warn(
            f"{SESSION_CATALOG} is {current}, so CREATE TABLE ... USING indextables and other "
            "statements by name go there; name tables of indextables by their path, "
            "indextables.`/a/path`, or start the session without that setting",
            stacklevel=6,
        )
    return bool(spark.conf.get(SESSION_CATALOG) == SESSION_CLASS)


def _switch_off(spark: Any, jvm: Any) -> None:
    """Leave a JVM whose classes do not work as if they were not there."""
    with contextlib.suppress(Exception):
        if jvm.java.lang.System.getProperty(_MARK) is not None:
            jvm.io.indextables.Bridge.switchOff()
            jvm.io.indextables.SqlParser.remove(spark._jsparkSession)
            spark.conf.unset(f"spark.sql.catalog.{CATALOG}")
            if spark.conf.get(SESSION_CATALOG, None) == SESSION_CLASS:
                spark.conf.unset(SESSION_CATALOG)
