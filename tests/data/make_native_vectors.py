"""Makes the test vectors of ``tests/data/native`` again and compares them with those committed.

The answers in those files came from the reference implementations (see ``native/README.md``). This
script computes them a second time with ``tests/native/native_twins.py``: plain Python, written from
``docs/formats/native.md``, sharing no code with the package. It keeps the *inputs* of each file
(strings, key recipes, sizes, seeds), replaces every *answer*, and serialises the result; the bytes
must be those that are committed.

    python tests/data/make_native_vectors.py            # check what takes a few seconds
    python tests/data/make_native_vectors.py --all      # check what takes a few minutes
    python tests/data/make_native_vectors.py --write    # replace the files; implies --all

Large filters are slow in plain Python. A filter is built only where the number of keys times the
number of seeds to try is at most 20,000, or with ``--all`` at most 3,000,000. Other answers stay
as committed; the last line says how many they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "native"
sys.path.insert(0, str(Path(__file__).parents[1] / "native"))

import native_twins as twin  # noqa: E402

QUICK_WORK = 20_000
MOST_WORK = 3_000_000
Vector = dict[str, Any]
Files = dict[str, bytes]


class Maker:
    """Collects the files, and how many answers were left as they are."""

    def __init__(self, most_work: int) -> None:
        self.most_work = most_work
        self.made: Files = {}
        self.left = 0

    def affordable(self, keys: int, seed_index: int) -> bool:
        fits = keys * (seed_index + 1) <= self.most_work
        self.left += not fits
        return fits

    def run(self) -> None:
        for name, remake in REMAKERS.items():
            body = json.loads((HERE / f"{name}.json").read_text("utf-8"))
            remake(self, body)
            text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
            self.made[f"{name}.json"] = text.encode() + b"\n"

    def different(self) -> Iterator[str]:
        for name, data in self.made.items():
            path = HERE / name
            if not path.exists() or path.read_bytes() != data:
                yield name


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# -- hashes and numbers -------------------------------------------------------------------------


def remake_seeds(_: Maker, body: Vector) -> None:
    seeds = twin.splitmix(1, 64)
    body["seeds_dec"] = [str(seed) for seed in seeds]
    body["seeds_hex"] = [f"{seed:016x}" for seed in seeds]


def hashed_bytes(vector: Vector) -> bytes:
    if "utf8_hex" in vector:
        return bytes.fromhex(vector["utf8_hex"])
    alphabet, size = vector["repeat_of"].encode(), vector["len"]
    return (alphabet * (size // len(alphabet) + 1))[:size]


def fxhash_of_long(data: bytes) -> int:
    """As ``twin.fxhash64``, without copying what is left after each word."""
    whole = len(data) // 8 * 8
    h = 0
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        h = twin.fx_step(h, word)
    rest = data[whole:]
    for size in (4, 2, 1):
        if len(rest) >= size:
            h = twin.fx_step(h, int.from_bytes(rest[:size], "little"))
            rest = rest[size:]
    return twin.fx_step(h, 0xFF)


def remake_fxhash64(_: Maker, body: Vector) -> None:
    body["count"] = len(body["strings"])
    for vector in body["strings"]:
        data = hashed_bytes(vector)
        vector["len"] = len(data)
        if "repeat_of" in vector:
            vector["sha256_of_bytes"] = sha256(data)
        else:
            vector["text"] = data.decode()
        h = fxhash_of_long(data)
        vector["hash64_hex"], vector["hash64_dec"] = f"{h:016x}", str(h)
    for vector in body["raw_u64_values_hash64(&u64)"]:
        vector["hash64_dec"] = str(twin.fx_step(0, int(vector["u64"])))


def remake_collisions(_: Maker, body: Vector) -> None:
    for pair in body["pairs"]:
        first, second = (twin.fxhash64(pair[side].encode()) for side in "ab")
        pair["hash64_hex"] = f"{first:016x}" if first == second else "different"


def remake_f64_display(_: Maker, body: Vector) -> None:
    for vector in body["values"]:
        (number,) = struct.unpack(">d", bytes.fromhex(vector["bits_hex"]))
        vector["rust_display"] = twin.display_f64(number)


# -- Binary Fuse filters ------------------------------------------------------------------------


def remake_index_functions(_: Maker, body: Vector) -> None:
    for vector in body["vectors"]:
        h = twin.fmix64((int(vector["key"]) + int(vector["seed"])) & twin.M64)
        at = twin.positions(h, vector["segment_length"], vector["segment_count_length"])
        vector["hash"] = str(h)
        vector["h0"], vector["h1"], vector["h2"] = at
        vector["fp8"], vector["fp16"] = (h ^ (h >> 32)) & 0xFF, (h ^ (h >> 32)) & 0xFFFF


def remake_geometry(maker: Maker, body: Vector) -> None:
    """The last column is the first seed that works for ``n`` keys of splitmix64 from state 42."""
    largest = max(row[0] for row in body["rows"] if row[0] * (row[4] + 1) <= maker.most_work)
    keys, seeds = twin.splitmix(42, largest), twin.splitmix(1, 256)
    for row in body["rows"]:
        n = row[0]
        length, count_length = twin.shape(n)
        row[1:4] = length, count_length, count_length + 2 * length
        # Every size up to 2,048 is there and costs a build: a quick run takes one in sixteen.
        skipped = maker.most_work == QUICK_WORK and n % 16 != 0
        if maker.affordable(maker.most_work + 1 if skipped else n, row[4]):
            hashes = ([twin.fmix64((key + seed) & twin.M64) for key in keys[:n]] for seed in seeds)
            peeled = (twin.peel(some, length, count_length) is not None for some in hashes)
            row[4] = next(index for index, worked in enumerate(peeled) if worked)


def recipe_keys(recipe: Vector) -> list[int]:
    kind, n = recipe["gen"], recipe.get("n", 0)
    if kind == "splitmix64":
        return twin.splitmix(recipe["state"], n)
    if kind == "splitmix64 reversed":
        return twin.splitmix(recipe["state"], n)[::-1]
    if kind.startswith("splitmix64 then first"):
        keys = twin.splitmix(recipe["state"], recipe["base_n"])
        return keys + keys[: recipe["d"]]
    if kind.startswith("sequence"):
        return list(range(n))
    if kind == "explicit":
        return [int(key) for key in recipe["keys"]]
    texts = recipe.get("strings") or [f"field{i % 5}:term{i}" for i in range(n)]
    return [twin.fxhash64(text.encode()) for text in texts]


def remake_filters(maker: Maker, body: Vector) -> None:
    for vector in body["filters"]:
        if maker.affordable(vector["n"], vector["seed_index"]):
            remake_filter(maker, vector)


def remake_filter(maker: Maker, vector: Vector) -> None:
    """The reference counts repeated keys and may reject more seeds; then its choice is input."""
    keys = recipe_keys(vector["keys"])
    bits = 16 if vector["type"] == "BinaryFuse16" else 8
    first = vector["seed_index"] if "_dup_" in vector["name"] else 0
    built = twin.build(keys, bits, len(keys), first)
    seed, length, count_length, slots = built
    packed = twin.postcard(built, bits)
    raw = struct.pack(f"<{len(slots)}{'B' if bits == 8 else 'H'}", *slots)
    vector["n"] = len(keys)
    vector["keys_le_u64_sha256"] = sha256(struct.pack(f"<{len(keys)}Q", *keys))
    vector["seed_hex"], vector["seed_index"] = f"{seed:016x}", twin.splitmix(1, 256).index(seed)
    vector["segment_length"], vector["segment_length_mask"] = length, length - 1
    vector["segment_count_length"] = count_length
    vector["fingerprints_len"], vector["zero_fingerprints"] = len(slots), slots.count(0)
    vector["postcard_len"], vector["postcard_sha256"] = len(packed), sha256(packed)
    vector["fingerprints_sha256" if bits == 8 else "fingerprints_le_u16_sha256"] = sha256(raw)
    if "file" in vector:
        maker.made[vector["file"]] = packed


def remake_probes(maker: Maker, body: Vector) -> None:
    probes = recipe_keys(body["probe_keys"])
    for answer in body["answers"]:
        name, keys = answer["filter"].split("_sm42_n")
        if maker.affordable(int(keys), 0):
            bits = int(name.removeprefix("bf"))
            built = twin.build(twin.splitmix(42, int(keys)), bits)
            found = [i for i, key in enumerate(probes) if twin.contains(built, bits, key)]
            answer["positives"], answer["positive_indices"] = len(found), found


# -- bundles: given bytes, of which the description is made again -------------------------------


def remake_bundles(_: Maker, body: Vector) -> None:
    for vector in body["bundles"]:
        data = (HERE / vector["file"]).read_bytes()
        files, start, hotcache = twin.parse_bundle(data)
        vector["bytes"], vector["sha256"] = len(data), sha256(data)
        vector["footer_start"], vector["footer_end"] = start, len(data)
        vector["hotcache_len"] = len(hotcache)
        vector["bundle_metadata_len"] = len(data) - start - len(hotcache) - 8
        vector["bundle_metadata"] = {"files": files}
        if "fuse_filters" in vector:
            at = files["fuse_filters.bin"]
            member = data[at["start"] : at["end"]]
            described = vector["fuse_filters"]
            described["len"], described["sha256"] = len(member), sha256(member)
            described["version"], described["filter_type"], found = twin.parse_fxrf(member)
            described["num_filters"] = len(found)


REMAKERS: dict[str, Callable[[Maker, Vector], None]] = {
    "seeds": remake_seeds,
    "fxhash64": remake_fxhash64,
    "fxhash_collisions": remake_collisions,
    "f64_display": remake_f64_display,
    "index_functions": remake_index_functions,
    "geometry": remake_geometry,
    "filters": remake_filters,
    "probes": remake_probes,
    "bundles": remake_bundles,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="the slow ones too")
    parser.add_argument("--write", action="store_true", help="replace the files; implies --all")
    chosen = parser.parse_args(arguments)
    maker = Maker(MOST_WORK if chosen.all or chosen.write else QUICK_WORK)
    maker.run()
    different = list(maker.different())
    if chosen.write:
        for name in different:
            (HERE / name).write_bytes(maker.made[name])
    print(
        f"{len(maker.made)} files made; {maker.left} answers left as they were, too slow to check"
    )
    for name in different:
        print(f"{'replaced' if chosen.write else 'differs'}: {name}")
    return 1 if different and not chosen.write else 0


if __name__ == "__main__":
    sys.exit(main())
