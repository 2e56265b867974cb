"""Joining a Spark session: ``register`` once, then read, write and search.

``register`` tries layer 2, the planner in the driver with everything Spark can push down. Where
that cannot be (another Spark, a closed class loader, Connect), it says so once and layer 1 serves
under the same name. Registering again is cheap and harmless.
"""

from __future__ import annotations

import uuid
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from indextables.config import PREFIX, Config
from indextables.errors import ConfigError, TableNotFoundError, did_you_mean
from indextables.log.actions import AddFile, CommitInfo
from indextables.log.commit.transaction import CommitResult
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.planner import Plan
from indextables.spark.driver.bridge import Bridge
from indextables.spark.driver.classes import ShimUnavailableError
from indextables.spark.driver.failing import told_plainly
from indextables.spark.driver.request import Access, access, session_settings
from indextables.spark.driver.shim import install, jvm_of, session_key
from indextables.spark.driver.tables import SHARED
from indextables.spark.driver.workers import Watch
from indextables.spark.driver.writerpatch import active, patch_writers
from indextables.spark.sql import functions as sqlfunctions
from indextables.spark.sql import rewrite as sqltext

FORMAT = "indextables"
_bridges: weakref.WeakKeyDictionary[Any, Bridge | None] = weakref.WeakKeyDictionary()
_bridge_of_jvm: dict[int, Bridge] = {}


def register(spark: Any, *, shim: bool | None = None) -> int:
    """Make ``indextables`` known to a session; returns the layer that serves (1 or 2).

    ``shim=False`` asks for layer 1 alone, as ``spark.indextables.spark.shim.enabled`` does.
    """
    if spark in _bridges and shim is not False:
        bridge = _bridges[spark]
        return 1 if bridge is None else 2
    _register_sources(spark)
    sqlfunctions.register(spark)
    if not is_connect(spark):
        patch_writers()
    wanted = _config(spark)["spark.shim.enabled"] if shim is None else shim
    bridge = _install(spark) if wanted else None
    _bridges[spark] = bridge
    if not is_connect(spark) and _config(spark)["spark.workers.check"]:
        (Watch() if bridge is None else bridge.workers).start(spark)
    return 1 if bridge is None else 2


def _config(spark: Any) -> Config:
    return Config.of(session_settings(spark))


def _register_sources(spark: Any) -> None:
    from indextables.spark.source import NamedSource, PythonSource

    settings = session_settings(spark)
    with warnings.catch_warnings(), nullcontext() if is_connect(spark) else active(spark):
        warnings.simplefilter("ignore")
        for base in (PythonSource, NamedSource):
            _register_source(spark, _with_settings(base, settings))


def _register_source(spark: Any, source: Any) -> None:
    try:
        spark.dataSource.register(source)
    except Exception as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


def _with_settings(base: Any, settings: Mapping[str, str]) -> Any:
    """The source with the session's settings of this moment, which workers cannot ask for."""
    return type(base.__name__, (base,), {"session": dict(settings)}) if settings else base


def _install(spark: Any) -> Bridge | None:
    try:
        if is_connect(spark):
            from indextables.spark.driver import connect

            connect.install(spark)
            sqlfunctions.register_buckets(spark)
            return Bridge()
        bridge = _bridge_for(spark)
        bridge.sessions[session_key(spark)] = spark
        install(spark, bridge)
    except ShimUnavailableError as error:
        warnings.warn(
            f"indextables uses the plain data source: {error.message}. Filters are pruned by "
            "where= and columns= of indextables.read only",
            stacklevel=4,
        )
        return None
    return bridge


def _bridge_for(spark: Any) -> Bridge:
    """One bridge for each JVM: its Java side accepts one."""
    key = id(jvm_of(spark)[1])
    if key not in _bridge_of_jvm:
        cores = spark.sparkContext.defaultParallelism
        _bridge_of_jvm[key] = Bridge(cores, run_command)
    return _bridge_of_jvm[key]


def is_connect(spark: Any) -> bool:
    """Is this a Spark Connect session?"""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def run_command(text: str, spark: Any) -> Any:
    """Run one of our commands and give the plan of its rows to Spark."""
    result = sqltext.commands().execute(text, spark=spark)
    frame: Any = spark.createDataFrame(result)
    return frame._jdf.queryExecution().logical()


def read(
    spark: Any,
    path: str,
    *,
    where: Any = None,
    columns: Sequence[str] | None = None,
    version: int | None = None,
    timestamp: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """A DataFrame over the table at ``path``; ``where`` and ``columns`` prune on any layer."""
    register(spark)
    given: dict[str, Any] = {**session_settings(spark), **(options or {})}
    named = {
        "spark.indextables.read.where": _as_text(where),
        "spark.indextables.read.columns": ",".join(columns) if columns else None,
        "spark.indextables.read.version": version,
        "spark.indextables.read.timestamp": timestamp,
    }
    given.update({k: v for k, v in named.items() if v is not None})
    reader = spark.read.format(FORMAT)
    for key, value in given.items():
        reader = reader.option(key, value)
    frame = reader.load(path)
    return frame.select(*columns) if columns else frame


def _as_text(where: Any) -> str | None:
    """A condition in any form as text, which is what an option can hold."""
    if where is None or isinstance(where, str):
        return where
    from indextables.expr.filters import parse_filters
    from indextables.expr.wire import to_text

    return to_text(parse_filters(where))


def write(
    frame: Any,
    path: str,
    *,
    partition_by: Sequence[str] = (),
    mode: str = "append",
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> CommitResult | None:
    """Write a Spark DataFrame to the table at ``path``, on any layer.

    ``settings`` are those of ``indextables.write``. Returns the commit this write made, or ``None``
    on Spark Connect, where the server made it.
    """
    spark = frame.sparkSession
    register(spark)
    given = {**session_settings(spark), **(storage_options or {}), **spelled(settings)}
    given.update(options or {})
    if partition_by:
        names = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        given["partitionBy"] = ",".join(names)
    job = uuid.uuid4().hex
    writer = frame.write.format(FORMAT).mode(mode).options(**given, __job=job)
    if is_connect(spark):
        with told_plainly():
            writer.save(path)
        return None
    table = access({k: str(v) for k, v in {**given, "path": path}.items()})
    before = _newest_version(table)
    writer.save(path)
    return own_commit(table, job, before)


def _newest_version(table: Access) -> int:
    try:
        return SHARED.log(table).snapshot().version
    except TableNotFoundError:
        return -1


def own_commit(table: Access, job: str, after: int) -> CommitResult:
    """The commit of a write of ours among the versions after ``after``.

    There is none where mode ``ignore`` found a table, or nothing was to be changed.
    """
    log = SHARED.log(table)
    newest = log.snapshot()
    for version in range(newest.version, after, -1):
        for change in log.changes(version - 1, version) or ():
            ids = [a.commit_id for a in change.actions if isinstance(a, CommitInfo)]
            if job in ids:
                files = tuple(a.path for a in change.actions if isinstance(a, AddFile))
                return CommitResult(version, job, 1, files=files, load=_loader(log, version))
    return CommitResult(newest.version, "", 0, True, load=lambda: newest)


def _loader(log: TransactionLog, version: int) -> Callable[[], Snapshot]:
    return lambda: log.snapshot(version=version)


_SETTINGS = {
    "replace_where": "write.replaceWhere",
    "rows_per_split": "write.rowsPerSplit",
    "target_size": "write.targetSplitSize",
    "merge_schema": "write.mergeSchema",
    "text": "indexing.typemap.text",
    "json": "indexing.typemap.json",
    "ip": "indexing.typemap.ip",
    "substring": "indexing.typemap.substring",
    "fast": "indexing.fastfields",
}


def spelled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of ``indextables.write`` as options."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name == "tokenizers":
            items = (value or {}).items()
            found.update({f"{PREFIX}indexing.tokenizer.{c}": t for c, t in items})
        elif name not in _SETTINGS:
            raise ConfigError(f"unknown setting '{name}'", hint=did_you_mean(name, _SETTINGS))
        elif value is not None and value != ():
            text = value if isinstance(value, str | int) else ",".join(value)
            found[PREFIX + _SETTINGS[name]] = text
    return found


def last_plan(spark: Any) -> Plan | None:
    """The plan of the newest scan of this session, if layer 2 made one."""
    bridge = _bridges.get(spark)
    return None if bridge is None else bridge.last_plan
