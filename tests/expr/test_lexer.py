"""The one lexer, by Spark's rules for strings, names and comments; the one rewriter of searches."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables
from indextables.errors import CommandSyntaxError, IndexTablesError, QuerySyntaxError
from indextables.expr import filters as f
from indextables.expr.filters import parse_filters
from indextables.expr.infix import edited, search_edits
from indextables.expr.lexer import first_bad, quoted_name, tokenize
from indextables.spark.sql.rewrite import rewritten
from indextables.sql.parser import is_command, parse

# Spark's own answer to SELECT of each of these.
STRINGS = [
    (r"'\101'", "A"), (r"'\177'", "\x7f"), (r"'\201'", "201"), (r"'\377'", "377"), (r"'\18'", "18"),
    (r"'a\%b\_c'", r"a\%b\_c"), (r"'\Z\0x\q'", "\x1a\x00xq"), ("r'a''b'", "ab"), ("r'a\\'", "a\\"),
    ("'a''b'", "a'b"), ("'a' 'b'", "ab"), ("r'x' 'y'", "xy"), ("'a' /* c */ 'b'", "ab"),
    ("/* a /* b */ c */ 'x'", "x"), (r"'\u00e9'", "é"), (r"'\U0001F600'", "😀"),
    (r"'\ud83d\ude00'", "😀"), ('"a""b"', 'a"b'), ("'x' -- c \\\n still", "x"), (r'R"a\n"', r"a\n"),
    ("'a'\"b\"", "ab"), ("'\\\n'", "\n"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "value"), STRINGS, ids=[s[0] for s in STRINGS])
def test_strings_mean_what_spark_says(sql: str, value: str) -> None:
    tokens = tokenize(sql)
    assert {t.kind for t in tokens} == {"string", "end"}
    assert "".join(t.value for t in tokens) == value
    assert parse_filters(f"b = {sql}") == f.EqualTo("b", value)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("été = 1", ["word", "mark", "number"]),
        ("हिन्दी", ["word"]),
        ("e\u0301te\u0301", ["word"]),
        ("`a``b`.c", ["name", "mark", "word"]),
        ("512M 1a _x", ["word", "word", "word"]),
        ("1 1.5 .5 1e-3 2.0E+5 10L 1.0BD 3D", ["number"] * 8),
        ("a.b.c", ["word", "mark", "word", "mark", "word"]),
        (":p ? ::x", ["marker", "marker", "mark", "marker"]),
        ("a<=>b||c", ["word", "mark", "word", "mark", "word"]),
        ("$$ it's 'x' $$ $t$ $$ $t$", ["string", "string"]),
        ("bar'x'", ["word", "string"]),
        ("-- c\n/* d */", []),
    ],
)
def test_kinds(text: str, kinds: list[str]) -> None:
    tokens = tokenize(text)
    assert [t.kind for t in tokens[:-1]] == kinds
    assert all(text[t.start : t.end] == t.text for t in tokens)


BAD = ["'a", '"a', "`a", "/* a", "/* /* */", r"'\UFFFFFFFF'", r"'\ud800'", "r'a"]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_token_is_told_by_each_caller(text: str) -> None:
    bad = first_bad(tokenize(text))
    assert bad is not None
    with pytest.raises(QuerySyntaxError):
        parse_filters(f"a = {text}")
    with pytest.raises(CommandSyntaxError):
        parse(f"MERGE SPLITS {text}")
    assert not is_command(f"MERGE SPLITS {text}")
    assert rewritten(f"select b TEXTSEARCH 'x', {text}") == f"select textsearch(b, 'x'), {text}"


def test_halves_of_characters_are_refused() -> None:
    for wrong in ("a = '\ud800'", "\udcff = 1"):
        with pytest.raises(QuerySyntaxError, match="surrogate"):
            parse_filters(wrong)
    with pytest.raises(IndexTablesError, match="surrogate"):
        parse("MERGE SPLITS '\udcff'")


# The same text for predicates and for Spark.
SEARCHES = [
    ("été TEXTSEARCH 'x'", "textsearch(été, 'x')", f.TextSearch("été", "x")),
    ("a TEXTSEARCH 'x' 'y'", "textsearch(a, 'x' 'y')", f.TextSearch("a", "xy")),
    ("a TEXTSEARCH r'\\d'", "textsearch(a, r'\\d')", f.TextSearch("a", "\\d")),
    ("`a.b` FIELDMATCH 'x'", "fieldmatch(`a.b`, 'x')", f.FieldMatch(("a.b",), "x")),
    ("s . and INDEXQUERY 'x'", "indexquery(s . and, 'x')", None),
    ("a NOT TEXTSEARCH 'x'", "(NOT textsearch(a, 'x'))", f.Not(f.TextSearch("a", "x"))),
    ("* TEXTSEARCH 'x'", "textsearch(_indexall, 'x')", f.TextSearch("*", "x")),
    ("textsearch('a`b', 'x')", "textsearch(`a``b`, 'x')", f.TextSearch(("a`b",), "x")),
    ("textsearch('*', 'x')", "textsearch(_indexall, 'x')", f.TextSearch("*", "x")),
    ("textsearch('a\\'b', 'x')", "textsearch(`a'b`, 'x')", f.TextSearch(("a'b",), "x")),
    ("b = 'c TEXTSEARCH ''d'''", "b = 'c TEXTSEARCH ''d'''", f.EqualTo("b", "c TEXTSEARCH 'd'")),
    ("textsearch = 'x'", "textsearch = 'x'", f.EqualTo("textsearch", "x")),
    ("a LIKE textsearch", "a LIKE textsearch", None),
]


@pytest.mark.parametrize(("text", "call", "meaning"), SEARCHES, ids=[s[0] for s in SEARCHES])
def test_one_rewriter(text: str, call: str, meaning: f.Filter | None) -> None:
    tokens = tokenize(text)
    assert edited(text, tokens, search_edits(tokens)) == rewritten(text) == call
    if meaning is not None:
        assert parse_filters(text) == meaning


def test_products_are_no_searches() -> None:
    assert rewritten("2 * textsearch 'x'") == "2 * textsearch 'x'"
    assert rewritten("a * textsearch 'x'") == "a * textsearch 'x'"


def test_parameters_belong_to_spark() -> None:
    assert rewritten("a TEXTSEARCH :q") == "textsearch(a, :q)"
    with pytest.raises(QuerySyntaxError, match="no parameters"):
        parse_filters("a TEXTSEARCH :q")


def test_names_of_any_script_are_searched(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("scripts") / "t")
    names = ["été", "名前", "имя", "odd name"]
    indextables.write(pa.table({n: ["red fox", "dog"] for n in names}), path, text=names)
    table = indextables.open(path)
    for name in names:
        spelled = quoted_name(name) if " " in name else name
        assert table.count(f"{spelled} TEXTSEARCH 'fox'") == 1
        assert table.count(f"{spelled} = 'dog'") == 1
