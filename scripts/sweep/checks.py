"""One kill or one freeze, and what must hold after it."""

import json
import signal
import time
from dataclasses import dataclass, field

from cases import LONG, SHORT, Case
from victim import Point, Victim
from world import ANSWER_S, World


@dataclass(frozen=True)
class Trial:
    program: str
    case: Case
    point: Point
    # "kill", or what others do while it is frozen.
    mode: str

    def __str__(self):
        return f"{self.case.name}, {'killed' if self.mode == 'kill' else f'frozen ({self.mode})'} at {self.point}"


@dataclass
class Outcome:
    trial: Trial
    # Did it come to the point?
    hit: bool = False
    slowest: float = 0.0
    violations: list[str] = field(default_factory=list)


def run(trial):
    outcome = once(trial)
    if outcome.violations and all(" after it was due" in violation for violation in outcome.violations):
        return once(trial)  # a machine may be busy once; who waits for the victim is late each time
    return outcome


def once(trial):
    lease = SHORT if trial.mode in ("kill", "take") else LONG
    world = World(trial.program, trial.case.node, lease)
    world.elsewhere = trial.case.elsewhere
    if trial.mode == "kill":
        world.work = "5"  # so that it does not just end in time
    outcome = Outcome(trial)
    try:
        trial.case.situation(world)
        outcome.hit = (killed if trial.mode == "kill" else frozen)(trial, world)
        tidy(world)
    except Exception as error:  # what the checks trip over is a finding too
        world.wrong(f"{type(error).__name__}: {error}")
    finally:
        world.close()
    outcome.slowest, outcome.violations = world.slowest, world.violations
    return outcome


def start(trial, world, sent):
    env = {**world.env, "CLAIM_TOKEN": world.token} if world.token else world.env
    return Victim(trial.case.command(world), env, world.folder, trial.point, sent)


def killed(trial, world):
    case, before = trial.case, world.record()
    victim = start(trial, world, signal.SIGKILL)
    try:
        victim.stopped()
        told = answer_of(victim)
    finally:
        victim.end()
    is_all_gone(world)
    after = world.record()
    does = case.effect is not None and case.effect(after)
    world.require(not (told and case.stands) or case.stands(world), f"it said {told}, and that is not so")
    on_its_way = case.midway is not None and case.midway(after)
    world.require(not (told and case.effect and not does), f"it said {told}, and the record is {after.raw!r}")
    world.require(does or on_its_way or after.raw in (before.raw, b""), f"it left {after.raw!r} instead of {before.raw!r}")
    disturbs_nobody(world)
    take(world)
    return victim.status == -signal.SIGKILL


def frozen(trial, world):
    case, mode = trial.case, trial.mode
    world.record()
    victim = start(trial, world, signal.SIGSTOP)
    try:
        hit = victim.stopped()
        at_freeze = world.record()
        stands = case.effect is not None and case.effect(at_freeze)
        disturbs_nobody(world)
        # Others have made it theirs: it is not the victim's any more.
        gone = hit and MEANWHILE[mode](world)
        before = world.record()
        code = victim.finish()
        after = world.record()
        judge(trial, world, code, stands, gone, after.raw != before.raw)
        if (gone or stands or case.effect is None) and not (case.forces and not stands):
            world.require(after.raw == before.raw, f"on waking it made {after.raw!r} of {before.raw!r}")
        if mode == "look" and case.effect and case.name.startswith("acquire"):
            token = (answer_of(victim) or {}).get("token", "")
            check = world.ask("check", world.node, token=token or "none")
            world.require(check.code == 0, f"its token does not hold: {check.json}")
    finally:
        victim.end()
    return hit


def judge(trial, world, code, stands, gone, changed):
    """Its exit code: 0 if and only if its effect stands, or stood before others came."""
    case, record = trial.case, world.record()
    does = case.effect is not None and case.effect(record)
    may = {case.exit} if trial.mode == "look" else {case.exit} | case.late
    world.require(code in may, f"exit {code}, not one of {sorted(may)}")
    world.require(code != 0 or not case.stands or case.stands(world), "exit 0, and that is not so")
    if case.effect:
        world.require(code != 0 or stands or does, f"exit 0, and the record is {record.raw!r}")
        world.require(code == 0 or not (does and changed), f"exit {code}, and its effect stands: {record.raw!r}")
        if stands and trial.mode == "take" and trial.point.call == "fsync" and record.owner == "bob":
            # The clock is looked at after the last of these, and the lease was over by then.
            # `next` gives it back and looks on, and bob has it.
            late = code == 3 or (code == 1 and case.argv[0] == "next")
            world.require(late or is_settled(case), f"exit {code}, though its lease ended before it answered")
    elif case.late and gone and trial.point.blind and case.exit == 0:
        world.require(code in case.late, f"exit {code}, decided by a record that it had not read yet")


def is_settled(case):
    """Does its effect outlast the lease?"""
    return case.argv[0] in ("release", "complete", "retry", "reject", "cancel", "block", "requeue", "prune")


def is_all_gone(world):
    """What the victim started dies with it."""
    end = time.monotonic() + ANSWER_S
    while world.processes() and time.monotonic() < end:
        time.sleep(0.001)
    world.require(not world.processes(), f"it is dead, and what it started lives: {world.processes()}")


def answer_of(victim):
    """The answer that it printed, if that was a whole yes."""
    try:
        answer = json.loads(victim.printed())
    except ValueError:
        return None
    return answer if answer.get("ok") else None


def disturbs_nobody(world):
    """Others look, and work on another node, as if nothing had happened."""
    show = world.ask("show", world.node)
    world.require(show.code in (0, 1), f"show: exit {show.code}: {show.json}")
    listed = world.ask("list")
    world.require(listed.code == 0, f"list: exit {listed.code}: {listed.json}")
    has_no_fault(world)
    other = world.ask("acquire", "other", "--owner", "carol")
    world.require(other.code == 0, f"another node: exit {other.code}: {other.json}")
    back = world.ask("release", "other", token=other.json.get("token", "none"))
    world.require(back.code == 0, f"another node's release: exit {back.code}: {back.json}")
    world.record("other")


def has_no_fault(world):
    doctor = world.ask("doctor")
    world.require(doctor.code == 0, f"doctor: {doctor.json}")


# What others do meanwhile; does the node belong to somebody else by that?


def take(world):
    """Takes the node: at once if it can be had, else at the end of the lease, else hears why not."""
    before = world.record()
    answer = world.ask("acquire", world.node, "--owner", "bob", "--lease", LONG)
    if answer.code == 1 and answer.json.get("code") == "CLAIM_HELD":
        holder = answer.json["holder"]
        world.require(holder["owner"] == before.owner, f"held by {holder['owner']}, and on disk by {before.owner}")
        due = holder["remaining_ms"] / 1000
        answer = world.ask("acquire", world.node, "--owner", "bob", "--lease", LONG, "--wait=10s", due=due)
    if answer.json.get("code") == "NOT_READY":  # given back for another attempt, after a rest
        clock = before.fields["not_before"]["clock"]
        due = next(value for name, value in clock.items() if name.endswith("mono_ms")) / 1000 - time.monotonic()
        answer = world.ask("acquire", world.node, "--owner", "bob", "--lease", LONG, "--wait=10s", due=max(due, 0.0))
    ended = {
        "blocked": (4, "BLOCKED"),
        "done": (1, "ALREADY_DONE"),
        "failed": (4, "FAILED"),
        "cancelled": (4, "CANCELLED"),
    }
    ended = ended.get(before.state) or (ended["cancelled"] if world.in_cancelled_scope() else None)
    got = (answer.code, answer.json.get("code"))
    world.require(got == (ended or (0, None)), f"bob's acquire: {got}, and on disk it is {before.state}")
    if answer.code != 0:
        return False
    now = world.record()
    world.require(now.generation == before.generation + 1 and now.owner == "bob", f"bob has it, says {now.raw!r}")
    left = [name for name in world.intents() if not name.startswith("tmp.")]
    world.require(world.elsewhere or not left, f"announced intents survive a takeover: {left}")
    world.token = answer.json["token"]
    return True


def take_and_release(world):
    """Others come and go: whoever wants the node may have it then."""
    if take_at_once(world):
        release(world)
    return False


def take_at_once(world):
    answer = world.ask("acquire", world.node, "--owner", "bob", "--lease", LONG)
    world.token = answer.json.get("token", "")
    return answer.code == 0


def release(world):
    """The holder's other process gives the node back."""
    return world.ask("release", world.node, token=world.token).code == 0


def complete(world):
    """The holder's other process ends the node."""
    return world.ask("complete", world.node, "--result", '{"by": "another"}', token=world.token).code == 0


def review(world):
    """Another reviewer sends it back."""
    return world.ask("review", world.node, "--reject", "--by", "carol").code == 0


MEANWHILE = {
    "look": lambda world: False,
    "take": take,
    "pass": take_and_release,
    "release": release,
    "complete": complete,
    "review": review,
}


def tidy(world):
    """Once others have written, nothing is left of it."""
    world.age_leftovers()
    world.ask("acquire", "other", "--owner", "dave")
    world.require(not world.intents(), f"left in intents/: {world.intents()}")
    has_no_fault(world)
    for name in (".gitignore", ".store/format"):
        world.require((world.claims / name).exists(), f"{name} was never made")
