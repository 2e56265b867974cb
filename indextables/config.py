"""Every setting, once: key, type, range, default, meaning.

Keys live under ``spark.indextables.`` and are matched without case, with or without the prefix.
Precedence is option over session over default: ``Config.of(options, session)``. A key under our
prefix that is not in the registry is an error with a suggestion, except families that end in
``*`` (``indexing.typemap.*``) and the store credentials, which are passed through. A value is parsed
and held against its range when it is set, so that nobody below has to doubt it.
The documentation page of all settings is generated from this registry (``render_markdown``).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from indextables.errors import ConfigError, did_you_mean

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


class Config(Mapping[str, Any]):
    """Settings of one operation: typed, defaulted, case-insensitive, immutable."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {}
        self._families: dict[str, Any] = {}
        for key, value in (values or {}).items():
            self._set(key, value)

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> Config:
        """Merge layers, strongest first: ``Config.of(options, session)``."""
        merged: dict[str, Any] = {}
        for layer in reversed(layers):
            source = layer.raw() if isinstance(layer, Config) else (layer or {})
            merged.update({short_key(k): v for k, v in source.items() if _is_ours(k)})
        return cls(merged)

    def _set(self, key: str, value: Any) -> None:
        name = short_key(key)
        setting = find_setting(name)
        if setting is None:
            raise ConfigError(
                f"unknown setting '{PREFIX}{name}'",
                hint=did_you_mean(name, (s.key for s in SETTINGS)),
            )
        if value is None:
            return
        if setting.is_family:
            self._families[name] = value
        else:
            self._values[setting.key.lower()] = setting.parse(value)

    def __getitem__(self, key: str) -> Any:
        name = short_key(key)
        setting = _BY_KEY.get(name)
        if setting is None:
            raise ConfigError(
                f"unknown setting '{PREFIX}{name}'",
                hint=did_you_mean(name, (s.key for s in SETTINGS)),
            )
        return self._values.get(setting.key.lower(), setting.default)

    def is_set(self, key: str) -> bool:
        """Was the key given, rather than defaulted?"""
        return short_key(key) in self._values

    def family(self, prefix: str) -> dict[str, Any]:
        """The given keys of a family, without the prefix: ``family("indexing.typemap.")``."""
        lowered = prefix.lower()
        return {
            k[len(lowered) :]: v for k, v in self._families.items() if k.lower().startswith(lowered)
        }

    def raw(self) -> dict[str, Any]:
        """What was given, by short key; small enough to send to a worker."""
        return {**self._values, **self._families}

    def with_values(self, **values: Any) -> Config:
        return Config({**self.raw(), **values})

    def updated(self, values: Mapping[str, Any]) -> Config:
        return Config({**self.raw(), **{short_key(k): v for k, v in values.items()}})

    def __iter__(self) -> Iterator[str]:
        return iter(s.key for s in SETTINGS if not s.is_family)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        from indextables.storage.redaction import redact

        return f"Config({redact(self.raw())})"


def short_key(key: str) -> str:
    """The registry's spelling of a key: no prefix; lower case except in a family's last part."""
    lowered = key.lower()
    if lowered.startswith(PREFIX):
        key = key[len(PREFIX) :]
        lowered = key.lower()
    for family in _FAMILIES:
        if lowered.startswith(family):
            return family + key[len(family) :]
    return lowered


def _is_ours(key: str) -> bool:
    return key.lower().startswith(PREFIX) or find_setting(short_key(key)) is not None


def find_setting(name: str) -> Setting | None:
    """The setting of a short key, or the family it belongs to."""
    found = _BY_KEY.get(name.lower())
    if found is not None:
        return found
    return next((s for f, s in _FAMILIES.items() if name.lower().startswith(f)), None)


def render_markdown(settings: Iterable[Setting] | None = None) -> str:
    """The settings as a Markdown table, grouped by first word."""
    lines: list[str] = []
    group = ""
    for setting in settings or SETTINGS:
        head = setting.key.split(".")[0]
        if head != group:
            group = head
            lines += [
                "",
                f"## {head}",
                "",
                "| key | type | default | meaning |",
                "|---|---|---|---|",
            ]
        meaning = setting.doc
        if setting.choices:
            meaning += f" One of {', '.join(f'`{choice}`' for choice in setting.choices)}."
        if setting.is_number and (setting.low, setting.high) != (0, LARGEST):
            meaning += f" Allowed: {setting.range}."
        default = _shown_default(setting)
        lines.append(f"| `{setting.full_key}` | {setting.kind} | {default} | {meaning} |")
    return "\n".join(lines).strip() + "\n"


def _shown_default(setting: Setting) -> str:
    """A default as one would write it in an option."""
    value = setting.default
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if setting.kind == "size":
        power = next(p for p in (30, 20, 10, 0) if value % (1 << p) == 0)
        return f"`{value >> power}{ {30: 'G', 20: 'M', 10: 'K', 0: ''}[power] }`"
    return f"`{value}`"


def settings_page() -> str:
    """The whole page ``docs/settings.md``."""
    return f"{PAGE_HEAD}\n{render_markdown()}"


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


# fmt: off
SETTINGS: tuple[Setting, ...] = (
    # transaction log
    _s("checkpoint.enabled", "bool", True, "Write checkpoints after commits."),
    _s("checkpoint.interval", "int", 10, "Versions between checkpoints."),
    _s("checkpoint.actionsPerPart", "int", 100_000, "Actions per part of a JSON checkpoint; above it the checkpoint is multi-part.", low=1),
    _s("checkpoint.parallelism", "int", 8, "Threads that read log files.", low=1, high=1024),
    _s("checkpoint.read.timeoutSeconds", "int", 60, "Longest wait for one log file.", low=1),
    _s("checkpointRetention.duration", "int", 7_200_000, "Milliseconds an old checkpoint is kept.", low=-1),
    _s("cleanup.dryRun", "bool", False, "Report what a log clean-up would delete, delete nothing."),
    _s("cleanup.failurePolicy", "str", "continue", "What a failed deletion does to the clean-up.", "continue", "fail"),
    _s("logRetention.duration", "int", 2_592_000_000, "Milliseconds a version file is kept (30 days).", low=-1),
    _s("protocol.autoUpgrade", "bool", True, "Raise the table's protocol when a feature is first used."),
    _s("protocol.checkEnabled", "bool", True, "Refuse tables that need a newer reader or writer."),
    _s("protocol.version", "int", 4, "Protocol version of new tables.", low=1, high=4),
    _s("transaction.cache.enabled", "bool", True, "Keep log state in memory between operations."),
    _s("transaction.cache.expirationSeconds", "int", 300, "Seconds a cached state stays valid, counted from its write."),
    _s("transaction.cache.ttl.ms", "int", 300_000, "Milliseconds any cached log state stays valid."),
    _s("transaction.cache.version.ttl.ms", "int", 300_000, "Milliseconds a parsed version stays valid."),
    _s("transaction.cache.snapshot.ttl.ms", "int", 600_000, "Milliseconds a snapshot stays valid."),
    _s("transaction.cache.fileList.ttl.ms", "int", 120_000, "Milliseconds a file list stays valid."),
    _s("transaction.cache.metadata.ttl.ms", "int", 1_800_000, "Milliseconds table metadata stays valid."),
    _s("transaction.commit.deadlineSeconds", "float", 60.0, "Longest time to settle the outcome of one commit.", low=0, high=1_000_000_000),
    _s("transaction.compression.enabled", "bool", True, "Gzip version files."),
    _s("transaction.compression.codecPrefix", "bool", False, "Begin gzipped log files with the two bytes JVM IndexTables 0.5 expects."),
    _s("transaction.maxConcurrentReads", "int", 32, "Concurrent reads of log files.", low=1, high=1024),
    _s("transaction.retry.maxAttempts", "int", 10, "Attempts to commit against other writers.", low=1),
    _s("transaction.retry.baseDelayMs", "int", 100, "First back-off between attempts.", low=0, high=1_000_000_000),
    _s("transaction.retry.maxDelayMs", "int", 5000, "Longest back-off between attempts.", low=0, high=1_000_000_000),
    # Avro state
    _s("state.format", "str", "avro", "Checkpoint format.", "avro", "json"),
    _s("state.compression", "str", "zstd", "Codec of Avro manifests.", "zstd", "snappy", "deflate", "none"),
    _s("state.compressionLevel", "int", 3, "Level of the zstd codec.", low=1, high=22),
    _s("state.entriesPerManifest", "int", 50_000, "Most entries of one manifest.", low=1),
    _s("state.read.parallelism", "int", 8, "Manifests read at once.", low=1, high=1024),
    _s("state.schema.renormalizeThreshold", "int", 5, "Distinct schema references above which hashes are recomputed."),
    _s("state.compaction.tombstoneThreshold", "float", 0.10, "Share of tombstones that triggers compaction.", high=1),
    _s("state.compaction.maxManifests", "int", 20, "Manifest count that triggers compaction."),
    _s("state.compaction.largeRemoveThreshold", "int", 2_147_483_647, "Removes in one commit that trigger compaction."),
    _s("state.compaction.afterMerge", "bool", True, "Compact the state after MERGE SPLITS."),
    _s("state.retention.versions", "int", 2, "State versions kept."),
    _s("state.retention.hours", "int", 168, "Hours old states are kept.", low=-1),
    _s("state.gc.minManifestAgeHours", "int", 1, "Manifests younger than this are never collected.", low=-1),
    _s("state.retry.maxAttempts", "int", 10, "Attempts to write a state.", low=1),
    _s("state.retry.baseDelayMs", "int", 100, "First back-off of a state write.", low=0, high=1_000_000_000),
    _s("state.retry.maxDelayMs", "int", 5000, "Longest back-off of a state write.", low=0, high=1_000_000_000),
    _s("state.cache.enabled", "bool", True, "Keep a columnar copy of large snapshots on local disk."),
    _s("state.cache.path", "str", None, "Folder of that copy; default: the user's cache folder."),
    _s("state.cache.maxSize", "size", 4 << 30, "Bytes of all such copies."),
    # statistics
    _s("stats.truncation.enabled", "bool", True, "Cut long strings in statistics."),
    _s("stats.truncation.maxLength", "int", 32, "Characters kept.", low=1),
    _s("dataSkippingNumIndexedCols", "int", 32, "Columns with statistics: the first n, -1 all, 0 none.", low=-1),
    _s("dataSkippingStatsColumns", "list", (), "Columns with statistics, by name; overrides the number."),
    # indexing
    _s("indexing.typemap.*", "str", None, "`indexing.typemap.<column>=string|text|json|ip` or `indexing.typemap.<type>=<columns>`."),
    _s("indexing.fastfields", "list", (), "Columns that get a columnar index."),
    _s("indexing.nonfastfields", "list", (), "Columns that get none."),
    _s("indexing.storeonlyfields", "list", (), "Columns that are stored but not indexed."),
    _s("indexing.indexonlyfields", "list", (), "Columns that are indexed; their rows are stored all the same."),
    _s("indexing.tokenizer.*", "str", None, "`indexing.tokenizer.<column>=default|raw|whitespace|en_stem`, or by tokenizer."),
    _s("indexing.indexrecordoption.*", "str", None, "`basic`, `freq` or `position` per column."),
    _s("indexing.text.indexRecordOption", "str", "position", "What text postings hold.", "basic", "freq", "position"),
    _s("indexing.text.maxTokenLength", "str", "255", "Longest token in bytes: 1 to 65530, or tantivy_max, default, legacy, min."),
    _s("indexing.tokenLength.*", "str", None, "Longest token of one column."),
    _s("indexing.json.mode", "str", "full", "Columnar index of JSON fields.", "full", "minimal"),
    _s("indexWriter.heapSize", "size", 256 << 20, "Words (in bytes, at most 429 MB) of one split's index; more go to the next split.", low=1),
    _s("indexWriter.tempDirectoryPath", "str", None, "Work folder of split writers."),
    # writing
    _s("write.rowsPerSplit", "int", 1_000_000, "Most rows of one split.", low=1),
    _s("write.targetSplitSize", "size", None, "Size at which a split is closed.", low=1),
    _s("write.mergeSchema", "bool", False, "Let an append add nullable columns."),
    _s("write.partitionOverwriteMode", "str", "static", "What an overwrite replaces.", "static", "dynamic"),
    _s("write.replaceWhere", "str", None, "Predicate on partition columns that an overwrite replaces."),
    _s("write.optimizeWrite.enabled", "bool", False, "Shuffle rows so that tasks write few, full splits."),
    _s("write.optimizeWrite.targetSplitSize", "size", 1 << 30, "Size aimed at.", low=1),
    _s("write.optimizeWrite.samplingRatio", "float", 1.1, "Split bytes per input byte when there is no history.", high=1000),
    _s("write.optimizeWrite.minRowsForEstimation", "int", 10_000, "Rows of history needed for an estimate."),
    _s("write.optimizeWrite.distributionMode", "str", "hash", "How rows are distributed.", "hash", "balanced", "none"),
    _s("write.optimizeWrite.maxSplitSize", "size", 4 << 30, "Never larger than this.", low=1),
    _s("mergeOnWrite.enabled", "bool", False, "Merge small splits after a write."),
    _s("mergeOnWrite.targetSize", "size", 4 << 30, "Size of merged splits.", low=1),
    _s("mergeOnWrite.async.enabled", "bool", True, "Merge in the background."),
    _s("mergeOnWrite.batchCpuFraction", "float", 0.167, "Share of the cores for one batch.", low=0, high=64),
    _s("mergeOnWrite.maxConcurrentBatches", "int", 3, "Batches at once.", low=1, high=1024),
    _s("mergeOnWrite.minBatchesToTrigger", "int", 1, "Batches that make a merge worth it."),
    _s("mergeOnWrite.shutdownTimeoutMs", "int", 300_000, "Wait for running merges at exit.", low=0, high=1_000_000_000_000),
    _s("merge.maxSourceSplitsPerMerge", "int", 1000, "Splits merged into one.", low=2),
    _s("merge.skipSplitThreshold", "float", 0.45, "Splits above this share of the target size are left alone.", low=0, high=1),
    _s("merge.maxPasses", "int", 10, "Passes of one MERGE SPLITS.", low=1),
    _s("merge.batchSize", "int", None, "Merge groups per commit; default: the parallelism.", low=1),
    _s("merge.maxConcurrentBatches", "int", 2, "Batches at once.", low=1, high=1024),
    _s("merge.heapSize", "size", 1 << 30, "Memory of one merge.", low=1),
    _s("merge.tempDirectoryPath", "str", None, "Work folder of merges."),
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
    _s("purge.txLogRetentionHours", "int", 720, "Hours version files are kept.", low=0, high=10_000_000),
    _s("purge.parallelism", "int", None, "Threads that delete.", low=1, high=1024),
    _s("purge.maxFilesToDelete", "int", 1_000_000, "Most files of one purge."),
    _s("purge.deleteRetries", "int", 3, "Attempts per deletion.", low=1, high=100),
    # reading
    _s("read.mode", "str", "complete", "`complete` returns every row; `fast` is accepted and means the same.", "complete", "fast"),
    _s("read.defaultLimit", "int", 250, "Accepted for compatibility; rows are never capped silently."),
    _s("read.where", "str", None, "Predicate fixed at load."),
    _s("read.columns", "list", (), "Columns fixed at load."),
    _s("read.version", "int", None, "Version to read."),
    _s("read.timestamp", "str", None, "Moment to read."),
    _s("read.splitsPerTask", "str", "auto", "Splits per Spark task: a number or auto."),
    _s("read.maxSplitsPerTask", "int", 256, "Upper limit of auto.", low=1),
    _s("read.driver.maxSplits", "int", 16, "Most splits of a scan that the driver reads itself; 0 leaves every scan to tasks."),
    _s("read.driver.maxRows", "int", 1_000, "Most rows of a scan that the driver reads itself."),
    _s("read.batchRows", "int", 65_536, "Rows per Arrow batch.", low=1, high=(1 << 31) - 1),
    _s("read.remoteParallelism", "int", 32, "Splits of a table on an object store that one query reads at once.", low=1, high=1024),
    _s("read.requireAggregatePushdown", "bool", False, "Fail where an aggregate cannot be pushed down."),
    _s("read.batchOptimization.*", "str", None, "Accepted for compatibility; ranges are always coalesced."),
    _s("filter.stringPattern.pushdown", "bool", True, "Use LIKE patterns for pruning and search."),
    _s("filter.stringStartsWith.pushdown", "bool", True, "Use prefixes for pruning and search."),
    _s("filter.stringEndsWith.pushdown", "bool", True, "Use suffixes for search."),
    _s("filter.stringContains.pushdown", "bool", True, "Use infixes for search."),
    _s("indexquery.indexall.maxUnqualifiedFields", "int", 10, "Most fields of a `*` query; 0 is no limit."),
    # cross-references
    _s("xref.autoIndex.enabled", "bool", True, "Build cross-references after commits."),
    _s("xref.autoIndex.maxSourceSplits", "int", 1024, "Most splits of one cross-reference.", low=1),
    _s("xref.autoIndex.minSplitsToTrigger", "int", 10, "Fewest splits worth a cross-reference."),
    _s("xref.autoIndex.minUncoveredSplitsToTrigger", "int", 10, "Fewest uncovered splits that start an automatic build."),
    _s("xref.autoIndex.minIntervalMs", "int", 60_000, "Time between automatic builds in one process."),
    _s("xref.autoIndex.rebuildOnSourceChange", "bool", True, "Rebuild when source splits are gone."),
    _s("xref.build.includePositions", "bool", False, "Accepted for compatibility; filters hold no positions."),
    _s("xref.build.parallelism", "int", None, "Splits read at once.", low=1, high=1024),
    _s("xref.build.tempDirectoryPath", "str", None, "Work folder; default: indexWriter.tempDirectoryPath."),
    _s("xref.build.heapSize", "size", None, "Memory of a build; default: indexWriter.heapSize, then 50M.", low=1),
    _s("xref.build.distributed", "bool", True, "Build on Spark when there is a session."),
    _s("xref.build.maxSourceSplits", "int", 1024, "Most splits of one cross-reference, for the command.", low=1),
    _s("xref.build.maxXRefsPerRun", "int", None, "Most cross-references of one run.", low=1),
    _s("xref.build.batchSize", "int", None, "Cross-references per commit.", low=1),
    _s("xref.build.filterType", "str", "fuse8", "Fingerprint width.", "fuse8", "fuse16"),
    _s("xref.query.enabled", "bool", True, "Use cross-references when planning."),
    _s("xref.query.minSplitsForXRef", "int", 128, "Fewest candidate splits worth a look; when it is not set, the cost decides on object stores."),
    _s("xref.query.timeoutMs", "int", 5000, "Longest wait for cross-references.", low=0, high=1_000_000_000_000),
    _s("xref.query.fallbackOnError", "bool", True, "Keep the splits of a broken cross-reference instead of failing."),
    _s("xref.query.distributed", "bool", True, "Accepted for compatibility; probing takes microseconds in the driver."),
    _s("xref.storage.directory", "str", "_xrefsplits", "Folder below the table."),
    _s("xref.storage.compressionEnabled", "bool", True, "Compress where it makes the file smaller."),
    _s("xref.localCache.enabled", "bool", False, "Keep cross-reference files on local disk."),
    _s("xref.localCache.directory", "str", None, "Folder of that cache."),
    _s("xref.keymap.enabled", "bool", False, "Splits keep the hashes of their keys, and commits join them into key maps, which tell which splits hold a term at any number of splits."),
    _s("xref.keymap.allTypes", "bool", False, "Also keep the keys of float and timestamp columns, which are seldom asked for by equality."),
    _s("xref.keymap.fanOut", "int", 32, "Key maps of one level that are joined into one of the next.", low=2, high=1024),
    _s("xref.keymap.maxSize", "size", 64 << 30, "Largest key map that a join may make.", low=1),
    _s("xref.cache.maxSize", "size", 1 << 30, "Bytes of loaded cross-references kept in memory."),
    # column indexes
    _s("columnIndex.enabled", "bool", True, "Use column indexes."),
    _s("columnIndex.format", "str", "bbidx2", "Format of new indexes.", "bbidx1", "bbidx2"),
    _s("columnIndex.selectivityThreshold", "float", 0.2, "Share of rows above which an index is not used.", low=0, high=1),
    _s("columnIndex.estimator", "str", "exact", "How selectivity is estimated.", "exact", "uniform"),
    _s("columnIndex.driverLookup.maxSplits", "int", 32, "Look up on the driver when at most this many splits survive."),
    _s("columnIndex.discover", "bool", True, "Look for sidecar files the log does not name."),
    _s("columnIndex.blockSize", "size", 32 << 10, "Raw bytes of one index block.", low=1, high=1 << 30),
    _s("columnIndex.inBatchSize", "int", 1000, "Values of an IN list looked up at once.", low=1),
    # caches, stores
    _s("cache.directoryPath", "str", None, "Folder of local caches."),
    _s("cache.disk.enabled", "bool", True, "Cache ranges of remote splits on local disk."),
    _s("cache.disk.path", "str", None, "Folder of the disk cache."),
    _s("cache.disk.blockSize", "size", 256 << 10, "Bytes of one block of the disk cache.", low=1, high=1 << 30),
    _s("cache.disk.maxSize", "size", 10 << 30, "Bytes of the disk cache."),
    _s("prewarm.*", "str", None, "Accepted for compatibility."),
    _s("storage.fsync", "bool", True, "Flush local split files to disk before they are committed."),
    _s("storage.timeoutSeconds", "float", 30.0, "Longest silence of an object store before a request is given up.", low=0.001, high=1_000_000),
    _s("storage.connectTimeoutSeconds", "float", 5.0, "Longest wait for a connection to an object store.", low=0.001, high=1_000_000),
    _s("storage.attempts", "int", 5, "Tries of a request that may be repeated.", low=1, high=100),
    _s("storage.probe", "bool", True, "Check at table creation that the store honours conditional creates."),
    _s("aws.*", "str", None, "accessKey, secretKey, sessionToken, region."),
    _s("s3.*", "str", None, "endpoint, pathStyleAccess."),
    _s("azure.*", "str", None, "accountName, accountKey, connectionString, ..."),
    _s("gcs.*", "str", None, "project, token, endpoint."),
    _s("spark.shim.enabled", "bool", True, "Compile the in-driver planner bridge at registration."),
)
# fmt: on

_BY_KEY = {s.key.lower(): s for s in SETTINGS if not s.is_family}
_FAMILIES = {s.key[:-1].lower(): s for s in SETTINGS if s.is_family}

PAGE_HEAD = """\
# Settings

Generated from the code by `python -m indextables.config`; a test keeps it current. An option of a
call wins over the Spark session, the session over the default. Keys are matched without case, and the
prefix `spark.indextables.` may be left out of options. A misspelled key is an error that suggests the
nearest. Sizes are bytes, or a number with `K`, `M` or `G` (powers of 1024). A key that ends in `.*`
stands for a family: the rest of the key names a column or an account.
"""

if __name__ == "__main__":
    print(settings_page(), end="")
