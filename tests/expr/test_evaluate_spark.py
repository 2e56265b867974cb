"""Our rows are the rows Spark returned for the same predicates, recorded in ``spark_truth``."""

from __future__ import annotations

import json

import pytest
from spark_truth import ANSWERS, PREDICATES, ZONES, table

from indextables.errors import IndexTablesError
from indextables.expr.bind import bind
from indextables.expr.evaluate import can_evaluate, matching_rows

LEFT_TO_SPARK = {"s IN (SELECT 'abc')", "get_json_object(js, '$[\"it\\'s\"]') = '1'"}
EXACT_ABOVE_2_53: dict[str, list[int]] = {
    "l = 9007199254740992D": [1],
    "d = 9007199254740993": [],
}


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, list[int] | str]]:
    recorded: dict[str, dict[str, list[int] | str]] = json.loads(ANSWERS.read_text("utf-8"))
    return recorded


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("predicate", PREDICATES)
def test_same_rows_as_spark(
    predicate: str, zone: str, answers: dict[str, dict[str, list[int] | str]]
) -> None:
    expected = EXACT_ABOVE_2_53.get(predicate, answers[zone][predicate])
    rows = table()
    if isinstance(expected, str) and predicate not in LEFT_TO_SPARK:
        with pytest.raises(IndexTablesError):
            matching_rows(bind(predicate, rows.schema, time_zone=zone), rows)
        return
    bound = bind(predicate, rows.schema, time_zone=zone)
    assert can_evaluate(bound) == (predicate not in LEFT_TO_SPARK), bound
    if predicate not in LEFT_TO_SPARK:
        assert matching_rows(bound, rows).tolist() == expected, bound


def test_answers_cover_every_predicate(answers: dict[str, dict[str, list[int] | str]]) -> None:
    assert {zone: set(PREDICATES) for zone in ZONES} == {z: set(a) for z, a in answers.items()}
