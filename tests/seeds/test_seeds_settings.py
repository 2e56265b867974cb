"""The 44 settings of the seeds: each has the default of the seed, and a test that sees it act."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from indextables.config import Config

HERE = Path(__file__).parent
SEEDS = HERE.parents[2] / "shared" / "seeds"
sys.path.insert(0, str(HERE.parent / "settings"))

from settings_tests import TESTS  # noqa: E402

DEFAULTS: dict[str, object] = {
    "checkpoint.enabled": True,
    "checkpoint.interval": 10,
    "checkpoint.parallelism": 8,
    "checkpoint.read.timeoutSeconds": 60,
    "checkpointRetention.duration": 7_200_000,
    "cleanup.dryRun": False,
    "cleanup.failurePolicy": "continue",
    "logRetention.duration": 2_592_000_000,
    "protocol.autoUpgrade": True,
    "purge.txLogRetentionHours": 720,
    "state.compaction.afterMerge": True,
    "state.compaction.largeRemoveThreshold": 2**31 - 1,
    "state.compaction.maxManifests": 20,
    "state.compaction.tombstoneThreshold": 0.10,
    "state.compression": "zstd",
    "state.compressionLevel": 3,
    "state.entriesPerManifest": 50_000,
    "state.format": "avro",
    "state.gc.minManifestAgeHours": 1,
    "state.read.parallelism": 8,
    "state.retention.hours": 168,
    "state.retention.versions": 2,
    "state.schema.renormalizeThreshold": 5,
    "stats.truncation.maxLength": 32,
    "transaction.cache.enabled": True,
    "transaction.cache.expirationSeconds": 300,
    "transaction.compression.enabled": True,
    "transaction.retry.baseDelayMs": 100,
    "transaction.retry.maxAttempts": 10,
    "transaction.retry.maxDelayMs": 5000,
    "xref.autoIndex.enabled": True,
    "xref.autoIndex.maxSourceSplits": 1024,
    "xref.autoIndex.minSplitsToTrigger": 10,
    "xref.autoIndex.rebuildOnSourceChange": True,
    "xref.build.heapSize": None,
    "xref.build.includePositions": False,
    "xref.build.parallelism": None,
    "xref.build.tempDirectoryPath": None,
    "xref.query.enabled": True,
    "xref.query.fallbackOnError": True,
    "xref.query.minSplitsForXRef": 128,
    "xref.query.timeoutMs": 5000,
    "xref.storage.compressionEnabled": True,
    "xref.storage.directory": "_xrefsplits",
}


def test_all_keys_are_here() -> None:
    if not SEEDS.is_dir():
        pytest.skip("the seeds are not here")
    texts = (file.read_text("utf-8") for file in sorted(SEEDS.glob("*.txt")))
    named = {k for t in texts for k in re.findall(r"spark\.indextables\.([A-Za-z.]+[A-Za-z])", t)}
    assert named == set(DEFAULTS)


def test_there_are_44() -> None:
    assert len(DEFAULTS) == 44


@pytest.mark.parametrize("key", DEFAULTS)
def test_each_has_its_default_and_a_test(key: str) -> None:
    assert Config()[key] == DEFAULTS[key]
    file, _, name = TESTS[key].partition("::")
    text = (HERE.parent / file).read_text("utf-8")
    assert f"def {name.partition('[')[0]}(" in text
