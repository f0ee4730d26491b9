//! When a worker dies, so do its commands with all of their groups, and another worker has its tasks.

use rustix::process::Signal;

use crate::support::{Running, World, code, stderr, stdout, until, until_gone};
use crate::{children, good, work};

#[test]
fn a_killed_worker_takes_its_commands_with_it_and_another_takes_over() {
    let world = World::new();
    good(&world, "add a");
    good(&world, "add b");
    // The command itself has a child that has a child, and none of them heeds a request to end.
    let script =
        "trap '' TERM HUP; (sh -c 'echo $PPID >child-'$CLAIM_ID; sh -c 'echo $$ >grandchild-'$CLAIM_ID'
        while :; do sleep .01; done'; true) & echo $$ >pid-$CLAIM_ID; wait; wait";
    let running = Running::start(&mut work(&world, "--lease 30d --concurrency 2", script));
    let names = ["pid-a", "pid-b", "child-a", "child-b", "grandchild-a", "grandchild-b"];
    let pids = names.map(|name| world.pid(name));
    running.signal(Signal::KILL);
    // The lease of 30 days has no part in this.
    let output = work(&world, "--owner bob --max 2", "echo bob").output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("DONE a generation=2 attempt=2\n"), "{}", stdout(&output));
    assert!(stdout(&output).contains("DONE b generation=2 attempt=2\n"), "{}", stdout(&output));
    assert!(stderr(&output).contains("reclaiming expired lease on a (was alice)"), "{}", stderr(&output));
    pids.into_iter().for_each(until_gone);
    assert_eq!(world.show("a")["attempts"][0]["ended"], "process gone");
}

#[test]
fn a_killed_worker_leaves_no_process_behind() {
    let world = World::new();
    good(&world, "add a");
    let running = Running::start(&mut work(&world, "--lease 30d", "touch runs; while :; do sleep .01; done"));
    world.until_there("runs");
    // The command, the guard, and what waits to become the next command.
    until("three children", || children(running.pid()).len() == 3);
    let children = children(running.pid());
    running.signal(Signal::KILL);
    children.into_iter().for_each(until_gone);
}

#[test]
fn a_worker_whose_guard_was_killed_gets_another() {
    let world = World::new();
    good(&world, "add a");
    let script = "touch runs-$CLAIM_ID; while ! [ -e end-$CLAIM_ID ]; do sleep .01; done";
    let running = Running::start(&mut work(&world, "--lease 30d", script));
    world.until_there("runs-a");
    let comm = |pid: rustix::process::Pid| {
        std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default()
    };
    let guard = || {
        let mut found = None;
        until("a guard", || {
            found = children(running.pid()).into_iter().find(|pid| comm(*pid).ends_with(b"__guard\0"));
            found.is_some()
        });
        found.unwrap()
    };
    let first = guard();
    rustix::process::kill_process(first, Signal::KILL).unwrap();
    until_gone(first);
    good(&world, "add b");
    world.make("end-a");
    world.until_there("runs-b");
    let second = guard();
    assert_ne!(first, second);
    let left = children(running.pid());
    running.signal(Signal::KILL);
    left.into_iter().for_each(until_gone);
}
