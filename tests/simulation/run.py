"""Simulate tables: ``run.py [--seeds N] [--first S]``, ``--seed S`` for one, ``--planted``.

``--seed S`` replays one seed in a second or two and tells its story; with ``--calls`` every store
call of it. A run of many seeds ends with what it did: faults, rules, steps, and which of them never
happened, which fails the run. ``--planted`` hunts every planted bug (or those named) and prints the
table of ``docs/reliability.md``; ``--place`` chooses ``local`` (memory and disk), ``disk`` or
``s3`` (a server is started).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from sim_planted import PLANTED
from sim_run import Outcome, Tally, hunt, simulate
from sim_stories import STORIES
from sim_world import Place

AGAIN = "python tests/simulation/run.py --seed {seed}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="replay one seed and tell its story")
    parser.add_argument("--calls", action="store_true", help="with --seed: every store call")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--place", choices=("local", "disk", "s3"), default="local")
    parser.add_argument("--planted", nargs="*", default=None, metavar="BUG")
    parser.add_argument("--bases", type=int, default=1, help="with --planted: so many hunts each")
    return parser.parse_args()


@contextlib.contextmanager
def place_of(kind: str) -> Iterator[Place | None]:
    if kind != "s3":
        yield Place("disk") if kind == "disk" else None
        return
    from servers import launch

    folder = Path(os.environ.get("INDEXTABLES_SERVERS_DIR") or Path.home() / ".cache/itx-servers")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        running = launch.start_ministack(folder, Path(work))
        try:
            uri, options = running.backend.uri, running.backend.options
            yield Place("s3", f"{uri.rstrip('/')}/simulation", options)
        finally:
            running.server.stop()


def replay(seed: int, place: Place | None, *, calls: bool) -> int:
    """One seed, told."""
    outcome = simulate(seed, place)
    print(f"seed {seed}: {outcome.story}: {STORIES[outcome.story].__doc__}")
    print("\n".join(outcome.calls if calls else outcome.steps))
    print(f"fingerprint {outcome.world.scheduler.fingerprint()}, {outcome.seconds:.2f} s")
    if outcome.failure is None:
        print("every promise was kept")
        return 0
    traceback.print_exception(outcome.failure)
    return 1


def many(first: int, count: int, place: Place | None) -> int:
    tally, start = Tally(), time.monotonic()
    for seed in range(first, first + count):
        outcome = simulate(seed, place)
        tally.add(outcome)
        if outcome.failure is not None:
            print(f"FAILED {told(outcome)}", flush=True)
        outcome.world.scheduler.trace.clear()
        if tally.seeds % 500 == 0:
            print(f"{tally.seeds:>7,} seeds, {time.monotonic() - start:,.0f} s", flush=True)
    return summary(tally)


def told(outcome: Outcome) -> str:
    again = AGAIN.format(seed=outcome.seed)
    return f"seed {outcome.seed} ({outcome.story}): {outcome.failure}\n  repeat it: {again}"


def summary(tally: Tally) -> int:
    print(
        f"{tally.seeds:,} seeds, {tally.calls:,} points, {tally.seconds:,.0f} s of processor time, "
        f"{len(tally.failed)} failed"
    )
    for title, counts in (("steps", tally.steps), ("rules", tally.rules)):
        print(f"{title}: " + ", ".join(f"{n} {c:,}" for n, c in counts.most_common() if c))
    print("faults: " + ", ".join(f"{f.value} {c:,}" for f, c in tally.faults.most_common()))
    if tally.dead_knobs:
        print("NEVER HAPPENED: " + ", ".join(tally.dead_knobs))
    return 1 if tally.failed or tally.dead_knobs else 0


def planted(names: list[str], bases: int) -> int:
    """The table of bugs: seeds needed from several starting points, and what caught them."""
    missed = 0
    print("| bug | where | budget | seeds needed | caught by |\n|---|---|---|---|---|")
    for bug in PLANTED.values():
        if names and bug.name not in names:
            continue
        found = [hunt(bug, base * 100_000) for base in range(bases)]
        caught = [one for one in found if one is not None]
        missed += len(caught) < bases
        checks = ", ".join(sorted({outcome.check for _, outcome in caught})) or "nothing"
        needed = sorted({number for number, _ in caught})
        shown = "-" if not needed else f"{needed[0]} to {needed[-1]}"
        shown += "" if len(caught) == bases else f", missed {bases - len(caught)} of {bases}"
        print(f"| {bug.what} | `{bug.where}` | {bug.budget} | {shown} | {checks} |", flush=True)
    return 1 if missed else 0


def main() -> int:
    asked = arguments()
    logging.getLogger("indextables").setLevel(logging.CRITICAL)
    if asked.planted is not None:
        return planted(asked.planted, asked.bases)
    with place_of(asked.place) as place:
        if asked.seed is not None:
            return replay(asked.seed, place, calls=asked.calls)
        return many(asked.first, asked.seeds, place)


if __name__ == "__main__":
    sys.exit(main())
