"""Full pushdown on Spark Connect: the same Java source as a jar, sent to the server.

The client compiles the sources with the Janino of its own Spark jars in a short-lived JVM, keeps
the jar in the user's cache, and sends it with ``addArtifacts``. On the server the classes reach
Python through Spark's own workers. There is no parser of ours on the server, so ``spark.sql`` of
the client session rewrites our operators before it sends the text. Where a jar cannot be made or is
refused, layer 1 serves.
"""

from __future__ import annotations

import functools
import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any

from indextables.spark.driver import shim
from indextables.spark.sql import rewrite as sqltext
from indextables.storage import workfolders
from indextables.storage.deleting import remove_file
from indextables.storage.paths import temporary_name


def install(spark: Any) -> None:
    """Send the classes; ``ShimUnavailableError`` where that cannot be done."""
    try:
        jar = cached_jar()
        spark.addArtifacts(str(jar))
        spark.conf.set(f"spark.sql.catalog.{shim.CATALOG}", "io.indextables.IndexTablesCatalog")
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise shim.ShimUnavailableError(f"the server did not take our classes: {text}") from error
    _rewrite_sql(spark)


def _rewrite_sql(spark: Any) -> None:
    """Let ``spark.sql`` of this session understand our operators and commands."""
    plain = spark.sql

    @functools.wraps(plain)
    def sql(sqlQuery: str, *args: Any, **kwargs: Any) -> Any:  # noqa: N803
        if sqltext.is_command(sqlQuery, spark):
            return spark.createDataFrame(sqltext.commands().execute(sqlQuery, spark=spark))
        return plain(sqltext.rewritten(sqlQuery), *args, **kwargs)

    spark.sql = sql


def cached_jar() -> Path:
    """The jar of this version of the sources and of Spark, built when it is missing."""
    import pyspark

    digest = hashlib.sha256(pyspark.__version__.encode())
    for source in sorted(shim.SOURCES.rglob("*.java")):
        digest.update(source.read_bytes())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "indextables"
    jar = root / f"indextables-spark-{digest.hexdigest()[:16]}.jar"
    if not jar.exists():
        root.mkdir(parents=True, exist_ok=True)
        _build(jar)
    return jar


def _build(jar: Path) -> None:
    from pyspark.conf import SparkConf
    from pyspark.java_gateway import launch_gateway

    gateway: Any = launch_gateway(SparkConf(loadDefaults=False))
    folder = Path(workfolders.new_folder("shim"))
    try:
        jvm = gateway.jvm
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        shim.compile_sources(jvm, gateway, loader, str(folder))
        _pack(folder, jar)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        workfolders.release(str(folder))


def _pack(folder: Path, jar: Path) -> None:
    made = jar.with_name(temporary_name())
    try:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                archive.write(path, path.relative_to(folder).as_posix())
        os.replace(made, jar)
    finally:
        remove_file(made, jar.parent)
