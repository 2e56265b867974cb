"""What filters can say: the ten wrong prunings of the past, each by name, and brute force."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from indextables.expr import ast
from indextables.expr.bind import bind
from indextables.expr.evaluate import evaluate
from indextables.expr.keys import KeyCollector, distinct
from indextables.mapping import DocMapping, IndexingOptions
from indextables.native import BinaryFuse8, FilterSet
from indextables.xref.evaluate import EXISTS, NOT_PRESENT, POSSIBLY_PRESENT, Question
from indextables.xref.evaluate import judge as verdicts

SCHEMA = pa.schema(
    [
        ("host", pa.string()),
        ("msg", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("ok", pa.bool_()),
        ("ts", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("addr", pa.string()),
        ("doc", pa.struct([("name", pa.string()), ("age", pa.int64())])),
        ("raw", pa.binary()),
        ("dec", pa.decimal128(10, 2)),
    ]
)
MAPPING = DocMapping.for_schema(SCHEMA, (), IndexingOptions(text=("msg",), ip=("addr",)))


def filters(rows: list[list[dict[str, object]]]) -> FilterSet:
    built = []
    for split in rows:
        table = pa.Table.from_pylist(split, schema=SCHEMA)
        parts = [np.empty(0, np.uint64)]
        for field in MAPPING.fields:
            collector = KeyCollector(field)
            collector.add(table.column(field.name).combine_chunks())
            parts.append(collector.hashes())
        built.append(BinaryFuse8.build(distinct(np.concatenate(parts))))
    return FilterSet(built)


def judge(rows: list[list[dict[str, object]]], query: object, mapping: DocMapping = MAPPING):
    question = Question(mapping, SCHEMA, "xxh64")
    if isinstance(query, str):
        wording = question.predicate(bind(query, SCHEMA, mapping=mapping))
    else:
        wording = question.query(query)
    return verdicts(wording, filters(rows)).tolist(), question.unevaluated


ROW = {"host": "a", "msg": "hello world", "n": 5, "x": 1.0}


def test_1_should_beside_must_is_optional() -> None:
    query = ast.Bool(must=(ast.Term("host", "a"),), should=(ast.Term("host", "zzz"),))
    assert judge([[ROW]], query)[0] != [NOT_PRESENT]


def test_2_full_text_with_or_needs_one_token() -> None:
    query = ast.FullText("msg", "hello absentword", "or")
    assert judge([[ROW]], query)[0] == [POSSIBLY_PRESENT]
    assert judge([[ROW]], ast.FullText("msg", "hello absentword"))[0] == [NOT_PRESENT]


def test_3_a_field_without_keys_decides_nothing() -> None:
    partial = DocMapping(tuple(f for f in MAPPING.fields if f.name != "host"))
    assert judge([[ROW]], "host = 'other'", MAPPING)[0] == [NOT_PRESENT]
    verdicts, unevaluated = judge([[ROW]], "host = 'other'", partial)
    assert verdicts == [EXISTS]
    assert unevaluated


@pytest.mark.parametrize("term", ["alice smith", "-5", "3.14"])
def test_4_json_values_never_prune_wrongly(term: str) -> None:
    row = {**ROW, "doc": {"name": term, "age": -5}}
    assert judge([[row]], f"doc.name = '{term}'")[0] != [NOT_PRESENT]
    assert judge([[row]], "doc.age = -5")[0] != [NOT_PRESENT]


@pytest.mark.parametrize("literal", ["1.0", "1", "1e0", "0.1e1"])
def test_5_numbers_have_one_spelling(literal: str) -> None:
    assert judge([[ROW]], f"x = {literal}")[0] == [POSSIBLY_PRESENT]
    assert judge([[ROW]], "x = 2")[0] == [NOT_PRESENT]
    assert judge([[ROW]], "n = 5")[0] == [POSSIBLY_PRESENT]


def test_6_timestamps_at_full_precision() -> None:
    row = {**ROW, "ts": 1_700_000_000_123_456}
    found = judge([[row]], "ts = TIMESTAMP '2023-11-14 22:13:20.123456'")[0]
    assert found == [POSSIBLY_PRESENT]
    assert judge([[row]], "ts = TIMESTAMP '2023-11-14 22:13:20'")[0] == [NOT_PRESENT]


def test_7_addresses_and_bytes_are_spelled_alike() -> None:
    row = {**ROW, "addr": "10.0.0.1", "raw": b"\x01\xff"}
    assert judge([[row]], ast.Term("addr", "10.0.0.1"))[0] == [POSSIBLY_PRESENT]
    assert judge([[row]], ast.Term("addr", "::ffff:10.0.0.1"))[0] == [POSSIBLY_PRESENT]
    assert judge([[row]], "raw = X'01FF'")[0] == [POSSIBLY_PRESENT]


def test_8_the_fields_own_analyzer_cuts_the_question() -> None:
    row = {**ROW, "msg": "Grüße aus KÖLN"}
    assert judge([[row]], ast.FullText("msg", "grüße köln"))[0] == [POSSIBLY_PRESENT]


def test_9_uncovered_splits_are_not_this_modules_to_drop() -> None:
    assert judge([], "host = 'a'")[0] == []


def test_10_or_with_an_undecidable_side_keeps() -> None:
    verdicts, unevaluated = judge([[ROW]], "host = 'zzz' OR n > 100")
    assert verdicts != [NOT_PRESENT]
    assert unevaluated
    verdicts, unevaluated = judge([[ROW]], "host = 'zzz' AND n > 100")
    assert verdicts == [NOT_PRESENT]
    assert unevaluated


@pytest.mark.parametrize(
    "query",
    [
        ast.Range("n", 1, 2),
        ast.Wildcard("host", "z*"),
        ast.Regex("host", "z.*"),
        ast.Exists("host"),
        ast.Fuzzy("msg", "helo"),
        ast.Bool(must_not=(ast.Term("host", "a"),)),
        ast.Bool(must=(ast.Bool(must=(ast.Range("n", 100, 200),)),)),
    ],
)
def test_what_cannot_be_decided_is_said_at_any_depth(query: ast.Query) -> None:
    verdicts, unevaluated = judge([[ROW]], query)
    assert NOT_PRESENT not in verdicts
    assert unevaluated


def test_phrases_need_every_word() -> None:
    assert judge([[ROW]], ast.Phrase("msg", ("hello", "world")))[0] == [POSSIBLY_PRESENT]
    assert judge([[ROW]], ast.Phrase("msg", ("hello", "mars")))[0] == [NOT_PRESENT]


PREDICATES = [
    "host = 'a'", "host IN ('b', 'zz')", "msg = 'hello world'", "n = 3", "n IN (1, 99)",
    "x = 0.5", "ok = true", "day = DATE '2024-01-02'", "dec = 1.50", "host <> 'a'", "n > 2",
    "host IS NULL", "host <=> 'a'", "msg LIKE 'hel%'", "addr = '10.0.0.1'", "NOT (n = 3)",
]  # fmt: skip


def test_random_trees_never_lose_a_split(rng: random.Random) -> None:
    pruned = 0
    for _ in range(300):
        rows = [[_random_row(rng) for _ in range(rng.randint(0, 3))] for _ in range(4)]
        text = _random_tree(rng, 3)
        predicate = bind(text, SCHEMA, mapping=MAPPING)
        verdicts = judge(rows, text)[0]
        for split, verdict in zip(rows, verdicts, strict=True):
            batch = pa.Table.from_pylist(split, schema=SCHEMA).combine_chunks()
            truth = evaluate(predicate, batch, mapping=MAPPING).to_pylist() if split else []
            if any(t is True for t in truth):
                assert verdict != NOT_PRESENT, text
            pruned += verdict == NOT_PRESENT
    assert pruned > 50


def _random_row(rng: random.Random) -> dict[str, object]:
    def maybe(value: object) -> object:
        return None if rng.random() < 0.2 else value

    return {
        "host": maybe(rng.choice("abc")),
        "msg": maybe(rng.choice(["hello world", "other words", ""])),
        "n": maybe(rng.randint(0, 5)),
        "x": maybe(rng.choice([0.5, 1.0, -0.0, float("nan")])),
        "ok": maybe(rng.random() < 0.5),
        "day": maybe(rng.choice([19723, 19724])),
        "addr": maybe(rng.choice(["10.0.0.1", "not an address"])),
    }


def _random_tree(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(PREDICATES)
    left, right = _random_tree(rng, depth - 1), _random_tree(rng, depth - 1)
    return rng.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
