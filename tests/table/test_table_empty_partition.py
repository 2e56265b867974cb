"""The empty string and NULL are two partition values, everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import CorruptFileError
from indextables.log.read import cache
from indextables.maintenance.drop import drop_partitions

VALUES = ["", None, "a", " ", "__HIVE", "b"]


def made(path: Path, form: str = "log") -> Any:
    """A table with one row per partition value, read from versions or from a checkpoint."""
    options = {"checkpoint.interval": 0, "xref.autoIndex.enabled": False}
    options["state.format"] = "json" if form == "json" else "avro"
    data = pa.table({"p": VALUES, "n": list(range(len(VALUES)))})
    indextables.write(data, str(path), partition_by=["p"], options=options)
    table = indextables.open(str(path), options=options)
    if form != "log":
        table.log.checkpoint()
        cache.SHARED.invalidate()
        (path / "_transaction_log" / f"{1:020d}.json").unlink()
        table = indextables.open(str(path), options=options)
    return table


CONDITIONS: list[tuple[str, Callable[[Any], bool]]] = [
    ("p = ''", lambda v: v == ""),
    ("p <> ''", lambda v: v is not None and v != ""),
    ("p IS NULL", lambda v: v is None),
    ("p IS NOT NULL", lambda v: v is not None),
    ("p <=> ''", lambda v: v == ""),
    ("p IN ('', 'a')", lambda v: v in ("", "a")),
    ("p NOT IN ('', 'a')", lambda v: v is not None and v not in ("", "a")),
    ("p < 'a'", lambda v: v is not None and v < "a"),
    ("p >= ''", lambda v: v is not None),
    ("p > ''", lambda v: v is not None and v > ""),
    ("p <= ''", lambda v: v == ""),
    ("p < ''", lambda v: False),
    ("p LIKE ''", lambda v: v == ""),
    ("p LIKE '%'", lambda v: v is not None),
    ("p LIKE '_'", lambda v: v is not None and len(v) == 1),
    ("p NOT LIKE '%a%'", lambda v: v is not None and "a" not in v),
    ("p LIKE '%b'", lambda v: v is not None and v.endswith("b")),
    ("length(p) = 0", lambda v: v == ""),
]


@pytest.mark.parametrize("form", ["log", "avro", "json"])
def test_reading_and_pruning(tmp_path: Path, form: str) -> None:
    table = made(tmp_path / "t", form)
    assert dict(zip(*table.to_arrow().to_pydict().values(), strict=True)) == {
        v: n for n, v in enumerate(VALUES)
    }
    for where, test in CONDITIONS:
        expected = [n for n, v in enumerate(VALUES) if test(v)]
        assert sorted(table.to_arrow(where)["n"].to_pylist()) == expected, where
        assert table.count(where) == len(expected), where
        if "length" not in where:
            assert len(table.plan(where)) == len(expected), where
            assert table.plan(where).must_match == len(expected), where
    groups = table.aggregate({"c": "count"}, ["p"]).to_pydict()
    assert sorted(zip(groups["p"], groups["c"], strict=True), key=str) == sorted(
        ((v, 1) for v in VALUES), key=str
    )


@pytest.mark.parametrize("where", [where for where, _ in CONDITIONS if "length" not in where])
def test_dropping(tmp_path: Path, where: str) -> None:
    table = made(tmp_path / "t")
    test = dict(CONDITIONS)[where]
    result = drop_partitions(table.log, where)
    dropped = [v for v in VALUES if test(v)]
    assert result.status == ("success" if dropped else "no_action")
    left = indextables.open(str(tmp_path / "t")).to_arrow()["p"].to_pylist()
    assert sorted(left, key=str) == sorted((v for v in VALUES if not test(v)), key=str)


def test_overwriting_deleting_and_merging(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = made(tmp_path / "t")

    def held() -> dict[Any, Any]:
        rows = indextables.open(path).to_arrow().to_pylist()
        return {r["p"]: r["n"] for r in rows}

    new = pa.table({"p": [""], "n": [100]})
    indextables.write(new, path, mode="overwrite", replace_where="p = ''")
    assert held() == {**{v: n for n, v in enumerate(VALUES)}, "": 100}
    dynamic = {"write.partitionOverwriteMode": "dynamic"}
    null = pa.table({"p": pa.array([None], pa.string()), "n": [101]})
    indextables.write(null, path, mode="overwrite", options=dynamic)
    assert (held()[""], held()[None]) == (100, 101)
    indextables.write(pa.table({"p": ["", None], "n": [100, 101]}), path)
    table.refresh().merge()
    assert table.refresh().snapshot.num_files == len(VALUES)
    table.refresh().delete("p = ''")
    assert "" not in held()
    assert held()[None] == 101


def test_folders_and_descriptions(tmp_path: Path) -> None:
    from indextables.maintenance.describe_log import describe_log

    table = made(tmp_path / "t")
    folders = {p.name for p in (tmp_path / "t").iterdir() if "=" in p.name}
    assert {"p=", "p=__HIVE_DEFAULT_PARTITION__", "p=__HIVE"} <= folders
    shown = [r["partition_values"] for r in describe_log(table.log, include_all=True).to_pylist()]
    assert '{"p": ""}' in shown
    assert '{"p": null}' in shown or '{"p": "__HIVE_DEFAULT_PARTITION__"}' in shown


def test_an_empty_text_is_no_number(tmp_path: Path) -> None:
    """Only a foreign writer makes one: nothing is decided by it, and reading says what is wrong."""
    from dataclasses import replace

    from indextables.log.commit.transaction import Transaction

    path = str(tmp_path / "t")
    indextables.write(pa.table({"p": [1], "n": [1]}), path, partition_by=["p"])
    table = indextables.open(path)
    bad = replace(table.snapshot.file(0), partition_values={"p": ""})
    table.log.commit(Transaction(None, "FOREIGN", actions=[bad]))
    again = table.refresh()
    for where in ("p = 1", "p IS NULL", "p IS NOT NULL", "p < 0"):
        assert again.plan(where).verdicts.tolist() == [1], where
    with pytest.raises(CorruptFileError, match="is not a"):
        again.to_arrow()
