"""Which columns are searched, and by which structure.

* tokenised text: an inverted index with positions (or as the mapping says), and lengths for scores;
* exact strings: terms of one shared inverted field (``keywords``) and a table of ``codes``, unless
  nearly every value is different. Then a table of value hashes is a tenth of the work to write and
  a sixth of the size, and one row has to be verified (``hash``);
* JSON: one inverted index of ``path token`` terms (see ``pathtokens``);
* integers, bools and dates of few values: terms and codes, as exact strings are (``keyed``);
* other integers, unless they come in order: a table of value hashes (``hashed``);
* all numbers, times and decimals of at most 18 digits: bounds of ``zones`` of rows, which narrow
  ranges; ``-0.0`` is ``0.0``, every NaN is one above infinity, exactly as SQL wants it;
* ip: columnar 128-bit addresses;
* binary and wide decimals: a table of hashes;
* which columns are null in a row: terms of the shared field, which answer IS NULL and "exists" for
  every kind of column alike.

The decision is made on a sample of the split's first rows and never changes what a query returns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from indextables.expr.analyzers import tantivy_analyzer, tantivy_name
from indextables.expr.grams import GRAMS, SIZE
from indextables.mapping import DEFAULT_TOKEN_LENGTH, DocMapping, FieldMapping
from indextables.splits.format.info import IndexField
from indextables.splits.lookup.keywords import KEYS

BLANKS = "blanks"
SAMPLE_ROWS = 32_768
NEAR_UNIQUE = 0.5
FEW_NUMBERS = 1024


def plan_fields(schema: pa.Schema, mapping: DocMapping, sample: pa.Table) -> list[IndexField]:
    """How each column of a split will be searched; ``sample`` are its first rows."""
    return [
        _plan_field(number, column, mapping.get(column.name), sample.column(column.name))
        for number, column in enumerate(schema)
    ]


def _plan_field(
    number: int, column: pa.Field, mapping: FieldMapping | None, sample: Any
) -> IndexField:
    name = f"f{number}"
    if mapping is None or not mapping.indexed or mapping.type == "null":
        return IndexField(column.name, "none", name)
    if mapping.is_tokenized:
        tokenizer = mapping.tokenizer or "default"
        return IndexField(
            column.name,
            "text",
            name,
            tokenizer=tokenizer,
            token_length=mapping.token_length,
            record=mapping.record,
            grams=mapping.substring,
        )
    if mapping.type == "text":
        return replace(_plan_exact(column.name, name, sample), grams=mapping.substring)
    if mapping.type == "json":
        return IndexField(column.name, "paths", name, record="position")
    if mapping.type in ("ip", "f64"):
        return IndexField(column.name, mapping.type, name)
    if mapping.type == "bytes" or is_wide_decimal(column.type):
        return IndexField(column.name, "hash", name)
    return _plan_number(column, name, sample)


def _plan_exact(column: str, name: str, sample: Any) -> IndexField:
    valid = len(sample) - sample.null_count
    distinct = len(sample.unique()) if valid else 0
    if valid >= 1024 and distinct > NEAR_UNIQUE * valid:
        return IndexField(column, "hash", name)
    return IndexField(column, "term", name)


def _plan_number(column: pa.Field, name: str, sample: Any) -> IndexField:
    t = pa.types
    whole = t.is_integer(column.type)
    if not (whole or t.is_boolean(column.type) or t.is_date(column.type)):
        return IndexField(column.name, "i64", name)
    if len(sample.unique()) <= FEW_NUMBERS:
        return IndexField(column.name, "i64", name, keyed=True)
    return IndexField(column.name, "i64", name, hashed=whole and not _ascends(sample))


def _ascends(sample: Any) -> bool:
    values = sample.drop_null().to_numpy()
    return bool((values[1:] >= values[:-1]).all())


def is_wide_decimal(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(dtype)) and dtype.precision > 18


def has_own_field(field: IndexField) -> bool:
    """Does the index hold the column in a field of its own?"""
    return field.kind in ("text", "paths", "ip")


def has_terms(field: IndexField) -> bool:
    """Are the column's whole values terms of the shared field?"""
    return field.kind == "term" or field.keyed


def has_hashes(field: IndexField) -> bool:
    """Has the column a table of value hashes?"""
    return field.kind == "hash" or field.hashed


def has_zones(field: IndexField) -> bool:
    """Are there bounds of the column's zones?"""
    return field.kind in ("i64", "f64")


def column_number(field: IndexField) -> int:
    return int(field.name[1:])


# -- tantivy's view ------------------------------------------------------------------------------


def tantivy_fields(fields: list[IndexField]) -> list[str]:
    """Names of the index's fields in the order of the schema."""
    own = [f.name for f in fields if has_own_field(f)]
    return [KEYS, *own, *(f.gram_name for f in fields if f.grams)]


def tantivy_schema(fields: list[IndexField]) -> Any:
    """The index schema; tantivy's builder cannot say all of this, its JSON form can."""
    import tantivy

    entries = [_text(KEYS, BLANKS, "basic", norms=False)]
    entries += [_entry(field) for field in fields if has_own_field(field)]
    entries += [_text(f.gram_name, GRAMS, "basic", norms=False) for f in fields if f.grams]
    return tantivy.Schema._internal_from_pythonized({"inner": entries})


def _entry(field: IndexField) -> dict[str, Any]:
    if field.kind == "text":
        analyzer = tantivy_name(field.tokenizer, field.token_length)
        return _text(field.name, analyzer, field.record, norms=True)
    if field.kind == "paths":
        return _text(field.name, BLANKS, field.record, norms=False)
    options = {"indexed": False, "fieldnorms": False, "fast": True, "stored": False}
    return {"name": field.name, "type": "ip_addr", "options": options}


def _text(name: str, analyzer: str, record: str, *, norms: bool) -> dict[str, Any]:
    indexing = {"record": record, "fieldnorms": norms, "tokenizer": analyzer}
    options = {"indexing": indexing, "stored": False, "fast": False}
    return {"name": name, "type": "text", "options": options}


def register_analyzers(index: Any, fields: list[IndexField]) -> None:
    """Make the analyzers of the fields known to an index that is going to be written."""
    from tantivy import TextAnalyzerBuilder, Tokenizer

    index.register_tokenizer(BLANKS, TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    if any(field.grams for field in fields):
        pieces = Tokenizer.ngram(SIZE, SIZE, False)
        index.register_tokenizer(GRAMS, TextAnalyzerBuilder(pieces).build())
    for field in fields:
        if field.kind == "text":
            length = field.token_length or DEFAULT_TOKEN_LENGTH
            analyzer = tantivy_analyzer(field.tokenizer, length)
            index.register_tokenizer(tantivy_name(field.tokenizer, length), analyzer)
