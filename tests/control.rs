//! What can be done to a node without holding it, and giving up on one: cancel, block, unblock, requeue, notes,
//! subscribers, reject.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use serde_json::{Value, json};
use support::{Running, World, race, words};

/// Takes a node; its token.
fn take(world: &World, line: &str) -> String {
    world.take(line).token
}

/// Brings the task `t`, of one attempt, to its failure.
fn fail(world: &World, id: &str) {
    let token = take(world, id);
    assert_eq!(world.say(&format!("reject {id} --token {token} --reason no")).exit, 0);
}

#[test]
fn rejected_is_failed_and_told_once() {
    let world = World::new();
    world.say("add t");
    let token = take(&world, "t --owner w");
    let reject = format!("reject t --token {token} --reason poison");
    assert_eq!(world.say(&reject).line(), "FAILED t generation=1: poison");
    assert_eq!(world.say(&reject).line(), "FAILED t generation=1: poison (replay)");
    world.refused(&format!("reject t --token {token} --reason other"), 4, "FAILED");
    world.refused(&format!("complete t --token {token}"), 3, "STALE_CLAIM");
    world.refused("acquire t", 4, "FAILED");
    let stored = world.stored("t");
    assert_eq!((&stored["state"], &stored["outcome"]["reason"]), (&json!("failed"), &json!("poison")));
    assert_eq!(stored["attempts"][0]["ended"], "rejected");
    assert_eq!(world.say("list --state failed").line(), "t generation=1 failed by w");
}

#[test]
fn a_reject_with_a_receipt_happens_once() {
    let world = World::new();
    world.say("add t");
    let token = take(&world, "t");
    let reject = format!("reject t --token {token} --reason no --receipt r");
    assert_eq!(world.say(&reject).exit, 0);
    assert_eq!(world.say("requeue t").exit, 0);
    let again: Value = world.json(&reject).expect(0);
    assert_eq!((&again["replay"], &world.stored("t")["state"]), (&json!(true), &json!("ready")));
}

#[test]
fn cancelled_whatever_it_was_and_only_once() {
    let world = World::new();
    for (id, before) in
        [("ready", ""), ("blocked", "block blocked --reason x"), ("claimed", "acquire claimed")]
    {
        world.say(&format!("add {id}"));
        if !before.is_empty() {
            assert_eq!(world.say(before).exit, 0);
        }
        let cancel = format!("cancel {id} --reason enough --owner boss");
        let generation = world.stored(id)["generation"].as_u64().unwrap();
        assert_eq!(world.say(&cancel).line(), format!("CANCELLED {id} generation={generation}: enough"));
        let again: Value = world.json(&cancel).expect(0);
        assert_eq!(again["replay"], true);
        let other = world.refused(&format!("cancel {id} --reason other"), 4, "CANCELLED");
        assert!(other.message.contains("by boss") && other.message.contains("enough"), "{other:?}");
        world.refused(&format!("acquire {id} --wait=1h"), 4, "CANCELLED");
    }
    assert_eq!(world.say("list --state cancelled").out.lines().count(), 3);
    world.refused("cancel nobody --reason x", 1, "NOT_FOUND");
    assert!(!world.record("nobody").exists(), "what is refused makes nothing");
}

#[test]
fn why_says_what_is_in_the_way() {
    let world = World::new();
    for id in ["c", "b", "u", "f", "e"] {
        world.say(&format!("add {id} --deadline 1h"));
    }
    world.say("cancel c --reason enough --owner boss");
    world.say("block b --reason maintenance --owner ops");
    world.say("block u --reason maintenance --owner ops --until 2099-01-01T00:00:00Z");
    fail(&world, "f");
    world.edit("e", |json| {
        json["task"]["deadline"] = json!({"at": "2020-01-01T00:00:00Z"}); // of another boot
    });
    for (id, says, code) in [
        ("c", "cancelled by boss (generation 0): enough", "CANCELLED"),
        ("b", "blocked by ops: maintenance", "BLOCKED"),
        ("u", "blocked by ops until 2099-01-01T00:00:00Z: maintenance", "BLOCKED"),
        ("f", "(generation 1): no", "FAILED"),
        ("e", "its deadline was 2020-01-01T00:00:00Z", "EXPIRED"),
    ] {
        let why: Value = world.json(&format!("why {id}")).expect(0);
        assert!(why["why"].as_str().unwrap().contains(says), "{why}");
        assert_eq!((&why["takeable"], &why["reason"]), (&json!(false), &json!(code)));
        world.refused(&format!("acquire {id}"), 4, code);
    }
}

#[test]
fn what_has_ended_is_refused_by_its_end() {
    let world = World::new();
    let token = take(&world, "d");
    world.say(&format!("complete d --token {token}"));
    world.say("add f");
    fail(&world, "f");
    for command in ["cancel", "block", "unblock"] {
        let reason = if command == "unblock" { "" } else { "--reason x" };
        world.refused(&format!("{command} d {reason}"), 1, "ALREADY_DONE");
        world.refused(&format!("{command} f {reason}"), 4, "FAILED");
    }
    world.refused("requeue d", 1, "ALREADY_DONE");
}

#[test]
fn a_cancelled_claim_is_lost_and_its_holder_told_so() {
    let world = World::new();
    world.say("add t");
    let token = take(&world, "t --owner w");
    world.say("cancel t --reason enough");
    for write in ["check", "renew", "release", "complete", "retry", "reject"] {
        let stale = world.refused(&format!("{write} t --token {token}"), 3, "STALE_CLAIM");
        assert!(stale.message.contains("it is cancelled"), "{stale:?}");
    }
    assert_eq!(world.stored("t")["attempts"][0]["error"], "enough");
}

#[test]
fn of_a_cancel_and_a_completion_one_stands() {
    let world = World::new();
    for round in 0..10 {
        let id = format!("t{round}");
        world.say(&format!("add {id}"));
        let token = take(&world, &id);
        let told = race(
            &world,
            &[words(&format!("cancel {id} --reason x")), words(&format!("complete {id} --token {token}"))],
        );
        let state = world.stored(&id)["state"].as_str().unwrap().to_owned();
        match state.as_str() {
            "cancelled" => assert_eq!((told[0].exit, told[1].exit), (0, 3), "{told:?}"),
            "done" => assert_eq!((told[0].exit, told[1].exit), (1, 0), "{told:?}"),
            _ => panic!("{state}: {told:?}"),
        }
    }
}

#[test]
fn a_block_keeps_everybody_out_until_it_is_ended() {
    let world = World::new();
    world.say("add t");
    assert_eq!(
        world.say("block t --reason maintenance --owner ops").line(),
        "BLOCKED t generation=0: maintenance"
    );
    let again: Value = world.json("block t --reason maintenance").expect(0);
    assert_eq!(again["replay"], true);
    world.refused("block t --reason other", 4, "BLOCKED");
    let refused = world.refused("acquire t", 4, "BLOCKED");
    assert!(refused.message.contains("blocked by ops: maintenance"), "{refused:?}");
    let waiter = Running::spawn(world.claim().args(words("acquire t --wait=1h")));
    assert_eq!(world.say("unblock t").line(), "UNBLOCKED t generation=0");
    assert_eq!(waiter.said().exit, 0);
    let held = world.refused("block t --reason x", 1, "CLAIM_HELD");
    assert!(held.holder.is_some(), "{held:?}");
    let not = world.refused("unblock t", 1, "NOT_READY");
    assert!(not.message.contains("it is not blocked: it is claimed"), "{not:?}");
    world.refused("block t --reason", 2, "USAGE");
    assert_eq!(world.run(&["block", "t", "--reason", " "]).exit, 2);
    world.refused("block nobody --reason x", 1, "NOT_FOUND");
}

#[test]
fn a_block_with_an_end_ends_by_itself_and_all_agree() {
    let world = World::new();
    world.say("add t");
    let blocked: Value = world.json("block t --reason x --until 1h").expect(0);
    assert!(blocked["until"].is_string(), "{blocked}");
    let refused = world.refused("acquire t", 4, "BLOCKED");
    assert!(refused.message.contains(" until "), "{refused:?}");
    assert!(world.say("list --state blocked").line().contains(" until "), "list says until when");
    // The same reason again: a new end.
    let longer: Value = world.json("block t --reason x --until 2h").expect(0);
    assert_eq!(longer["replay"], false);
    world.refused("block t --reason x --until 2020-01-01T00:00:00Z", 2, "USAGE");
    world.edit("t", |json| {
        json["block"]["until"]["clock"]["at_mono_ms"] = 1.into();
        json["block"]["until"]["at"] = "2020-01-01T00:00:00Z".into();
    });
    let before = world.snapshot();
    assert_eq!(world.say("list --state ready").line(), "t generation=0 ready");
    assert_eq!(world.say("list --state blocked").out, "");
    let why: Value = world.json("why t").expect(0);
    assert_eq!(why["takeable"], true);
    assert_eq!(world.snapshot(), before, "looking writes nothing");
    let not = world.refused("unblock t", 1, "NOT_READY");
    assert!(not.message.contains("it is ready"), "{not:?}");
    assert_eq!(world.take("t").generation, 1);
}

#[test]
fn a_wait_wakes_at_the_end_of_a_block() {
    let world = World::new();
    world.say("add t");
    world.say("block t --reason x --until 300ms");
    // It comes back: nobody else does anything.
    world.take("t --wait=1h");
}

#[test]
fn a_block_that_is_over_still_minds_what_the_task_waits_for() {
    let world = World::new();
    world.say("add d");
    world.say("add t --after d");
    world.say("block t --reason x --until 1h");
    world.edit("t", |json| {
        json["block"]["until"]["clock"]["at_mono_ms"] = 1.into();
        json["block"]["until"]["at"] = "2020-01-01T00:00:00Z".into();
    });
    world.refused("acquire t", 4, "DEPENDENCY_NOT_ACCEPTED");
    assert!(world.say("list --state waiting").line().starts_with("t "));
}

#[test]
fn requeued_runs_again_with_more_attempts_and_forgets_none() {
    let world = World::new();
    world.say("add t --max-attempts 2");
    world.refused("requeue t", 1, "NOT_READY");
    world.refused("requeue nobody", 1, "NOT_FOUND");
    for requeues in 1..=10_u64 {
        world.expired("t");
        world.expired("t");
        world.refused("acquire t", 4, "ATTEMPTS_EXHAUSTED");
        let said = world.say("requeue t").line().to_owned();
        assert_eq!(said, format!("REQUEUED t attempt={} requeues={requeues}", requeues * 2));
    }
    world.expired("t");
    world.expired("t");
    let refused = world.refused("requeue t", 4, "ATTEMPTS_EXHAUSTED");
    assert!(refused.message.contains("requeued 10 times"), "{refused:?}");
    let stored = world.stored("t");
    assert_eq!((&stored["attempt"], &stored["requeues"]), (&json!(22), &json!(10)));
    assert_eq!(
        stored["attempts"].as_array().unwrap().len(),
        20 + 1,
        "the last one is over and not written down"
    );
}

#[test]
fn next_serves_what_came_back_and_nothing_that_has_ended() {
    let world = World::new();
    let next = || world.json("next").expect::<Value>(0)["id"].as_str().unwrap().to_owned();
    for id in ["cancelled", "late", "failed", "blocked", "until"] {
        world.say(&format!("add {id} --deadline 1h"));
    }
    world.say("cancel cancelled");
    world.edit("late", |json| json["task"]["deadline"] = json!({"at": "2020-01-01T00:00:00Z"}));
    fail(&world, "failed");
    world.say("block blocked --reason x");
    world.say("block until --reason x --until 1h");
    world.refused("next", 1, "NOTHING_ELIGIBLE");
    assert_eq!(world.stored("late")["state"], "expired", "written down on the way");
    world.say("requeue failed");
    assert_eq!(next(), "failed");
    world.say("unblock blocked");
    assert_eq!(next(), "blocked");
    world.say("block until --reason x --until 300ms");
    assert_eq!(world.json("next --wait=1h").expect::<Value>(0)["id"], "until", "woken by its end");
    world.refused("next", 1, "NOTHING_ELIGIBLE");
}

#[test]
fn two_requeues_at_once_count_once() {
    let world = World::new();
    world.say("add t");
    fail(&world, "t");
    let told = race(&world, &vec![words("requeue t"); 8]);
    assert_eq!(told.iter().filter(|said| said.exit == 0).count(), 1, "{told:?}");
    assert_eq!(world.stored("t")["requeues"], 1);
}

#[test]
fn notes_are_kept_the_newest_hundred() {
    let world = World::new();
    world.refused("note n hello", 1, "NOT_FOUND");
    let token = take(&world, "n");
    for at in 0..101 {
        assert_eq!(world.say(&format!("note n {at} --owner a")).exit, 0);
    }
    assert_eq!(world.say(&format!("check n --token {token}")).exit, 0, "a note disturbs no holder");
    let notes = world.stored("n")["notes"].as_array().unwrap().clone();
    assert_eq!((notes.len(), &notes[0]["text"], &notes[99]["text"]), (100, &json!("1"), &json!("100")));
    assert!(world.say("show n").out.contains("note by a: 100"));
    assert_eq!(world.run(&["note", "n", &"x".repeat(4097)]).exit, 2);
    assert_eq!(world.run(&["note", "n", ""]).exit, 2);
    let said = world.say("note n once --receipt r");
    assert_eq!(said.exit, 0);
    assert!(world.say("note n once --receipt r").line().ends_with("(replay)"));
}

#[test]
fn with_a_receipt_each_happens_once_also_if_it_was_undone_since() {
    let world = World::new();
    world.say("add f");
    fail(&world, "f");
    world.say("add t");
    for (at, (write, undo)) in [
        ("block t --reason x --until 1h", "unblock t"),
        ("block t --reason x", ""),
        ("unblock t", "block t --reason y"),
        ("requeue f", "cancel f"),
        ("join t a", "detach t a"),
        ("detach t b", "join t b"),
        ("note t x", "note t y"),
        ("cancel t --reason x", ""),
    ]
    .into_iter()
    .enumerate()
    {
        if write.starts_with("detach") {
            world.say("join t b");
        }
        let write = format!("{write} --owner w --receipt r{at}");
        let first: Value = world.json(&write).expect(0);
        assert_eq!(first["replay"], false, "{write}");
        if !undo.is_empty() {
            assert_eq!(world.say(undo).exit, 0, "{undo}");
        }
        let id = if write.contains(" f ") { "f" } else { "t" };
        let version = world.stored(id)["version"].clone();
        let again: Value = world.json(&write).expect(0);
        assert_eq!((&again["replay"], &again["version"]), (&json!(true), &first["version"]), "{write}");
        assert_eq!(world.stored(id)["version"], version, "{write}");
        world.refused(&format!("note t other --owner w --receipt r{at}"), 4, "RECEIPT_CONFLICT");
        if write.starts_with("block t --reason x --owner") {
            world.say("unblock t");
            world.say("block t --reason z");
        }
    }
}

#[test]
fn subscribers_come_and_go_and_end_nothing() {
    let world = World::new();
    take(&world, "bare");
    world.refused("join bare a", 1, "NOT_FOUND");
    world.refused("join nobody a", 1, "NOT_FOUND");
    world.say("add t");
    assert_eq!(world.say("join t a").line(), "JOINED t a subscribers=1");
    assert_eq!(world.say("join t a").line(), "JOINED t a subscribers=1 (replay)");
    assert_eq!(world.say("join t b").line(), "JOINED t b subscribers=2");
    let shown: Value = world.json("show t").expect(0);
    assert_eq!(shown["task"]["subscribers"], json!(["a", "b"]));
    assert_eq!(world.say("detach t a").line(), "DETACHED t a subscribers=1");
    assert_eq!(world.say("detach t a").line(), "DETACHED t a subscribers=1 (replay)");
    world.say("detach t b");
    assert_eq!(world.stored("t")["state"], "ready");
    take(&world, "t");
}

#[test]
fn all_of_it_is_harmless_to_a_terminal() {
    let world = World::new();
    world.say("add t");
    let evil = "x\u{1b}[2J\ny";
    for arguments in [
        vec!["note", "t", evil],
        vec!["join", "t", evil],
        vec!["block", "t", "--reason", evil],
        vec!["cancel", "t", "--reason", evil],
        vec!["show", "t"],
        vec!["why", "t"],
        vec!["result", "t"],
    ] {
        world.run(&arguments); // which checks it
    }
    assert_eq!(world.stored("t")["outcome"]["reason"], evil);
}

#[test]
fn what_can_not_be_requeued_says_what_it_is_and_what_to_do() {
    let world = World::new();
    world.take("held");
    world.say("add ready");
    world.say("add blocked");
    world.say("block blocked --reason r");
    let token = world.take("old").token;
    world.say(&format!("reject old --token {token} --reason bad"));
    world.say("prune --older 0s");
    let told = [
        ("held", "it is not failed: it is claimed", "`claim why held`"),
        ("ready", "it is not failed: it is ready", "`claim acquire ready`"),
        ("blocked", "it is not failed: it is blocked", "`claim unblock blocked`"),
        ("old", "what it kept was pruned", "use another id"),
    ];
    for (id, message, hint) in told {
        let refused = world.refused(&format!("requeue {id}"), 1, "NOT_READY");
        assert!(refused.message.contains(message), "{refused:?}");
        assert!(refused.hint.as_ref().unwrap().contains(hint), "{refused:?}");
    }
}
