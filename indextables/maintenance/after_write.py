"""What a commit sets off, each by its setting: cross-references, merge, purge.

None of it may fail the write that came before: a failure is logged, the table is as good as it was.
"""

from __future__ import annotations

from indextables.config import Config
from indextables.log.log import TransactionLog
from indextables.xref.auto import run_auto_index


def run_after_write(log: TransactionLog, config: Config) -> None:
    """Run everything that is due after a commit."""
    run_auto_index(log, config)
