"""A claim directory of its own for each kill and freeze, what others ask of it, and what must always hold there."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass

# Within this every question is answered, from the moment on at which the answer is due.
ANSWER_S = 1.0
# A guard: nothing takes that long, not even what is slow.
GUARD_S = 30


@dataclass
class Answer:
    code: int
    json: dict
    seconds: float


@dataclass
class Record:
    """A node's record as it is on disk."""

    raw: bytes
    fields: dict

    version = property(lambda self: self.fields.get("version", 0))
    generation = property(lambda self: self.fields.get("generation", 0))
    state = property(lambda self: self.fields.get("state", "ready"))
    claim = property(lambda self: self.fields.get("claim") or {})
    owner = property(lambda self: self.claim.get("owner"))


NOTHING = Record(b"", {})


class World:
    def __init__(self, program, node, lease):
        self.program, self.node, self.lease = program, node, lease
        self.token = ""
        # How long the command of a `run` works, in seconds.
        self.work = "0.2"
        self.slowest = 0.0
        self.violations = []
        self.seen = {}
        self.owners = {}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="claim-sweep-"))
        self.claims = self.folder / ".claims"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CLAIM")}
        self.env = {**clean, "CLAIMS_DIR": str(self.claims)}

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def wrong(self, what):
        self.violations.append(what)

    def require(self, holds, what):
        if not holds:
            self.wrong(what)

    # What others do.

    def ask(self, *arguments, due=0.0, token=None):
        """Runs a command to its end. `due`: seconds until the contract lets it answer."""
        env = {**self.env, "CLAIM_TOKEN": token} if token else self.env
        began = time.monotonic()
        try:
            done = subprocess.run([self.program, *arguments, "--json"], env=env, cwd=self.folder, timeout=GUARD_S,
                                  stdin=subprocess.DEVNULL, capture_output=True, close_fds=False)
        except subprocess.TimeoutExpired:
            self.wrong(f"{' '.join(arguments)}: no answer in {GUARD_S} s")
            return Answer(-1, {}, GUARD_S)
        seconds = time.monotonic() - began - due
        self.slowest = max(self.slowest, seconds)
        self.require(seconds < ANSWER_S, f"{' '.join(arguments)}: answered {seconds:.2f} s after it was due")
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            self.wrong(f"{' '.join(arguments)}: exit {done.returncode}, and no JSON: {done.stdout!r} {done.stderr!r}")
            answer = {}
        return Answer(done.returncode, answer, seconds)

    def set_up(self, *arguments, token=None):
        """A command before anything is killed: it must succeed, and need not be on disk."""
        answer = self.ask(*arguments, "--no-sync", token=token)
        if answer.code != 0:
            raise RuntimeError(f"{arguments}: exit {answer.code}: {answer.json}")
        return answer.json

    # What is on disk.

    def path(self, node):
        return self.claims / f"{node}.claim"

    def in_cancelled_scope(self):
        """Was the scope cancelled that the node is in, whether its record says so yet or not?"""
        scope = self.claims / ".store" / "scopes" / self.node.partition("/")[0].removeprefix("@")
        return self.node.startswith("@") and scope.exists() and b'"cancelled"' in scope.read_bytes()

    def record(self, node=None):
        """Reads a record and holds it against all that was ever seen of it."""
        path = self.path(node or self.node)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            self.require(path not in self.seen, f"the record of {node or self.node} is gone")
            return NOTHING
        try:
            now = Record(raw, json.loads(raw) if raw else {})
        except ValueError:
            self.wrong(f"the record is neither JSON nor empty: {raw!r}")
            return self.seen.get(path, NOTHING)
        last = self.seen.get(path, NOTHING)
        self.require(now.version >= last.version, f"version {last.version} became {now.version}")
        self.require(now.version > last.version or now.raw == last.raw, f"two records of version {now.version}")
        self.require(now.generation - last.generation in (0, 1),
                     f"generation {last.generation} became {now.generation}")
        holder = now.claim.get("token_hash")
        if holder:
            first = self.owners.setdefault((path, now.generation), holder)
            self.require(first == holder, f"generation {now.generation} was given to two")
        self.seen[path] = now
        return now

    def processes(self):
        """Those that were started in this world's folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/cwd") == str(self.folder):
                    found.append(int(pid))
        return found

    def intents(self):
        try:
            return sorted(os.listdir(self.claims / ".store" / "intents"))
        except FileNotFoundError:
            return []

    def age_leftovers(self):
        """Makes the leftovers two minutes older: their names hold the monotonic time at which they were made."""
        folder = self.claims / ".store" / "intents"
        for name in self.intents():
            key, stamp = name.rsplit(".", 1)
            made = max(0, int(stamp[8:24], 16) - 120_000_000_000)
            with contextlib.suppress(FileNotFoundError):
                os.rename(folder / name, folder / f"{key}.{stamp[:8]}{made:016x}{stamp[24:]}")
