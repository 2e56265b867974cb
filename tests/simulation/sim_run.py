"""One seed from its story to its verdict, many seeds, and the hunt for a planted bug."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice

import sim_meetings
import sim_others
from sim_coverage import expected
from sim_faults import Fault
from sim_planted import Bug
from sim_store import BrokenPromiseError
from sim_stories import STORIES
from sim_world import Place, World

__all__ = ["Outcome", "Tally", "hunt", "sim_meetings", "sim_others", "simulate", "story_of"]

DISK_EVERY = 4
"""So many seeds of a local run have one on disk."""


def story_of(seed: int) -> str:
    """Stories take turns, so that any run of as many seeds as there are stories has them all."""
    names = list(STORIES)
    return names[seed % len(names)]


def local_place(seed: int) -> Place:
    """In memory mostly; on disk now and then, and for the story that is about files."""
    on_disk = seed // len(STORIES) % DISK_EVERY == 1 or story_of(seed) == "hadoop_beside_us"
    return Place("disk" if on_disk else "memory")


@dataclass
class Outcome:
    """What came of one seed."""

    seed: int
    story: str
    world: World
    failure: BaseException | None
    seconds: float

    @property
    def check(self) -> str:
        """Which promise was broken."""
        if self.failure is None:
            return ""
        if isinstance(self.failure, BrokenPromiseError):
            return self.failure.check
        return f"no bare error ({type(self.failure).__name__})"

    @property
    def steps(self) -> list[str]:
        """The story in short: steps, faults and how they ended."""
        told = ("step", "!", "conflict", "failed", "died", "unsure")
        return [
            f"{who}: {what} {text}"
            for who, what, text in self.world.scheduler.trace
            if what in told
        ]

    @property
    def calls(self) -> list[str]:
        """Everything that happened, one call a line."""
        return [f"{who:>10} {what:<14} {text}" for who, what, text in self.world.scheduler.trace]


def simulate(seed: int, place: Place | None = None, story: str | None = None) -> Outcome:
    """Play one seed; a broken promise is in the outcome."""
    name = story or story_of(seed)
    start = time.process_time()
    world = World(seed, place or local_place(seed))
    failure: BaseException | None = None
    try:
        world.run(STORIES[name])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        failure = error
    return Outcome(seed, name, world, failure, time.process_time() - start)


@dataclass
class Tally:
    """What many seeds did together."""

    seeds: int = 0
    calls: int = 0
    seconds: float = 0.0
    failed: list[Outcome] = field(default_factory=list)
    faults: Counter[Fault] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    stories: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.seconds += outcome.seconds
        world = outcome.world
        self.calls += len(world.scheduler.trace)
        self.faults.update(world.plan.fired)
        self.rules.update(world.rules)
        self.steps.update(world.did)
        self.stories[outcome.story] += 1
        if outcome.failure is not None:
            self.failed.append(outcome)

    @property
    def dead_knobs(self) -> list[str]:
        """Faults, rules and stories that never happened."""
        faults = [f"fault: {fault.value}" for fault in Fault if not self.faults[fault]]
        rules = sorted(rule for rule in expected() if not self.rules[rule])
        stories = [f"story: {name}" for name in STORIES if not self.stories[name]]
        return faults + rules + stories


def run(seeds: Iterable[int], place: Place | None = None) -> Tally:
    tally = Tally()
    for seed in seeds:
        tally.add(simulate(seed, place))
    return tally


def seeds_of(bug: Bug, first: int = 0) -> Iterator[int]:
    """Seeds of the stories that can meet a bug."""
    return (seed for seed in count(first) if story_of(seed) in bug.stories)


def hunt(bug: Bug, first: int = 0, most: int | None = None) -> tuple[int, Outcome] | None:
    """How many seeds it took to catch a planted bug; ``None`` when its budget was not enough."""
    with bug.planted():
        for number, seed in enumerate(islice(seeds_of(bug, first), most or bug.budget), 1):
            outcome = simulate(seed)
            if outcome.failure is not None:
                return number, outcome
    return None
