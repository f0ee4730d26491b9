//! Plain messages: `add` without an id, and work keys.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use claimdir::domain::{Name, Submission};
use claimdir::store::Memory;
use claimdir::{Directory, WorkKey};
use serde_json::{Value, json};
use support::fake::Fake;
use support::{World, race, words};

/// Posts a message; its id, and whether it was a replay.
fn post(world: &World, options: &str) -> (String, bool) {
    let told: Value = world.json(&format!("add {options}")).expect(0);
    (told["id"].as_str().unwrap().to_owned(), told["replay"].as_bool().unwrap())
}

#[test]
fn without_an_id_each_is_another_task() {
    let world = World::new();
    let ids: HashSet<String> = (0..8).map(|_| post(&world, "--input 1").0).collect();
    assert_eq!(ids.len(), 8);
    for id in ids {
        let random = id.strip_prefix("msg-").unwrap();
        assert!(
            random.len() == 26 && random.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
            "{id}"
        );
        world.take(&id);
    }
}

#[test]
fn a_receipt_finds_the_message_that_was_made() {
    let world = World::new();
    let first = post(&world, "--input 1 --receipt r");
    assert!(!first.1);
    assert_eq!(post(&world, "--input 1 --receipt r"), (first.0, true));
    world.refused("add --input 2 --receipt r", 4, "RECEIPT_CONFLICT");
    assert_eq!(world.say("list").out.lines().count(), 1);
}

#[test]
fn a_work_key_posts_once_in_its_queue() {
    let world = World::new();
    let (id, replay) = post(&world, "--input 1 --work-key k");
    assert!(!replay);
    assert_eq!(post(&world, "--input 1 --work-key k --priority 3"), (id.clone(), true));
    let refused = world.refused("add --input 2 --work-key k", 4, "IDEMPOTENCY_CONFLICT");
    assert!(refused.message.contains("work key"), "{refused:?}");
    assert_ne!(post(&world, "--input 1 --work-key k --queue other"), (id.clone(), true));
    let token = world.take(&id).token;
    world.say(&format!("complete {id} --token {token} --result 1"));
    assert_eq!(post(&world, "--input 1 --work-key k"), (id.clone(), true), "also when it has ended");
    world.edit(&id, |json| json["outcome"]["at"] = "2020-01-01T00:00:00Z".into());
    world.say("prune --older 7d");
    assert_eq!(world.stored(&id)["tombstoned"], true);
    assert_eq!(post(&world, "--input 1 --work-key k"), (id, true), "and of its tombstone");
    world.refused("add --input 2 --work-key k", 4, "IDEMPOTENCY_CONFLICT");
    world.refused("add t --work-key k", 2, "USAGE");
    assert_eq!(world.run(&["add", "--work-key", ""]).exit, 2);
}

#[test]
fn twenty_at_once_with_one_key_make_one_message() {
    let world = World::new();
    let told = race(&world, &vec![words("add --input 1 --work-key k --json"); 20]);
    let made = told.iter().filter(|said| said.expect::<Value>(0)["replay"] == false).count();
    assert_eq!(made, 1);
    // After its time, too.
    let id = told[0].expect::<Value>(0)["id"].as_str().unwrap().to_owned();
    world.edit(&id, |json| json["task"]["submitted_at"] = "2020-01-01T00:00:00Z".into());
    let told = race(&world, &vec![words("add --input 2 --work-key k --json"); 20]);
    let made = told.iter().filter(|said| said.expect::<Value>(0)["replay"] == false).count();
    let ids: HashSet<String> = told.iter().map(|said| said.expect::<Value>(0)["id"].to_string()).collect();
    assert_eq!((made, ids.len(), ids.contains(&json!(id).to_string())), (1, 1, false));
}

#[test]
fn a_key_counts_for_seven_days_and_never_goes_back() {
    let host = Fake::new("boot");
    let directory = Directory::over(Arc::new(Memory::default()), host.clone());
    let key = WorkKey::new("k").unwrap();
    let post = |input: u64| {
        let request = Submission::by("boss").input(input.into()).queue(Name::new("q").unwrap());
        directory.post(&request, Some(&key)).unwrap().map(|told| (told.node.id, told.replay))
    };
    let week = Duration::from_secs(7 * 24 * 3600).as_millis() as i64;
    let (first, _) = post(1).unwrap();
    host.pass(week - 1);
    assert_eq!(post(1), Ok((first.clone(), true)));
    assert!(post(2).is_err());
    host.pass(1);
    let (second, replay) = post(2).unwrap();
    assert!(!replay && second != first);
    assert!(post(1).is_err(), "the key stands for another input now");
    host.step(-week);
    assert_eq!(post(2), Ok((second.clone(), true)), "a clock set back brings no earlier turn back");
    host.step(week);
    host.pass(week);
    let (third, _) = post(1).unwrap();
    assert!(third != first && third != second);
    assert_eq!(post(1), Ok((third, true)));
}
