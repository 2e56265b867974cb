"""What Elasticsearch queries mean, row by row in plain Python, and a corpus of them.

Written from the meaning of the queries, for ASCII texts only: words are runs of letters and digits
in lower case. Nothing of the package is used.
"""

# ruff: noqa: E501
from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

NOW = datetime(2024, 3, 15, 12, 30, tzinfo=UTC)
"""What ``now`` is in the corpus."""


def _row(
    i: int, msg: str | None, title: str | None, host: str | None, **more: Any
) -> dict[str, Any]:
    return {"id": i, "msg": msg, "title": title, "host": host, **more}


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


ROWS = [
    _row(0, "the quick brown fox jumps", "Quick start", "web-1", n=1, price=1.5, ok=True, ts=day("2024-03-15T12:00:00")),
    _row(1, "quick brown bread and butter", "Baking", "web-2", n=2, price=-2.0, ok=False, ts=day("2024-03-15T00:00:00")),
    _row(2, "disk full error on disk sda1", "Disk errors", "db-1", n=3, price=0.0, ok=True, ts=day("2024-03-14T23:59:59")),
    _row(3, "connection timeout while reading", "Network", "db-2", n=5, price=10.25, ok=None, ts=day("2024-03-14T12:30:00")),
    _row(4, "timeout timeout timeout", "Retry storm", "WEB-1", n=8, price=None, ok=False, ts=day("2024-03-08T08:00:00")),
    _row(5, None, None, None, n=None, price=99.0, ok=True, ts=None),
    _row(6, "", "Empty", "web-10", n=0, price=7.0, ok=False, ts=day("2024-02-29T00:00:00")),
    _row(7, "error code 28 and error code 29", "Codes", "in progress", n=28, price=28.0, ok=True, ts=day("2024-01-01T00:00:00")),
    _row(8, "brown quick fox", "Foxes", "a*b", n=-4, price=3.0, ok=None, ts=day("2023-12-31T23:59:59")),
    _row(9, "user logged in from 10 0 0 1", "Login", "gw", n=1, price=1.0, ok=True, ts=day("2024-03-11T00:00:00")),
    _row(10, "the disk is nearly full", "Disks full", "db-1", n=3, price=2.5, ok=False, ts=day("2024-03-15T12:29:59")),
    _row(11, "fix quickly the broken fax", "Quick fix", "web-3", n=13, price=13.0, ok=True, ts=day("2022-06-15T10:00:00")),
]  # fmt: skip
TEXT = ("msg", "title")


def words(text: str | None) -> list[str]:
    return re.findall(r"[a-z0-9]+", (text or "").lower())


def terms(row: dict[str, Any], field: str) -> list[str]:
    value = row[field]
    if value is None:
        return []
    return words(value) if field in TEXT else [str(value)]


def edits(a: str, b: str) -> int:
    table = [
        [max(i, j) if not (i and j) else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)
    ]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            )
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                cost = min(cost, table[i - 2][j - 2] + 1)
            table[i][j] = cost
    return table[-1][-1]


def distance(given: Any, word: str) -> int:
    if str(given).upper() == "AUTO":
        return 0 if len(word) < 3 else 1 if len(word) < 6 else 2
    return int(given)


def at_least(given: Any, count: int) -> int:
    text = str(given)
    if "<" in text:
        limit, rest = text.split("<")
        return count if count <= int(limit) else at_least(rest, count)
    if text.endswith("%"):
        share = int(int(text[:-1]) * count / 100)
        return share if share >= 0 else count + share
    return int(text) if int(text) >= 0 else count + int(text)


def one(body: Any, key: str) -> tuple[str, Any, dict[str, Any]]:
    ((field, given),) = body.items()
    if not isinstance(given, dict):
        return field, given, {}
    return field, given.get(key), {k: v for k, v in given.items() if k != key}


def phrase(found: list[str], wanted: list[str], slop: int, prefix: bool) -> bool:
    """Words in a row; with moves: places shifted to the first differ by at most the slop."""
    if not wanted:
        return False

    def fits(k: int, word: str) -> bool:
        return word.startswith(wanted[k]) if prefix and k == len(wanted) - 1 else word == wanted[k]

    def search(k: int, used: tuple[int, ...]) -> bool:
        if k == len(wanted):
            places = [p - i for i, p in enumerate(used)]
            return max(places) - min(places) <= slop
        return any(
            search(k + 1, (*used, p)) for p, w in enumerate(found) if p not in used and fits(k, w)
        )

    return search(0, ())


def glob(pattern: str, word: str, any_case: bool) -> bool:
    parts = re.split(r"(\\.|[*?])", pattern)
    regex = "".join(
        ".*"
        if p == "*"
        else "."
        if p == "?"
        else re.escape(p[1:] if p[:1] == "\\" and len(p) == 2 else p)
        for p in parts
    )
    return re.fullmatch(regex, word, re.S | (re.I if any_case else 0)) is not None


def moment(text: Any) -> tuple[datetime, datetime]:
    """First and last microsecond that a text names."""
    text, tick = str(text), timedelta(microseconds=1)
    anchor, _, steps = (
        text.partition("||")
        if "||" in text
        else (("now", "", text[3:]) if text.startswith("now") else (text, "", ""))
    )
    if anchor == "now":
        low = high = NOW
    else:
        size = len(anchor)
        low = day({4: f"{anchor}-01-01", 7: f"{anchor}-01"}.get(size, anchor))
        high = low if size > 10 else shifted(low, 1, {4: "y", 7: "M", 10: "d"}[size]) - tick
    for sign, count, unit, rounding in re.findall(r"([+-])(\d*)([yMwdhms])|/([yMwdhms])", steps):
        if rounding:
            low, high = floor(low, rounding), shifted(floor(high, rounding), 1, rounding) - tick
        else:
            n = int(count or 1) * (-1 if sign == "-" else 1)
            same = low == high
            low, high = shifted(low, n, unit), shifted(high + tick, n, unit) - tick
            high = low if same else high
    return low, high


def shifted(at: datetime, n: int, unit: str) -> datetime:
    if unit in "wdhms":
        return (
            at
            + n
            * {
                "w": timedelta(7),
                "d": timedelta(1),
                "h": timedelta(hours=1),
                "m": timedelta(minutes=1),
                "s": timedelta(seconds=1),
            }[unit]
        )
    months = at.year * 12 + at.month - 1 + n * (12 if unit == "y" else 1)
    year, month = months // 12, months % 12 + 1
    last = (datetime(year + month // 12, month % 12 + 1, 1) - timedelta(1)).day
    return at.replace(year=year, month=month, day=min(at.day, last))


def floor(at: datetime, unit: str) -> datetime:
    if unit == "s":
        return at.replace(microsecond=0)
    at = at.replace(second=0, microsecond=0)
    if unit == "m":
        return at
    at = at.replace(minute=0)
    if unit == "h":
        return at
    at = at.replace(hour=0)
    if unit == "w":
        return at - timedelta(at.weekday())
    return at if unit == "d" else at.replace(day=1) if unit == "M" else at.replace(day=1, month=1)


def in_range(value: Any, options: dict[str, Any]) -> bool:
    if value is None:
        return False
    for key, bound in options.items():
        if key not in ("gte", "gt", "lte", "lt") or bound is None:
            continue
        if isinstance(value, datetime):
            low, high = moment(bound)
        else:
            low = high = type(value)(bound) if isinstance(value, str) else float(bound)
        fits = {"gte": value >= low, "gt": value > high, "lte": value <= high, "lt": value < low}
        if not fits[key]:
            return False
    return True


def same(value: Any, wanted: Any) -> bool:
    if value is None:
        return False
    if isinstance(value, datetime):
        low, high = moment(wanted)
        return low <= value <= high
    if isinstance(value, bool):
        return str(wanted).lower() == str(value).lower()
    if isinstance(value, int | float):
        return float(value) == float(wanted)
    return str(value) == str(wanted)


def matched(row: dict[str, Any], field: str, text: Any, options: dict[str, Any]) -> bool:
    if field not in TEXT:
        fuzz = distance(options.get("fuzziness", 0), str(text))
        if fuzz and row[field] is not None:
            keep = str(text)[: options.get("prefix_length", 0)]
            return edits(str(text), row[field]) <= fuzz and row[field].startswith(keep)
        return same(row[field], text)
    wanted = list(dict.fromkeys(words(str(text))))
    if not wanted:
        return options.get("zero_terms_query") == "all"
    found = terms(row, field)

    def has(word: str) -> bool:
        fuzz = distance(options.get("fuzziness", 0), word)
        keep = word[: options.get("prefix_length", 0)]
        return any(edits(word, w) <= fuzz and w.startswith(keep) for w in found)

    hits = sum(map(has, wanted))
    if options.get("operator", "or").lower() == "and":
        return hits == len(wanted)
    return hits >= max(at_least(options.get("minimum_should_match", 1), len(wanted)), 1)


def holds(body: dict[str, Any], row: dict[str, Any]) -> bool:
    """Does a row match?"""
    ((kind, inner),) = body.items()
    if kind in ("match_all", "match_none"):
        return kind == "match_all"
    if kind == "match":
        return matched(row, *one(inner, "query"))
    if kind in ("match_phrase", "match_phrase_prefix"):
        field, text, options = one(inner, "query")
        prefix = kind.endswith("prefix")
        if field not in TEXT:
            return row[field] is not None and (
                row[field].startswith(text) if prefix else row[field] == text
            )
        return phrase(terms(row, field), words(text), options.get("slop", 0), prefix)
    if kind == "match_bool_prefix":
        field, text, options = one(inner, "query")
        *head, last = words(text)
        votes = [w in terms(row, field) for w in head] + [
            any(t.startswith(last) for t in terms(row, field))
        ]
        return all(votes) if options.get("operator") == "and" else any(votes)
    if kind == "multi_match":
        return multi(row, inner)
    if kind == "exists":
        return row[inner["field"]] is not None
    if kind == "term":
        field, value, options = one(inner, "value")
        if options.get("case_insensitive"):
            return any(t.lower() == str(value).lower() for t in terms(row, field))
        return str(value) in terms(row, field) if field in TEXT else same(row[field], value)
    if kind == "terms":
        ((field, values),) = ((k, v) for k, v in inner.items() if k != "boost")
        return any(holds({"term": {field: v}}, row) for v in values)
    if kind == "range":
        ((field, options),) = inner.items()
        return in_range(row[field], options)
    if kind in ("prefix", "wildcard"):
        field, value, options = one(
            inner, "value" if "wildcard" not in str(inner.values()) else "wildcard"
        )
        pattern = re.sub(r"([*?\\])", r"\\\1", value) + "*" if kind == "prefix" else value
        return any(
            glob(pattern, t, bool(options.get("case_insensitive"))) for t in terms(row, field)
        )
    if kind == "regexp":
        field, value, options = one(inner, "value")
        flags = re.I if options.get("case_insensitive") else 0
        return any(re.fullmatch(value, t, flags) for t in terms(row, field))
    if kind == "fuzzy":
        field, value, options = one(inner, "value")
        fuzz, keep = (
            distance(options.get("fuzziness", "AUTO"), value),
            value[: options.get("prefix_length", 0)],
        )
        return any(edits(value, t) <= fuzz and t.startswith(keep) for t in terms(row, field))
    if kind == "constant_score":
        return holds(inner["filter"], row)
    if kind == "dis_max":
        return any(holds(q, row) for q in inner["queries"])
    assert kind == "bool", kind
    return combined(row, inner)


def multi(row: dict[str, Any], inner: dict[str, Any]) -> bool:
    fields = [f.split("^")[0] for f in inner.get("fields", TEXT)]
    fields = ["title" if name == "ti*" else name for name in fields]
    kind = inner.get("type", "best_fields")
    if kind in ("phrase", "phrase_prefix"):
        name = "match_phrase" if kind == "phrase" else "match_phrase_prefix"
        options = {"slop": inner.get("slop", 0)}
        return any(holds({name: {f: {"query": inner["query"], **options}}}, row) for f in fields)
    if kind == "cross_fields":
        votes = [any(w in terms(row, f) for f in fields) for w in words(inner["query"])]
        return all(votes) and bool(votes) if inner.get("operator") == "and" else any(votes)
    options = {k: v for k, v in inner.items() if k not in ("query", "fields", "type")}
    return any(matched(row, f, inner["query"], options) for f in fields)


def combined(row: dict[str, Any], inner: dict[str, Any]) -> bool:
    def listed(key: str) -> list[Any]:
        given = inner.get(key, [])
        return [given] if isinstance(given, dict) else list(given)

    must, should = listed("must") + listed("filter"), listed("should")
    least = inner.get("minimum_should_match", 0 if must or not should else 1)
    votes = sum(holds(q, row) for q in should)
    return (
        all(holds(q, row) for q in must)
        and not any(holds(q, row) for q in listed("must_not"))
        and votes >= at_least(least, len(should))
    )


def corpus() -> list[dict[str, Any]]:
    """At least 200 queries of every kind."""
    made: list[dict[str, Any]] = [{"match_all": {}}, {"match_none": {}}]
    for text in (
        "quick",
        "QUICK fox",
        "disk full error",
        "absent",
        "timeout reading",
        "...",
        "28",
        "the and",
    ):
        made += [{"match": {"msg": text}}, {"match": {"msg": {"query": text, "operator": "and"}}}]
        made += [{"match": {"msg": {"query": text, "fuzziness": f}}} for f in (1, "AUTO")]
        made += [
            {"match": {"msg": {"query": text, "minimum_should_match": m}}}
            for m in (2, "75%", "-1", "2<-1")
        ]
        made.append({"multi_match": {"query": text, "fields": ["msg", "title^2"]}})
        made.append({"multi_match": {"query": text, "fields": ["msg", "ti*"], "operator": "and"}})
        made.append(
            {
                "multi_match": {
                    "query": text,
                    "fields": ["msg", "title"],
                    "type": "cross_fields",
                    "operator": "and",
                }
            }
        )
        made.append({"multi_match": {"query": text, "fields": ["msg", "title"], "type": "phrase"}})
    for text in (
        "quick brown",
        "brown quick",
        "error code",
        "quick fox",
        "disk",
        "timeout timeout",
        "fox quick brown",
    ):
        made.append({"match_phrase": {"msg": text}})
        made += [{"match_phrase": {"msg": {"query": text, "slop": s}}} for s in (1, 2, 5)]
        made += [
            {"match_phrase_prefix": {"msg": text[:-1]}},
            {"match_bool_prefix": {"msg": text[:-2]}},
        ]
    for value in ("web-1", "WEB-1", "in progress", "a*b", "absent", "db-1"):
        made += [
            {"term": {"host": value}},
            {"match": {"host": value}},
            {"match_phrase": {"host": value}},
        ]
        made.append({"term": {"host": {"value": value, "case_insensitive": True}}})
        made.append({"prefix": {"host": value[:3]}})
        made.append({"fuzzy": {"host": {"value": value, "fuzziness": 1}}})
    for value in ("quick", "Quick", "error code", "fax"):
        made += [
            {"term": {"msg": value}},
            {"fuzzy": {"msg": value}},
            {"wildcard": {"msg": value[:2] + "*"}},
        ]
        made.append({"fuzzy": {"msg": {"value": value, "fuzziness": 2, "prefix_length": 1}}})
    made += [
        {"terms": {f: v}}
        for f, v in (
            ("host", ["web-1", "db-1"]),
            ("n", [1, 3, 99]),
            ("msg", ["fox", "disk"]),
            ("ok", [True]),
            ("host", []),
        )
    ]
    made += [
        {"term": {f: v}}
        for f, v in (
            ("n", 3),
            ("n", "3"),
            ("ok", True),
            ("ok", False),
            ("price", 1.5),
            ("ts", "2024-03-15"),
            ("n", -4),
        )
    ]
    made += [{"exists": {"field": f}} for f in ("msg", "n", "ok", "price", "ts", "host")]
    for options in (
        {"gte": 3},
        {"gt": 3},
        {"lt": 3},
        {"lte": 3},
        {"gte": 1, "lt": 8},
        {"gt": 2.5},
        {"gte": None, "lte": 0},
        {"gte": 9, "lte": 1},
    ):
        made += [{"range": {"n": options}}, {"range": {"price": options}}]
    for options in (
        {"gte": "now-1d", "lte": "now"}, {"gte": "now/d"}, {"lt": "now/d"}, {"lte": "now/d"}, {"gt": "now/d"}, {"gte": "now-1d/d", "lt": "now/d"},
        {"gte": "now-1w/w"}, {"gte": "now-1M/M", "lt": "now/M"}, {"gte": "2024-01-01||/y"}, {"lt": "2024"}, {"lte": "2023"}, {"gt": "2023"},
        {"gte": "2024-02-29||+1M"}, {"gte": "2024-01", "lt": "2024-03"}, {"gte": "2024-03-14T12:30:00", "lte": "2024-03-15"},
        {"gte": "now-30m"}, {"gte": "now-1s"}, {"lt": "now-2y/y+6M"}, {"gte": "2024-03-08||-1d/d", "lte": "2024-03-08||+6h"},
    ):  # fmt: skip
        made.append({"range": {"ts": options}})
    made += [
        {"range": {"host": {"gte": "db", "lt": "web-2"}}},
        {"range": {"host": {"gt": "web-1"}}},
    ]
    made += [{"wildcard": {"host": p}} for p in ("web-?", "*1", "a\\*b", "*e*", "W*")]
    made += [
        {"wildcard": {"host": {"wildcard": "w*", "case_insensitive": True}}},
        {"wildcard": {"msg": {"value": "QU*"}}},
    ]
    made += [
        {"regexp": {f: p}}
        for f, p in (("msg", "f.x"), ("host", "web-[0-9]+"), ("msg", "qu(ick|iz)ly?"))
    ]
    made.append({"regexp": {"host": {"value": "web-1", "case_insensitive": True}}})
    fox, disk, three, web = (
        {"match": {"msg": "fox"}},
        {"match": {"msg": "disk"}},
        {"range": {"n": {"gte": 3}}},
        {"prefix": {"host": "web"}},
    )
    made += [
        {"bool": {}},
        {"bool": {"must": [fox, web]}},
        {"bool": {"should": [fox, disk]}},
        {"bool": {"must_not": [fox]}},
        {"bool": {"must": fox, "should": [web, three]}},
        {"bool": {"must": [fox], "should": [web, three], "minimum_should_match": 1}},
        {"bool": {"filter": [three], "should": [fox, disk]}},
        {"bool": {"filter": [three], "should": [fox, disk], "minimum_should_match": 1}},
        {"bool": {"should": [fox, disk, web, three], "minimum_should_match": 2}},
        {"bool": {"should": [fox, disk, web, three], "minimum_should_match": "50%"}},
        {"bool": {"should": [fox, disk, web], "minimum_should_match": -1}},
        {"bool": {"should": [fox], "minimum_should_match": 3}},
        {
            "bool": {
                "must": [{"bool": {"should": [fox, disk]}}],
                "must_not": {"bool": {"must": [web, three]}},
            }
        },
        {"constant_score": {"filter": disk, "boost": 3}},
        {"dis_max": {"queries": [fox, web], "tie_breaker": 0.3}},
        {"bool": {"must_not": [{"exists": {"field": "msg"}}]}},
    ]
    made += [
        {"bool": {"must": [a], "must_not": [b]}}
        for a in (fox, disk, three, web)
        for b in (fox, disk, three, web)
    ]
    return made
