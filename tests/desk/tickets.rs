//! Tickets: in whose turn they are, what `add` takes, and taking one that somebody has.

use std::sync::Arc;
use std::time::Duration;

use claimdir::domain::{Name, Retry, Submission};
use claimdir::store::Memory;
use claimdir::time::When;
use claimdir::{Acquire, Directory, Next};
use serde_json::{Value, json};

use crate::support::World;
use crate::support::fake::{Fake, id};

/// Ids out of order, and then in it.
const MIXED: [&str; 8] =
    ["TK-10", "TK-2", "TK-1000000000000000000000000000000", "TK-1", "TK-010", "a", "TK-9", "TK-1/x"];
const IN_TURN: [&str; 8] =
    ["TK-1", "TK-1/x", "TK-2", "TK-9", "TK-10", "TK-010", "TK-1000000000000000000000000000000", "a"];

#[test]
fn tickets_of_one_moment_go_by_their_numbers() {
    let memory = Arc::new(Memory::default());
    let host = Fake::new("boot");
    let directory = Directory::over(memory, host.clone());
    for (at, text) in MIXED.into_iter().enumerate() {
        // Each project has a list of its own.
        let project = Name::new(["one", "two"][at % 2]).unwrap();
        let mut request = Submission::by("s");
        if at % 3 > 0 {
            request = request.project(project);
        }
        directory.submit(&id(text), &request).unwrap().unwrap();
    }
    let next = Next::of(Acquire::by("w"));
    assert_eq!(directory.would_next(&next).unwrap().unwrap().node.id.as_str(), "TK-1", "by the records");
    let mut found = Vec::new();
    while let Ok(lease) = directory.try_next(&next).unwrap() {
        found.push(lease.id().to_string());
        let looks = directory.would_next(&next).unwrap();
        if let Ok(seen) = looks {
            assert_eq!(Some(seen.node.id.as_str()), IN_TURN.get(found.len()).copied(), "by the hints");
        }
        lease.leave();
    }
    assert_eq!(found, IN_TURN);
    // All have one end, and then their turns are as they were.
    host.pass(3_600_000);
    let again: Vec<String> = IN_TURN
        .iter()
        .map(|_| directory.try_next(&next).unwrap().unwrap().leave().1.node.id.to_string())
        .collect();
    assert_eq!(again, IN_TURN);
}

/// After a retry a ticket is as old as its rest, and of one moment they go by their numbers.
#[test]
fn tickets_that_rested_until_one_moment_go_by_their_numbers() {
    let host = Fake::new("boot");
    let directory = Directory::over(Arc::new(Memory::default()), host.clone());
    for text in MIXED {
        directory.submit(&id(text), &Submission::by("s")).unwrap().unwrap();
        host.pass(1);
    }
    let leases: Vec<_> =
        MIXED.map(|text| directory.try_acquire(&id(text), &Acquire::by("w")).unwrap()).into();
    directory.submit(&id("fresh"), &Submission::by("s")).unwrap().unwrap();
    for lease in leases {
        let lease = lease.unwrap();
        let (id, token) = (lease.id().clone(), lease.leave().0);
        let retry = Retry { after: Duration::from_secs(60), ..Retry::default() };
        directory.retry(&id, &token, &retry).unwrap().unwrap();
    }
    host.pass(60_000);
    let next = Next::of(Acquire::by("w"));
    let mut found = Vec::new();
    while let Ok(lease) = directory.try_next(&next).unwrap() {
        found.push(lease.leave().1.node.id.to_string());
    }
    assert_eq!(found, [["fresh"].as_slice(), &IN_TURN].concat());
}

/// A delay says from when on it can be taken, not whose turn it is then.
#[test]
fn an_earlier_ticket_goes_first_whatever_its_number_and_its_delay() {
    let host = Fake::new("boot");
    let directory = Directory::over(Arc::new(Memory::default()), host.clone());
    let delayed = Submission::by("s").not_before(When::In(Duration::from_secs(60)));
    for (text, request) in [("TK-10", delayed), ("TK-2", Submission::by("s"))] {
        directory.submit(&id(text), &request).unwrap().unwrap();
        host.pass(1);
    }
    host.pass(60_000);
    let next = Next::of(Acquire::by("w"));
    let found = ["TK-10", "TK-2"].map(|_| directory.try_next(&next).unwrap().unwrap().leave().1.node.id);
    assert_eq!(found, [id("TK-10"), id("TK-2")]);
}

#[test]
fn title_project_and_priority_are_kept_and_bad_ones_are_refused() {
    let world = World::new();
    for (bad, says) in [
        (&["--priority", "10"][..], "priority"),
        (&["--priority", "-1"], "priority"),
        (&["--priority", "high"], "priority"),
        (&["--priority", ""], "priority"),
        (&["--priority", "256"], "priority"),
        (&["--project", ""], "1 to 256 bytes"),
        (&["--project", &"p".repeat(257)], "1 to 256 bytes"),
        (&["--title"], "--title"),
        (&["--title", "a", "--title", "b"], "--title"),
    ] {
        let said = world.run(&[&["add", "t"], bad].concat());
        assert_eq!(said.exit, 2, "{bad:?}: {said:?}");
        assert!(said.err.contains(says), "{bad:?}: {said:?}");
    }
    assert!(!world.dir().exists(), "nothing was made for them");
    let title = "Fix \u{1b}[31mthe\nroof — 屋根";
    assert_eq!(
        world.run(&["add", "t", "--title", title, "--project", "house/roof", "--priority", "0"]).exit,
        0
    );
    let task: Value = world.json("show t").expect::<Value>(0)["task"].clone();
    assert_eq!(
        (&task["title"], &task["project"], &task["priority"]),
        (&json!(title), &json!("house/roof"), &json!(0))
    );
    assert!(world.say("show t").out.contains(r"title Fix \u{1b}[31mthe\nroof — 屋根"));
    let next: Value = world.json("next --project house/roof").expect(0);
    assert_eq!(next["title"], title);
}

#[test]
fn a_take_of_a_held_one_is_refused_and_forced() {
    let world = World::new();
    world.say("add TK-1 --title Roof");
    let first = world.take("TK-1 --owner alice");
    let before = world.snapshot();
    let said = world.say("take TK-1 --owner bob");
    assert_eq!(said.exit, 1);
    assert!(said.out.starts_with("lost TK-1 — already held by alice (generation 1, ends in "), "{said:?}");
    let lost = world.refused("take TK-1 --owner bob", 1, "CLAIM_HELD");
    let holder = lost.holder.unwrap();
    assert_eq!((holder.owner.as_str(), holder.generation, lost.generation), ("alice", 1, Some(1)));
    assert_eq!(holder.expires_at, first.expires_at);
    assert!(holder.remaining_ms.unwrap() > 3_000_000);
    for blank in ["", " ", "\t\n"] {
        let said = world.run(&["take", "TK-1", "--owner", "bob", "--force", blank]);
        assert_eq!(said.exit, 2, "{said:?}");
        assert!(said.err.contains("needs a reason"), "{said:?}");
    }
    assert_eq!(world.say("take TK-1 --owner bob --force").exit, 2);
    assert_eq!(world.snapshot(), before, "a refusal changes nothing");
    let said = world.run(&["take", "TK-1", "--owner", "bob", "--force", "alice's laptop is lost", "--json"]);
    let taken: Value = said.expect(0);
    assert_eq!(
        (&taken["generation"], &taken["forced"], &taken["reclaimed_from"]),
        (&json!(2), &json!(true), &json!("alice"))
    );
    let forced = world.stored("TK-1")["forced"].clone();
    assert_eq!(
        (&forced["reason"], &forced["by"], &forced["from"]),
        (&json!("alice's laptop is lost"), &json!("bob"), &json!("alice"))
    );
    assert!(world.say("show TK-1").out.contains("forced by bob: alice's laptop is lost"));
    world.refused(&format!("renew TK-1 --token {}", first.token), 3, "STALE_CLAIM");
    assert_eq!(world.json("show TK-1").expect::<Value>(0)["holder"]["owner"], "bob");
}
