"""Deterministic log rows for every benchmark: ``make(1_000_000)`` is always the same table.

Ten columns of the shapes logs have: a nearly sorted timestamp, keywords of low cardinality (host,
service, level), numbers (status, latency), identifiers of high cardinality (user_id skewed,
request_id unique), a message of about 15 words drawn from a 50,000-word Zipf vocabulary, and a
list of tags. Rows are drawn in parts of 250,000, each from the seed and the part's first row.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

PART = 250_000
SPAN_US = 86_400_000_000
START_US = 1_767_225_600_000_000
VOCABULARY = 50_000
USERS = 200_000

LEVELS = ["DEBUG", "INFO", "WARN", "ERROR", "FATAL"]
LEVEL_SHARE = [0.15, 0.65, 0.13, 0.06, 0.01]
STATUS = [200, 201, 204, 301, 304, 400, 401, 403, 404, 409, 429, 500, 502, 503, 504]
STATUS_SHARE = [55, 8, 6, 3, 5, 4, 3, 2, 6, 1, 1, 3, 1, 1, 1]
SERVICES = [
    "auth", "billing", "cart", "catalog", "checkout", "email", "gateway", "identity",
    "inventory", "ledger", "media", "notify", "orders", "payments", "pricing", "profile",
    "recommend", "search", "shipping", "stream",
]  # fmt: skip
TAGS = [f"{k}:{v}" for k in ("env", "zone", "team", "tier") for v in "abcdefghij"]
COMMON_TEXT = (
    "the request from client to server failed with error timeout after retry connection user "
    "session token cache miss hit database query slow response received sent message queue "
    "worker started stopped job completed in ms for id invalid value missing key not found "
    "permission denied access granted login logout payment accepted rejected order created "
    "updated deleted index rebuilt disk full memory limit exceeded thread pool exhausted "
    "socket closed reset by peer handshake certificate expired config loaded reload health "
    "check passed degraded upstream downstream proxy backend replica leader election lost"
)

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("host", pa.string()),
        ("service", pa.string()),
        ("level", pa.string()),
        ("status", pa.int32()),
        ("latency", pa.float64()),
        ("user_id", pa.string()),
        ("request_id", pa.string()),
        ("message", pa.string()),
        ("tags", pa.list_(pa.string())),
    ]
)


@functools.cache
def vocabulary() -> pa.Array:
    """50,000 distinct lower-case words, common log words first (they are the frequent ones)."""
    rng = np.random.default_rng(7)
    onsets = np.array(["b", "c", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st"])
    vowels = np.array(["a", "e", "i", "o", "u", "ai", "or", "en"])
    words = dict.fromkeys(COMMON_TEXT.split())
    while len(words) < VOCABULARY:
        syllables = rng.integers(2, 5, 4096)
        parts = np.char.add(rng.choice(onsets, (4096, 4)), rng.choice(vowels, (4096, 4)))
        for row, count in zip(parts, syllables, strict=True):
            words["".join(row[:count])] = None
    return pa.array(list(words)[:VOCABULARY])


@functools.cache
def zipf_steps(size: int, exponent: float) -> np.ndarray:
    weights = 1.0 / np.arange(1, size + 1) ** exponent
    return np.cumsum(weights) / weights.sum()


def zipf(rng: np.random.Generator, size: int, exponent: float, count: int) -> np.ndarray:
    picked = np.searchsorted(zipf_steps(size, exponent), rng.random(count))
    return np.minimum(picked, size - 1).astype(np.int32)


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def pick(values: list[str], codes: np.ndarray) -> pa.Array:
    return pa.array(values).take(pa.array(codes))


def uuids(rng: np.random.Generator, count: int) -> pa.Array:
    """Random version-4 uuids in their 36-character form."""
    raw = rng.integers(0, 256, (count, 16), dtype=np.uint8)
    raw[:, 6] = (raw[:, 6] & 0x0F) | 0x40
    raw[:, 8] = (raw[:, 8] & 0x3F) | 0x80
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    nibbles = np.empty((count, 32), np.uint8)
    nibbles[:, 0::2] = digits[raw >> 4]
    nibbles[:, 1::2] = digits[raw & 15]
    text = np.full((count, 36), ord("-"), np.uint8)
    for source, target, width in ((0, 0, 8), (8, 9, 4), (12, 14, 4), (16, 19, 4), (20, 24, 12)):
        text[:, target : target + width] = nibbles[:, source : source + width]
    starts = np.arange(count + 1, dtype=np.int32) * 36
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def messages(rng: np.random.Generator, count: int) -> pa.Array:
    lengths = np.maximum(rng.poisson(15, count), 1)
    offsets = offsets_of(lengths)
    words = vocabulary().take(pa.array(zipf(rng, VOCABULARY, 1.0, int(offsets[-1]))))
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), words), " ")


def tags(rng: np.random.Generator, count: int) -> pa.Array:
    offsets = offsets_of(rng.integers(0, 5, count))
    values = pick(TAGS, rng.integers(0, len(TAGS), int(offsets[-1])))
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def part(start: int, count: int, total: int, seed: int) -> pa.RecordBatch:
    rng = np.random.default_rng([seed, start])
    step = SPAN_US / max(total, 1)
    ts = START_US + ((np.arange(start, start + count) + rng.normal(0, 3, count)) * step)
    hosts = [f"host-{i:04d}" for i in range(500)]
    share = np.array(STATUS_SHARE) / sum(STATUS_SHARE)
    users = pc.binary_join_element_wise(
        "user-",
        pc.utf8_lpad(pa.array(zipf(rng, USERS, 0.7, count)).cast(pa.string()), 6, "0"),
        "",
    )
    columns: list[Any] = [
        pa.array(ts.astype(np.int64)).cast(SCHEMA.field("ts").type),
        pick(hosts, zipf(rng, 500, 0.5, count)),
        pick(SERVICES, zipf(rng, 20, 0.8, count)),
        pick(LEVELS, rng.choice(5, count, p=LEVEL_SHARE)),
        pa.array(rng.choice(np.array(STATUS, np.int32), count, p=share)),
        pa.array(np.round(rng.lognormal(3.0, 1.0, count), 3)),
        users,
        uuids(rng, count),
        messages(rng, count),
        tags(rng, count),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@functools.lru_cache(maxsize=2)
def make(n: int, seed: int = 42) -> pa.Table:
    """The first ``n`` log rows of this seed (timestamps are spread over one day)."""
    starts = range(0, n, PART)
    parts = [part(start, min(PART, n - start), n, seed) for start in starts]
    return pa.Table.from_batches(parts, schema=SCHEMA)
