//! What the lesson on claims asks of a claim, check by check.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Running, World, race, said, until, words};

#[test]
fn alice_claims_and_the_same_as_bob_is_lost() {
    let world = World::new();
    let alice = world.say("acquire parser --owner alice");
    assert_eq!(alice.exit, 0, "{alice:?}");
    let line = alice.line();
    assert!(line.starts_with("CLAIMED parser by alice generation=1 attempt=1 token="), "{line}");
    let bob = world.say("acquire parser --owner bob");
    assert_eq!(bob.exit, 1, "{bob:?}");
    let line = bob.line();
    assert!(line.starts_with("lost parser — already held by alice (generation 1, ends in "), "{line}");
    assert!(line.ends_with("s)"), "{line}");
}

#[test]
fn twenty_at_once_one_claimed_and_nineteen_lost() {
    let world = World::new();
    for round in 0..8 {
        let commands: Vec<_> =
            (0..20).map(|n| words(&format!("acquire parser{round} --owner w{n}"))).collect();
        let said = race(&world, &commands);
        let starting = |word: &str| said.iter().filter(|said| said.line().starts_with(word)).count();
        let claimed = starting(&format!("CLAIMED parser{round} by w"));
        let lost = starting(&format!("lost parser{round} — already held by w"));
        assert_eq!((claimed, lost), (1, 19), "round {round}: {said:?}");
        assert_eq!(said.iter().filter(|said| said.exit == 0).count(), 1);
        assert_eq!(said.iter().filter(|said| said.exit == 1).count(), 19);
    }
}

#[test]
fn run_twice_the_side_effect_happens_once_and_the_second_says_what_it_read() {
    let world = World::new();
    let worker = r#"
        eval "$("$CLAIM" acquire build-parser --owner "$1" --export || echo exit $?)"
        echo built >> artifact
        "$CLAIM" complete --result '{"artifact": "artifact"}'
    "#;
    let first = said(world.shell(worker).arg("alice"));
    assert_eq!(first.exit, 0, "{first:?}");
    let second = said(world.shell(worker).arg("alice"));
    assert_eq!(second.exit, 1, "{second:?}");
    assert!(second.err.contains("lost build-parser — already done by alice (generation 1)"), "{second:?}");
    assert_eq!(fs::read_to_string(world.root.join("artifact")).unwrap(), "built\n");
    assert_eq!(
        world.say("acquire build-parser --owner bob").line(),
        "lost build-parser — already done by alice (generation 1)"
    );
}

#[test]
fn a_running_node_is_not_run_again_by_its_own_owner() {
    let world = World::new();
    world.take("build-parser --owner alice");
    let again = world.say("acquire build-parser --owner alice");
    assert_eq!(again.exit, 1);
    assert!(again.line().starts_with("lost build-parser — already held by alice "), "{again:?}");
}

#[test]
fn an_expired_lease_is_taken_by_exactly_one_new_owner() {
    let world = World::new();
    for round in 0..5 {
        let first = world.take(&format!("parser{round} --owner alice --lease 400ms"));
        until("the lease is over", || {
            world.say(&format!("check parser{round} --token {}", first.token)).exit == 3
        });
        let commands: Vec<_> =
            (0..20).map(|n| words(&format!("acquire parser{round} --owner w{n}"))).collect();
        let said = race(&world, &commands);
        let winners: Vec<_> = said.iter().filter(|said| said.exit == 0).collect();
        assert_eq!(winners.len(), 1, "{said:?}");
        let winner = winners[0];
        assert!(winner.line().contains(" generation=2 attempt=2 "), "{winner:?}");
        let reclaiming = format!("reclaiming expired lease on parser{round} (was alice)");
        assert!(winner.err.lines().any(|line| line == reclaiming), "{winner:?}");
        assert!(said.iter().all(|said| said.exit < 2), "{said:?}");
    }
}

#[test]
fn a_claimant_killed_in_its_work_gives_the_node_back_without_a_manual_delete() {
    let world = World::new();
    let mut worker = Running::idle();
    let claimed = world.take(&format!("parser --owner alice --lease 1h --while-pid {}", worker.id()));
    world.refused("acquire parser --owner bob", 1, "CLAIM_HELD");
    worker.end();
    let bob = world.take("parser --owner bob");
    assert_eq!((bob.generation, bob.attempt), (2, 2));
    assert_eq!(bob.reclaimed_from.as_deref(), Some("alice"));
    world.refused(&format!("renew parser --token {}", claimed.token), 3, "STALE_CLAIM");
}

/// Stands still in its work beyond its lease, and then goes on as if nothing had happened: tells of each thing that it
/// tries the exit code and the answer.
const STALLED: &str = r#"
    export CLAIM_OWNER=alice
    eval "$("$CLAIM" acquire earlier --export)" && "$CLAIM" complete --quiet
    eval "$("$CLAIM" acquire job --lease 2s --export)"
    touch at-work
    read -r _
    try() { answer=$("$CLAIM" "$@" --json); echo "$? $answer"; }
    try check
    try renew
    try renew --progress '"half"'
    try mail send box '"done"' --claim job
    try mail send box '"done"' --claim job --receipt late
    try retry
    try release
    try release --block stuck
    try complete --result '"by alice"'
    try complete --result '"by alice"' --receipt late
    try review job --accept
    try review earlier --accept
"#;

#[test]
fn a_worker_stalled_beyond_its_lease_is_replaced_and_then_refused_everything() {
    let world = World::new();
    for line in ["add job --review", "add earlier --review"] {
        assert_eq!(world.say(line).exit, 0);
    }
    let mut worker = Running::spawn(world.shell(STALLED).stdin(Stdio::piped()));
    until("alice is at work", || world.root.join("at-work").exists());
    let pid = Pid::from_child(&worker.0);
    kill_process(pid, Signal::STOP).unwrap();
    let stat = format!("/proc/{}/stat", worker.id());
    until("alice stands still", || fs::read_to_string(&stat).unwrap().contains(") T "));
    let bob = world.take("job --owner bob --lease 1h --wait=5m");
    assert_eq!((bob.generation, bob.attempt), (2, 2));
    assert_eq!(bob.reclaimed_from.as_deref(), Some("alice"));
    let before = world.snapshot();
    worker.0.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    kill_process(pid, Signal::CONT).unwrap();
    let said = worker.said();
    let told: Vec<(&str, Value)> =
        said.out.lines().filter_map(|line| line.split_once(' ')).map(json_of).collect();
    let codes: Vec<(&str, &str)> =
        told.iter().map(|(exit, json)| (*exit, json["code"].as_str().unwrap())).collect();
    let (fenced, late) = codes.split_at(10);
    assert!(fenced.iter().all(|code| *code == ("3", "STALE_CLAIM")), "{said:?}");
    assert!(told[..10].iter().all(|(_, json)| json["holder"]["owner"] == "bob"), "{said:?}");
    assert_eq!(late, [("1", "NOT_READY"), ("4", "SELF_REVIEW")], "{said:?}");
    let mut after = world.snapshot();
    after.retain(|file| before.contains(file));
    assert_eq!(after, before, "nothing was changed");
    assert_eq!(world.say(&format!("complete job --token {}", bob.token)).exit, 0);
    assert_eq!(world.stored("job")["outcome"]["by"], "bob");
    assert_eq!(world.say("mail list box").exit, 1, "no mail was sent");
}

fn json_of<'a>((exit, answer): (&'a str, &str)) -> (&'a str, Value) {
    (exit, serde_json::from_str(answer).unwrap())
}
