//! When `run` dies, so does its command; and until the last of the command's group is gone, the node is held.

use rustix::process::Signal;

use crate::support::{Running, World, code, stderr, until_gone};

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
fn a_killed_run_holds_the_node_until_its_commands_last_process_is_gone() {
    let world = World::new();
    let script =
        "(sh -c 'echo $PPID >grandchild'; while ! [ -e end ]; do sleep .01; done) & echo $$ >child; wait";
    let running = Running::start(&mut world.run("n --lease 30d", script));
    let (child, grandchild) = (world.pid("child"), world.pid("grandchild"));
    running.signal(Signal::KILL);
    until_gone(running.pid());
    until_gone(child);
    let refused = world.claim("acquire n --owner bob").output().unwrap();
    assert_eq!(code(&refused), Some(1), "{}", stderr(&refused));
    world.make("end");
    until_gone(grandchild);
    world.taken_over("n", "--wait=100s");
}

#[test]
fn a_run_killed_while_it_waits_leaves_nothing_behind() {
    let world = World::new();
    world.claim("acquire n --lease 1h --owner bob").output().unwrap();
    let waiting = Running::start(&mut world.run("n --wait=1h", "touch ran"));
    let children = format!("/proc/{0}/task/{0}/children", waiting.pid().as_raw_nonzero());
    let mut stub = None;
    crate::support::until("a stub", || {
        let text = std::fs::read_to_string(&children).unwrap_or_default();
        stub = text.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
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
