"""Schema deduplication (hash, registry, renormalisation, cleaning) and short statistics."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_helpers import MAPPING, append, config, names, new_table, reopen, run, split

from indextables.log.actions import AddFile
from indextables.log.actions.schema_registry import (
    canonical_json,
    deduplicate,
    merge_managed,
    reference_of,
    renormalize,
    restore,
)
from indextables.log.actions.statistics import truncate_statistics

ID = {"fast": True, "indexed": True, "name": "id", "stored": True, "type": "i64"}


def text_field(name: str) -> dict[str, object]:
    return {**ID, "name": name, "tokenizer": "raw", "type": "text"}


GOLDEN = {
    "gC45RGOqJ_Grt0xH": [ID, text_field("text")],
    "z7TwwZ-tDWGD-uX5": [ID, text_field("text"), {**ID, "name": "score", "type": "f64"}],
    "qc10IusIgZa4R4u3": [
        ID,
        text_field("title"),
        text_field("body"),
        {**ID, "name": "rating", "type": "f64"},
    ],
}


@pytest.mark.parametrize("reference", GOLDEN)
def test_known_references_of_tables_written_elsewhere(reference: str) -> None:
    assert reference_of(json.dumps(GOLDEN[reference])) == reference


@pytest.mark.parametrize("reference", GOLDEN)
def test_order_and_spaces_do_not_matter(reference: str, rng: random.Random) -> None:
    fields = [dict(rng.sample(list(f.items()), len(f))) for f in GOLDEN[reference]]
    rng.shuffle(fields)
    assert reference_of(json.dumps(fields, indent=3)) == reference


def test_text_that_is_not_json_is_hashed_as_it_is() -> None:
    assert canonical_json("{oops") == "{oops"
    assert len(reference_of("{oops")) == 16
    assert reference_of("{oops") != reference_of("{oops ")


def test_arrays_without_names_keep_their_order() -> None:
    assert canonical_json('{"b":[2,1],"a":[{"x":1},{"name":"n"}]}') == (
        '{"a":[{"x":1},{"name":"n"}],"b":[2,1]}'
    )
    assert canonical_json('[{"name":"ü"},{"name":"b","k":[{"name":"z"},{"name":"a"}]}]') == (
        '[{"k":[{"name":"a"},{"name":"z"}],"name":"b"},{"name":"ü"}]'
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)


@given(JSON)
def test_canonical_form_is_stable_and_equal_in_value(body: object) -> None:
    once = canonical_json(json.dumps(body))
    assert canonical_json(once) == once


def test_deduplicate_and_restore() -> None:
    adds = [AddFile(f"{i}", {}, 1, 1, doc_mapping_json=MAPPING) for i in range(3)]
    adds.append(AddFile("without", {}, 1, 1))
    slim, registry = deduplicate(adds)
    assert registry == {"gC45RGOqJ_Grt0xH": MAPPING}
    assert [add.doc_mapping_ref for add in slim] == ["gC45RGOqJ_Grt0xH"] * 3 + [None]
    assert all(add.doc_mapping_json is None for add in slim)
    assert [restore(add, registry).doc_mapping_json for add in slim] == [MAPPING] * 3 + [None]


def test_renormalisation_joins_references_above_the_threshold() -> None:
    fields = GOLDEN["z7TwwZ-tDWGD-uX5"]
    orders = [json.dumps(fields[i:] + fields[:i], indent=k) for i in range(3) for k in (None, 1)]
    registry = {f"old{i}": text for i, text in enumerate(orders)}
    adds = [AddFile(f"{r}.split", {}, 1, 1, doc_mapping_ref=r) for r in registry]
    adds.append(AddFile("lost.split", {}, 1, 1, doc_mapping_ref="lost"))
    same, untouched = renormalize(adds, registry, threshold=len(adds))
    assert (same, untouched) == (adds, registry)
    moved, kept = renormalize(adds, registry, threshold=5)
    assert {add.doc_mapping_ref for add in moved} == {"z7TwwZ-tDWGD-uX5", "lost"}
    assert list(kept) == ["z7TwwZ-tDWGD-uX5"]
    assert kept["z7TwwZ-tDWGD-uX5"] in orders


def test_checkpoints_renormalise() -> None:
    log = new_table(state__format="json", state__schema__renormalizeThreshold=2)
    fields = json.loads(MAPPING)
    registry = {}
    for i in range(4):
        text = json.dumps(fields, indent=i)
        registry[f"docMappingSchema.old{i}"] = text
    metadata = log.snapshot().metadata
    from dataclasses import replace

    adds = [
        replace(split(f"s{i}"), doc_mapping_json=None, doc_mapping_ref=f"old{i}") for i in range(4)
    ]
    run(log, "WRITE", [replace(metadata, configuration=registry), *adds])
    log.checkpoint()
    again = reopen(log).snapshot()
    assert {add.doc_mapping_ref for add in again.files()} == {"gC45RGOqJ_Grt0xH"}
    assert all(again.doc_mapping(i) is not None for i in range(4))


def test_a_commit_registers_a_mapping_once() -> None:
    log = new_table()
    append(log, "a", "b")
    append(log, "c")
    snapshot = reopen(log).snapshot()
    assert snapshot.mapping_registry == {"gC45RGOqJ_Grt0xH": MAPPING}
    assert {add.doc_mapping_ref for add in snapshot.files()} == {"gC45RGOqJ_Grt0xH"}
    assert all(add.doc_mapping_json is None for add in snapshot.files())
    counts = [
        sum(type(a).__name__ == "Metadata" for a in change.actions)
        for change in log.changes(0, 2) or ()
    ]
    assert counts == [1, 0]
    mapping = snapshot.doc_mapping(0)
    assert mapping is not None
    assert mapping.names == ["id", "text"]


@pytest.mark.parametrize("version", [1, 2])
def test_before_version_3_mappings_stay_inline(version: int) -> None:
    log = new_table(version=version)
    append(log, "a")
    (add,) = reopen(log).snapshot().files()
    assert add.doc_mapping_json == MAPPING
    assert add.doc_mapping_ref is None
    assert names(log) == ["a"]


# -- statistics ---------------------------------------------------------------------------------


def test_long_texts_are_cut_but_never_partition_columns() -> None:
    long = "x" * 40
    values = {"text": long, "day": long, "n": "12"}
    short = truncate_statistics(values, values, ["day"], config())
    assert short.min_values == {"text": "x" * 32, "day": long, "n": "12"}
    assert short.max_values == short.min_values
    assert short.cut == ("text",)


def test_truncation_follows_its_settings() -> None:
    values = {"text": "äöüß" * 3}
    assert truncate_statistics(values, values, [], config(stats__truncation__maxLength=4)).cut == (
        "text",
    )
    kept = truncate_statistics(values, values, [], config(stats__truncation__enabled=False))
    assert (kept.max_values, kept.cut) == (values, ())
    exact = truncate_statistics(
        {"t": "abcd"}, {"t": "abcd"}, [], config(stats__truncation__maxLength=4)
    )
    assert exact.cut == ()


def test_the_registry_never_shrinks_and_mirrors_merge_three_ways() -> None:
    entry, mirror = "docMappingSchema.a", "indextables.columnIndex."
    base = {"k": "1", entry: "A", f"{mirror}x": "X", f"{mirror}y": "Y", f"{mirror}z": "Z"}
    given = {"k": "2", f"{mirror}x": "X", f"{mirror}y": "new"}
    latest = {**base, "docMappingSchema.b": "B", f"{mirror}w": "W"}
    del latest[f"{mirror}x"]
    assert merge_managed(given, base, latest) == {
        "k": "2",
        entry: "A",
        "docMappingSchema.b": "B",
        f"{mirror}y": "new",
        f"{mirror}w": "W",
    }
    assert merge_managed(given, base, base) == {
        "k": "2",
        entry: "A",
        f"{mirror}x": "X",
        f"{mirror}y": "new",
    }


def test_replacing_the_configuration_keeps_the_mappings() -> None:
    from dataclasses import replace

    log = new_table()
    append(log, "a")
    run(log, "ALTER", [replace(log.snapshot().metadata, configuration={"k": "v"})])
    snapshot = reopen(log).snapshot()
    assert snapshot.metadata.configuration["k"] == "v"
    assert snapshot.doc_mapping(0) is not None
    assert snapshot.mapping_registry == {"gC45RGOqJ_Grt0xH": MAPPING}
