//! What happens to the command when the lease is lost.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Running, World, code, report, state, stderr, until, until_gone};

/// Counts the SIGUSR1s that it gets; ends well once told to.
const COUNTS: &str = "n=0; trap 'n=$((n+1)); echo >usr$n' USR1; echo $$ >pid
    while ! [ -e end ]; do sleep .01; done; touch finished";

/// Freezes it until another has the node: by force, so that no lease ends on a busy machine before the freeze.
fn freeze_and_take(world: &World, running: &Running) {
    freeze(running);
    world.taken_over("n", "--force because");
}

fn freeze(running: &Running) {
    running.signal(Signal::STOP);
    until("a frozen run", || state(running.pid()) == Some('T'));
}

/// Returns after `run` has passed on two signals, so after it has looked at its lease in between.
fn until_looked(world: &World, running: &Running) {
    for name in ["usr1", "usr2"] {
        running.signal(Signal::USR1);
        world.until_there(name);
    }
}

#[test]
fn a_frozen_run_that_thaws_after_a_takeover_stops_its_command() {
    for trap in ["", "trap '' TERM;"] {
        let world = World::new();
        let script = format!("{trap} echo $$ >pid; while :; do sleep .01; done");
        let running = Running::start(&mut world.run("n --json --lease 3s", &script));
        let command = world.pid("pid");
        freeze(&running);
        world.taken_over("n", "--wait=100s");
        assert!(state(command).is_some(), "a frozen run can't stop anything");
        running.signal(Signal::CONT);
        let output = running.end();
        assert_eq!(code(&output), Some(76), "{trap}: {}", stderr(&output));
        assert_eq!(state(command), None, "{trap}");
        let report = report(&output);
        assert_eq!((&report["lost"], &report["code"]), (&json!(true), &json!("STALE_CLAIM")));
        assert_eq!((&report["ran"], &report["settled"]), (&json!(true), &json!("none")));
        assert_eq!((&report["holder"]["owner"], &report["holder"]["generation"]), (&json!("bob"), &json!(2)));
        let own = (&report["owner"], &report["generation"], &report["attempt"]);
        assert_eq!(own, (&json!("alice"), &json!(1), &json!(1)), "its own facts");
        assert_eq!(world.show("n")["generation"], 2);
    }
}

#[test]
fn a_thawed_run_sees_a_takeover_within_its_lease() {
    let world = World::new();
    let running =
        Running::start(&mut world.run("n --lease 30d", "echo $$ >pid; while :; do sleep .01; done"));
    let command = world.pid("pid");
    freeze_and_take(&world, &running);
    running.signal(Signal::CONT);
    let output = running.end();
    assert_eq!(code(&output), Some(76), "{}", stderr(&output));
    assert_eq!(state(command), None);
}

#[test]
fn a_takeover_by_force_stops_the_command_at_the_next_renewal() {
    let world = World::new();
    let script =
        "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >inner; while :; do sleep .01; done' & wait; wait";
    let running = Running::start(&mut world.run("n --lease 3s", script));
    let inner = world.pid("inner");
    world.taken_over("n", "--force because");
    let output = running.end();
    assert_eq!(code(&output), Some(76));
    assert!(stderr(&output).contains("lost n — "), "{}", stderr(&output));
    assert!(stderr(&output).contains("bob holds it"), "{}", stderr(&output));
    until_gone(inner);
}

#[test]
fn a_stopped_command_is_stopped_for_good() {
    let world = World::new();
    let running = Running::start(&mut world.run("n --lease 3s", "echo $$ >pid; kill -STOP $$; touch ran"));
    let command = world.pid("pid");
    until("a stopped command", || state(command) == Some('T'));
    world.taken_over("n", "--force because");
    assert_eq!(code(&running.end()), Some(76));
    assert_eq!(state(command), None);
    assert!(!world.at("ran").exists());
}

#[test]
fn on_lost_term_asks_and_no_more() {
    let world = World::new();
    let script = format!("trap 'touch asked' TERM; {COUNTS}");
    let running = Running::start(&mut world.run("n --json --lease 30d --on-lost term", &script));
    world.pid("pid");
    freeze_and_take(&world, &running);
    running.signal(Signal::CONT);
    world.until_there("asked");
    until_looked(&world, &running);
    world.make("end");
    let output = running.end();
    assert_eq!((code(&output), &report(&output)["exit_code"]), (Some(76), &json!(0)));
    assert!(world.at("finished").exists());
}

#[test]
fn on_lost_keep_lets_it_run() {
    let world = World::new();
    let running = Running::start(&mut world.run("n --json --lease 30d --on-lost keep", COUNTS));
    world.pid("pid");
    freeze_and_take(&world, &running);
    running.signal(Signal::CONT);
    until_looked(&world, &running);
    world.make("end");
    let output = running.end();
    assert_eq!(code(&output), Some(76));
    assert_eq!((&report(&output)["lost"], &report(&output)["exit_code"]), (&json!(true), &json!(0)));
    assert!(world.at("finished").exists());
}

#[test]
fn a_command_that_settled_its_claim_goes_on() {
    let world = World::new();
    let script = format!("claim complete --quiet; {COUNTS}");
    let running = Running::start(&mut world.run("n --json --lease 30d", &script));
    world.pid("pid");
    // It asks the record when it is continued.
    running.signal(Signal::CONT);
    until_looked(&world, &running);
    world.make("end");
    let output = running.end();
    assert_eq!((code(&output), &report(&output)["settled"]), (Some(0), &json!("left")));
    assert!(world.at("finished").exists());
}

#[test]
fn a_result_that_comes_too_late_is_refused() {
    let world = World::new();
    let script = "echo $$ >pid; while ! [ -e end ]; do sleep .01; done; echo 1";
    let running = Running::start(&mut world.run("n --lease 30d --result-from-stdout", script));
    let command = world.pid("pid");
    freeze_and_take(&world, &running);
    world.make("end");
    until_gone(command);
    running.signal(Signal::CONT);
    assert_eq!(code(&running.end()), Some(76));
    assert_eq!(world.show("n")["state"], "claimed");
}

#[test]
fn a_reader_who_is_slow_holds_up_no_stop() {
    let world = World::new();
    let script = "echo $$ >pid; head -c 900000 /dev/zero; while :; do sleep .01; done";
    let running = Running::start(&mut world.run("n --lease 3s --result-from-stdout", script));
    let command = world.pid("pid");
    world.taken_over("n", "--force because");
    until_gone(command);
    assert_eq!(code(&running.end()), Some(76));
}
