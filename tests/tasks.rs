//! Submitting tasks: deadlines, delays, subscribers; backoff.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use claimdir::domain::{Retry, Submission};
use claimdir::store::Memory;
use claimdir::time::When;
use claimdir::{Acquire, Directory};
use serde_json::{Value, json};
use support::fake::{Fake, by, id, take};
use support::{Running, World, words};

/// Lets a moment in the record be past: the object that has `at` and `clock`.
fn pass(moment: &mut Value) {
    moment["clock"]["at_mono_ms"] = 1.into();
    moment["at"] = "2020-01-01T00:00:00Z".into();
}

#[test]
fn a_deadline_that_has_passed_is_so_for_every_command() {
    let world = World::new();
    let added: Value = world.json("add t --deadline 1h").expect(0);
    assert!(added["deadline"].is_string(), "{added}");
    let token = world.take("t --owner w").token;
    world.edit("t", |json| pass(&mut json["task"]["deadline"]));
    let before = world.snapshot();
    assert_eq!(world.say("list --state expired").line(), "t generation=1 expired: its deadline has passed");
    assert_eq!(world.say("list --state claimed").out, "");
    assert!(world.say("why t").line().contains("can't be taken: expired"));
    assert!(world.say("show t").out.starts_with("t expired"));
    assert_eq!(world.json("result t").expect::<Value>(4)["code"], "EXPIRED");
    let stale = world.refused(&format!("check t --token {token}"), 3, "STALE_CLAIM");
    assert!(stale.message.contains("it is expired"), "{stale:?}");
    assert_eq!(world.snapshot(), before, "looking writes nothing");
    let stale = world.refused(&format!("complete t --token {token}"), 3, "STALE_CLAIM");
    assert!(stale.message.contains("it is expired"), "{stale:?}");
    let stored = world.stored("t");
    assert_eq!((&stored["state"], &stored["attempts"][0]["ended"]), (&json!("expired"), &json!("expired")));
    world.refused("acquire t --wait=1h", 4, "EXPIRED");
}

#[test]
fn whoever_writes_next_records_that_a_deadline_has_passed() {
    let world = World::new();
    for (at, write) in [
        "acquire T",
        "acquire T --force x",
        "cancel T --reason x",
        "block T --reason x",
        "unblock T",
        "requeue T",
        "renew T --token x",
        "release T --token x",
        "reject T --token x",
        "retry T --token x",
        "add T",
        "note T x",
        "join T x",
        "review T --accept",
        "result T --wait",
    ]
    .iter()
    .enumerate()
    {
        let task = format!("t{at}");
        world.say(&format!("add {task} --deadline 1h"));
        world.edit(&task, |json| pass(&mut json["task"]["deadline"]));
        let said = world.say(&write.replace('T', &task));
        assert_eq!(world.stored(&task)["state"], "expired", "{write}: {said:?}");
    }
}

#[test]
fn a_task_that_waits_for_an_expired_one_is_refused_at_once() {
    let world = World::new();
    world.say("add d --deadline 1h");
    world.say("add n --after d");
    world.edit("d", |json| pass(&mut json["task"]["deadline"]));
    let refused = world.refused("acquire n --wait=1h", 4, "DEPENDENCY_NOT_ACCEPTED");
    assert!(refused.message.contains("d, which is expired"), "{refused:?}");
    assert_eq!(world.stored("d")["state"], "expired");
    // The same when it expires during the wait.
    world.say("add d2 --deadline 300ms");
    world.say("add n2 --after d2");
    world.refused("acquire n2 --wait=1h", 4, "DEPENDENCY_NOT_ACCEPTED");
}

#[test]
fn a_waiter_wakes_at_the_deadline_and_not_at_the_lease_s_end() {
    let world = World::new();
    world.say("add t --deadline 400ms");
    let _ = world.json("acquire t --lease 30d");
    world.refused("acquire t --wait=1h", 4, "EXPIRED");
}

#[test]
fn a_failure_before_the_deadline_stays_one() {
    let world = World::new();
    world.say("add t --max-attempts 1 --deadline 2099-01-01T00:00:00Z");
    world.expired("t");
    let lease_end = world.stored("t")["claim"]["clock"]["ends_mono_ms"].as_i64().unwrap();
    world.edit("t", |json| {
        pass(&mut json["task"]["deadline"]);
        json["task"]["deadline"]["clock"]["at_mono_ms"] = (lease_end + 1).into();
    });
    assert_eq!(world.json("result t").expect::<Value>(4)["code"], "FAILED");
    world.refused("requeue t", 4, "EXPIRED");
}

#[test]
fn deadlines_go_by_the_clock_of_the_boot_and_after_it_by_the_wall() {
    let store = Arc::new(Memory::default());
    let host = Fake::new("boot");
    let directory = Directory::over(store.clone(), host.clone());
    let task = Submission::by("boss").deadline(When::In(Duration::from_secs(60)));
    directory.submit(&id("n"), &task).unwrap().unwrap();
    let name = |directory: &Directory| {
        let node = directory.node(&id("n")).unwrap().unwrap();
        directory.standing(&node, |standing| standing.name())
    };
    host.step(3_600_000);
    assert_eq!(name(&directory), "ready", "a stepped clock expires nothing");
    host.step(-3_600_000);
    host.pass(59_999);
    assert_eq!(name(&directory), "ready");
    let other = Directory::over(store.clone(), Fake::new("another boot"));
    let at = host.now().wall_ms;
    assert_eq!(name(&other), "ready");
    host.pass(1);
    assert_eq!(name(&directory), "expired");
    let later = Fake::new("another boot");
    later.step(at + 1 - later.now().wall_ms);
    assert_eq!(name(&Directory::over(store, later)), "expired");
}

#[test]
fn not_before_is_waited_for() {
    let world = World::new();
    let added: Value = world.json("add t --not-before 1h").expect(0);
    assert!(added["not_before"].is_string(), "{added}");
    world.refused("acquire t", 1, "NOT_READY");
    assert!(world.say("list --state waiting").line().starts_with("t "));
    world.edit("t", |json| pass(&mut json["not_before"]));
    assert!(world.say("list --state ready").line().starts_with("t "));
    world.take("t");
    world.say("add soon --not-before 300ms");
    world.take("soon --wait=1h");
    world.say("add past --not-before 2020-01-01T00:00:00Z");
    world.take("past");
    world.refused("add x --not-before soon", 2, "USAGE");
    world.refused("add x --deadline -5s", 2, "USAGE");
}

#[test]
fn options_that_differ_change_nothing_and_are_named() {
    let world = World::new();
    world.say("add t --deadline 2099-01-01T00:00:00Z");
    let same: Value = world.json("add t --deadline 2099-01-01T00:00:00+00:00").expect(0);
    assert_eq!(same["differing"], json!([]));
    let other: Value = world.json("add t --not-before 1h --priority 2").expect(0);
    assert_eq!(other["differing"], json!(["priority", "deadline", "not-before"]));
    assert_eq!(world.stored("t")["version"], 1);
}

#[test]
fn who_submits_a_task_that_is_there_joins_it() {
    let world = World::new();
    world.say("add t --subscriber a --subscriber b --subscriber a");
    let again: Value = world.json("add t --subscriber c").expect(0);
    assert_eq!((&again["existing"], &again["differing"]), (&json!(true), &json!([])));
    assert_eq!(world.stored("t")["task"]["subscribers"], json!(["a", "b", "c"]));
    let token = world.take("t").token;
    world.say(&format!("complete t --token {token}"));
    let version = world.stored("t")["version"].clone();
    world.say("add t --subscriber d");
    assert_eq!(world.stored("t")["version"], version, "what has ended is left alone");
}

#[test]
fn a_retry_rests_at_least_its_backoff_and_at_least_what_was_asked() {
    let host = Fake::new("boot");
    let directory = Directory::over(Arc::new(Memory::default()), host.clone());
    let task = Submission::by("boss").max_attempts(1_000).unwrap();
    directory.submit(&id("n"), &task).unwrap().unwrap();
    let mut scattered = std::collections::HashSet::new();
    for attempt in 1..=12_u32 {
        let asked = if attempt == 12 { Duration::from_secs(3600) } else { Duration::from_millis(1) };
        let lease = take(&directory, &by("w"));
        let how = Retry { reason: None, after: asked };
        let written = lease.retry(&how).map_err(|unsettled| unsettled.error).unwrap().unwrap();
        let rests = written.node.not_before.unwrap().length_ms;
        let backoff = (1_000_i64 << (attempt - 1)).min(300_000);
        if attempt == 12 {
            assert_eq!(rests, 3_600_000, "what was asked is not undercut");
        } else {
            assert!((backoff..backoff * 3 / 2).contains(&rests), "attempt {attempt}: {rests}");
            scattered.insert(rests - backoff);
        }
        host.pass(rests - 1);
        assert!(directory.try_acquire(&id("n"), &Acquire::by("w")).unwrap().is_err());
        host.pass(1);
    }
    assert!(scattered.len() > 1, "no jitter");
}

#[test]
fn a_result_outlives_the_process_that_submitted_the_task() {
    let world = World::new();
    let mut submitter = Running::spawn(world.claim().args(words("add t --input 1")));
    submitter.0.wait().unwrap();
    let waiter = Running::spawn(world.claim().args(words("result t --wait=1h")));
    drop(waiter); // killed
    let token = world.take("t").token;
    world.say(&format!("complete t --token {token} --result 2"));
    assert_eq!(world.json("result t").expect::<Value>(0)["result"], 2);
}
