//! When `run` dies, so does its command with all of its group, and the node is free.

use rustix::process::{Pid, Signal};

use crate::support::{Running, World, code, state, stderr, until, until_gone};

#[test]
fn a_killed_run_is_replaced_at_once() {
    let world = World::new();
    let script = "echo $$ >pid; while :; do sleep .01; done";
    let running = Running::start(&mut world.run("n --lease 30d", script));
    let command = world.pid("pid");
    running.signal(Signal::KILL);
    // The lease of 30 days has no part in this.
    let output = world.claim("acquire n --owner bob --wait=100s").output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("reclaiming expired lease on n (was alice)"), "{}", stderr(&output));
    until_gone(command);
}

#[test]
fn all_of_a_killed_runs_command_dies_with_it() {
    let world = World::new();
    let script = "trap '' TERM HUP; (echo $$ >child; sh -c 'echo $PPID >grandchild; while :; do sleep .01; done'; true) & wait; true";
    let running = Running::start(&mut world.run("n --lease 30d", script));
    let (child, grandchild) = (world.pid("child"), world.pid("grandchild"));
    running.signal(Signal::KILL);
    world.taken_over("n", "--wait=60s");
    until_gone(child);
    until_gone(grandchild);
}

#[test]
fn a_run_killed_while_it_ends_the_commands_group_leaves_nobody() {
    let world = World::new();
    // The command itself has ended; `run` is stopped while it stops the rest.
    let script = "(trap 'kill -KILL $(cat run); while :; do sleep .01; done' TERM
        sh -c 'echo $PPID >rest'; while :; do sleep .01; done) & while ! [ -s go ]; do sleep .01; done";
    let running = Running::start(&mut world.run("n --lease 30d", script));
    std::fs::write(world.at("run"), running.pid().as_raw_nonzero().to_string()).unwrap();
    let rest = world.pid("rest");
    std::fs::write(world.at("go"), "now").unwrap();
    world.taken_over("n", "--wait=60s");
    until_gone(rest);
}

#[test]
fn a_signal_to_everybody_in_runs_group_spares_the_guard() {
    let world = World::new();
    let script = "sh -c 'echo $PPID >command; while :; do sleep .01; done'; true";
    let mut command = world.program("setsid");
    command.args(["claim", "run", "n", "--lease", "30d", "--", "sh", "-c", script]);
    let running = Running::start(&mut command);
    let command = world.pid("command");
    rustix::process::kill_process_group(running.pid(), Signal::KILL).unwrap();
    world.taken_over("n", "--wait=60s");
    until("an empty group", || rustix::process::test_kill_process_group(command).is_err());
}

#[test]
fn no_guard_is_left_when_the_command_has_ended() {
    let world = World::new();
    let running = Running::start(&mut world.run("n", "echo $$ >pid; while ! [ -e end ]; do sleep .01; done"));
    world.pid("pid");
    let pid = running.pid().as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let children = children.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap());
    let children: Vec<Pid> = children.collect();
    assert_eq!(children.len(), 2, "the command and its guard");
    world.make("end");
    assert_eq!(code(&running.end()), Some(0));
    assert!(children.into_iter().all(|child| state(child).is_none()));
}

#[test]
fn a_guard_spares_a_later_group_of_the_same_number() {
    let world = World::new();
    let mut other = world.program("setsid");
    let other = Running::start(other.args(["sh", "-c", "echo $$ >there; while :; do sleep .01; done"]));
    let number = world.pid("there");
    // Told to watch a group with that number whose leader started at another time, and then that its worker is dead.
    let id = u32::try_from(number.as_raw_nonzero().get()).unwrap();
    let mut word = vec![b'w'];
    word.extend(id.to_ne_bytes());
    word.extend(1_u64.to_ne_bytes());
    std::fs::write(world.at("word"), word).unwrap();
    let guard =
        world.claim("__guard").stdin(std::fs::File::open(world.at("word")).unwrap()).output().unwrap();
    assert_eq!(code(&guard), Some(0), "{}", stderr(&guard));
    assert!(state(number).is_some());
    drop(other);
}

#[test]
fn a_run_killed_while_it_waits_leaves_nothing_behind() {
    let world = World::new();
    world.claim("acquire n --lease 1h --owner bob").output().unwrap();
    let waiting = Running::start(&mut world.run("n --wait=1h", "touch ran"));
    let children = format!("/proc/{0}/task/{0}/children", waiting.pid().as_raw_nonzero());
    let mut stub = None;
    until("a stub", || {
        let text = std::fs::read_to_string(&children).unwrap_or_default();
        stub = text.trim().parse().ok().and_then(Pid::from_raw);
        stub.is_some()
    });
    waiting.signal(Signal::INT);
    let output = waiting.end();
    assert_eq!(code(&output), None, "an interrupt just ends a wait");
    until_gone(stub.unwrap());
    assert!(!world.at("ran").exists());
}

#[test]
fn where_proc_shows_other_processes_the_lease_decides() {
    let world = World::new();
    let mut outside = world.program("unshare");
    outside.args(["--pid", "--fork", "--", "claim", "run", "n", "--json", "--", "sh", "-c"]);
    outside.arg("cat \"$CLAIMS_DIR\"/n.claim >record; exit 3");
    let output = outside.output().unwrap();
    if code(&output) == Some(1) && stderr(&output).contains("unshare failed") {
        eprintln!("not tested: no right to make a pid namespace");
        return;
    }
    assert_eq!(code(&output), Some(3), "{}", stderr(&output));
    let record: serde_json::Value = serde_json::from_str(&world.text("record")).unwrap();
    assert_eq!(record["claim"].get("process"), None, "{record}");
}
