"""Errors say what, where and what next, and survive pickling."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import pytest

from indextables import errors
from indextables.errors import (
    CommandSyntaxError,
    CorruptFileError,
    IndexTablesError,
    QuerySyntaxError,
    UnknownColumnError,
    did_you_mean,
)

CLASSES = [
    c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, IndexTablesError)
]


def test_codes_are_unique_and_inherit_the_base() -> None:
    codes = [c.code for c in CLASSES]
    assert len(set(codes)) == len(codes)


def test_text_names_place_and_remedy() -> None:
    error = IndexTablesError("it broke", path="t/x.split", version=7, hint="Run doctor")
    assert str(error) == "ITX-1000 it broke (path: t/x.split, version: 7). Run doctor"


@pytest.mark.parametrize(
    "error",
    [
        CorruptFileError("short", offset=3, path="a", version=1),
        QuerySyntaxError("bad", query="a b", position=2),
        CommandSyntaxError("bad", text="MERGE SPLTS", position=6, expected=["SPLITS"]),
        UnknownColumnError.of("hots", ["host", "port"]),
    ],
)
def test_pickles(error: IndexTablesError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.__dict__ == error.__dict__


def test_suggestions() -> None:
    assert did_you_mean("hots", ["host", "port"]) == "Did you mean 'host'?"
    assert did_you_mean("zzz", ["host"]) == "Known names: host"
    assert did_you_mean("zzz", []) == "There are none."


def test_pointer_stands_below_the_mistake() -> None:
    error = CommandSyntaxError("what?", text="MERGE SPLTS 'p'", position=6, expected=["SPLITS"])
    lines = str(error).splitlines()
    assert lines[1] == "  MERGE SPLTS 'p'"
    assert lines[2].index("^") == 2 + 6
    assert "Expected: SPLITS" in str(error)


def test_every_error_has_a_paragraph() -> None:
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
    for cls in CLASSES:
        assert f"| {cls.code} | `{cls.__name__}` |" in page
