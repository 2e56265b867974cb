"""The search strings shown in the documentation parse, and find what it says they find."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from corpus import CORPUS, SCHEMA, corpus_mapping

from indextables.errors import QuerySyntaxError
from indextables.expr.analyzers import analyze
from indextables.expr.querystring import parse_query

PAGE = (Path(__file__).parents[2] / "docs" / "search.md").read_text("utf-8")


def shown() -> list[str]:
    """First cells of the tables whose head says they are search strings."""
    found: list[str] = []
    for table in re.findall(r"\| search string \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE):
        found += re.findall(r"^\| `(.+?)` \|", table, re.M)
    return found


@pytest.mark.parametrize("query", shown())
def test_shown_strings_parse(query: str) -> None:
    parse_query(query, default_fields=["msg"], mapping=corpus_mapping(), schema=SCHEMA)


def test_most_shown_strings_are_in_the_corpus() -> None:
    known = {case.query for case in CORPUS}
    assert len(shown()) > 20
    assert sum(query in known for query in shown()) >= 0.6 * len(shown())


def test_shown_tokens() -> None:
    rows = re.findall(r"^\| `(\w+)`(?: \(exact text\))? \| (`.+`) \|$", PAGE, re.M)
    assert [name for name, _ in rows] == ["default", "whitespace", "en_stem", "raw"]
    for name, tokens in rows:
        assert analyze(name, "Web-1 is Running") == re.findall(r"`(.+?)`", tokens)


def test_shown_error() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(
            "quick status:abc", default_fields=["msg"], mapping=corpus_mapping(), schema=SCHEMA
        )
    assert str(caught.value) in PAGE
