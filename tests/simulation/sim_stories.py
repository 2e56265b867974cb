"""The stories: who does what to a table, each with its own kind of trouble.

A seed names its story (they take turns), and everything else about it is drawn from the seed. To
add one: a function of the world with ``@story``, which places actors and lets them play. The
stories here are about writers and those who look after a table; ``sim_meetings`` has those that
bring about a rule on purpose, ``sim_others`` those with streams, neighbours and other programs.
Stories of companion tables belong beside these, once there are such tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sim_faults import Fault
from sim_store import version_of

from indextables.storage.wrapped import Call

if TYPE_CHECKING:
    from sim_world import World

Story = Callable[["World"], None]
STORIES: dict[str, Story] = {}


def story(function: Story) -> Story:
    STORIES[function.__name__] = function
    return function


WEIGHTS = {
    "append": 6, "read": 5, "overwrite": 1, "overwrite_all": 1, "delete": 3, "update": 2,
    "upsert": 2, "empty": 1, "drop": 1, "restore": 1, "merge": 3, "reorg": 1, "xref": 1,
    "index": 1, "prune_indexes": 1, "checkpoint": 1, "truncate": 1, "purge": 1, "wait": 1,
    "travel": 2, "look_again": 2, "configure": 1, "doctor": 1, "add_column": 1,
}  # fmt: skip


def makes_version(_: str, call: Call) -> bool:
    return call.op == "put_if_absent" and version_of(call.path) is not None


@story
def anything(world: World) -> None:
    """Some actors do what comes to their mind."""
    for number in range(world.rng.randint(2, 4)):
        steps = world.rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=5)
        world.actor(f"a{number}", *steps)
    world.play()


@story
def lost_replies(world: World) -> None:
    """Writers race for versions, and the answers to their commits get lost."""
    for _ in range(3):
        world.plan.arm(world.rng.choice([Fault.LOST_REPLY, Fault.LOST_REQUEST]), makes_version)
    world.plan.arm(Fault.FAIL_AFTER, lambda _, call: call.op == "put_if_absent")
    for number in range(3):
        world.actor(f"w{number}", "append", world.rng.choice(["append", "overwrite"]), "read")
    world.actor("reader", "read", "read", "read")
    world.play()


@story
def counters(world: World) -> None:
    """Everybody raises the same rows: no raise may be lost, whatever merges around them."""
    world.actor("first", "append", "append", "checkpoint")
    world.play()
    for number in range(3):
        world.actor(f"c{number}", "count_up", "count_up")
    world.actor("merger", "merge", "reorg", "checkpoint")
    world.actor("reader", "read", "read", "travel")
    world.play()


@story
def rewriters(world: World) -> None:
    """Rows are deleted and changed while their splits are merged and written again."""
    world.actor("first", "append", "append", "append")
    world.play()
    world.actor("deleter", "delete", "delete", "read")
    world.actor("changer", "update", "upsert", "read")
    world.actor("merger", "merge", "reorg", "merge", "checkpoint")
    world.actor("filler", "append", "append")
    world.play()


@story
def readers_and_purges(world: World) -> None:
    """Old files are removed and purged while readers still hold versions that list them."""
    world.actor("first", "append", "append", "checkpoint", "wait")
    world.play()
    world.actor("reader", "read", "look_again", "look_again", "travel", "look_again")
    world.actor("other", "read", "travel", "look_again")
    world.actor("writer", world.rng.choice(["overwrite_all", "delete", "merge", "empty"]), "append")
    world.actor("purger", "purge", "purge", world.rng.choice(["checkpoint", "truncate"]), "purge")
    world.play()
    world.actor("writer", "restore", "append", "read")
    world.actor("purger", "wait", "purge", "doctor")
    world.play()


@story
def short_logs(world: World) -> None:
    """The log is truncated and cleaned while writers stand still between two steps of a commit."""
    for _ in range(2):
        world.plan.arm(Fault.SLOW, makes_version)
    world.actor("w0", "append", "append", "append")
    world.actor("w1", "append", "delete", "append")
    world.actor("keeper", "truncate", "checkpoint", "truncate", "truncate")
    world.actor("reader", "read", "travel", "read", "travel", "read")
    world.play()


@story
def checkpoints(world: World) -> None:
    """States are written, compacted and collected by several processes at once."""
    world.configure({"checkpoint.interval": 1, "state.format": "avro", "state.retention.hours": 0})
    world.actor("w0", "append", "delete", "append", "merge")
    world.actor("w1", "append", "overwrite", "wait", "append")
    world.actor("keeper", "checkpoint", "wait", "checkpoint", "purge", "checkpoint")
    world.actor("reader", "read", "read", "travel", "read")
    world.play()


@story
def indexers(world: World) -> None:
    """Cross-references, key maps and column indexes are built, used and go stale meanwhile."""
    world.configure({"xref.keymap.enabled": world.rng.choice(["true", "false"])})
    world.actor("first", "append", "append", "xref", "index")
    world.play()
    world.actor("builder", "xref", "index", "xref", "prune_indexes")
    world.actor("writer", "append", world.rng.choice(["merge", "delete", "overwrite"]), "append")
    world.actor("reader", "search", "search", "read", "search", "search")
    world.play()
    world.actor("reader", "search", "search", "search")
    world.play()


@story
def crashes(world: World) -> None:
    """Processes die in the middle of what they do, and are started again."""
    for _ in range(4):
        fault = world.rng.choice([Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
        chance = world.rng.random() * 0.3
        world.plan.arm(fault, lambda _, call, chance=chance: world.plan.rng.random() < chance)
    world.actor("w0", "append", "delete", "append", "merge")
    world.actor("w1", "update", "append", "checkpoint", "read")
    world.actor("keeper", "xref", "wait", "purge", "truncate")
    world.play()


@story
def leftovers(world: World) -> None:
    """Writers die while they upload; a purge clears up after them, and not after the living."""
    world.plan.shows_uploads = True
    for _ in range(2):
        world.plan.arm(Fault.CRASH_BEFORE, lambda _, call: call.op in ("put_file", "put"))
    world.actor("w0", "append", "append", "append")
    world.actor("w1", "append", "append")
    world.actor("purger", "purge", "wait", "purge", "purge")
    world.play()


@story
def wrong_clocks(world: World) -> None:
    """Clocks of writers jump by hours and years; versions are dated forward, readers are safe."""
    world.actor("first", "append", "append", "wait")
    world.play()
    for _ in range(3):
        world.plan.arm(Fault.CLOCK_JUMP, lambda actor, _: actor.startswith("w"))
    world.actor("w0", "append", world.rng.choice(["overwrite_all", "merge", "delete"]), "append")
    world.actor("w1", "append", world.rng.choice(["overwrite", "update", "reorg"]), "read")
    world.actor("reader", "read", "by_time", "look_again", "look_again", "by_time")
    world.actor("purger", "purge", "purge")
    world.play()


@story
def lagging_lists(world: World) -> None:
    """Listings come without the newest objects, and slow calls overtake each other."""
    for _ in range(4):
        world.plan.arm(Fault.STALE_LIST, lambda _, call: world.plan.rng.random() < 0.2)
    for name in ("w0", "w1", "w2"):
        world.actor(name, "append", world.rng.choice(["delete", "append", "merge"]), "read")
    world.actor("keeper", "checkpoint", "purge")
    world.play()


@story
def columns_change(world: World) -> None:
    """Columns come, get other names and go while rows are written, merged and read."""
    world.actor("first", "append", "add_column")
    world.play()
    world.actor("changer", "add_column", "rename_column", "drop_column", "configure")
    world.actor("writer", "append", "upsert", "append", "delete")
    world.actor("merger", "merge", "checkpoint", "restore")
    world.actor("reader", "read", "read", "travel", "look_again")
    world.play()


@story
def torn_reads(world: World) -> None:
    """Bytes arrive damaged: an error, never another answer, and no verdict that deletes."""
    world.plan.looks_remote = True
    world.actor("first", "append", "append", "xref", "checkpoint")
    world.play()
    for _ in range(6):
        world.plan.arm(Fault.TORN_READ, lambda _, call: world.plan.rng.random() < 0.2)
    world.actor("r0", "read", "search", "look_again", "travel")
    world.actor("r1", "search", "read", "look_again")
    world.actor("keeper", "merge", "checkpoint", "purge")
    world.play()


@story
def unanswered(world: World) -> None:
    """The store takes a commit and then says nothing for so long that nobody knows."""
    world.configure({"transaction.commit.deadlineSeconds": 1.0, "deletionVector.maxInlineBytes": 0})
    world.plan.is_quiet = True
    world.actor("first", "append", "append", "append")
    world.play()
    world.plan.is_quiet = False
    world.plan.arm(Fault.LOST_REPLY, lambda who, call: who == "w0" and makes_version(who, call))
    for _ in range(40):
        world.plan.arm(Fault.FAIL_BEFORE, _asks_back)
    world.actor("w0", world.rng.choice(["count_up", "delete_half"]), "read")
    world.actor("w1", "append", "read")
    world.play()


def _asks_back(who: str, call: Call) -> bool:
    return who == "w0" and call.op == "read" and (version_of(call.path) or 0) > 3


@story
def old_vectors(world: World) -> None:
    """Deletion vectors in files get old while the splits they belong to stay live."""
    world.configure({"deletionVector.maxInlineBytes": 0, "deletionVector.maxShare": 0.9})
    world.actor("first", "append", "append", "delete_half", "wait")
    world.play()
    world.actor("writer", "append", "delete", world.rng.choice(["checkpoint", "reorg"]))
    world.actor("purger", "purge", "wait", "purge")
    world.actor("reader", "read", "travel", "look_again")
    world.play()


@story
def torn_vectors(world: World) -> None:
    """Files of deletion vectors arrive damaged: readers fail, and never see other rows."""
    world.configure({"deletionVector.maxInlineBytes": 0, "deletionVector.maxShare": 0.9})
    world.plan.is_quiet = True
    world.actor("first", "dozen", "delete_half")
    world.play()
    world.plan.is_quiet = False
    for _ in range(16):
        world.plan.arm(Fault.TORN_READ, lambda _, call: call.path.endswith(".bin"))
    for number in range(4):
        world.actor(f"r{number}", "read_all", "read_all", "read")
    world.play()
