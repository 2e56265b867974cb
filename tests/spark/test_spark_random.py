"""Random conditions over random columns: both layers agree with Parquet."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spark_world import World, bag

LITERALS = {
    "id": ["-1", "0", "7", "124", "125", "399", "400", "7.5"],
    "status": ["200", "404", "500", "0", "null"],
    "small": ["-50", "0", "49", "100"],
    "ratio": ["0.0", "1.25", "double('NaN')", "double('Infinity')", "-1.5"],
    "price": ["1.25", "-3.00", "96.75", "0"],
    "host": ["'web-00'", "'web-07'", "'web'", "'z'", "''"],
    "message": ["'disk full 3'", "'a'", "'z'"],
    "day": ["date'2024-01-05'", "date'2024-02-29'", "'2024-01-31'"],
    "at": ["timestamp'2024-01-01 12:30:00.123456'", "'2024-01-01 15:00:00'"],
    "part": ["'a'", "'b'", "'c d'", "'zz'"],
    "who.name": ["'u0'", "'u3'", "'x'"],
    "who.age": ["0", "45", "89"],
}
COLUMNS = st.sampled_from(sorted(LITERALS))


@st.composite
def leaf(draw: st.DrawFn) -> str:
    column = draw(COLUMNS)
    value = st.sampled_from(LITERALS[column])
    kind = draw(st.sampled_from(["compare", "in", "null", "between", "like"]))
    if kind == "compare":
        operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
        return f"{column} {operator} {draw(value)}"
    if kind == "in":
        word = draw(st.sampled_from(["in", "not in"]))
        return f"{column} {word} ({', '.join(draw(st.lists(value, min_size=1, max_size=4)))})"
    if kind == "null":
        return f"{column} is {draw(st.sampled_from(['null', 'not null']))}"
    if kind == "between":
        return f"{column} between {draw(value)} and {draw(value)}"
    pattern = draw(st.sampled_from(["web%", "%0%", "%l 3", "u_", "a", "%"]))
    return (
        f"cast({column} as string) like '{pattern}'" if "." in column else f"host like '{pattern}'"
    )


CONDITIONS = st.recursive(
    leaf(),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=6,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(condition=CONDITIONS)
def test_random_conditions(world: World, condition: str) -> None:
    query = "select id, status, part from {t} where " + condition
    expected = bag(world.spark.sql(query.format(t="t_parquet")))
    assert bag(world.spark.sql(query.format(t="t_l2"))) == expected
    assert bag(world.spark.sql(query.format(t="t_driver"))) == expected
    assert bag(world.frame("l1", where=condition).select("id", "status", "part")) == expected


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    condition=CONDITIONS,
    keys=st.lists(st.sampled_from(["status", "part", "ok", "day"]), max_size=2, unique=True),
)
def test_random_aggregates(world: World, condition: str, keys: list[str]) -> None:
    columns = ", ".join([*keys, "count(*)", "sum(id)", "min(host)", "max(at)", "avg(status)"])
    query = f"select {columns} from {{t}} where {condition}"
    query += f" group by {', '.join(keys)}" if keys else ""
    expected = bag(world.spark.sql(query.format(t="t_parquet")))
    assert bag(world.spark.sql(query.format(t="t_l2"))) == expected
    assert bag(world.spark.sql(query.format(t="t_driver"))) == expected
