//! Tasks that wait for others, reviews, attempts, and the worker that comes back too late.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::{Value, json};
use support::{Running, World, race, words};

/// Takes a node; its token.
fn take(world: &World, line: &str) -> String {
    let taken: Value = world.json(&format!("acquire {line}")).expect(0);
    taken["token"].as_str().unwrap().to_owned()
}

/// Takes and ends a node as done.
fn finish(world: &World, id: &str, owner: &str) {
    let token = take(world, &format!("{id} --owner {owner}"));
    assert_eq!(world.say(&format!("complete {id} --token {token}")).exit, 0);
}

#[test]
fn a_task_is_submitted_once_and_found_by_its_input() {
    let world = World::new();
    let added: Value = world.json(r#"add t --input {"a":1,"b":[1.0]} --title x"#).expect(0);
    assert_eq!((&added["existing"], &added["version"]), (&json!(false), &json!(1)));
    let said = world.run(&["add", "t", "--input", r#"{ "b": [1.0], "a": 1 }"#, "--json"]);
    let again: Value = said.expect(0);
    assert_eq!((&again["existing"], &again["version"]), (&json!(true), &json!(1)));
    assert_eq!(again["differing"], json!(["title"]));
    assert!(said.err.contains("title"), "{said:?}");
    world.refused("add t --input 2", 4, "IDEMPOTENCY_CONFLICT");
    finish(&world, "t", "w");
    let ended: Value = world.json(r#"add t --input {"a":1,"b":[1.0]}"#).expect(0);
    assert_eq!((&ended["existing"], &ended["state"]), (&json!(true), &json!("done")));
}

#[test]
fn twenty_submitters_make_one_task() {
    let world = World::new();
    let told = race(&world, &vec![words("add t --input 1 --json"); 20]);
    let made = told.iter().filter(|said| said.expect::<Value>(0)["existing"] == false).count();
    assert_eq!(made, 1);
}

#[test]
fn a_definition_is_attached_to_a_bare_key_that_has_not_ended() {
    let world = World::new();
    let token = take(&world, "n");
    assert_eq!(world.say("add n --input 1").exit, 0);
    assert_eq!(world.say(&format!("complete n --token {token}")).exit, 0, "the holder is not disturbed");
    finish(&world, "ended", "w");
    world.refused("add ended --input 1", 4, "IDEMPOTENCY_CONFLICT");
}

#[test]
fn a_task_waits_for_what_is_not_done_and_accepted() {
    let world = World::new();
    world.say("add d --review");
    world.say("add n --after d");
    let refused = world.refused("acquire n", 4, "DEPENDENCY_NOT_ACCEPTED");
    assert!(refused.message.contains("d, which is ready"), "{refused:?}");
    assert_eq!(
        world.say("list --state waiting").line(),
        "n generation=0 waiting: it waits for d, which is ready"
    );
    let ready = world.say("list --state ready");
    assert!(ready.line().starts_with("d "), "list, why and acquire agree: {ready:?}");
    finish(&world, "d", "w");
    let refused = world.refused("acquire n", 4, "DEPENDENCY_NOT_ACCEPTED");
    assert!(refused.message.contains("not accepted yet"), "{refused:?}");
    assert_eq!(world.say("review d --accept --by r").exit, 0);
    take(&world, "n");
}

#[test]
fn what_can_not_be_met_any_more_is_refused_at_once_also_with_a_wait() {
    let world = World::new();
    world.say("add d --max-attempts 1");
    world.say("add n --after d");
    let token = take(&world, "d");
    assert!(world.say(&format!("retry d --token {token} --reason broken")).line().starts_with("FAILED d"));
    let refused = world.refused("acquire n --wait=1h", 4, "DEPENDENCY_NOT_ACCEPTED");
    assert!(refused.message.contains("d, which is failed"), "{refused:?}");
}

#[test]
fn no_circle_can_close() {
    let world = World::new();
    world.refused("add a --after a", 2, "USAGE");
    world.refused("add a --after b", 1, "NOT_FOUND");
    take(&world, "bare");
    world.refused("add a --after bare", 1, "NOT_FOUND");
    world.say("add a");
    world.say("add b --after a");
    let again: Value = world.json("add a --after b").expect(0);
    assert_eq!(again["differing"], json!(["after"]), "what is there stays as it is");
    assert!(world.stored("a")["task"]["after"].as_array().unwrap().is_empty());
}

#[test]
fn a_wait_for_dependencies_ends_when_both_are_accepted_at_the_same_moment() {
    let world = World::new();
    for round in 0..5 {
        let (d, e, n) = (format!("d{round}"), format!("e{round}"), format!("n{round}"));
        world.say(&format!("add {d} --review"));
        world.say(&format!("add {e} --review"));
        world.say(&format!("add {n} --after {d} --after {e}"));
        finish(&world, &d, "w");
        finish(&world, &e, "w");
        let waiter = Running::spawn(world.claim().args(words(&format!("acquire {n} --wait=1h"))));
        let accept = |id: &str| words(&format!("review {id} --accept --by r"));
        let told = race(&world, &[accept(&d), accept(&e)]);
        assert!(told.iter().all(|said| said.exit == 0), "{told:?}");
        assert_eq!(waiter.said().exit, 0);
    }
}

#[test]
fn a_review_is_not_for_the_one_who_did_the_work_and_happens_once() {
    let world = World::new();
    world.say("add t --review");
    world.refused("review t --accept --by r", 1, "NOT_READY");
    world.refused("review nobody --accept --by r", 1, "NOT_FOUND");
    finish(&world, "t", "w");
    world.refused("review t --accept --by w", 4, "SELF_REVIEW");
    world.refused("review t --accept --owner w", 4, "SELF_REVIEW");
    let version = world.stored("t")["version"].as_u64().unwrap();
    world.refused(&format!("review t --accept --by r --seen {}", version - 1), 3, "STALE_VERSION");
    let told = race(&world, &[words("review t --accept --by r"), words("review t --reject --by s")]);
    let mut exits: Vec<i32> = told.iter().map(|said| said.exit).collect();
    exits.sort_unstable();
    assert!(exits == [0, 4] || exits == [0, 1], "one of two verdicts stands: {told:?}");
    world.say("add bare-of-review");
    finish(&world, "bare-of-review", "w");
    world.refused("review bare-of-review --accept --by r", 4, "IDEMPOTENCY_CONFLICT");
    world.say("add own --review");
    finish(&world, "own", "w");
    assert_eq!(world.say("review own --accept --by w --allow-self").exit, 0);
}

#[test]
fn a_rejected_task_is_done_again_and_fails_with_its_last_attempt() {
    let world = World::new();
    world.say("add t --review --max-attempts 2");
    finish(&world, "t", "w");
    assert_eq!(world.say("review t --reject --by r --note no").line(), "REJECTED t by r, now ready");
    assert_eq!(world.stored("t")["review"]["state"], "rejected");
    finish(&world, "t", "w");
    assert!(world.stored("t").get("review").is_none(), "a new outcome has not been reviewed");
    assert_eq!(world.say("review t --reject --by r").line(), "REJECTED t by r, now failed");
    world.refused("acquire t", 4, "FAILED");
}

#[test]
fn attempts_used_up_are_counted_by_ended_leases_and_told() {
    let world = World::new();
    world.say("add t --max-attempts 2");
    world.expired("t");
    world.expired("t");
    assert_eq!(
        world.say("list --state failed").line(),
        "t generation=2 failed: the last attempt, of old, is over"
    );
    let before = world.snapshot();
    world.say("why t");
    assert_eq!(world.snapshot(), before, "looking writes nothing");
    let refused = world.refused("acquire t", 4, "ATTEMPTS_EXHAUSTED");
    assert!(refused.message.contains("2 were started"), "{refused:?}");
    assert_eq!(world.stored("t")["state"], "failed");
    world.refused("acquire t", 4, "FAILED");
}

#[test]
fn release_and_force_use_up_no_attempt() {
    let world = World::new();
    world.say("add t --max-attempts 1");
    for _ in 0..3 {
        let token = take(&world, "t");
        assert_eq!(world.say(&format!("release t --token {token}")).exit, 0);
    }
    take(&world, "t");
    let forced: Value = world.run(&["acquire", "t", "--force", "why", "--json"]).expect(0);
    assert_eq!(forced["attempt"], 1);
}

#[test]
fn a_stalled_worker_that_was_replaced_is_refused_everywhere() {
    let world = World::new();
    world.say("add t --review --input 1");
    // It stalls: its lease is over.
    let late = world.expired("t");
    let new = take(&world, "t --owner new");
    // It comes back, reads the current version, and tries everything that it could have done.
    let shown: Value = world.json("show t").expect(0);
    let version = shown["version"].as_u64().unwrap();
    let before = world.snapshot();
    for write in
        ["check t", "renew t", "renew t --progress 1", "release t", "complete t --result 1", "retry t"]
    {
        world.refused(&format!("{write} --token {late}"), 3, "STALE_CLAIM");
    }
    let said = world.run(&["mail", "send", "box", "1", "--claim", "t", "--token", &late, "--json"]);
    assert_eq!((said.exit, said.expect::<Value>(3)["code"].as_str()), (3, Some("STALE_CLAIM")), "{said:?}");
    world.refused(&format!("acquire t --owner old --seen {version}"), 1, "CLAIM_HELD");
    world.refused("review t --accept --owner old", 1, "NOT_READY");
    assert_eq!(world.snapshot(), before, "nothing it did changed anything");
    assert_eq!(world.say(&format!("complete t --token {new} --result 2")).exit, 0);
    world.refused(&format!("complete t --token {late} --result 1"), 3, "STALE_CLAIM");
    assert_eq!(world.stored("t")["outcome"]["result"], 2);
    world.refused("review t --accept --owner new", 4, "SELF_REVIEW");
}
