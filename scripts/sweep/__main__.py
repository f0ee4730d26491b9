"""Kills and freezes every command at each of its system calls, and checks that nothing is lost and nobody waits."""

import argparse
import collections
import multiprocessing
import os
import sys
import time

import checks
from cases import CASES, SHORT
from victim import points
from world import World


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/sweep.sh", description=__doc__)
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--all", action="store_true", help="every call, those of process start-up too")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="trials at once")
    parser.add_argument("--only", metavar="CASE", help="only the cases with this in their names")
    parser.add_argument("--at", metavar="CALL:N", help="only at this call, as a violation names it")
    return parser.parse_args()


def calls_of(case, options):
    world = World(options.program, case.node, SHORT)
    try:
        case.situation(world)
        env = {**world.env, "CLAIM_TOKEN": world.token} if world.token else world.env
        return points(case.command(world), env, world.folder, options.all)
    finally:
        world.close()


def trials(case, found, options):
    step = 1 if options.all or options.at else case.step
    for point in found[::step]:
        if options.at in (None, str(point)):
            for mode in ("kill", *case.meanwhile):
                if mode == "kill" or point.call != "exit_group":  # from which nothing returns to be frozen
                    yield checks.Trial(options.program, case, point, mode)


def sweep(options):
    cases = [case for case in CASES if (options.only or "") in case.name]
    found = {case.name: calls_of(case, options) for case in cases}
    todo = [trial for case in cases for trial in trials(case, found[case.name], options)]
    done = collections.defaultdict(list)
    with multiprocessing.Pool(options.jobs) as pool:
        for outcome in pool.imap_unordered(checks.run, todo, chunksize=4):
            done[outcome.trial.case.name].append(outcome)
            for violation in outcome.violations:
                print(f"VIOLATION {outcome.trial}: {violation}", flush=True)
    return {case.name: (found[case.name], done[case.name]) for case in cases}


def table(swept):
    """Prints what was done; the number of violations."""
    line = "{:<36} {:>6} {:>6} {:>8} {:>7} {:>12} {:>11}"
    print(line.format("command", "calls", "kills", "freezes", "missed", "slowest (s)", "violations"))
    total = [0] * 6
    for name, (found, outcomes) in swept.items():
        kills = sum(outcome.hit for outcome in outcomes if outcome.trial.mode == "kill")
        freezes = sum(outcome.hit for outcome in outcomes if outcome.trial.mode != "kill")
        missed = len(outcomes) - kills - freezes
        slowest = max((outcome.slowest for outcome in outcomes), default=0.0)
        wrong = sum(len(outcome.violations) for outcome in outcomes)
        row = [len(found), kills, freezes, missed, slowest, wrong]
        print(line.format(name, *row[:4], f"{slowest:.3f}", wrong))
        total = [*(a + b for a, b in zip(total[:4], row[:4])), max(total[4], slowest), total[5] + wrong]
    print(line.format("all", *total[:4], f"{total[4]:.3f}", total[5]))
    return total


def main():
    options = arguments()
    began = time.monotonic()
    calls, kills, freezes, missed, _, wrong = table(sweep(options))
    print(f"{kills} kills and {freezes} freezes at {calls} system calls in {time.monotonic() - began:.0f} s")
    if kills + freezes <= 9 * missed:
        print("too many points were missed for the sweep to mean anything")
        return 1
    return 1 if wrong else 0


sys.exit(main())
