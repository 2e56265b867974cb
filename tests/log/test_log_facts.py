"""Facts: computed once per snapshot and key, of kinds that cannot collide."""

from __future__ import annotations

from log_helpers import append, new_table

from indextables.log.read.facts import Fact, Facts


class Holder:
    def __init__(self) -> None:
        self.facts = Facts()


def test_a_fact_is_computed_once_per_key_and_holder() -> None:
    lengths: Fact[str, int] = Fact()
    asked: list[str] = []

    def length(holder: Holder, text: str) -> int:
        return lengths.of(holder, text, lambda: asked.append(text) or len(text))  # type: ignore[func-returns-value]

    one, other = Holder(), Holder()
    assert [length(one, "ab"), length(one, "ab"), length(one, "c"), length(other, "ab")] == [
        2, 2, 1, 2,
    ]  # fmt: skip
    assert asked == ["ab", "c", "ab"]
    assert (len(one.facts), len(other.facts)) == (2, 1)


def test_kinds_with_equal_keys_do_not_collide() -> None:
    lower: Fact[str, str] = Fact()
    upper: Fact[str, str] = Fact()
    holder = Holder()
    assert lower.of(holder, "Ab", "Ab".lower) == "ab"
    assert upper.of(holder, "Ab", "Ab".upper) == "AB"


def test_a_bounded_kind_forgets_what_was_used_longest_ago() -> None:
    few: Fact[int, int] = Fact(2)
    holder = Holder()
    for number in (1, 2, 1, 3):
        few.of(holder, number, lambda number=number: number)  # type: ignore[misc]
    assert [key for key, _ in holder.facts.cache(few).items()] == [3, 1]


def test_a_snapshot_keeps_its_columns() -> None:
    log = new_table()
    append(log, "a")
    snapshot = log.snapshot()
    assert snapshot.sizes is snapshot.sizes
    assert snapshot.paths is snapshot.paths
    assert snapshot.schema is snapshot.schema
    assert snapshot.partition_codes("x") is snapshot.partition_codes("x")
