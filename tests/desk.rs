//! A desk that hands out tickets to workers on one machine: what such a desk must do, each by real processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

#[path = "desk/engine.rs"]
mod engine;
#[path = "desk/graph.rs"]
mod graph;
#[path = "desk/listing.rs"]
mod listing;
#[path = "desk/reaper.rs"]
mod reaper;
#[path = "desk/terminal.rs"]
mod terminal;
#[path = "desk/tickets.rs"]
mod tickets;

use std::collections::BTreeSet;

use serde_json::Value;
use support::{Running, Said, World, race, words};

fn add(world: &World, lines: &[&str]) {
    for line in lines {
        assert_eq!(world.say(&format!("add {line}")).exit, 0, "{line}");
    }
}

fn id_of(answer: &Value) -> &str {
    answer["id"].as_str().unwrap()
}

/// Takes the node as the owner `old`, whose process then dies; its token.
fn left_behind(world: &World, id: &str) -> String {
    let mut worker = Running::idle();
    let token = world.take(&format!("{id} --owner old --while-pid {}", worker.id())).token;
    worker.end();
    token
}

/// The node's state as everybody sees it now, and its holder.
fn state(world: &World, id: &str) -> (String, Option<String>) {
    let shown: Value = world.json(&format!("show {id}")).expect(0);
    let holder = shown["holder"]["owner"].as_str().map(str::to_owned);
    (shown["state"].as_str().unwrap().to_owned(), holder)
}

#[test]
fn a_worker_gets_an_open_ticket_assigned_and_leased_in_one_step() {
    let world = World::new();
    add(&world, &["TK-1 --title Roof --project house"]);
    let got: Value = world.json("next --owner w1 --engine codex --project house --lease 30m").expect(0);
    assert_eq!(
        (id_of(&got), got["title"].as_str(), got["owner"].as_str()),
        ("TK-1", Some("Roof"), Some("w1"))
    );
    assert_eq!((got["engine"].as_str(), got["lease_ms"].as_i64()), (Some("codex"), Some(30 * 60_000)));
    assert!(world.stored("TK-1")["claim"]["host"].is_string(), "and which machine it is on");
    assert_eq!(state(&world, "TK-1"), ("claimed".to_owned(), Some("w1".to_owned())));
    let token = got["token"].as_str().unwrap();
    assert_eq!(world.say(&format!("check TK-1 --token {token}")).exit, 0, "and the lease is live");
}

#[test]
fn a_dry_run_tells_the_pick_and_writes_nothing() {
    let world = World::new();
    add(&world, &["TK-1", "TK-2 --project p"]);
    world.expired("TK-3");
    let before = world.snapshot();
    for (line, id) in
        [("next", "TK-1"), ("next --project p", "TK-2"), ("acquire TK-3", "TK-3"), ("acquire new", "new")]
    {
        let seen: Value = world.json(&format!("{line} --dry-run --owner w")).expect(0);
        assert_eq!((id_of(&seen), seen["dry_run"].as_bool(), seen["token"].as_str()), (id, Some(true), None));
        assert!(world.say(&format!("{line} --dry-run")).out.starts_with(&format!("WOULD CLAIM {id} ")));
    }
    world.refused("next --project none --dry-run", 1, "NOTHING_ELIGIBLE");
    assert_eq!(world.snapshot(), before, "not a byte, nor a file's time");
    assert_eq!(id_of(&world.json("next").expect(0)), "TK-1", "and it can still be had");
}

#[test]
fn a_dry_run_makes_no_directory() {
    let world = World::new();
    world.say("next --dry-run");
    world.say("acquire n --dry-run");
    assert!(!world.dir().exists());
}

#[test]
fn a_renewal_with_another_token_is_refused_and_the_lease_stays_as_it_is() {
    let world = World::new();
    add(&world, &["TK-1", "TK-2"]);
    let [mine, other] = ["TK-1", "TK-2"].map(|id| world.take(&format!("{id} --owner w")));
    let before = world.snapshot();
    for token in ["not-one", other.token.as_str(), &mine.token[1..]] {
        world.refused(&format!("renew TK-1 --token {token} --lease 2h"), 3, "STALE_CLAIM");
    }
    assert_eq!(world.run(&["renew", "TK-1", "--token", ""]).exit, 2);
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_renewal_with_its_token_ends_the_lease_later() {
    let world = World::new();
    add(&world, &["TK-1"]);
    let taken = world.take("TK-1 --lease 10m");
    let renewed: Value = world.json(&format!("renew TK-1 --token {} --lease 40m", taken.token)).expect(0);
    let ends = |at: &str| claimdir::time::parse_rfc3339(at).unwrap();
    assert!(ends(renewed["expires_at"].as_str().unwrap()) > ends(&taken.expires_at) + 20 * 60_000);
    assert_eq!(renewed["generation"].as_u64(), Some(taken.generation), "it is the same claim");
}

#[test]
fn a_renewal_after_the_end_is_refused_whether_taken_over_or_not() {
    let world = World::new();
    add(&world, &["TK-1"]);
    let token = left_behind(&world, "TK-1");
    world.refused(&format!("renew TK-1 --token {token}"), 3, "STALE_CLAIM");
    let next: Value = world.json("next --owner w2 --wait=60s").expect(0);
    assert_eq!((id_of(&next), next["reclaimed_from"].as_str()), ("TK-1", Some("old")));
    world.refused(&format!("renew TK-1 --token {token}"), 3, "STALE_CLAIM");
    assert_eq!(state(&world, "TK-1").1.as_deref(), Some("w2"));
}

#[test]
fn a_release_gives_the_ticket_back_with_the_state_asked_for() {
    let world = World::new();
    add(&world, &["TK-1"]);
    let first = world.take("TK-1 --owner w4");
    assert_eq!(world.say(&format!("release TK-1 --token {}", first.token)).exit, 0);
    assert_eq!(state(&world, "TK-1"), ("ready".to_owned(), None));
    let again: Value = world.json("next --owner w5").expect(0);
    assert_eq!(
        (id_of(&again), again["generation"].as_u64()),
        ("TK-1", Some(2)),
        "and at once another has it"
    );
    let token = again["token"].as_str().unwrap();
    assert_eq!(world.run(&["release", "TK-1", "--token", token, "--block", "no ladder"]).exit, 0);
    assert_eq!(state(&world, "TK-1").0, "blocked");
    world.refused("next", 1, "NOTHING_ELIGIBLE");
    world.refused(&format!("release TK-1 --token {token}"), 3, "STALE_CLAIM");
}

#[test]
fn a_release_by_another_is_refused() {
    let world = World::new();
    add(&world, &["TK-1"]);
    world.take("TK-1 --owner alice");
    let before = world.snapshot();
    let stranger = world.refused("release TK-1 --owner bob --token guessed", 3, "STALE_CLAIM");
    assert_eq!(stranger.holder.unwrap().owner, "alice");
    world.refused("release TK-1 --owner alice --token guessed", 3, "STALE_CLAIM");
    assert_eq!(world.say("release TK-1 --owner alice").exit, 2, "a name is no token");
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_ticket_under_a_live_lease_is_given_to_nobody_else() {
    let world = World::new();
    add(&world, &["TK-1 --project p"]);
    let holder: Value = world.json("next --project p --owner holder").expect(0);
    for _ in 0..3 {
        world.refused("next --project p --owner other", 1, "NOTHING_ELIGIBLE");
        world.refused("next --owner holder", 1, "NOTHING_ELIGIBLE");
    }
    let token = holder["token"].as_str().unwrap();
    assert_eq!(world.say(&format!("check TK-1 --token {token}")).exit, 0);
}

#[test]
fn a_worker_asks_for_the_projects_it_works_on() {
    let world = World::new();
    add(
        &world,
        &[
            "TK-1",
            "TK-2 --project roof",
            "TK-3 --project cellar",
            "TK-4 --project garden",
            "TK-5 --project cellar",
        ],
    );
    let next = |line: &str| id_of(&world.json(&format!("next {line}")).expect(0)).to_owned();
    assert_eq!(next("--project cellar"), "TK-3");
    assert_eq!(next("--project garden --project cellar"), "TK-4", "the oldest of several");
    assert_eq!(next("--project garden --project cellar"), "TK-5");
    world.refused("next --project cellar", 1, "NOTHING_ELIGIBLE");
    world.refused("next --project Roof", 1, "NOTHING_ELIGIBLE");
    assert_eq!((next(""), next("")), ("TK-1".to_owned(), "TK-2".to_owned()), "who names none gets any");
}

#[test]
fn held_blocked_parked_and_waiting_ones_are_never_given_out() {
    let world = World::new();
    add(
        &world,
        &[
            "held",
            "blocked",
            "over",
            "failed",
            "cancelled",
            "parked --not-before 1000d",
            "other --queue shut",
        ],
    );
    let held = world.take("held --owner alice");
    for (id, line) in [("over", "complete over"), ("failed", "reject failed")] {
        let token = world.take(id).token;
        assert_eq!(world.say(&format!("{line} --token {token}")).exit, 0);
    }
    for line in ["block blocked --reason why", "cancel cancelled --reason why", "pause shut --reason why"] {
        assert_eq!(world.say(line).exit, 0, "{line}");
    }
    add(
        &world,
        &[
            "waiting --after blocked",
            "waits-for-held --after held",
            "expired --deadline 2020-01-01T00:00:00Z",
        ],
    );
    let said = race(&world, &vec![words("next --owner w --json"); 6]);
    assert!(said.iter().all(|said| said.exit == 1), "{said:?}");
    world.refused("next --queue shut", 1, "NOTHING_ELIGIBLE");
    assert_eq!(world.say("list --state ready --queue default").out, "");
    assert_eq!(world.say(&format!("check held --token {}", held.token)).exit, 0);
    // And each comes up once it may.
    world.say("unblock blocked");
    world.say("resume shut");
    world.say(&format!("complete held --token {}", held.token));
    let mut got: Vec<String> = (0..2).map(|_| id_of(&world.json("next").expect(0)).to_owned()).collect();
    got.sort();
    assert_eq!(got, ["blocked", "waits-for-held"]);
    assert_eq!(id_of(&world.json("next --queue shut").expect(0)), "other");
    world.refused("next", 1, "NOTHING_ELIGIBLE");
}

#[test]
fn twenty_callers_at_twenty_tickets_get_twenty_different_ones() {
    let world = World::new();
    for ticket in 0..20 {
        add(&world, &[&format!("TK-{ticket} --project house")]);
    }
    let callers: Vec<Vec<String>> =
        (0..20).map(|at| words(&format!("next --owner racer-{at} --project house --json"))).collect();
    let answers: Vec<Value> = race(&world, &callers).iter().map(|said| said.expect(0)).collect();
    let ids: BTreeSet<&str> = answers.iter().map(id_of).collect();
    assert_eq!(ids.len(), 20, "{answers:?}");
    for answer in &answers {
        let token = answer["token"].as_str().unwrap();
        assert_eq!(world.say(&format!("check {} --token {token}", id_of(answer))).exit, 0);
    }
}

#[test]
fn eight_processes_at_one_ticket_have_one_winner_and_no_error() {
    for command in ["next", "take TK-1"] {
        let world = World::new();
        add(&world, &["TK-1"]);
        let callers: Vec<Vec<String>> =
            (0..8).map(|at| words(&format!("{command} --owner racer-{at} --json"))).collect();
        let said = race(&world, &callers);
        let (winners, losers): (Vec<&Said>, Vec<&Said>) = said.iter().partition(|said| said.exit == 0);
        assert_eq!(winners.len(), 1, "{said:?}");
        assert!(losers.iter().all(|said| said.exit == 1), "{said:?}");
        let won: Value = winners[0].expect(0);
        assert_eq!((id_of(&won), won["generation"].as_u64()), ("TK-1", Some(1)));
        assert_eq!(state(&world, "TK-1").1.as_deref(), won["owner"].as_str(), "it is whose lease there is");
    }
}

#[test]
fn a_ticket_whose_lease_is_over_goes_to_the_next_worker_without_a_reaper() {
    let world = World::new();
    add(&world, &["TK-1 --project dead", "TK-2 --project live"]);
    let token = left_behind(&world, "TK-1");
    let live = world.take("TK-2 --owner alive");
    assert_eq!(state(&world, "TK-1"), ("claimed".to_owned(), None), "as written, but nobody holds it");
    let next: Value = world.json("next --owner new --wait=60s").expect(0);
    assert_eq!((id_of(&next), next["owner"].as_str()), ("TK-1", Some("new")));
    assert_ne!(next["token"].as_str(), Some(token.as_str()));
    assert_eq!(world.json("reap --apply").expect::<Value>(0)["claims"], Value::Array(Vec::new()));
    for (id, token) in [("TK-1", next["token"].as_str().unwrap()), ("TK-2", &live.token)] {
        assert_eq!(world.say(&format!("check {id} --token {token}")).exit, 0, "a live one is never reaped");
    }
}
