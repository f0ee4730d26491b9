//! How a server ends: soon, and with nothing taken for nobody.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{World, until};
use crate::wire::Raw;

/// Asks for what there is not yet, each in its own way, and lets it come to a wait.
fn wait_for_work(raw: &mut Raw) {
    raw.begin(1, "next", json!({"wait": "50s"}));
    raw.begin(2, "claim", json!({"id": "held", "wait": "50s"}));
    raw.begin(3, "mail", json!({"action": "read", "box": "b", "wait": "50s"}));
    until("three calls wait", || calls(raw.pid()) == 3);
}

/// How many calls are being answered.
fn calls(server: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{server}/task")).unwrap();
    let name = |thread: &fs::DirEntry| fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
    threads.filter(|thread| name(thread.as_ref().unwrap()).trim() == "claim-mcp-call").count()
}

/// A task that comes once the server is to end is nobody's attempt: were one counted, it would have failed.
fn nothing_is_taken(world: &World, raw: Raw) {
    assert_eq!(world.say("add task --max-attempts 1").exit, 0);
    assert_eq!(raw.wait(), 0);
    assert_eq!(world.stored("task")["claim"], json!(null), "{}", world.stored("task"));
    world.take("task --owner carol");
}

#[test]
fn waits_end_with_the_input() {
    let world = World::new();
    world.take("held --owner alice");
    let mut raw = Raw::start(&world, "--owner gone");
    wait_for_work(&mut raw);
    raw.close();
    nothing_is_taken(&world, raw);
}

#[test]
fn waits_end_with_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = World::new();
        world.take("held --owner alice");
        let mut raw = Raw::start(&world, "--owner gone");
        wait_for_work(&mut raw);
        kill_process(Pid::from_raw(raw.pid().cast_signed()).unwrap(), signal).unwrap();
        nothing_is_taken(&world, raw);
    }
}

#[test]
fn who_reads_no_more_is_gone_as_well() {
    let world = World::new();
    world.take("held --owner alice");
    let mut raw = Raw::start(&world, "--owner gone");
    wait_for_work(&mut raw);
    raw.stop_reading();
    nothing_is_taken(&world, raw);
}

#[test]
fn what_is_asked_for_with_the_last_breath_is_not_taken() {
    for round in 0..10 {
        let world = World::new();
        assert_eq!(world.say("add task --max-attempts 1").exit, 0);
        let mut raw = Raw::start(&world, "--owner gone");
        raw.begin(1, "next", json!({}));
        raw.close();
        let answer = raw.rest().pop();
        let is_told = answer.is_some_and(|told| told["result"]["structuredContent"]["ok"] == true);
        assert_eq!(raw.wait(), 0);
        // Told before the end was seen, it was the agent's.
        let is_free = world.say("acquire task --owner carol").exit == 0;
        assert_ne!(is_told, is_free, "round {round}");
    }
}

#[test]
fn an_output_that_nobody_reads_from_the_start_ends_it() {
    let world = World::new();
    let mut raw = Raw::ungreeted(&world, "");
    raw.stop_reading();
    assert_eq!(raw.wait(), 0);
}

#[test]
fn two_calls_with_one_id_are_not_both_taken() {
    let world = World::new();
    world.take("held --owner alice");
    let mut raw = Raw::start(&world, "--owner bob");
    raw.begin(7, "claim", json!({"id": "held", "wait": "50s"}));
    let told = raw.call(7, "claim", json!({"id": "other"}));
    assert_eq!(told["error"]["code"], -32600, "{told}");
    world.take("other --owner carol");
    assert_eq!(world.say("cancel held").exit, 0);
    let told = raw.read();
    assert_eq!((&told["id"], &told["result"]["structuredContent"]["code"]), (&json!(7), &json!("CANCELLED")));
    // Once answered, it may come again, though it should not.
    assert_eq!(raw.call(7, "claim", json!({"id": "third"}))["result"]["isError"], false);
}

#[test]
fn calls_that_wait_keep_no_room_from_those_that_do_not() {
    let world = World::new();
    world.take("held --owner alice");
    let mut raw = Raw::start(&world, "--owner bob");
    for id in 0..200 {
        raw.begin(id, "claim", json!({"id": "held", "wait": "50s"}));
    }
    raw.begin(1000, "look", json!({"what": "state"}));
    let mut refused = 0;
    loop {
        let told = raw.read();
        if told["id"] == 1000 {
            assert_eq!(told["result"]["structuredContent"]["ok"], true, "{told}");
            break;
        }
        assert_eq!(told["result"]["structuredContent"]["code"], "CONTENDED", "{told}");
        refused += 1;
    }
    while refused < 200 - 64 {
        assert_eq!(raw.read()["result"]["structuredContent"]["code"], "CONTENDED");
        refused += 1;
    }
    raw.close();
    assert_eq!(raw.wait(), 0);
}
