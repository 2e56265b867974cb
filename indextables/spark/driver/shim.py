"""Layer 2: the Java side of the data source, compiled in the driver, no jar and no javac.

Spark ships the Janino compiler for its own generated code. ``install`` hands it the Java sources of
this package, puts the classes on the driver's class path and connects them to a Python object that
plans queries (``bridge.py``). Executors need nothing: they run Spark's own reader of Python data
sources. One JVM is compiled for once; a second session of the same JVM only reconnects.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from indextables.errors import IndexTablesError
from indextables.spark.sql.rewrite import java_pattern

SOURCES = Path(__file__).parents[1] / "java"
CATALOG = "indextables"
_MARK = "indextables.shim.classes"


class ShimUnavailableError(IndexTablesError):
    """The Java side cannot be installed in this session; layer 1 serves."""

    code = "ITX-6000"


def install(spark: Any, callback: Any) -> None:
    """Compile and connect; raises ``ShimUnavailableError`` where that cannot be done."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    try:
        bridge = _load_classes(jvm, gateway)
        _start_callbacks(gateway)
        bridge.connect(callback)
        _set_catalog(spark)
        parser = jvm.io.indextables.SqlParser
        parser.install(spark._jsparkSession, java_pattern(), session_key(spark))
        jvm.io.indextables.KnownRowsStrategy.install(spark._jsparkSession)
    except ShimUnavailableError:
        raise
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ShimUnavailableError(f"the Java side could not be loaded: {text}") from error


def session_key(spark: Any) -> str:
    """How the Java side names a session to Python."""
    return str(id(spark))


def _load_classes(jvm: Any, gateway: Any) -> Any:
    """The bridge class, compiled on first use in this JVM."""
    if jvm.java.lang.System.getProperty(_MARK) is None:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        folder = tempfile.mkdtemp(prefix="indextables-shim-")
        compile_sources(jvm, gateway, loader, folder)
        _goes_with_the_jvm(jvm, folder)
        if not hasattr(loader, "addURL"):
            raise ShimUnavailableError(f"class loader {loader.getClass().getName()} is closed")
        loader.addURL(jvm.java.io.File(folder).toURI().toURL())
        jvm.java.lang.System.setProperty(_MARK, folder)
    return jvm.io.indextables.Bridge


def _goes_with_the_jvm(jvm: Any, folder: str) -> None:
    """The classes are the JVM's, which may outlive this process: it removes them when it ends."""
    for path in (Path(folder), *sorted(Path(folder).rglob("*"))):
        jvm.java.io.File(str(path)).deleteOnExit()


def compile_sources(jvm: Any, gateway: Any, loader: Any, folder: str) -> None:
    """Compile every Java source into an empty folder, and put the service file there too."""
    files = sorted(SOURCES.rglob("*.java"))
    array = gateway.new_array(jvm.java.io.File, len(files))
    for i, path in enumerate(files):
        array[i] = jvm.java.io.File(str(path))
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.setDestinationDirectory(jvm.java.io.File(folder), False)
    compiler.compile(array)
    services = Path(folder) / "META-INF" / "services"
    services.mkdir(parents=True)
    name = "org.apache.spark.sql.sources.DataSourceRegister"
    (services / name).write_text("io.indextables.IndexTablesProvider\n")


def _start_callbacks(gateway: Any) -> None:
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway)


def _set_catalog(spark: Any) -> None:
    """Name the catalog and load it now: threads that come later may not see its classes."""
    key = f"spark.sql.catalog.{CATALOG}"
    if spark.conf.get(key, None) is None:
        spark.conf.set(key, "io.indextables.IndexTablesCatalog")
    spark._jsparkSession.sessionState().catalogManager().catalog(CATALOG)
