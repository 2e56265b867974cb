"""The compact protocol of Thrift, against what is written and against damage."""

from __future__ import annotations

import io
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from indextables.errors import CorruptFileError, ProtocolError
from indextables.sources import thrift
from indextables.sources.footer import parse_footer


def test_what_is_written_is_read(rng: Random) -> None:
    for _ in range(200):
        number = rng.choice([0, 1, -1, (1 << 63) - 1, -(1 << 63), rng.randrange(-(10**9), 10**9)])
        texts = [rng.randbytes(rng.randrange(5)) for _ in range(rng.choice([0, 3, 14, 15, 40]))]
        far = rng.choice([3, 17, 300])
        inner = thrift.struct([(1, thrift.I32, thrift.integer(number))])
        raw = thrift.struct(
            [
                (1, thrift.I64, thrift.integer(number)),
                (2, thrift.LIST, thrift.listed(thrift.BINARY, map(thrift.binary, texts))),
                (far, thrift.STRUCT, inner),
                (far + 1, thrift.TRUE, b""),
            ]
        )
        found, end = thrift.read_struct(
            b"xy" + raw + b"z",
            2,
            {1: None, 2: None, far: {1: None, thrift.RAW: None}, far + 1: None},
        )
        assert end == len(raw) + 2
        assert found == {1: number, 2: texts, far: {1: number, thrift.RAW: inner}, far + 1: True}
        assert thrift.read_struct(raw, 0, {}) == ({}, len(raw))


def test_footers_that_are_damaged_are_refused_or_read(rng: Random) -> None:
    out = io.BytesIO()
    table = pa.table({"a": [1, 2], "b": [["x"], None], "c": [{"d": 1.5}, None]})
    pq.write_table(table, out, write_page_index=True)
    data = out.getvalue()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert [c.name for c in parse_footer(footer).columns] == ["a", "b", "c"]
    refused = 0
    for _ in range(1500):
        bad = bytearray(footer)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        cut = bytes(bad[: rng.randrange(len(bad))]) if rng.random() < 0.2 else bytes(bad)
        try:
            parse_footer(cut)
        except (CorruptFileError, ProtocolError):
            refused += 1
    assert refused > 300


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x1c" * 500,
        b"\x19\xfc\xff\xff\xff\xff\x0f",
        b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x1b\xff\xff\x03",
        b"\x1e\x00",
    ],
)
def test_claims_beyond_the_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(CorruptFileError):
        thrift.read_struct(raw, 0, {})
