"""Full pushdown on Spark Connect: the same Java source as a jar, sent to the server.

The client compiles the sources with the Janino of its own Spark jars in a short-lived JVM, keeps
the jar in the user's cache, and sends it with ``addArtifacts``. On the server the classes reach
Python through Spark's own workers. There is no parser of ours on the server, so ``spark.sql`` of
the client session rewrites our operators before it sends the text. Where a jar cannot be made or is
refused, layer 1 serves.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from indextables.spark import compat
from indextables.spark.driver.classes import (
    ShimUnavailableError,
    build,
    is_private,
    jar_name,
    private_cache,
)
from indextables.spark.driver.shim import CATALOG, reason, takes_session_catalog
from indextables.spark.sql import rewrite as sqltext


def install(spark: Any) -> None:
    """Send the classes; ``ShimUnavailableError`` where that cannot be done."""
    try:
        jar = cached_jar(spark.version)
        spark.addArtifacts(str(jar))
        spark.conf.set(f"spark.sql.catalog.{CATALOG}", "io.indextables.IndexTablesCatalog")
        takes_session_catalog(spark)
    except ShimUnavailableError:
        raise
    except Exception as error:
        told = f"the server did not take our classes: {reason(error)}"
        raise ShimUnavailableError(told) from error
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


def cached_jar(server: str) -> Path:
    """The jar for this server, built when it is missing; the client's Spark has to be the same."""
    import pyspark

    if compat.minor_of(pyspark.__version__) != compat.minor_of(server):
        raise ShimUnavailableError(
            f"the server is Spark {server} and the client {pyspark.__version__}"
        )
    folder = private_cache()
    if folder is None:
        raise ShimUnavailableError("there is no cache folder that only this user can write")
    jar = folder / jar_name(pyspark.__version__, "client")
    if not is_private(jar):
        _build(jar, pyspark.__version__)
    return jar


def _build(jar: Path, version: str) -> None:
    """Compile in a JVM that lives as long as that takes."""
    from pyspark.conf import SparkConf
    from pyspark.java_gateway import launch_gateway

    gateway: Any = launch_gateway(SparkConf(loadDefaults=False))
    try:
        build(jar, gateway.jvm, gateway, version)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
