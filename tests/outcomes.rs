//! What became of a node: `result`, its wait, and the attempts that are kept.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::{Value, json};
use support::{Running, World, words};

/// Ends `id` as done with this result.
fn finish(world: &World, id: &str, result: &str) {
    let token = world.take(&format!("{id} --owner w")).token;
    assert_eq!(world.say(&format!("complete {id} --token {token} --result {result}")).exit, 0);
}

#[test]
fn a_result_is_told_to_whoever_knows_the_id() {
    let world = World::new();
    world.refused("result t", 1, "NOT_FOUND");
    world.refused("result t --wait=1h", 1, "NOT_FOUND");
    world.say("add t --input 1");
    let not = world.refused("result t", 1, "NOT_READY");
    assert!(not.message.contains("it is ready"), "{not:?}");
    finish(&world, "t", r#"{"a":1}"#);
    assert_eq!(world.say("result t").line(), r#"DONE t by w generation=1 {"a":1}"#);
    let told: Value = world.json("result t --wait").expect(0);
    assert_eq!(
        (&told["state"], &told["result"], &told["reason"]),
        (&json!("done"), &json!({"a": 1}), &Value::Null)
    );
    assert_eq!((&told["id"], &told["by"], &told["tombstoned"]), (&json!("t"), &json!("w"), &json!(false)));
    assert_eq!(told["attempts"][0]["ended"], "completed");
    assert!(told["at"].is_string() && told["version"].is_u64(), "{told}");
}

#[test]
fn what_ended_otherwise_is_told_with_its_code_and_reason() {
    let world = World::new();
    world.say("add f");
    let token = world.take("f").token;
    world.say(&format!("reject f --token {token} --reason poison"));
    world.say("add c");
    world.say("cancel c --reason enough");
    world.say("add e --deadline 1h");
    overdue(&world, "e");
    for (id, code, state, reason) in [
        ("f", "FAILED", "failed", "poison"),
        ("c", "CANCELLED", "cancelled", "enough"),
        ("e", "EXPIRED", "expired", "its deadline"),
    ] {
        let told: Value = world.json(&format!("result {id}")).expect(4);
        assert_eq!(
            (&told["code"], &told["state"], &told["result"]),
            (&json!(code), &json!(state), &Value::Null)
        );
        assert!(told["reason"].as_str().unwrap().contains(reason), "{told}");
        assert!(told["message"].as_str().unwrap().contains(reason), "{told}");
    }
}

/// Lets the deadline of the task `id` be past.
fn overdue(world: &World, id: &str) {
    world.edit(id, |json| {
        json["task"]["deadline"]["clock"]["at_mono_ms"] = 1.into();
        json["task"]["deadline"]["at"] = "2020-01-01T00:00:00Z".into();
    });
}

#[test]
fn a_result_says_what_its_reviewer_said() {
    let world = World::new();
    world.say("add t --review");
    finish(&world, "t", "1");
    assert_eq!(world.json("result t").expect::<Value>(0)["review"], Value::Null);
    world.say("review t --accept --by r");
    let told: Value = world.json("result t").expect(0);
    assert_eq!((&told["review"]["state"], &told["review"]["by"]), (&json!("accepted"), &json!("r")));
}

#[test]
fn a_wait_in_vain_ends_the_wait_and_not_the_task() {
    let world = World::new();
    world.say("add t");
    let waited = world.refused("result t --wait=50ms", 5, "WAIT_TIMEOUT");
    assert!(waited.message.contains("has not ended"), "{waited:?}");
    finish(&world, "t", "1");
    assert_eq!(world.say("result t").exit, 0, "re-attached by id");
}

#[test]
fn a_wait_wakes_when_the_task_ends() {
    let world = World::new();
    world.say("add t --subscriber planner");
    let waiters: Vec<Running> =
        (0..3).map(|_| Running::spawn(world.claim().args(words("result t --wait=1h --json")))).collect();
    finish(&world, "t", "7");
    for waiter in waiters {
        assert_eq!(waiter.said().expect::<Value>(0)["result"], 7);
    }
    world.say("add c");
    let waiter = Running::spawn(world.claim().args(words("result c --wait=1h --json")));
    world.say("cancel c --reason x");
    assert_eq!(waiter.said().expect::<Value>(4)["state"], "cancelled");
}

#[test]
fn an_end_that_nobody_has_written_down_is_told_and_written_by_who_waits() {
    let world = World::new();
    world.say("add spent --max-attempts 1");
    world.expired("spent");
    world.say("add late --deadline 1h");
    world.take("late");
    overdue(&world, "late");
    for (id, code, state) in [("spent", "FAILED", "failed"), ("late", "EXPIRED", "expired")] {
        let before = world.snapshot();
        let told: Value = world.json(&format!("result {id}")).expect(4);
        assert_eq!((&told["code"], &told["state"]), (&json!(code), &json!(state)));
        assert_eq!(world.snapshot(), before, "looking writes nothing");
        assert_eq!(world.stored(id)["state"], "claimed");
        let waited: Value = world.json(&format!("result {id} --wait=1h")).expect(4);
        assert_eq!(waited["state"], state);
        assert_eq!(world.stored(id)["state"], state, "who waits writes it down");
    }
    assert_eq!(world.stored("spent")["attempts"][0]["ended"], "lease over");
    assert_eq!(world.stored("late")["attempts"][0]["ended"], "expired");
}

#[test]
fn a_wait_sees_the_last_lease_end_and_the_deadline_pass() {
    let world = World::new();
    world.say("add spent --max-attempts 1");
    // On a slow machine the lease may be over before anybody is told of it, and then the node is given back.
    while world.say("acquire spent --lease 200ms").exit == 3 {}
    let told: Value = world.json("result spent --wait=1h").expect(4);
    assert_eq!(told["state"], "failed");
    world.say("add late --deadline 300ms");
    let told: Value = world.json("result late --wait=1h").expect(4);
    assert_eq!(told["state"], "expired");
}

#[test]
fn each_attempt_is_kept_with_its_worker_its_times_and_how_it_ended() {
    let world = World::new();
    world.say("add t --max-attempts 10");
    let token = world.take("t --owner a").token;
    world.say(&format!("release t --token {token}"));
    let token = world.take("t --owner b").token;
    world.run(&["retry", "t", "--token", &token, "--reason", "no network"]);
    world.edit("t", |json| json["not_before"] = Value::Null);
    world.expired("t");
    world.take("t --owner c");
    let token = world.run(&["acquire", "t", "--owner", "d", "--force", "c hangs", "--json"]);
    let token = token.expect::<support::Claimed>(0).token;
    world.say(&format!("complete t --token {token} --result 1"));
    let told: Value = world.json("result t").expect(0);
    let attempts: Vec<(u64, &str, u64, &str, &str)> = told["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            assert!(it["started_at"].is_string() && it["ended_at"].is_string(), "{it}");
            (
                it["attempt"].as_u64().unwrap(),
                it["worker"].as_str().unwrap(),
                it["generation"].as_u64().unwrap(),
                it["ended"].as_str().unwrap(),
                it["error"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(
        attempts,
        [
            (1, "b", 2, "retried", "no network"),
            (2, "old", 3, "lease over", ""),
            (3, "c", 4, "forced", "by d: c hangs"),
            (3, "d", 5, "completed", ""),
        ],
        "what was released is not kept"
    );
    assert!(world.say("show t").out.contains("  attempt 1 by b generation=2 retried: no network\n"));
}

#[test]
fn the_newest_hundred_attempts_are_kept_and_a_long_error_is_cut() {
    let world = World::new();
    world.say("add t --max-attempts 1000");
    let token = world.take("t").token;
    world.run(&["retry", "t", "--token", &token, "--reason", &"ä".repeat(2000)]);
    let error = world.stored("t")["attempts"][0]["error"].as_str().unwrap().to_owned();
    assert_eq!(error, "ä".repeat(512));
    world.edit("t", |json| {
        json["not_before"] = Value::Null;
        let first = json["attempts"][0].clone();
        json["attempts"] = (1..=100)
            .map(|number| {
                let mut attempt = first.clone();
                attempt["attempt"] = number.into();
                attempt
            })
            .collect();
        json["attempt"] = 100.into();
    });
    let token = world.take("t").token;
    world.say(&format!("complete t --token {token}"));
    let attempts = world.stored("t")["attempts"].as_array().unwrap().clone();
    let numbers = (attempts[0]["attempt"].as_u64(), attempts[99]["attempt"].as_u64());
    assert_eq!((attempts.len(), numbers), (100, (Some(2), Some(101))));
}

#[test]
fn a_bare_key_keeps_no_attempts_and_its_outcome_is_told_too() {
    let world = World::new();
    for _ in 0..3 {
        world.expired("n");
    }
    finish(&world, "n", "1");
    assert_eq!(world.stored("n").get("attempts"), None);
    assert_eq!(world.json("result n").expect::<Value>(0)["result"], 1);
}
