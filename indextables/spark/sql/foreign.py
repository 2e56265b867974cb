"""Statements of Delta and Iceberg that Spark alone cannot read, and what we have in their place.

They are looked at only when Spark's parser has refused a text, so a library that does read them is
never disturbed.
"""

from __future__ import annotations

import re

_TABLE = r"(?:TABLE\s+)?(?P<table>[\w.]+|(?:[\w]+\.)?`[^`]+`|delta\.`[^`]+`)"
_INSTEAD = (
    (rf"OPTIMIZE\s+{_TABLE}", "MERGE SPLITS {table}; rows are kept in order by CLUSTER BY"),
    (rf"VACUUM\s+{_TABLE}", "PURGE INDEXTABLE {table} DRY RUN, then without DRY RUN"),
    (
        rf"RESTORE\s+{_TABLE}",
        "INSERT OVERWRITE {table} SELECT * FROM {table} VERSION AS OF the version",
    ),
    (rf"(?:FSCK\s+REPAIR)\s+{_TABLE}", "DOCTOR {table}"),
    (rf"GENERATE\s+\S+\s+FOR\s+{_TABLE}", "the metadata tables {table}.splits and {table}.history"),
    (r"CONVERT\s+TO\b", "CREATE TABLE ... USING indextables AS SELECT * FROM the other table"),
    (
        r"CREATE\s.*\b(?:SHALLOW|DEEP)\s+CLONE\b",
        "CREATE TABLE ... USING indextables AS SELECT * FROM the other table",
    ),
    (
        rf"ALTER\s+{_TABLE}\s+(?:ADD|DROP|REPLACE)\s+PARTITION\s+FIELD\b",
        "CREATE OR REPLACE TABLE {table} ... PARTITIONED BY ... AS SELECT * FROM {table}",
    ),
    (rf"ALTER\s+{_TABLE}\s+WRITE\s+", "ALTER TABLE {table} CLUSTER BY (columns)"),
    (
        rf"ALTER\s+{_TABLE}\s+(?:CREATE|REPLACE|DROP)\s+(?:BRANCH|TAG)\b",
        "VERSION AS OF, which reads any version that is kept; there are no branches",
    ),
)


def advice(text: str) -> str | None:
    """What to write instead of a statement that Spark could not read, where we know it."""
    plain = re.sub(r"^(?:\s|--[^\n]*\n|/\*.*?\*/)*", "", text, flags=re.DOTALL)
    for pattern, instead in _INSTEAD:
        found = re.match(pattern, plain, re.IGNORECASE | re.DOTALL)
        if found is not None:
            table = found.groupdict().get("table") or ""
            return (
                f"Spark does not know this statement. For a table of indextables write "
                f"{instead.format(table=table)}. Nothing was changed"
            )
    return None
