"""What is swept: every command, in each situation in which it makes other calls.

To add one, add an entry to CASES.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

# The node's lease where the sweep waits for its end, and where nothing may end.
SHORT, LONG = "300ms", "30s"


def nothing(world):
    """No claim directory at all."""


def made(world):
    world.set_up("init")


def expired(world):
    """A claim whose lease is over. Its end is moved to the past, for waiting would cost more than all the rest."""
    leased(world, LONG)
    record = json.loads(world.path(world.node).read_bytes())
    record["claim"]["clock"]["ends_mono_ms"] = time.monotonic_ns() // 1_000_000 - 1
    world.path(world.node).write_text(json.dumps(record, indent=2) + "\n")


def half_made(world):
    """A maker died before it wrote to its record."""
    made(world)
    world.path(world.node).touch()


def leased(world, lease=None):
    answer = world.set_up("acquire", world.node, "--owner", "alice", "--lease", lease or world.lease)
    world.token = answer["token"]


def ending(world):
    """A claim that ends, whatever the sweep wants to wait for."""
    leased(world, SHORT)


def released_before(world):
    leased(world, LONG)
    world.set_up("release", world.node, token=world.token)


def blocked(world):
    leased(world, LONG)
    world.set_up("release", world.node, "--block", "a question", token=world.token)


def completed(world):
    leased(world, LONG)
    world.set_up("complete", world.node, "--result", '{"by": "alice"}', token=world.token)


def submitted(world):
    """A task that nobody has."""
    world.set_up("add", world.node, "--input", "1", "--owner", "alice")


def orphaned(world):
    """A task whose worker has died, and its lease is over: not by the record alone, since its hint says when that is."""
    submitted(world)
    leased(world, "50ms")
    record = json.loads(world.path(world.node).read_bytes())
    end = record["claim"]["clock"]["ends_mono_ms"] / 1000
    while time.monotonic() <= end + 0.001:
        time.sleep(0.002)


def pooled(world):
    """A pool of one slot, which nobody has."""
    made(world)
    world.set_up("pool", "set", "gpu", "1")


def hintless(world):
    """A task whose hint is lost, and an entry of a claim that is gone."""
    submitted(world)
    for path in (world.claims / ".store" / "due").rglob("*"):
        if path.is_file():
            path.unlink()
    token = world.set_up("acquire", "gone", "--path", "src")["token"]
    world.set_up("release", "gone", token=token)


def reviewable(world):
    """A task that is done and waits for its review."""
    world.set_up("add", world.node, "--review", "--owner", "alice")
    completed(world)


def mailed(world):
    for payload in ("1", "2"):
        world.set_up("mail", "send", "box", payload, "--as", "alice")


def read(world):
    """A page that was handed out."""
    mailed(world)
    world.set_up("mail", "read", "box", "--as", "victim")


def prunable(world):
    """A receipt, and messages that every reader has dealt with."""
    read(world)
    world.set_up("mail", "ack", "box", "2", "--as", "victim", "--receipt", "try-1")


def failed(world):
    leased(world, LONG)
    world.set_up("reject", world.node, "--reason", "poison", token=world.token)


def long_done(world):
    """Done so long ago that its result may go."""
    completed(world)
    record = json.loads(world.path(world.node).read_bytes())
    record["outcome"]["at"] = "2020-01-01T00:00:00Z"
    world.path(world.node).write_text(json.dumps(record, indent=2) + "\n")


# What a command has done, seen in the record.


def taken(record):
    return record.state == "claimed" and record.owner == "victim"


def renewed(record):
    return record.owner == "alice" and record.fields.get("progress") == "renewed"


def released(record):
    return record.state == "ready" and record.generation > 0


def is_blocked(record):
    return record.state == "blocked"


def is_done(record):
    return record.state == "done" and record.fields["outcome"]["result"] == {"by": "alice"}


def rests(record):
    return record.state == "ready" and record.fields.get("not_before") is not None


def is_accepted(record):
    return (record.fields.get("review") or {}).get("state") == "accepted"


# And what it has done elsewhere.


def handed_out(world):
    return position(world, "handed_out") == 2


def acknowledged(world):
    return position(world, "acknowledged") == 2


def position(world, name):
    readers = world.ask("mail", "list", "box").json["readers"]
    return next((reader[name] for reader in readers if reader["reader"] == "victim"), None)


def is_mended(world):
    return world.ask("doctor").json["findings"] == []


def scope_is_cancelled(world):
    return world.ask("scope", "show", "s").json["state"] == "cancelled" and world.record().state in ("cancelled", "done")


def is_paused(world):
    return world.ask("next", "--queue", "q").json["paused"]["reason"] == "deploy"


def is_failed(record):
    return record.state == "failed" and record.fields["outcome"]["reason"] == "poison"


def is_cancelled(record):
    return record.state == "cancelled"


def is_requeued(record):
    return record.fields.get("requeues") == 1


def is_tombstone(record):
    return record.fields.get("tombstoned") is True


@dataclass(frozen=True)
class Case:
    name: str
    # NODE, LEASE, PID and WORK stand for the world's own; the token is in the environment.
    argv: tuple[str, ...]
    situation: Callable
    # What it does to the record; None: it changes none.
    effect: Callable | None = None
    # Where it changes something else: is that so once it has said yes?
    stands: Callable | None = None
    # How far it may have come before that, its claim still its own to go on with.
    midway: Callable | None = None
    # Its exit code if nobody comes in between, and those it may have if somebody does.
    exit: int = 0
    late: frozenset[int] = frozenset()
    # What others do while it is frozen.
    meanwhile: tuple[str, ...] = ("look", "take")
    node: str = "parser"
    # It takes the node from whoever has it.
    forces: bool = False
    # It writes other cells than the node's, whose intents no takeover of the node cancels.
    elsewhere: bool = False
    # Of how many calls one is swept where time is short.
    step: int = 1

    def command(self, world):
        values = {"NODE": self.node, "LEASE": world.lease, "PID": str(os.getpid()), "WORK": world.work}
        return [world.program, "--json", *(values.get(word, word) for word in self.argv)]


def acquire(name, situation, *options, late=frozenset({1, 3}), **more):
    argv = ("acquire", "NODE", "--owner", "victim", "--lease", "LEASE", *options)
    more.setdefault("meanwhile", ("look", "take", "pass"))
    return Case(f"acquire, {name}", argv, situation, effect=taken, late=late, **more)


def take_next(name, situation, *options, **more):
    argv = ("next", "--owner", "victim", "--lease", "LEASE", *options)
    return Case(name, argv, situation, effect=taken, late=frozenset({1, 3}), meanwhile=("look", "take", "pass"), **more)


def settle(name, effect, *argv, **more):
    late = frozenset({3, 4}) if effect is is_done else frozenset({3})
    meanwhile = ("look", "take", "release", "complete")
    return Case(name, argv, leased, effect=effect, late=late, meanwhile=meanwhile, **more)


def look(name, situation, *argv, **more):
    more.setdefault("step", 2)
    return Case(name, argv, situation, **more)


CASES = [
    acquire("no directory yet", nothing),
    acquire("fresh node", made),
    acquire("fresh node below folders", made, node="build/linux/parser"),
    acquire("claim that is over", expired),
    acquire("left empty by its maker", half_made, step=2),
    acquire("bound to a process", made, "--while-pid", "PID", step=2),
    acquire("by force from a holder", leased, "--force", "urgent", late=frozenset({3}), forces=True),
    acquire("by force, blocked", blocked, "--force", "answered", late=frozenset({3}), forces=True),
    acquire("waiting for a claim's end", ending, "--wait=1s", late=frozenset({1, 3, 5}), step=4),
    acquire("with a receipt", made, "--receipt", "try-1", elsewhere=True, step=3),
    acquire("with a receipt, a claim that is over", expired, "--receipt", "try-1", elsewhere=True, step=3),
    acquire("with paths", made, "--path", "src/a", "--path", "src/b", elsewhere=True, step=3),
    acquire("with a slot", pooled, "--pool", "gpu", elsewhere=True, step=3),
    take_next("next", submitted, step=2),
    take_next("next, a dead worker's task", orphaned, step=3),
    take_next("next with a receipt", submitted, "--receipt", "try-1", elsewhere=True, step=4),
    Case("run", ("run", "NODE", "--owner", "victim", "--lease", "LEASE", "--", "sleep", "WORK"), made, effect=released,
         midway=taken, late=frozenset({75, 76}), step=8),
    Case("run with a receipt", ("run", "NODE", "--owner", "victim", "--lease", "LEASE", "--receipt", "try-1", "--", "sleep", "WORK"),
         made, effect=released, midway=taken, late=frozenset({75, 76}), elsewhere=True, step=12),
    look("acquire, held", leased, "acquire", "NODE", "--owner", "victim", exit=1, late=frozenset({0, 1})),
    look("acquire, done", completed, "acquire", "NODE", "--owner", "victim", exit=1, late=frozenset({1})),
    look("acquire --dry-run", expired, "acquire", "NODE", "--dry-run", late=frozenset({0, 1})),
    settle("renew", renewed, "renew", "NODE", "--lease", "LEASE", "--progress", '"renewed"'),
    settle("release", released, "release", "NODE"),
    settle("renew with a receipt", renewed, "renew", "NODE", "--lease", "LEASE", "--progress", '"renewed"', "--receipt", "try-1",
           elsewhere=True, step=3),
    settle("release with a receipt", released, "release", "NODE", "--receipt", "try-1", elsewhere=True, step=3),
    settle("release --block", is_blocked, "release", "NODE", "--block", "a question"),
    settle("complete", is_done, "complete", "NODE", "--result", '{"by": "alice"}'),
    Case("complete again", ("complete", "NODE", "--result", '{"by": "alice"}'), completed, effect=is_done),
    settle("retry", rests, "retry", "NODE", "--reason", "a try", step=2),
    Case("review", ("review", "NODE", "--accept", "--by", "victim"), reviewable, effect=is_accepted, late=frozenset({1, 4}),
         meanwhile=("look", "take", "review"), step=2),
    settle("reject", is_failed, "reject", "NODE", "--reason", "poison", step=2),
    Case("cancel", ("cancel", "NODE", "--reason", "enough"), leased, effect=is_cancelled, late=frozenset({1}),
         meanwhile=("look", "take", "release", "complete"), forces=True, step=2),
    Case("scope cancel", ("scope", "cancel", "s", "--reason", "enough"), leased, stands=scope_is_cancelled, midway=is_cancelled,
         node="@s/parser", meanwhile=("look", "take", "release", "complete"), forces=True, elsewhere=True, step=3),
    look("pause", made, "pause", "q", "--reason", "deploy", stands=is_paused, elsewhere=True, step=4),
    Case("block with an end", ("block", "NODE", "--reason", "a question", "--until", "1h"), released_before,
         effect=is_blocked, late=frozenset({1}), step=3),
    Case("requeue", ("requeue", "NODE"), failed, effect=is_requeued, step=2),
    Case("prune, an old result", ("prune", "--older", "1d"), long_done, effect=is_tombstone, step=3),
    look("result", completed, "result", "NODE", step=4),
    look("add", made, "add", "other", "--input", "1", step=3),
    look("mail send", made, "mail", "send", "box", '"hello"', elsewhere=True, step=4),
    look("mail read", mailed, "mail", "read", "box", "--as", "victim", stands=handed_out, elsewhere=True, step=4),
    look("mail read with a receipt", mailed, "mail", "read", "box", "--as", "victim", "--receipt", "try-1",
         stands=handed_out, elsewhere=True, step=4),
    look("mail ack", read, "mail", "ack", "box", "2", "--as", "victim", stands=acknowledged, elsewhere=True, step=4),
    look("mail ack with a receipt", read, "mail", "ack", "box", "2", "--as", "victim", "--receipt", "try-1",
         stands=acknowledged, elsewhere=True, step=4),
    look("prune", prunable, "prune", "--older", "0s", elsewhere=True, step=4),
    look("check", leased, "check", "NODE", late=frozenset({3}), meanwhile=("look", "take", "release")),
    look("show", leased, "show", "NODE"),
    look("why", expired, "why", "NODE"),
    look("list", leased, "list"),
    look("doctor", expired, "doctor"),
    look("doctor --repair", hintless, "doctor", "--repair", stands=is_mended, elsewhere=True, step=3),
    look("where", made, "where"),
    look("where, no directory yet", nothing, "where"),
    look("init", nothing, "init"),
    look("init again", made, "init"),
]
