"""Who runs: one seeded scheduler for all actors of a story.

Actors are ordinary code on real threads, of which exactly one runs at a time. Every store call,
pause and (where a story asks for it) clock read is a *point*: the actor that reaches one may have
to hand on the turn, and the seed says to whom. So the seed alone decides the interleaving, and the
same seed gives the same trace, line by line; ``fingerprint`` is its hash.

A story can also arrange a meeting: ``hold`` keeps an actor at its next point of some kind until
something else has happened. That is how a conflict that takes a narrow window is met in every run
and not by luck.

Time is the scheduler's too. Nobody sleeps: a pause moves the clock. Each actor has a clock of its
own that may be wrong by an offset, as clocks of machines are.
"""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

STUCK_S = 300.0
FIRST_MOMENT_MS = 1_790_000_000_000
STEP_MS = 7


class OverError(BaseException):
    """The run has failed elsewhere; every other actor ends at its next point."""


@dataclass
class Actor:
    """One thread of the story; ``lives`` counts how often its process was started."""

    name: str
    work: Callable[[], None]
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    skew_ms: int = 0
    held: Callable[[], bool] | None = None
    is_done: bool = False
    points: int = 0
    hold_at: Callable[[str, str], Callable[[], bool] | None] | None = None


class Scheduler:
    """Hands the turn around; ``trace`` is everything that happened, in order."""

    def __init__(self, rng: random.Random, restless: float) -> None:
        self.rng = rng
        self.restless = restless
        self.now_ms = FIRST_MOMENT_MS
        self.trace: list[tuple[str, str, str]] = []
        self.failure: BaseException | None = None
        self._actors: dict[str, Actor] = {}
        self._here = threading.local()
        self._all_done = threading.Event()
        self._dealt = False

    # -- actors -----------------------------------------------------------------------------------

    def add(self, name: str, work: Callable[[], None]) -> Actor:
        actor = self._actors[name] = Actor(name, work)
        return actor

    @property
    def current(self) -> Actor | None:
        """The actor of the calling thread."""
        found: Actor | None = getattr(self._here, "actor", None)
        return found

    def play(self) -> None:
        """Run all actors to their end; the first failure is raised."""
        waiting = [a for a in self._actors.values() if not a.is_done]
        if not waiting:
            return
        self._all_done.clear()
        threads = [
            threading.Thread(target=self._run, args=(a,), name=a.name, daemon=True) for a in waiting
        ]
        for thread in threads:
            thread.start()
        self._choose().baton.release()
        if not self._all_done.wait(STUCK_S):
            raise TimeoutError("the actors wait for one another")
        for thread in threads:
            thread.join()
        self._actors.clear()
        if self.failure is not None:
            raise self.failure

    def _run(self, actor: Actor) -> None:
        self._here.actor = actor
        actor.baton.acquire()
        try:
            if self.failure is None:
                actor.work()
        except OverError:
            pass
        except BaseException as error:
            self.failure = self.failure or error
        finally:
            actor.is_done = True
            following = self._choose_or_none()
            if following is None:
                self._all_done.set()
            else:
                following.baton.release()

    def _choose_or_none(self) -> Actor | None:
        left = [a for a in self._actors.values() if not a.is_done]
        if not left:
            return None
        ready = [a for a in left if a.held is None or a.held()]
        # Whoever is held for something that can no longer happen goes on.
        chosen = self.rng.choice(ready or left)
        chosen.held = None
        return chosen

    def _choose(self) -> Actor:
        chosen = self._choose_or_none()
        assert chosen is not None
        return chosen

    # -- points -----------------------------------------------------------------------------------

    def point(self, what: str, detail: str = "") -> None:
        """The calling actor may have to hand on its turn here."""
        actor = self.current
        self.now_ms += STEP_MS
        self.trace.append((actor.name if actor else "-", what, detail))
        if actor is None:
            return
        actor.points += 1
        if self.failure is not None:
            raise OverError
        if actor.hold_at is not None:
            until = actor.hold_at(what, detail)
            if until is not None:
                actor.hold_at = None
                self.hold(until)
                return
        if self.rng.random() < self.restless:
            self._pass_on(actor)

    def note(self, what: str, detail: str = "") -> None:
        """A line of the trace that is no point."""
        actor = self.current
        self.trace.append((actor.name if actor else "-", what, detail))

    def hold(self, until: Callable[[], bool]) -> None:
        """Stand still until something is true, or nobody else can go on."""
        actor = self.current
        if actor is None:
            return
        actor.held = until
        self._pass_on(actor)

    def stand_still(self, ms: int) -> None:
        """A slow call: others go on for a while, and time passes."""
        actor = self.current
        if actor is None:
            self.now_ms += ms
            return
        until = len(self.trace) + self.rng.randint(5, 60)
        self.now_ms += ms
        self.hold(lambda: len(self.trace) >= until)

    def _pass_on(self, actor: Actor) -> None:
        following = self._choose()
        if following is actor:
            return
        following.baton.release()
        if not actor.baton.acquire(timeout=STUCK_S):
            raise TimeoutError(f"{actor.name} waits for a turn that nobody gives")
        if self.failure is not None:
            raise OverError

    # -- time -------------------------------------------------------------------------------------

    def moment_ms(self) -> int:
        """The clock of the calling actor."""
        actor = self.current
        return self.now_ms + (actor.skew_ms if actor else 0)

    def pause(self, seconds: float) -> None:
        """What sleeping is here."""
        self.now_ms += int(seconds * 1000)
        self.point("pause")

    # -- what happened ----------------------------------------------------------------------------

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for line in self.trace:
            digest.update("\t".join(line).encode())
            digest.update(b"\n")
        return digest.hexdigest()[:16]
