"""A process under strace: which system calls it makes, and being killed or frozen at one of them.

strace counts `when=K` for each system call's name and each thread or process on its own. It sends the signal as
the call is entered: SIGKILL keeps the call from happening, SIGSTOP takes hold as it returns. So killing at each
call and freezing at each call both visit every gap between two calls.

With -D strace is a grandchild, and the victim is our own child, whose stops and exit we are told of. With
`-b execve` the programs that the victim starts run untraced.
"""

import os
import re
import signal
import subprocess
from dataclasses import dataclass

STRACE = ["strace", "-f", "-qq", "-b", "execve"]
CALL = re.compile(r"^(\d+) +(\w+)\(")
# The first thing that a command does by itself is to ask where it is; before that the loader and the runtime start.
FIRST_OWN_CALL = "getcwd"
# A guard: no command goes on for that long by itself.
PATIENCE_S = 30


@dataclass(frozen=True)
class Point:
    """The `count`-th call of this name in some thread."""

    call: str
    count: int
    # It belongs to the start of the process.
    startup: bool
    # No record had been opened by then.
    blind: bool

    def __str__(self):
        return f"{self.call}:{self.count}"


def points(argv, env, cwd):
    """The calls that `argv` makes, in their order."""
    log = os.path.join(cwd, "strace.log")
    command = [*STRACE, "-o", log, *argv]
    subprocess.run(command, env=env, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    with open(log, encoding="utf-8", errors="replace") as lines:
        calls = [(match[1], match[2], line) for line in lines if (match := CALL.match(line))]
    main = calls[0][0]
    # What it starts makes a few calls before it becomes another program; they are not the victim's.
    others = {thread for thread, call, _ in calls if call == "execve" and thread != main}
    found, theirs, counts, startup, blind = {}, set(), {}, True, True
    for thread, call, line in calls:
        counts[thread, call] = count = counts.get((thread, call), 0) + 1
        if thread in others:
            theirs.add((call, count))
        elif call != "execve":
            startup = startup and call != FIRST_OWN_CALL
            blind = blind and ".claim\"" not in line
            found.setdefault((call, count), Point(call, count, startup, blind))
    os.unlink(log)
    # A signal at such a call would meet the process that is being started, for which its parent waits.
    return [point for key, point in found.items() if key not in theirs]


def give_up(*_):
    raise TimeoutError(f"it neither stopped nor ended in {PATIENCE_S} s")


class Victim:
    """A command that gets `sent` at `point`, or runs on to its end if it never comes there."""

    def __init__(self, argv, env, cwd, point, sent):
        inject = f"inject={point.call}:signal={sent.name}:when={point.count}"
        command = [*STRACE, "-D", "-o", "/dev/null", "-e", f"trace={point.call}", "-e", inject, *argv]
        self.files = [open(os.path.join(cwd, f"victim.{name}"), "wb+") for name in ("out", "err")]
        process = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=self.files[0],
                                   stderr=self.files[1], close_fds=False)
        process.returncode = 0  # it is waited for below, stops included
        self.pid = process.pid
        self.status = None

    def stopped(self):
        """Waits until it is frozen (True) or has ended (False)."""
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(PATIENCE_S)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        signal.alarm(0)
        if os.WIFSTOPPED(status):
            return True
        self.status = os.waitstatus_to_exitcode(status)
        return False

    def finish(self):
        """Thaws it, as often as another of its threads comes to the same call, and returns its exit code."""
        while self.status is None:
            os.kill(self.pid, signal.SIGCONT)
            self.stopped()
        return self.status

    def end(self):
        """Makes sure that nothing of it is left."""
        while self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.stopped()
        for file in self.files:
            file.close()

    def printed(self):
        self.files[0].seek(0)
        return self.files[0].read()
