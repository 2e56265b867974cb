"""The long form of the oracle: ``python tests/planner/run_oracle.py PAIRS [SEED]``.

Uses every core; prints the seed first, so that a failure can be run again.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from random import SystemRandom

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner import oracle

SHARD = 4000


def main(pairs: int, seed: int) -> int:
    print(f"oracle: {pairs:,} pairs, seed {seed}", flush=True)
    start, done = time.monotonic(), 0
    fired: Counter[str] = Counter()
    shards = [(min(SHARD, pairs - k), f"{seed}{k // SHARD:06d}") for k in range(0, pairs, SHARD)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(oracle.run, n, int(s)): n for n, s in shards}
        for job in as_completed(jobs):
            fired += job.result()
            done += jobs[job]
            print(f"{done:>12,} pairs, {time.monotonic() - start:.0f} s", flush=True)
    for rule, count in fired.most_common():
        print(f"{count:>12,}  {rule}")
    print(f"0 differences in {pairs:,} pairs")
    return 0


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    chosen = int(sys.argv[2]) if len(sys.argv) > 2 else SystemRandom().getrandbits(32)
    raise SystemExit(main(number, chosen))
