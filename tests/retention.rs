//! Results that are pruned, and what is left of them.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::{Value, json};
use support::{World, race, words};

/// Ends `id` as done, long ago; the token that did.
fn finish(world: &World, id: &str) -> String {
    let token = world.take(&format!("{id} --owner w")).token;
    assert_eq!(world.say(&format!("complete {id} --token {token} --result 7")).exit, 0);
    age(world, id);
    token
}

/// Lets the end of `id` lie long ago.
fn age(world: &World, id: &str) {
    world.edit(id, |json| json["outcome"]["at"] = "2020-01-01T00:00:00Z".into());
}

fn pruned(world: &World, options: &str) -> u64 {
    let told: Value = world.json(&format!("prune {options}")).expect(0);
    told["results"].as_u64().unwrap()
}

#[test]
fn a_tombstone_says_how_it_ended_and_has_no_input_and_no_result() {
    let world = World::new();
    world.say(r#"add t --input {"secret":1} --title x"#);
    let token = world.take("t --owner w").token;
    world.say(&format!("renew t --token {token} --progress 1"));
    world.say(&format!("complete t --token {token} --result 7"));
    age(&world, "t");
    let before = world.snapshot();
    assert_eq!(pruned(&world, "--older 7d --dry-run"), 1);
    assert_eq!(world.snapshot(), before, "a dry run writes nothing");
    assert_eq!(world.say("prune --older 7d").line(), "forgot 0 receipts, 1 results");
    assert_eq!(pruned(&world, "--older 7d"), 0, "once");
    let told: Value = world.json("result t").expect(0);
    assert_eq!(
        (&told["state"], &told["tombstoned"], &told["result"]),
        (&json!("done"), &json!(true), &Value::Null)
    );
    assert_eq!((&told["by"], &told["generation"]), (&json!("w"), &json!(1)));
    assert_eq!(world.say("result t").line(), "DONE t by w generation=1 (pruned)");
    let shown: Value = world.json("show t").expect(0);
    assert_eq!((&shown["tombstoned"], &shown["task"]["title"]), (&json!(true), &json!("x")));
    let text = std::fs::read_to_string(world.record("t")).unwrap();
    assert!(!text.contains("secret") && !text.contains("progress") && !text.contains("worker"), "{text}");
    world.refused("acquire t", 1, "ALREADY_DONE");
}

#[test]
fn replays_and_conflicts_are_still_told_apart() {
    let world = World::new();
    world.say("add t --input 1");
    let token = finish(&world, "t");
    assert_eq!(pruned(&world, "--older 7d"), 1);
    let again: Value = world.json(&format!("complete t --token {token} --result 7")).expect(0);
    assert_eq!(again["replay"], true);
    world.refused(&format!("complete t --token {token} --result 8"), 4, "IDEMPOTENCY_CONFLICT");
    world.refused("complete t --token x --result 7", 3, "STALE_CLAIM");
    let existing: Value = world.json("add t --input 1").expect(0);
    assert_eq!((&existing["existing"], &existing["state"]), (&json!(true), &json!("done")));
    world.refused("add t --input 2", 4, "IDEMPOTENCY_CONFLICT");
}

#[test]
fn what_failed_or_was_called_off_keeps_its_reason() {
    let world = World::new();
    world.say("add f");
    let token = world.take("f").token;
    world.say(&format!("reject f --token {token} --reason poison"));
    world.say("add c");
    world.say("cancel c --reason enough");
    age(&world, "f");
    age(&world, "c");
    assert_eq!(pruned(&world, "--older 7d"), 2);
    for (id, reason) in [("f", "poison"), ("c", "enough")] {
        let told: Value = world.json(&format!("result {id}")).expect(4);
        assert_eq!((&told["reason"], &told["tombstoned"]), (&json!(reason), &json!(true)));
    }
    let again: Value = world.json(&format!("reject f --token {token} --reason poison")).expect(0);
    assert_eq!(again["replay"], true);
    assert_eq!(world.json("cancel c --reason enough").expect::<Value>(0)["replay"], true);
    let refused = world.refused("requeue f", 1, "NOT_READY");
    assert!(refused.message.contains("pruned"), "{refused:?}");
}

#[test]
fn nothing_that_may_still_run_or_is_young_is_pruned() {
    let world = World::new();
    world.say("add ready");
    world.take("held");
    world.say("add blocked");
    world.say("block blocked --reason x");
    world.say("add spent --max-attempts 1");
    world.expired("spent");
    let token = world.take("young").token;
    world.say(&format!("complete young --token {token}"));
    world.say("add due --review");
    finish(&world, "due");
    finish(&world, "noted");
    world.say("note noted x");
    assert_eq!(pruned(&world, "--older 7d"), 0);
    assert_eq!(world.say("review due --accept --by r").exit, 0, "its reviewer has seen it");
    assert_eq!(pruned(&world, "--older 7d"), 0, "and lately");
    world.edit("due", |json| json["review"]["at"] = "2020-01-01T00:00:00Z".into());
    assert_eq!(pruned(&world, "--older 7d"), 1);
    assert_eq!(world.stored("due")["review"]["state"], "accepted");
    world.say("add n --after due");
    world.take("n");
}

#[test]
fn a_pruner_and_a_requeue_at_once_leave_one_story() {
    let world = World::new();
    for round in 0..10 {
        let id = format!("t{round}");
        world.say(&format!("add {id} --input 1"));
        let token = world.take(&id).token;
        world.say(&format!("reject {id} --token {token}"));
        age(&world, &id);
        let told = race(&world, &[words("prune --older 7d --json"), words(&format!("requeue {id}"))]);
        let stored = world.stored(&id);
        let requeued = stored["state"] == "ready";
        assert_eq!((told[0].exit, told[1].exit), (0, i32::from(!requeued)), "{told:?}");
        assert_eq!(stored["task"]["input"], if requeued { json!(1) } else { Value::Null });
    }
}
