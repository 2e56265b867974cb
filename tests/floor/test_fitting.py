"""Fields of structs find each other by exact name first, then by the only other spelling."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import AmbiguousColumnError, SchemaMismatchError
from indextables.fitting import fitted, matched
from indextables.types import normalize_schema


@pytest.mark.parametrize(
    ("wanted", "given", "places"),
    [
        (["x", "y"], ["y", "x"], [1, 0]),
        (["x", "X"], ["X", "x"], [1, 0]),
        (["x", "X"], ["X"], [None, 0]),
        (["x"], ["X", "x"], [1]),
        (["x"], ["X"], [0]),
        (["xx"], ["xX", "Xx"], [None]),
        (["xX", "Xx"], ["xx"], [None, None]),
        (["x", "z"], ["y"], [None, None]),
    ],
)
def test_which_name_is_meant(wanted: list[str], given: list[str], places: list[int | None]) -> None:
    assert matched(wanted, given) == places


def test_values_follow_their_names_into_lists_and_maps() -> None:
    small, big = pa.int32(), pa.int64()
    inner = pa.struct([("x", small), ("X", small), ("gone", small)])
    wanted = pa.struct([("X", big), ("x", big), ("new", big)])
    rows = [[{"x": 1, "X": 2, "gone": 3}, None], None, []]
    lists = fitted(pa.array(rows, pa.list_(inner)), pa.list_(wanted))
    assert lists.to_pylist() == [[{"X": 2, "x": 1, "new": None}, None], None, []]
    maps = pa.array([[("k", rows[0][0])], None], pa.map_(pa.string(), inner))
    found = fitted(maps, pa.map_(pa.string(), wanted))
    assert found.to_pylist() == [[("k", {"X": 2, "x": 1, "new": None})], None]


@pytest.mark.parametrize("shape", ["struct", "list", "map"])
def test_an_append_in_another_spelling_keeps_its_values(tmp_path: object, shape: str) -> None:
    def column(name: str, value: int) -> pa.Array:
        inner = pa.struct([(name, pa.int64())])
        if shape == "list":
            return pa.array([[{name: value}]], pa.list_(inner))
        if shape == "map":
            return pa.array([[("k", {name: value})]], pa.map_(pa.string(), inner))
        return pa.array([{name: value}], inner)

    path = f"{tmp_path}/t"
    it.write(pa.table({"id": [1], "c": column("x", 1)}), path)
    it.write(pa.table({"id": [2], "c": column("X", 5)}), path)
    rows = it.open(path).to_arrow().sort_by("id").column("c").to_pylist()
    assert rows == column("x", 1).to_pylist() + column("x", 5).to_pylist()


def test_fields_that_differ_by_case_are_asked_for_exactly(tmp_path: object) -> None:
    path = f"{tmp_path}/t"
    data = pa.table({"id": range(9), "st": [{"x": i, "X": 10 * i} for i in range(9)]})
    it.write(data, path, rows_per_split=3)
    table = it.open(path)
    assert table.to_arrow().sort_by("id").column("st").to_pylist() == data["st"].to_pylist()
    assert table.to_arrow(where="st.x = 2")["id"].to_pylist() == [2]
    assert table.to_arrow(where="st.X = 20")["id"].to_pylist() == [2]
    assert table.to_arrow(where="st.X = 2").num_rows == 0
    assert table.to_arrow(where="_indexall indexquery 'st.X:20'")["id"].to_pylist() == [2]
    assert table.to_arrow(where="_indexall indexquery 'st.x:20'").num_rows == 0


def test_a_spelling_between_two_fields_is_ambiguous(tmp_path: object) -> None:
    path = f"{tmp_path}/t"
    it.write(pa.table({"st": [{"ab": 1, "AB": 2}]}), path)
    for where in ("st.Ab = 1", "_indexall indexquery 'st.Ab:1'"):
        with pytest.raises(AmbiguousColumnError, match="ab, AB"):
            it.open(path).to_arrow(where=where)


def test_one_name_twice_in_a_struct_is_refused() -> None:
    twice = pa.struct([pa.field("x", pa.int64()), pa.field("x", pa.int64())])
    with pytest.raises(SchemaMismatchError, match="duplicate field 'x'"):
        normalize_schema(pa.schema([("st", twice)]))
