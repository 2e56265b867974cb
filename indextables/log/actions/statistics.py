"""Short statistics: long texts are cut, partition values never.

Minimum and maximum of a text column are cut to a number of characters, both as plain prefixes. A
cut minimum is still a lower bound. A cut maximum is not an upper bound: it is a prefix of one, and
a stored maximum of full length must be read that way; ``cut`` names the columns where that
happened, for the ``truncated`` list of the ``stats`` text. Numbers and dates are far shorter than
the limit and are never touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from indextables.config import Config


@dataclass(frozen=True, slots=True)
class ShortStatistics:
    """Bounds ready for the log; ``cut`` are the columns whose maximum is now a prefix."""

    min_values: dict[str, str]
    max_values: dict[str, str]
    cut: tuple[str, ...]


def truncate_statistics(
    min_values: Mapping[str, str],
    max_values: Mapping[str, str],
    partition_columns: Iterable[str],
    config: Config,
) -> ShortStatistics:
    """Bounds cut as configured (``stats.truncation.*``)."""
    if not config["stats.truncation.enabled"]:
        return ShortStatistics(dict(min_values), dict(max_values), ())
    limit = config["stats.truncation.maxLength"]
    whole = frozenset(partition_columns)

    def short(values: Mapping[str, str]) -> dict[str, str]:
        return {c: text if c in whole else text[:limit] for c, text in values.items()}

    cut = tuple(c for c, text in max_values.items() if c not in whole and len(text) > limit)
    return ShortStatistics(short(min_values), short(max_values), cut)
