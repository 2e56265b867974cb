"""The compiled kernels of ``pyx/``: hashing, Binary Fuse filters, bundles, decoders, pruning."""

from indextables.native._bundle import Bundle, BundleWriter, write_bundle
from indextables.native._crc32c import crc32c
from indextables.native._f64 import format_f64, format_f64_array
from indextables.native._filterset import FilterSet
from indextables.native._fuse import BinaryFuse8, BinaryFuse16
from indextables.native._fxrf import FxrfFile, read_fxrf, write_fxrf
from indextables.native._hash import (
    HASH_KINDS,
    HASH_NAMES,
    canonical_text,
    fxhash64,
    hash_term,
    hash_terms,
    xxh64,
)

__all__ = [
    "HASH_KINDS",
    "HASH_NAMES",
    "BinaryFuse8",
    "BinaryFuse16",
    "Bundle",
    "BundleWriter",
    "FilterSet",
    "FxrfFile",
    "canonical_text",
    "crc32c",
    "format_f64",
    "format_f64_array",
    "fxhash64",
    "hash_term",
    "hash_terms",
    "read_fxrf",
    "write_bundle",
    "write_fxrf",
    "xxh64",
]
