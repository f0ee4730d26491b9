//! A worker that has lost a task.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Running, World, code, state, stderr, stdout, until, until_gone};
use crate::{good, work};

fn freeze(running: &Running) {
    running.signal(Signal::STOP);
    until("a frozen worker", || state(running.pid()) == Some('T'));
}

/// Another worker takes the task when its lease is over, and is done.
fn replace(world: &World) {
    let output = work(world, "--owner bob --max 1", "echo second").output().unwrap();
    assert_eq!(stdout(&output), "DONE a generation=2 attempt=2\n", "{}", stderr(&output));
}

#[test]
fn a_late_result_is_refused_and_the_replacements_stands() {
    let world = World::new();
    good(&world, "add a");
    let script = "echo $$ >pid; while ! [ -e end ]; do sleep .01; done; echo first";
    let running = Running::start(&mut work(&world, "--lease 2s --idle-exit", script));
    let command = world.pid("pid");
    freeze(&running);
    replace(&world);
    world.make("end");
    until_gone(command);
    running.signal(Signal::CONT);
    let output = running.end();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "LOST a generation=1 attempt=1\n");
    assert!(stderr(&output).contains("lost a — "), "{}", stderr(&output));
    assert_eq!(world.show("a")["outcome"]["result"], "second");
}

#[test]
fn a_worker_that_thaws_after_its_lease_stops_the_command() {
    let world = World::new();
    good(&world, "add a");
    let script = "trap '' TERM; echo $$ >pid; while :; do sleep .01; done";
    let running = Running::start(&mut work(&world, "--lease 2s --idle-exit", script));
    let command = world.pid("pid");
    freeze(&running);
    replace(&world);
    assert!(state(command).is_some(), "a frozen worker can't stop anything");
    running.signal(Signal::CONT);
    let output = running.end();
    assert_eq!((code(&output), stdout(&output)), (Some(0), "LOST a generation=1 attempt=1\n".to_owned()));
    until_gone(command);
    assert_eq!(world.show("a")["outcome"]["by"], "bob");
}

#[test]
fn a_task_that_is_called_off_while_it_runs_is_stopped_and_the_next_one_taken() {
    let world = World::new();
    good(&world, "add a");
    let script = "[ $CLAIM_ID = b ] || { echo $$ >pid; while :; do sleep .01; done; }";
    let running = Running::start(&mut work(&world, "--lease 30d --max 2", script));
    let command = world.pid("pid");
    good(&world, "cancel a --reason enough");
    good(&world, "add b");
    let output = running.end();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "LOST a generation=1 attempt=1\nDONE b generation=1 attempt=1\n");
    assert!(stderr(&output).contains("lost a — "), "{}", stderr(&output));
    until_gone(command);
    assert_eq!(world.show("a")["state"], "cancelled");
}

#[test]
fn a_lease_is_renewed_while_the_command_runs() {
    let world = World::new();
    good(&world, "add a");
    let script = "touch runs; while ! [ -e end ]; do sleep .01; done";
    let running = Running::start(&mut work(&world, "--lease 2s --max 1", script));
    world.until_there("runs");
    let ends = || world.show("a")["claim"]["expires_at"].clone();
    let first = ends();
    until("two renewals", || world.show("a")["version"].as_u64() >= Some(4));
    assert_ne!(first, ends());
    world.make("end");
    assert_eq!(stdout(&running.end()), "DONE a generation=1 attempt=1\n");
    assert_eq!(world.show("a")["attempts"][0]["ended"], json!("completed"));
}
