"""The registry of settings: one entry each, with type, range, default and what it does.

An entry promises an effect, and each has a test that sees it (``tests/settings``). Keys that JVM
IndexTables knows and that have nothing to act on here are entries too, made with ``_none``: they
are accepted so that a configuration can be moved over unchanged, and the first use of one says in
one line of the log that it changes nothing, and why. Any other key under our prefix is an error
(``config``). A value is parsed and held against its range when it is set, so that no other code has
to doubt it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from indextables.errors import ConfigError

PREFIX = "spark.indextables."
LARGEST = (1 << 63) - 1
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of the registry. ``kind``: bool, int, float, str, size, list."""

    key: str
    kind: str
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    low: float = 0
    high: float = LARGEST
    is_inert: bool = False
    """Accepted, but without an effect here; ``doc`` says why."""

    @property
    def full_key(self) -> str:
        return PREFIX + self.key

    @property
    def is_number(self) -> bool:
        return self.kind in ("int", "float", "size")

    @property
    def range(self) -> str:
        """The numbers it may hold, in words."""
        return f"{self.low} or more" if self.high == LARGEST else f"{self.low} to {self.high}"

    @property
    def is_family(self) -> bool:
        return self.key.endswith("*")

    def parse(self, value: Any) -> Any:
        try:
            parsed = _PARSERS[self.kind](value)
        except (ValueError, TypeError, ArithmeticError):
            raise ConfigError(
                f"{self.full_key} = {value!r} is not a {self.kind}",
                hint=f"{self.doc} Default: {self.default}",
            ) from None
        if self.is_number and not self.low <= parsed <= self.high:
            raise ConfigError(
                f"{self.full_key} = {value!r} is not {self.range}",
                hint=f"{self.doc} Default: {self.default}",
            )
        if self.choices and str(parsed).lower() not in self.choices:
            raise ConfigError(
                f"{self.full_key} = {value!r} is not one of {', '.join(self.choices)}"
            )
        return str(parsed).lower() if self.choices else parsed


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off"):
        return False
    raise ValueError(value)


def parse_int(value: Any) -> int:
    """A whole number or its digits; ``True`` and ``1.0`` are neither."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, bool):
        raise ValueError(value)
    return operator.index(value)


def _float(value: Any) -> float:
    if isinstance(value, bool) or value != value or (number := float(value)) != number:
        raise ValueError(value)
    return number


def _str(value: Any) -> str:
    """Text that can be written; half of a surrogate pair cannot."""
    str(value).encode()
    return str(value)


def parse_size(value: Any) -> int:
    """Bytes of ``1073741824``, ``512M``, ``1G`` (1024-based)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.match(str(value).strip())
    if match is None:
        raise ValueError(value)
    return int(float(match[1]) * _UNITS[match[2].lower()])


def _list(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value)


_PARSERS: Mapping[str, Any] = {
    "bool": _bool,
    "int": parse_int,
    "float": _float,
    "str": _str,
    "size": parse_size,
    "list": _list,
}


def _s(
    key: str,
    kind: str,
    default: Any,
    doc: str,
    *choices: str,
    low: float = 0,
    high: float = LARGEST,
) -> Setting:
    return Setting(key, kind, default, doc, choices, low, high)


def _none(key: str, kind: str, default: Any, why: str, *choices: str, low: float = 0) -> Setting:
    """A key of JVM IndexTables that has nothing to act on here."""
    return Setting(key, kind, default, f"No effect: {why}", choices, low, is_inert=True)


# fmt: off
SETTINGS: tuple[Setting, ...] = (
    # transaction log
    _s("checkpoint.enabled", "bool", True, "Write checkpoints after commits."),
    _s("checkpoint.interval", "int", 10, "Versions between checkpoints; 0 is never."),
    _s("checkpoint.actionsPerPart", "int", 100_000, "Actions per part of a JSON checkpoint; above it the checkpoint is multi-part.", low=1),
    _s("checkpoint.parallelism", "int", 8, "Parts of a JSON checkpoint that are read at once.", low=1, high=1024),
    _s("checkpoint.read.timeoutSeconds", "int", 60, "Longest wait for one version or checkpoint file of an object store, all tries together.", low=1),
    _s("checkpointRetention.duration", "int", 7_200_000, "Milliseconds a JSON checkpoint is kept that no version within the log's retention needs.", low=-1),
    _s("cleanup.dryRun", "bool", False, "Report what a log clean-up would delete, delete nothing."),
    _s("cleanup.failurePolicy", "str", "continue", "What a failed deletion does to the clean-up: go on and report it, or raise it.", "continue", "fail"),
    _s("logRetention.duration", "int", 2_592_000_000, "Milliseconds a version file is kept (30 days).", low=-1),
    _s("protocol.autoUpgrade", "bool", True, "Raise the table's protocol when a feature is first used."),
    _s("protocol.checkEnabled", "bool", True, "Refuse tables that need a newer reader or writer."),
    _s("protocol.version", "int", 4, "Protocol version of new tables.", low=1, high=4),
    _s("transaction.cache.enabled", "bool", True, "Keep log state in memory between operations."),
    _s("transaction.cache.expirationSeconds", "int", 300, "Seconds a cached snapshot or version stays valid, counted from its first write; the two keys that name one win."),
    _s("transaction.cache.ttl.ms", "int", 300_000, "The same in milliseconds, where `expirationSeconds` is not set."),
    _s("transaction.cache.version.ttl.ms", "int", 300_000, "Milliseconds the parsed actions of a version stay valid."),
    _s("transaction.cache.snapshot.ttl.ms", "int", 600_000, "Milliseconds a snapshot stays valid; new versions are looked for on every use all the same."),
    _none("transaction.cache.fileList.ttl.ms", "int", 120_000, "the list of files is part of the snapshot; see `transaction.cache.snapshot.ttl.ms`."),
    _none("transaction.cache.metadata.ttl.ms", "int", 1_800_000, "metadata is part of the snapshot; see `transaction.cache.snapshot.ttl.ms`."),
    _s("transaction.commit.deadlineSeconds", "float", 60.0, "Longest time to find out whether one try to commit landed; after it the outcome is unknown.", low=0, high=1_000_000_000),
    _s("transaction.compression.enabled", "bool", True, "Gzip version files."),
    _s("transaction.compression.codecPrefix", "bool", False, "Begin gzipped log files with the two bytes JVM IndexTables 0.5 expects."),
    _s("transaction.maxConcurrentReads", "int", 32, "Version files that are read at once.", low=1, high=1024),
    _s("transaction.checksum.enabled", "bool", True, "Commits carry a checksum of all live files, and readers compare it."),
    _s("transaction.retry.maxAttempts", "int", 10, "Attempts to commit against other writers.", low=1),
    _s("transaction.retry.baseDelayMs", "int", 100, "Upper end of the first pause between attempts; it doubles, and each pause is drawn from zero to it.", low=0, high=1_000_000_000),
    _s("transaction.retry.maxDelayMs", "int", 5000, "No pause between attempts is longer.", low=0, high=1_000_000_000),
    _s("transaction.retry.budgetSeconds", "float", None, "Time after which no further attempt begins; default: none but `maxAttempts`.", high=1_000_000_000),
    # Avro state
    _s("state.format", "str", "avro", "Format of checkpoints; Avro needs protocol 4, to which it raises the table when it is asked for by name.", "avro", "json"),
    _s("state.compression", "str", "zstd", "Codec of Avro manifests.", "zstd", "snappy", "deflate", "none"),
    _s("state.compressionLevel", "int", 3, "Level of the zstd codec.", low=1, high=22),
    _s("state.entriesPerManifest", "int", 50_000, "Most entries of one manifest.", low=1),
    _s("state.read.parallelism", "int", 8, "Manifests of an object store that are read at once.", low=1, high=1024),
    _s("state.schema.renormalizeThreshold", "int", 5, "Distinct schema references above which hashes are recomputed."),
    _s("state.compaction.tombstoneThreshold", "float", 0.10, "Share of tombstones that triggers compaction.", high=1),
    _s("state.compaction.maxManifests", "int", 20, "Manifest count that triggers compaction."),
    _s("state.compaction.largeRemoveThreshold", "int", 2_147_483_647, "Removes in one commit that trigger compaction."),
    _s("state.compaction.afterMerge", "bool", True, "Compact the state after MERGE SPLITS."),
    _s("state.retention.versions", "int", 2, "Newest states that are kept whatever their age."),
    _s("state.retention.hours", "int", 168, "Hours old states are kept.", low=-1),
    _s("state.gc.minManifestAgeHours", "int", 1, "Manifests younger than this are never collected.", low=-1),
    _s("state.retry.maxAttempts", "int", 10, "Attempts to write a state when the store gives no clear answer.", low=1),
    _s("state.retry.baseDelayMs", "int", 100, "Upper end of the first pause between them; it doubles.", low=0, high=1_000_000_000),
    _s("state.retry.maxDelayMs", "int", 5000, "No pause between them is longer.", low=0, high=1_000_000_000),
    _s("state.cache.enabled", "bool", True, "Keep a columnar copy of large snapshots on local disk."),
    _s("state.cache.path", "str", None, "Folder of that copy; default: the user's cache folder."),
    _s("state.cache.maxSize", "size", 4 << 30, "Bytes of all such copies."),
    # statistics
    _s("stats.truncation.enabled", "bool", True, "Cut long strings in statistics."),
    _s("stats.truncation.maxLength", "int", 32, "Characters kept.", low=1),
    _s("dataSkippingNumIndexedCols", "int", 32, "Columns with statistics: the first n, -1 all, 0 none.", low=-1),
    _s("dataSkippingStatsColumns", "list", (), "Columns with statistics, by name; overrides the number."),
    # indexing
    _s("indexing.typemap.*", "str", None, "`indexing.typemap.<column>=string|text|json|ip|substring` or `indexing.typemap.<type>=<columns>`; `text,substring` is both."),
    _s("indexing.fastfields", "list", (), "Columns that get a columnar index."),
    _s("indexing.nonfastfields", "list", (), "Columns that get none."),
    _s("indexing.storeonlyfields", "list", (), "Columns that are stored but not indexed."),
    _none("indexing.indexonlyfields", "list", (), "the rows of every column are stored."),
    _s("indexing.tokenizer.*", "str", None, "`indexing.tokenizer.<column>=default|raw|whitespace|folding|en_stem|de_stem|...`, or by tokenizer."),
    _s("indexing.indexrecordoption.*", "str", None, "`basic`, `freq` or `position` per column."),
    _s("indexing.text.indexRecordOption", "str", "position", "What text postings hold.", "basic", "freq", "position"),
    _s("indexing.text.maxTokenLength", "str", "255", "Longest token in bytes: 1 to 65530, or tantivy_max, default, legacy, min."),
    _s("indexing.tokenLength.*", "str", None, "Longest token of one column."),
    _none("indexing.json.mode", "str", "full", "JSON fields are always indexed in full.", "full", "minimal"),
    _s("indexWriter.heapSize", "size", 256 << 20, "Words (in bytes, at most 429 MB) of one split's index; more go to the next split.", low=1),
    _s("indexWriter.tempDirectoryPath", "str", None, "Work folder of split writers."),
    # writing
    _s("write.rowsPerSplit", "int", 1_000_000, "Most rows of one split.", low=1),
    _s("write.targetSplitSize", "size", None, "Estimated size at which a split is closed; looked at every 65,536 rows or 32 MB.", low=1),
    _s("write.clusterBy", "str", None, "Columns by which rows are sorted before they are cut into splits, and by which MERGE finds neighbours; with commas between them."),
    _s("write.mergeSchema", "bool", False, "Let an append add nullable columns."),
    _s("write.overwriteSchema", "bool", False, "Let an overwrite of the whole table replace its columns."),
    _s("write.partitionOverwriteMode", "str", "static", "What an overwrite replaces.", "static", "dynamic"),
    _s("write.replaceWhere", "str", None, "Predicate on partition columns that an overwrite replaces."),
    _s("write.optimizeWrite.enabled", "bool", False, "Let Spark shuffle the rows of a partitioned table so that tasks write few, full splits."),
    _s("write.optimizeWrite.targetSplitSize", "size", 1 << 30, "Size aimed at.", low=1),
    _s("write.optimizeWrite.samplingRatio", "float", 1.1, "Split bytes per input byte when there is no history.", high=1000),
    _s("write.optimizeWrite.minRowsForEstimation", "int", 10_000, "Rows of history needed for an estimate."),
    _s("write.optimizeWrite.distributionMode", "str", "hash", "`hash` brings the rows of a partition together, `balanced` means the same, `none` leaves Spark's order.", "hash", "balanced", "none"),
    _s("write.optimizeWrite.maxSplitSize", "size", 4 << 30, "Never larger than this.", low=1),
    _s("deletionVector.maxShare", "float", 0.5, "A split of which DELETE, UPDATE or MERGE leaves a larger share of rows deleted is written again without them; 0 writes always and never makes a deletion vector.", low=0, high=1),
    _s("deletionVector.maxInlineBytes", "int", 1024, "Deletion vectors up to this size stand in the log, larger ones many to a file.", low=0, high=1_000_000),
    _s("mergeOnWrite.enabled", "bool", False, "Merge small splits after a write."),
    _s("mergeOnWrite.targetSize", "size", 4 << 30, "Size of merged splits.", low=1),
    _s("mergeOnWrite.async.enabled", "bool", True, "Merge in the background."),
    _s("mergeOnWrite.batchCpuFraction", "float", 0.167, "Groups of one batch, as a share of the cores; one at least.", low=0, high=64),
    _s("mergeOnWrite.maxConcurrentBatches", "int", 3, "Batches merged at once and committed together.", low=1, high=1024),
    _s("mergeOnWrite.minBatchesToTrigger", "int", 1, "Full batches that set off a merge."),
    _s("mergeOnWrite.shutdownTimeoutMs", "int", 300_000, "Wait for running merges at exit.", low=0, high=1_000_000_000_000),
    _s("merge.maxSourceSplitsPerMerge", "int", 1000, "Splits merged into one.", low=2),
    _s("merge.skipSplitThreshold", "float", 0.45, "Splits above this share of the target size are left alone.", low=0, high=1),
    _s("merge.maxPasses", "int", 10, "Passes of one MERGE SPLITS.", low=1),
    _s("merge.batchSize", "int", None, "Merge groups that run at once and are one commit; default: the cores.", low=1),
    _none("merge.maxConcurrentBatches", "int", 2, "batches follow each other, the merges of one batch run at once; see `merge.batchSize`.", low=1),
    _none("merge.heapSize", "size", 1 << 30, "a merge copies its sources in batches of rows.", low=1),
    _s("merge.tempDirectoryPath", "str", None, "Work folder of merges; default: indexWriter.tempDirectoryPath."),
    _s("skippedFiles.trackingEnabled", "bool", True, "Remember splits that could not be merged."),
    _s("skippedFiles.cooldownDuration", "int", 24, "Hours before such a split is tried again.", low=0, high=10_000_000),
    _s("purgeOnWrite.enabled", "bool", False, "Purge after writes."),
    _s("purgeOnWrite.triggerAfterMerge", "bool", True, "Purge after a merge."),
    _s("purgeOnWrite.triggerAfterWrites", "int", 0, "Purge every n writes; 0 never."),
    _s("purgeOnWrite.splitRetentionHours", "int", 168, "Retention of splits.", low=0, high=10_000_000),
    _s("purgeOnWrite.txLogRetentionHours", "int", 720, "Retention of the log.", low=0, high=10_000_000),
    _s("purge.defaultRetentionHours", "int", 168, "Hours a removed split is kept.", low=0, high=10_000_000),
    _s("purge.minRetentionHours", "int", 24, "Shortest retention allowed.", low=0, high=10_000_000),
    _s("purge.retentionCheckEnabled", "bool", True, "Refuse shorter retentions."),
    _s("purge.txLogRetentionHours", "int", 720, "Hours version files are kept by PURGE.", low=0, high=10_000_000),
    _s("purge.parallelism", "int", None, "Threads that delete; default: 4 on object stores, 1 on a local disk.", low=1, high=1024),
    _s("purge.maxFilesToDelete", "int", 1_000_000, "Most files of one purge."),
    _s("purge.deleteRetries", "int", 3, "Attempts per deletion.", low=1, high=100),
    # reading
    _none("read.mode", "str", "complete", "every row is returned.", "complete", "fast"),
    _none("read.defaultLimit", "int", 250, "rows are never capped silently."),
    _s("read.where", "str", None, "Predicate fixed at load."),
    _s("read.columns", "list", (), "Columns fixed at load."),
    _s("read.version", "int", None, "Version to read."),
    _s("read.timestamp", "str", None, "Moment to read."),
    _s("read.splitsPerTask", "str", "auto", "Splits per Spark task: a number or auto."),
    _s("read.maxSplitsPerTask", "int", 256, "Upper limit of auto.", low=1),
    _s("read.driver.maxSplits", "int", 16, "Most splits of a scan that the driver reads itself; 0 leaves every scan to tasks."),
    _s("read.driver.maxRows", "int", 1_000, "Most rows of a scan that the driver reads itself."),
    _s("read.batchRows", "int", 65_536, "Rows per Arrow batch.", low=1, high=(1 << 31) - 1),
    _s("read.remoteParallelism", "int", 64, "Splits of a table on an object store that one query reads at once.", low=1, high=1024),
    _none("read.requireAggregatePushdown", "bool", False, "aggregates are exact whether they are pushed down or not."),
    _none("read.batchOptimization.*", "str", None, "near ranges are always read together."),
    _s("filter.stringPattern.pushdown", "bool", True, "Skip splits by LIKE patterns."),
    _s("filter.stringStartsWith.pushdown", "bool", True, "Skip splits by prefixes."),
    _s("filter.stringEndsWith.pushdown", "bool", True, "Skip splits by suffixes of partition values."),
    _s("filter.stringContains.pushdown", "bool", True, "Skip splits by what partition values contain."),
    _s("indexquery.indexall.maxUnqualifiedFields", "int", 10, "Most fields of a `*` query; 0 is no limit."),
    # companions
    _s("companion.source.*", "str", None, "`companion.source.<option>`: an option, such as a credential, to reach the table that a companion indexes; without any, those of the companion itself."),
    # cross-references
    _s("xref.autoIndex.enabled", "bool", True, "Build cross-references after commits."),
    _s("xref.autoIndex.maxSourceSplits", "int", 1024, "Most splits of one cross-reference.", low=1),
    _s("xref.autoIndex.minSplitsToTrigger", "int", 10, "Fewest splits worth a cross-reference."),
    _s("xref.autoIndex.minUncoveredSplitsToTrigger", "int", 10, "Fewest uncovered splits that start an automatic build."),
    _s("xref.autoIndex.minIntervalMs", "int", 60_000, "Time between automatic builds in one process."),
    _s("xref.autoIndex.rebuildOnSourceChange", "bool", True, "Rebuild when source splits are gone."),
    _s("xref.build.includePositions", "bool", False, "Keys of neighbouring words too, so that a phrase skips splits that hold its words apart; slower builds, larger files."),
    _s("xref.build.parallelism", "int", None, "Splits read at once; default: read.remoteParallelism on object stores, the cores on a local disk.", low=1, high=1024),
    _s("xref.build.tempDirectoryPath", "str", None, "Folder in which the file is made before it is uploaded; default: indexWriter.tempDirectoryPath."),
    _s("xref.build.heapSize", "size", None, "Most bytes of filters in one cross-reference; more splits get another. Default: indexWriter.heapSize if that is set, else 50M.", low=1),
    _s("xref.build.distributed", "bool", True, "Build on Spark when there is a session."),
    _s("xref.build.maxSourceSplits", "int", 1024, "Most splits of one cross-reference that the command builds.", low=1),
    _s("xref.build.maxXRefsPerRun", "int", None, "Most cross-references of one run.", low=1),
    _none("xref.build.batchSize", "int", None, "each cross-reference is a commit of its own, so memory holds one at a time.", low=1),
    _s("xref.build.filterType", "str", "fuse8", "Fingerprint width.", "fuse8", "fuse16"),
    _s("xref.query.enabled", "bool", True, "Use cross-references when planning."),
    _s("xref.query.minSplitsForXRef", "int", 128, "Fewest candidate splits worth a look; when it is not set, the cost decides on object stores."),
    _s("xref.query.timeoutMs", "int", 5000, "Longest wait for the cross-references of one query; those that come later are not used. If it is not given: longer where opening the splits would take longer.", low=0, high=1_000_000_000_000),
    _s("xref.query.fallbackOnError", "bool", True, "Keep the splits of a broken cross-reference instead of failing."),
    _none("xref.query.distributed", "bool", True, "asking filters takes microseconds in the driver."),
    _s("xref.storage.directory", "str", "_xrefsplits", "Folder below the table."),
    _s("xref.storage.compressionEnabled", "bool", True, "Compress the filters with zstd where that makes them smaller."),
    _s("xref.localCache.enabled", "bool", True, "Keep the cross-references of object stores on local disk, where other processes find them; without it: as `cache.disk.enabled` says."),
    _s("xref.localCache.directory", "str", None, "Folder of that cache; default: that of the disk cache. `cache.disk.maxSize` bounds it."),
    _s("xref.keymap.enabled", "str", "auto", "Splits keep the hashes of their keys, and commits join them into key maps, which tell which splits hold a term at any number of splits; auto: on object stores, in place of automatic cross-references.", "auto", "true", "false"),
    _s("xref.keymap.allTypes", "bool", False, "Also keep the keys of float and timestamp columns, which are seldom asked for by equality."),
    _s("xref.keymap.fanOut", "int", 8, "Key maps of one level that are joined into one of the next.", low=2, high=1024),
    _s("xref.keymap.maxMaps", "int", 6, "Key maps of a table; beyond it the smallest are joined. A question costs a request for each.", low=1, high=1024),
    _s("xref.keymap.maxSize", "size", 16 << 30, "Largest file of a key map; a larger map is cut by hash into several, of which a question reads one.", low=1),
    _s("xref.cache.maxSize", "size", 1 << 30, "Bytes of loaded cross-references kept in memory."),
    # column indexes
    _s("columnIndex.enabled", "bool", True, "Use column indexes."),
    _s("columnIndex.format", "str", "bbidx2", "Format of new indexes.", "bbidx1", "bbidx2"),
    _s("columnIndex.selectivityThreshold", "float", 0.2, "Share of rows above which an index is not used.", low=0, high=1),
    _s("columnIndex.estimator", "str", "exact", "How selectivity is estimated.", "exact", "uniform"),
    _s("columnIndex.driverLookup.maxSplits", "int", 32, "Splits up to which EXPLAIN asks the indexes what they would find."),
    _s("columnIndex.discover", "bool", True, "Look for sidecar files the log does not name."),
    _s("columnIndex.blockSize", "size", 32 << 10, "Raw bytes of one index block.", low=1, high=1 << 30),
    _s("columnIndex.inBatchSize", "int", 1000, "Values of an IN list looked up at once.", low=1),
    # caches, stores
    _s("cache.directoryPath", "str", None, "Folder of local caches."),
    _s("cache.disk.enabled", "bool", True, "Cache ranges of remote splits on local disk."),
    _s("cache.disk.path", "str", None, "Folder of the disk cache."),
    _s("cache.disk.blockSize", "size", 256 << 10, "Bytes of one block of the disk cache.", low=1, high=1 << 30),
    _s("cache.disk.maxSize", "size", 10 << 30, "Bytes of the disk cache."),
    _none("prewarm.*", "str", None, "PREWARM takes what it needs from its own clauses."),
    _s("storage.fsync", "bool", True, "Flush files on a local disk before they are committed; the commit itself always is."),
    _s("storage.timeoutSeconds", "float", 30.0, "Longest silence of an object store before a request is given up.", low=0.001, high=1_000_000),
    _s("storage.connectTimeoutSeconds", "float", 5.0, "Longest wait for a connection to an object store.", low=0.001, high=1_000_000),
    _s("storage.attempts", "int", 5, "Tries of a request that may be repeated.", low=1, high=100),
    _s("storage.client", "str", "auto", "Client of S3 and Azure: obstore, fsspec (s3fs, adlfs), or auto: obstore where it is installed and knows all options.", "auto", "obstore", "fsspec"),
    _s("storage.probe", "bool", True, "Check at table creation that the store honours conditional creates."),
    _s("aws.*", "str", None, "accessKey, secretKey, sessionToken, region."),
    _s("s3.*", "str", None, "endpoint, pathStyleAccess."),
    _s("azure.*", "str", None, "accountName, accountKey, connectionString, ..."),
    _s("gcs.*", "str", None, "project, token, endpoint."),
    _s("spark.shim.enabled", "bool", True, "Compile the in-driver planner bridge at registration."),
    _s("spark.workers.check", "bool", True, "Find out at registration whether Spark's Python workers have this package, in this version."),
)
# fmt: on

BY_KEY = {s.key.lower(): s for s in SETTINGS if not s.is_family}
FAMILIES = {s.key[:-1].lower(): s for s in SETTINGS if s.is_family}
