"""Torture tables for some minutes: ``run_torture.py [--minutes M | --lives N] [--seed S]``.

Each life is one table with a seed of its own; a failure prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from torture_world import Shape, World


def torture(seed: int, shape: Shape) -> World:
    """One life; raises what went wrong."""
    world = World(seed, shape)
    world.run()
    return world


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="first seed; default: a random one")
    parser.add_argument("--lives", type=int, default=None, help="tables; default: until the time")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=Shape.rounds)
    parser.add_argument("--steps", type=int, default=Shape.steps)
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    logging.getLogger("indextables").setLevel(logging.CRITICAL)
    shape = Shape(asked.rounds, asked.steps)
    seed = random.SystemRandom().getrandbits(30) if asked.seed is None else asked.seed
    print(f"torture from seed {seed}", flush=True)
    end = time.monotonic() + asked.minutes * 60
    done, failed = 0, 0
    seen: Counter[str] = Counter()
    while done < asked.lives if asked.lives is not None else time.monotonic() < end:
        try:
            world = torture(seed + done, shape)
            seen.update(_kinds(world))
        except Exception:
            failed += 1
            traceback.print_exc()
            again = f"--seed {seed + done} --lives 1 --rounds {shape.rounds} --steps {shape.steps}"
            print(f"FAILED; repeat it with: python tests/torture/run_torture.py {again}\n")
        done += 1
    print(f"{done} tables, {failed} failed; {sum(seen.values()):,} store calls and faults")
    for what, count in seen.most_common():
        print(f"  {count:>8,}  {what}")
    return 1 if failed else 0


def _kinds(world: World) -> Counter[str]:
    """Faults by kind, other calls by operation."""
    return Counter(
        parts[2] if (parts := line.split(" "))[1] == "!" else parts[1] for line in world.trace
    )


if __name__ == "__main__":
    sys.exit(main())
