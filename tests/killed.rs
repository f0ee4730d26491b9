//! A process killed at any of its system calls: what it reported stands, what it did not report is whole or
//! not there, and nobody has to clean up. `strace` does the killing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use support::{Said, World, said};

/// Runs the command that `prepare` makes for a fresh node, killed before one of its system calls, for each
/// that it makes from where it first looks at the claim directory; tells `check` the node and what it said.
fn at_each_call(
    prepare: impl Fn(&World, &str) -> Vec<String>,
    check: impl Fn(&World, &str, &Said, &[String]),
) {
    if !has_strace() {
        return println!("skipped: needs strace");
    }
    let world = World::new();
    assert_eq!(world.say("init").exit, 0);
    fs::create_dir(world.dir().join(".store/journal")).unwrap(); // there for each, as for all but the first
    let trace = world.root.join("trace");
    let traced = |arguments: &[String], options: &[&str]| {
        let mut command = world.clean("strace");
        command.args(["-qqq", "-o"]).arg(&trace).args(options).arg("--").arg(env!("CARGO_BIN_EXE_claim"));
        said(command.args(arguments).arg("--json").env_remove("CLAIM_NO_SYNC"))
    };
    let whole = traced(&prepare(&world, "whole"), &[]);
    assert_eq!(whole.exit, 0, "{whole:?}");
    let calls = calls(&fs::read_to_string(&trace).unwrap());
    assert!(calls.len() > 10, "{calls:?}");
    for (at, (call, count)) in calls.iter().enumerate() {
        let id = format!("n{at}");
        let arguments = prepare(&world, &id);
        let said = traced(&arguments, &["-e", &format!("inject={call}:signal=KILL:when={count}")]);
        assert_ne!(said.exit, 0, "not killed at {call} number {count}");
        check(&world, &id, &said, &arguments);
        let generation = match state(&world, &id).as_str() {
            "none" | "made" => 0,
            _ => world.stored(&id)["generation"].as_u64().unwrap(),
        };
        let next = world.json(&format!("acquire {id} --force after-a-kill"));
        if state(&world, &id) != "done" {
            assert_eq!(next.expect::<support::Claimed>(0).generation, generation + 1, "after {call} {count}");
        }
    }
    let doctor: Value = world.json("doctor").expect(0);
    assert_eq!(doctor["faults"], 0, "{doctor}");
}

fn has_strace() -> bool {
    Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success())
}

/// The calls in a trace from the first that names the claim directory: name, and the how manieth of that name.
fn calls(trace: &str) -> Vec<(String, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut calls = Vec::new();
    let mut begun = false;
    for line in trace.lines() {
        let Some((name, rest)) = line.split_once('(') else { continue };
        let count = counts.entry(name).or_default();
        *count += 1;
        begun |= name != "execve" && rest.contains(".claims");
        // How often the allocator asks for memory varies from run to run, and says nothing to anybody else.
        let counts = !["exit_group", "brk", "mmap", "munmap", "mremap", "madvise"].contains(&name);
        if begun && counts {
            calls.push((name.to_owned(), *count));
        }
    }
    calls
}

fn words(line: String) -> Vec<String> {
    support::words(&line)
}

/// The state on disk; `made` for an empty file, `none` without one.
fn state(world: &World, id: &str) -> String {
    match fs::read(world.record(id)) {
        Err(_) => "none".to_owned(),
        Ok(bytes) if bytes.is_empty() => "made".to_owned(),
        Ok(_) => world.stored(id)["state"].as_str().unwrap().to_owned(),
    }
}

fn held(world: &World, id: &str) -> String {
    world.take(&format!("{id} --owner alice --lease 1h")).token
}

/// As some file systems have it.
#[test]
fn where_two_names_cannot_be_exchanged_the_new_one_is_renamed_over_the_old() {
    if !has_strace() {
        return println!("skipped: needs strace");
    }
    let world = World::new();
    let trace = world.root.join("trace");
    let claim = |line: &str| {
        let mut command = world.clean("strace");
        command.args(["-qqq", "-o"]).arg(&trace).args(["-e", "inject=renameat2:error=EINVAL", "--"]);
        said(command.arg(env!("CARGO_BIN_EXE_claim")).args(words(line.to_owned())).arg("--json"))
    };
    let first: support::Claimed = claim("acquire n --owner alice").expect(0);
    assert!(fs::read_to_string(&trace).unwrap().contains("EINVAL"), "nothing was exchanged");
    assert_eq!(claim(&format!("release n --token {}", first.token)).exit, 0);
    assert_eq!(claim("acquire n --owner bob").expect::<support::Claimed>(0).generation, 2);
    assert_eq!(fs::read_dir(world.dir().join(".store/intents")).unwrap().count(), 0);
}

#[test]
fn an_acquire_stands_if_it_was_told() {
    at_each_call(
        |_, id| words(format!("acquire {id} --owner alice --lease 1h")),
        |world, id, said, _| {
            let state = state(world, id);
            assert!(["none", "made", "claimed"].contains(&state.as_str()), "{state}");
            if said.out.is_empty() {
                assert_ne!(said.exit, 0);
                return;
            }
            // The token was told, so it holds, whether or not the process came to its end.
            let claimed: Value = serde_json::from_str(&said.out).unwrap();
            assert_eq!(
                world.say(&format!("check {id} --token {}", claimed["token"].as_str().unwrap())).exit,
                0
            );
        },
    );
}

#[test]
fn a_takeover_replaces_the_old_claim_or_leaves_it() {
    at_each_call(
        |world, id| {
            world.expired(id);
            words(format!("acquire {id} --owner bob --lease 1h"))
        },
        |world, id, said, _| {
            let stored = world.stored(id);
            let owner = stored["claim"]["owner"].as_str().unwrap();
            let expected = if owner == "bob" { json!([2, 2, 2]) } else { json!([1, 1, 1]) };
            assert_eq!(json!([stored["generation"], stored["version"], stored["attempt"]]), expected);
            assert!(owner == "bob" || (said.out.is_empty() && said.exit != 0), "{said:?}");
        },
    );
}

#[test]
fn a_renewal_loses_no_claim() {
    at_each_call(
        |world, id| words(format!("renew {id} --progress 7 --token {}", held(world, id))),
        |world, id, said, arguments| {
            assert_eq!(world.say(&format!("check {id} --token {}", arguments[5])).exit, 0);
            let renewed = world.stored(id)["progress"] == 7;
            assert!(renewed || said.out.is_empty(), "{said:?}");
        },
    );
}

#[test]
fn a_release_can_be_tried_again() {
    at_each_call(
        |world, id| words(format!("release {id} --token {}", held(world, id))),
        |world, id, said, arguments| {
            let released = state(world, id) == "ready";
            assert!(released || said.out.is_empty(), "{said:?}");
            let again = world.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).exit;
            assert_eq!(again, if released { 3 } else { 0 });
            assert_eq!(state(world, id), "ready");
        },
    );
}

#[test]
fn a_completion_can_be_tried_again() {
    at_each_call(
        |world, id| words(format!("complete {id} --result 7 --token {}", held(world, id))),
        |world, id, said, arguments| {
            let done = state(world, id) == "done";
            assert!(done || said.out.is_empty(), "{said:?}");
            let again = world.json(&arguments.join(" "));
            assert_eq!(again.expect::<Value>(0)["replay"], done);
            assert_eq!(world.stored(id)["outcome"]["result"], 7);
        },
    );
}

#[test]
fn a_completion_with_a_large_result_can_be_tried_again() {
    let result = "x".repeat(20_000);
    at_each_call(
        |world, id| {
            fs::create_dir_all(world.dir().join(".store/blobs")).unwrap(); // there for each, as for all but the first
            fs::write(world.root.join("large"), json!(result).to_string()).unwrap();
            let mut line = words(format!("complete {id} --result @large --token {}", held(world, id)));
            line[3] = format!("@{}", world.root.join("large").display());
            line
        },
        |world, id, said, arguments| {
            let done = state(world, id) == "done";
            assert!(done || said.out.is_empty(), "{said:?}");
            let again = world.json(&arguments.join(" "));
            assert_eq!(again.expect::<Value>(0)["replay"], done);
            assert_eq!(world.json(&format!("result {id}")).expect::<Value>(0)["result"], result.as_str());
            world.say("prune");
            for folder in fs::read_dir(world.dir().join(".store/blobs")).unwrap() {
                assert_eq!(fs::read_dir(folder.unwrap().path()).unwrap().count(), 1, "{id}");
            }
        },
    );
}
