"""The query language of Elasticsearch as data: a dict in, the same query AST out.

``{"match": {"message": "disk full"}}`` and the others mean the rows that they mean there: ``match``
asks for any word unless ``operator`` says ``and``; ``term`` is not cut into words; ``filter`` and
``must_not`` do not score; ``query_string`` joins words by OR. Values are read by the column's type
as a search string's are (``searchfields``), so dates may be computed (``now-1d/d``).

Different on purpose: ``max_expansions`` is not needed and does nothing, ``best_fields`` and
``dis_max`` add the scores of their parts instead of taking the best, and ``constant_score`` scores
nothing. What is not listed in ``_KINDS``, and any parameter that would change the rows and is not
known here, is an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from indextables.errors import QuerySyntaxError
from indextables.expr import ast, timetext
from indextables.expr.datemath import fixed_now
from indextables.expr.querystring import parse_query
from indextables.expr.searchfields import BadLiteralError, SearchField, any_of, escape_wildcards
from indextables.expr.searchscope import SearchScope
from indextables.mapping import DocMapping

_AUTO = re.compile(r"AUTO(?::(\d+),(\d+))?$", re.I)
_RULE = re.compile(r"(\d+)<(-?\d+%?)$")


def parse_elastic(
    body: Mapping[str, Any],
    *,
    default_fields: Sequence[str],
    mapping: DocMapping,
    schema: pa.Schema,
    time_zone: str = "UTC",
) -> ast.Query:
    """The query that a dict means; a whole search body may stand around it."""
    made = _Reader(tuple(default_fields), mapping, schema, time_zone)
    with fixed_now():
        return made.read(made.inside(body))


class _Reader:
    """Reads one dict."""

    def __init__(
        self, defaults: tuple[str, ...], mapping: DocMapping, schema: pa.Schema, zone: str
    ) -> None:
        self._defaults = defaults
        self._mapping = mapping
        self._schema = schema
        self._zone = zone
        self._scope = SearchScope(mapping, schema, timetext.zone(zone))

    def inside(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The query of a whole search body."""
        if not isinstance(body, Mapping) or "query" not in body:
            return body
        more = sorted(k for k in body if k != "query")
        if more:
            raise _wrong(
                f"a search takes only the query of a body, not {', '.join(more)}",
                "Use the arguments limit=, columns= and fields= of search",
            )
        return dict(body["query"])

    def read(self, body: Any) -> ast.Query:
        if not isinstance(body, Mapping) or len(body) != 1:
            raise _wrong(f"a query is a dict with one key, not {_short(body)}")
        ((kind, inner),) = body.items()
        reader = _KINDS.get(kind)
        if reader is None:
            raise _wrong(f"the query '{kind}' is not known", f"Known: {', '.join(sorted(_KINDS))}")
        try:
            return reader(self, inner)
        except BadLiteralError as error:
            raise _wrong(f"{kind}: {error}") from None

    # -- fields -----------------------------------------------------------------------------------

    def field(self, name: str) -> SearchField:
        return self._scope.field(name)

    def fields(self, names: Sequence[str]) -> list[tuple[SearchField, float]]:
        """Fields with boosts."""
        return [(self.field(name), boost) for name, boost in self._named(names)]

    def _named(self, names: Sequence[str]) -> list[tuple[str, float]]:
        """Names with boosts: ``title^2``, ``log_*``."""
        found: list[tuple[str, float]] = []
        for spelled in names:
            name, _, boost = str(spelled).partition("^")
            listed = [name]
            if "*" in name:
                listed = [n for n in self._scope.names if fnmatchcase(n, name)]
            found += [(n, float(boost) if boost else 1.0) for n in listed]
        if not found:
            raise _wrong(f"no field is named by {list(names)}")
        return found

    def one_field(self, kind: str, inner: Any, value: str, known: Sequence[str]) -> _Asked:
        """``{field: value}`` or ``{field: {value: ..., parameters}}``."""
        if not isinstance(inner, Mapping) or len(inner) != 1:
            raise _wrong(f"{kind} takes one field, not {_short(inner)}")
        ((name, given),) = inner.items()
        if not isinstance(given, Mapping):
            given = {value: given}
        options = _options(kind, given, (value, "boost", "_name", *known))
        if value and value not in options:
            raise _wrong(f"{kind} of '{name}' has no '{value}'")
        return _Asked(self.field(name), options.pop(value, None), options)

    # -- words ------------------------------------------------------------------------------------

    def match(self, inner: Any) -> ast.Query:
        known = ("operator", "fuzziness", "prefix_length", "minimum_should_match",
                 "zero_terms_query", "max_expansions")  # fmt: skip
        return self._match(self.one_field("match", inner, "query", known))

    def _match(self, asked: _Asked) -> ast.Query:
        field, text, options = asked.field, _text(asked.value), asked.options
        if not field.is_text or field.mapping.is_exact_text:
            return asked.boosted(self._fuzzy_word(field, text, options))
        words = list(dict.fromkeys(field.tokens(text)))
        if not words:
            everything = str(options.get("zero_terms_query", "none")).lower() == "all"
            return ast.MatchAll() if everything else ast.MatchNone()
        parts = tuple(self._fuzzy_word(field, word, options) for word in words)
        return asked.boosted(_joined(parts, options))

    def _fuzzy_word(self, field: SearchField, word: str, options: Mapping[str, Any]) -> ast.Query:
        distance = _fuzziness(options.get("fuzziness", 0), word)
        if distance and field.is_text:
            return field.fuzzy(word, distance, same=int(options.get("prefix_length", 0)))
        return field.literal(word)

    def match_phrase(self, inner: Any) -> ast.Query:
        asked = self.one_field("match_phrase", inner, "query", ("slop",))
        slop = int(asked.options.get("slop", 0))
        return asked.boosted(asked.field.phrase(_text(asked.value), slop))

    def match_phrase_prefix(self, inner: Any) -> ast.Query:
        known = ("slop", "max_expansions")
        asked = self.one_field("match_phrase_prefix", inner, "query", known)
        slop = int(asked.options.get("slop", 0))
        return asked.boosted(asked.field.phrase(_text(asked.value), slop, prefix=True))

    def match_bool_prefix(self, inner: Any) -> ast.Query:
        known = ("operator", "minimum_should_match")
        asked = self.one_field("match_bool_prefix", inner, "query", known)
        words = asked.field.tokens(_text(asked.value))
        if not words:
            return ast.MatchNone()
        start = asked.field.wildcard(escape_wildcards(words[-1]) + "*")
        parts = (*(asked.field.literal(word) for word in words[:-1]), start)
        return asked.boosted(_joined(parts, asked.options))

    def multi_match(self, inner: Any) -> ast.Query:
        known = ("query", "fields", "type", "operator", "fuzziness", "prefix_length", "boost",
                 "minimum_should_match", "slop", "max_expansions", "tie_breaker",
                 "zero_terms_query")  # fmt: skip
        options = _options("multi_match", inner, known)
        fields = self.fields(options.get("fields") or self._defaults)
        kind = options.get("type", "best_fields")
        text = _text(options.get("query"))
        if kind == "cross_fields":
            return self._across(fields, text, options)
        parts = []
        for field, boost in fields:
            try:
                part = self._one_of_many(field, kind, text, options)
            except BadLiteralError:
                if len(fields) == 1:
                    raise
                continue
            parts.append(_boost(part, boost))
        return _boost(any_of(parts), options.get("boost"))

    def _one_of_many(
        self, field: SearchField, kind: str, text: str, options: Mapping[str, Any]
    ) -> ast.Query:
        if kind in ("best_fields", "most_fields"):
            return self._match(_Asked(field, text, {**options, "boost": 1}))
        if kind not in ("phrase", "phrase_prefix"):
            raise _wrong(f"multi_match of type '{kind}' is not known")
        slop = int(options.get("slop", 0))
        return field.phrase(text, slop, prefix=kind == "phrase_prefix")

    def _across(
        self, fields: list[tuple[SearchField, float]], text: str, options: Mapping[str, Any]
    ) -> ast.Query:
        """Each word may be in any of the fields."""
        words = list(dict.fromkeys(w for field, _ in fields for w in field.tokens(text)))
        if not words:
            return ast.MatchNone()
        parts = tuple(
            any_of([_boost(field.literal(word), boost) for field, boost in fields])
            for word in words
        )
        return _boost(_joined(parts, options), options.get("boost"))

    def query_string(self, inner: Any) -> ast.Query:
        known = ("query", "default_field", "fields", "default_operator", "boost", "time_zone",
                 "minimum_should_match", "analyze_wildcard", "allow_leading_wildcard")  # fmt: skip
        options = _options("query_string", inner, known)
        named = options.get("fields") or options.get("default_field")
        names = list(self._defaults)
        if named not in (None, "*"):
            given = [named] if isinstance(named, str) else named
            names = [name for name, _ in self._named(given)]
        query = parse_query(
            _text(options.get("query")),
            default_fields=names,
            mapping=self._mapping,
            schema=self._schema,
            time_zone=options.get("time_zone", self._zone),
            default_operator=str(options.get("default_operator", "or")).lower(),
        )
        least = options.get("minimum_should_match")
        if least is not None and isinstance(query, ast.Bool) and query.should:
            needed = _at_least(least, len(query.should))
            query = ast.Bool(query.must, query.should, query.must_not, needed)
        return _boost(query, options.get("boost"))

    # -- whole terms ------------------------------------------------------------------------------

    def term(self, inner: Any) -> ast.Query:
        asked = self.one_field("term", inner, "value", ("case_insensitive",))
        if asked.options.get("case_insensitive"):
            return asked.boosted(asked.field.regex(_any_case(_text(asked.value))))
        return asked.boosted(_whole(asked.field, asked.value))

    def terms(self, inner: Any) -> ast.Query:
        options = dict(inner) if isinstance(inner, Mapping) else {}
        boost = options.pop("boost", None)
        options.pop("_name", None)
        if len(options) != 1:
            raise _wrong(f"terms takes one field, not {_short(inner)}")
        ((name, values),) = options.items()
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise _wrong(f"terms of '{name}' takes a list")
        field = self.field(name)
        parts = [_whole(field, value) for value in values]
        same = {p.value for p in parts if isinstance(p, ast.Term)}
        if parts and len(same) == len(parts) and all(isinstance(v, str) for v in same):
            found = tuple(p.value for p in parts if isinstance(p, ast.Term))
            return _boost(ast.TermSet(field.name, found), boost)
        return _boost(any_of(parts), boost)

    def range(self, inner: Any) -> ast.Query:
        known = ("gte", "gt", "lte", "lt", "time_zone", "format", "relation")
        asked = self.one_field("range", inner, "", known)
        options, field = asked.options, asked.field
        if options.get("relation", "INTERSECTS").upper() != "INTERSECTS":
            raise _wrong("range: relation is not known")
        if "time_zone" in options:
            field = replace(field, tz=timetext.zone(str(options["time_zone"])))
        lower = options.get("gte", options.get("gt"))
        upper = options.get("lte", options.get("lt"))
        return asked.boosted(
            field.range(
                None if lower is None else _text(lower),
                None if upper is None else _text(upper),
                options.get("gte") is not None or lower is None,
                options.get("lte") is not None or upper is None,
            )
        )

    def exists(self, inner: Any) -> ast.Query:
        options = _options("exists", inner, ("field", "boost"))
        return self.field(_text(options.get("field"))).exists()

    def prefix(self, inner: Any) -> ast.Query:
        asked = self.one_field("prefix", inner, "value", ("case_insensitive", "rewrite"))
        return asked.pattern(escape_wildcards(_text(asked.value)) + "*")

    def wildcard(self, inner: Any) -> ast.Query:
        if isinstance(inner, Mapping) and len(inner) == 1:
            ((name, given),) = inner.items()
            if isinstance(given, Mapping) and "wildcard" in given:
                given = {**given, "value": given["wildcard"]}
                inner = {name: {k: v for k, v in given.items() if k != "wildcard"}}
        asked = self.one_field("wildcard", inner, "value", ("case_insensitive", "rewrite"))
        return asked.pattern(_text(asked.value))

    def regexp(self, inner: Any) -> ast.Query:
        known = ("case_insensitive", "flags", "max_determinized_states", "rewrite")
        asked = self.one_field("regexp", inner, "value", known)
        pattern = _text(asked.value)
        if asked.options.get("case_insensitive"):
            pattern = f"(?i:{pattern})"
        return asked.boosted(asked.field.regex(pattern))

    def fuzzy(self, inner: Any) -> ast.Query:
        known = ("fuzziness", "prefix_length", "max_expansions", "transpositions", "rewrite")
        asked = self.one_field("fuzzy", inner, "value", known)
        options, text = asked.options, _text(asked.value)
        if options.get("transpositions", True) is not True:
            raise _wrong("fuzzy without transpositions is not known")
        distance = _fuzziness(options.get("fuzziness", "AUTO"), text)
        same = int(options.get("prefix_length", 0))
        return asked.boosted(asked.field.fuzzy(text, distance, same=same, cut=False))

    # -- combinations -----------------------------------------------------------------------------

    def boolean(self, inner: Any) -> ast.Query:
        known = ("must", "filter", "should", "must_not", "minimum_should_match", "boost", "_name")
        options = _options("bool", inner, known)
        must = [self.read(q) for q in _listed(options.get("must"))]
        must += [ast.Boost(self.read(q), 0.0) for q in _listed(options.get("filter"))]
        should = [self.read(q) for q in _listed(options.get("should"))]
        must_not = [self.read(q) for q in _listed(options.get("must_not"))]
        least = options.get("minimum_should_match")
        needed = None if least is None else _at_least(least, len(should))
        if not (must or should or must_not):
            return ast.MatchAll()
        if needed is not None and needed > len(should):
            return ast.MatchNone()
        made = ast.Bool(tuple(must), tuple(should), tuple(must_not), needed)
        return _boost(made, options.get("boost"))

    def constant_score(self, inner: Any) -> ast.Query:
        options = _options("constant_score", inner, ("filter", "boost"))
        return ast.Boost(self.read(options.get("filter")), 0.0)

    def dis_max(self, inner: Any) -> ast.Query:
        options = _options("dis_max", inner, ("queries", "tie_breaker", "boost"))
        parts = [self.read(q) for q in _listed(options.get("queries"))]
        return _boost(any_of(parts), options.get("boost"))

    def match_all(self, inner: Any) -> ast.Query:
        _options("match_all", inner, ("boost",))
        return ast.MatchAll()

    def match_none(self, inner: Any) -> ast.Query:
        _options("match_none", inner, ())
        return ast.MatchNone()


_KINDS: dict[str, Callable[[_Reader, Any], ast.Query]] = {
    "match": _Reader.match,
    "match_phrase": _Reader.match_phrase,
    "match_phrase_prefix": _Reader.match_phrase_prefix,
    "match_bool_prefix": _Reader.match_bool_prefix,
    "multi_match": _Reader.multi_match,
    "query_string": _Reader.query_string,
    "term": _Reader.term,
    "terms": _Reader.terms,
    "range": _Reader.range,
    "exists": _Reader.exists,
    "prefix": _Reader.prefix,
    "wildcard": _Reader.wildcard,
    "regexp": _Reader.regexp,
    "fuzzy": _Reader.fuzzy,
    "bool": _Reader.boolean,
    "constant_score": _Reader.constant_score,
    "dis_max": _Reader.dis_max,
    "match_all": _Reader.match_all,
    "match_none": _Reader.match_none,
}


@dataclass(frozen=True)
class _Asked:
    """A field, what it is asked, and how."""

    field: SearchField
    value: Any
    options: dict[str, Any]

    def boosted(self, query: ast.Query) -> ast.Query:
        return _boost(query, self.options.get("boost"))

    def pattern(self, pattern: str) -> ast.Query:
        """Terms that fit a pattern; as it is written unless case does not matter."""
        if self.options.get("case_insensitive"):
            return self.boosted(self.field.regex(_any_case_pattern(pattern)))
        return self.boosted(self.field.wildcard(pattern, folded=False))


def _whole(field: SearchField, value: Any) -> ast.Query:
    """One term as it is: words are not cut."""
    if field.mapping.is_tokenized:
        return ast.Term(field.name, _text(value))
    return field.literal(_text(value))


def _options(kind: str, given: Any, known: Sequence[str]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise _wrong(f"{kind} takes a dict, not {_short(given)}")
    more = sorted(str(k) for k in given if k not in known)
    if more:
        allowed = ", ".join(k for k in known if k) or "none"
        raise _wrong(f"{kind} does not know {', '.join(more)}", f"Known: {allowed}")
    return dict(given)


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return [given] if isinstance(given, Mapping) else list(given)


def _text(value: Any) -> str:
    if value is None or isinstance(value, Mapping | list | tuple):
        raise _wrong(f"{_short(value)} is no value")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _boost(query: ast.Query, factor: Any) -> ast.Query:
    if factor is None or float(factor) == 1.0:
        return query
    return ast.Boost(query, float(factor))


def _joined(parts: tuple[ast.Query, ...], options: Mapping[str, Any]) -> ast.Query:
    operator = str(options.get("operator", "or")).lower()
    if operator not in ("and", "or"):
        raise _wrong(f"the operator '{operator}' is not and or or")
    if operator == "and":
        return parts[0] if len(parts) == 1 else ast.Bool(must=parts)
    least = options.get("minimum_should_match")
    needed = 1 if least is None else max(_at_least(least, len(parts)), 1)
    if needed > len(parts):
        return ast.MatchNone()
    return parts[0] if len(parts) == 1 else ast.Bool(should=parts, minimum_should_match=needed)


def _at_least(given: Any, count: int) -> int:
    """How many of so many clauses: ``2``, ``-1``, ``75%``, ``-25%``, ``2<75%``, ``2<-1 9<50%``."""
    text = str(given).strip()
    rules = [_RULE.match(part) for part in text.split()]
    if rules and all(rules):
        applied = [m[2] for m in rules if m is not None and count > int(m[1])]
        text = applied[-1] if applied else str(count)
    try:
        number = int(int(text[:-1]) * count / 100) if text.endswith("%") else int(text)
    except ValueError:
        raise _wrong(f"minimum_should_match '{given}' is not understood") from None
    return max(number if number >= 0 else count + number, 0)


def _fuzziness(given: Any, word: str) -> int:
    if match := _AUTO.match(str(given)):
        low, high = int(match[1] or 3), int(match[2] or 6)
        return 0 if len(word) < low else 1 if len(word) < high else 2
    try:
        distance = int(float(str(given)))
    except ValueError:
        raise _wrong(f"the fuzziness '{given}' is not understood") from None
    if not 0 <= distance <= 2:
        raise _wrong(f"a fuzziness is 0, 1, 2 or AUTO, not {given}")
    return distance


def _any_case(text: str) -> str:
    return f"(?i:{re.escape(text)})"


def _any_case_pattern(pattern: str) -> str:
    """A pattern with ``*`` and ``?`` as a regular expression without regard to case."""
    parts = re.split(r"(\\.|[*?])", pattern, flags=re.S)
    wild = {"*": ".*", "?": "."}
    spelled = (
        wild.get(p) or re.escape(p[1:] if len(p) == 2 and p[0] == "\\" else p) for p in parts
    )
    return f"(?is:{''.join(spelled)})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _wrong(message: str, hint: str | None = None) -> QuerySyntaxError:
    return QuerySyntaxError(message, query="", hint=hint)
