"""RLIKE: the answers of Java, in linear time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from regex_truth import PATTERNS, TEXTS, answers

from indextables.expr.coercion import NotComputableError
from indextables.expr.javaregex import to_regex
from indextables.expr.like import LikePattern


@pytest.mark.parametrize("pattern", PATTERNS, ids=ascii)
def test_what_java_finds_is_found(pattern: str) -> None:
    found = to_regex(pattern).found_in(pa.array(TEXTS)).to_pylist()
    assert [i for i, hit in enumerate(found) if hit] == answers()[pattern]


def test_null_stays_null_in_every_kind_of_text() -> None:
    for dtype in (pa.string(), pa.large_string()):
        found = to_regex("a$").found_in(pa.array(["a\n", None, "b"], dtype))
        assert found.to_pylist() == [True, None, False]


# Each takes a backtracking engine longer than anyone waits.
BOMBS = [
    ("^(a+)+$", "a" * 60 + "!"),
    ("^(a|a)*$", "a" * 60 + "!"),
    ("^(a|aa)+$", "a" * 80 + "!"),
    ("^([a-zA-Z]+)*$", "a" * 60 + "!"),
    ("(a*)*b", "a" * 60),
    ("^(.*?,){25}x$", "1," * 60),
    ("(x+x+)+y", "x" * 60),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 60),
    (".*.*.*.*.*.*.*.*=.*!", "=" * 5000),
    ("^(a?){40}a{40}$", "a" * 39),
    (r"^(\w+\s?)*$", "word " * 15 + "!"),
]


@pytest.mark.parametrize(("pattern", "text"), BOMBS, ids=[b[0] for b in BOMBS])
@pytest.mark.timeout(30)
def test_bombs_end(pattern: str, text: str) -> None:
    assert to_regex(pattern).found_in(pa.array([text])).to_pylist() == [False]


@pytest.mark.timeout(30)
def test_patterns_of_like_do_not_explode_either() -> None:
    regex = LikePattern.parse("%a" * 20 + "%b").regex
    assert not pc.match_substring_regex(pa.scalar("a" * 5000), regex).as_py()


@pytest.mark.parametrize(
    "pattern",
    [
        "a$b", "a$\n", "(a$)+", "($|a)b", "$a", "$^", "$*", "(a$)?b", "(a|b$)c",
        "a{1001}", "((a{100}){100}){100}", "a{3,2}", "a**", "a{2}{3}", "*a", "(", ")",
        "a{9999999999}",
        "[z-a]", r"[a-\d]", r"[\d-a]", "[a",
    ],
)  # fmt: skip
def test_what_cannot_be_proved_equal_is_left_to_spark(pattern: str) -> None:
    with pytest.raises(NotComputableError):
        to_regex(pattern)
