"""The verbs: everything that can be done to a table besides reading and writing rows.

Each is one class (``verbs.base`` says what it holds); SQL, ``Table`` and the command line are
derived from the classes in ``REGISTRY``.
"""

from __future__ import annotations

from indextables.verbs import caches, columns, companions, indexes, logs, looking, splits
from indextables.verbs.base import REGISTRY, Target, Verb, as_table, first_words, invoke, method

__all__ = [
    "REGISTRY", "Target", "Verb", "as_table", "caches", "columns", "companions", "first_words",
    "indexes", "invoke", "logs", "looking", "method", "splits",
]  # fmt: skip
