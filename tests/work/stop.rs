//! How a worker ends.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Running, World, code, stderr, stdout, until, until_gone};
use crate::{children, good, work};

#[test]
fn told_to_stop_it_takes_nothing_more_and_settles_what_runs() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = World::new();
        good(&world, "add a");
        let script =
            "trap 'touch heard' TERM INT; touch runs; while ! [ -e end ]; do sleep .01; done; echo ended";
        let running = Running::start(&mut work(&world, "--concurrency 2", script));
        world.until_there("runs");
        // The command, the guard, and what waits in both slots to become the next command.
        until("an idle slot", || children(running.pid()).len() == 4);
        running.signal(signal);
        until("the end of the idle slot", || children(running.pid()).len() == 3);
        good(&world, "add b");
        world.make("end");
        let output = running.end();
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output), "DONE a generation=1 attempt=1\n");
        assert_eq!(world.show("a")["outcome"]["result"], "ended");
        assert_eq!(world.show("b")["generation"], 0);
        assert!(!world.at("heard").exists(), "the command hears nothing of it");
    }
}

#[test]
fn after_the_shutdown_timeout_the_task_is_given_back() {
    let world = World::new();
    good(&world, "add a");
    let script = "trap '' TERM; echo $$ >pid; while :; do sleep .01; done";
    let running = Running::start(&mut work(&world, "--shutdown-timeout 100ms", script));
    let command = world.pid("pid");
    running.signal(Signal::TERM);
    let output = running.end();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "RELEASED a generation=1 attempt=1 (the worker was stopped)\n");
    until_gone(command);
    let node = world.show("a");
    assert_eq!((&node["state"], &node["attempt"]), (&json!("ready"), &json!(0)));
}

#[test]
fn a_second_signal_ends_the_waiting() {
    let world = World::new();
    for id in ["a", "b"] {
        good(&world, &format!("add {id}"));
    }
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >inner-$CLAIM_ID; while :; do sleep .01; done' & wait; wait";
    let words = "--shutdown-timeout 1h --concurrency 2 --json";
    let running = Running::start(&mut work(&world, words, script));
    let inner = [world.pid("inner-a"), world.pid("inner-b")];
    running.signal(Signal::TERM);
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said["ok"], &said["released"], &said["done"]), (&json!(true), &json!(2), &json!(0)));
    inner.into_iter().for_each(until_gone);
    for id in ["a", "b"] {
        assert_eq!(world.show(id)["attempt"], 0);
    }
}

#[test]
fn a_command_that_ends_in_time_by_itself_is_settled_by_its_exit() {
    let world = World::new();
    good(&world, "add a");
    let script = "touch runs; while ! [ -e end ]; do sleep .01; done; exit 65";
    let running = Running::start(&mut work(&world, "--shutdown-timeout 1h", script));
    world.until_there("runs");
    running.signal(Signal::TERM);
    world.make("end");
    let output = running.end();
    assert_eq!(stdout(&output), "FAILED a generation=1 attempt=1 (the command exited with 65)\n");
    assert_eq!(code(&output), Some(0));
}

#[test]
fn an_idle_worker_just_ends() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = World::new();
        let running = Running::start(&mut work(&world, "", "true"));
        until("a stub", || children(running.pid()).len() == 1);
        // It has looked for signals by the time it sleeps for work.
        good(&world, "add a");
        until("a done task", || world.show("a")["state"] == "done");
        let stubs = children(running.pid());
        running.signal(signal);
        let output = running.end();
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
        stubs.into_iter().for_each(until_gone);
    }
}

#[test]
fn max_counts_over_all_slots() {
    for (concurrency, max) in [(1, 2), (4, 2), (2, 5)] {
        let world = World::new();
        for id in 0..6 {
            good(&world, &format!("add t{id}"));
        }
        let words = format!("--json --max {max} --concurrency {concurrency}");
        let output = work(&world, &words, "true").output().unwrap();
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["done"], max);
        let left = good(&world, "list --state ready");
        assert_eq!(left.lines().count(), 6 - max, "{left}");
    }
}

#[test]
fn an_idle_exit_waits_for_those_who_work_since_they_may_add_work() {
    let world = World::new();
    good(&world, "add a");
    let script = "[ $CLAIM_ID = b ] || { while ! [ -e go ]; do sleep .01; done; claim -q add b; }";
    let running = Running::start(&mut work(&world, "--idle-exit --concurrency 2", script));
    until("a guard, a command, and the next", || children(running.pid()).len() >= 3);
    world.make("go");
    let output = running.end();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let mut lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["DONE a generation=1 attempt=1", "DONE b generation=1 attempt=1"]);
}

#[test]
fn an_idle_exit_with_nothing_to_do_is_a_good_end() {
    let world = World::new();
    good(&world, "init");
    for words in ["--idle-exit", "--idle-exit=20ms --concurrency 3"] {
        let output = work(&world, words, "touch ran").output().unwrap();
        assert_eq!((code(&output), stdout(&output)), (Some(0), String::new()), "{}", stderr(&output));
    }
    assert!(!world.at("ran").exists());
}

#[test]
fn without_an_end_it_waits_for_more() {
    let world = World::new();
    let running = Running::start(&mut work(&world, "--queue q --project p", "true"));
    for id in ["a", "b"] {
        good(&world, &format!("add other-{id} --queue q"));
        good(&world, &format!("add {id} --queue q --project p"));
        until("a done task", || world.show(id)["state"] == "done");
        assert_eq!(world.show(&format!("other-{id}"))["generation"], 0, "another project's");
    }
    running.signal(Signal::TERM);
    assert_eq!(code(&running.end()), Some(0));
}

#[test]
fn a_signal_that_the_caller_ignores_does_not_stop_it() {
    let world = World::new();
    let mut command = world.program("sh");
    command.args(["-c", "trap '' INT; exec \"$@\"", "sh", "claim", "work", "--max", "2", "--", "sh", "-c"]);
    let running = Running::start(command.args(["touch $CLAIM_ID; while ! [ -e end ]; do sleep .01; done"]));
    good(&world, "add a");
    world.until_there("a");
    running.signal(Signal::INT);
    good(&world, "add b");
    world.make("end");
    let output = running.end();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert!(world.at("b").exists(), "it took the next one");
}
