"""What follows a commit may not make it look failed.

Once its version is in the log a commit stands. Caches are updated, a checkpoint may be due, then
cross-references, a merge, a purge. A caller that sees an exception out of a write runs it again,
and then the rows are there twice. So every step after a commit runs behind ``follow_up``:

* an ``Exception`` of whatever kind (no memory and programming mistakes included) is logged and kept
  in the result, and the next step runs;
* ``KeyboardInterrupt`` ends the step and those after it, is logged and kept in the result. It is
  not raised again: the write is done, and its result says so;
* ``SystemExit`` goes through, because the process is leaving; it carries a note that the commit
  landed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

logger = logging.getLogger("indextables")

Failures = dict[str, BaseException]


def follow_up(step: str, path: str, failures: Failures, work: Callable[[], object]) -> None:
    """Run one step after a commit; what goes wrong is logged and added to ``failures``."""
    if any(isinstance(error, KeyboardInterrupt) for error in failures.values()):
        return
    try:
        work()
    except (Exception, KeyboardInterrupt) as error:
        failures[step] = error
        shown = str(error) or type(error).__name__
        logger.warning("%s: the commit stands, but %s did not succeed: %s", path, step, shown)
    except SystemExit as leaving:
        leaving.add_note(f"{path}: the commit had landed when {step} was cut off")
        raise
