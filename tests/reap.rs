//! `claim reap`: what is over, and nobody has taken.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::{Value, json};
use support::World;

fn over(world: &World, line: &str) -> Vec<(String, Value)> {
    let told: Value = world.json(line).expect(0);
    let claims = told["claims"].as_array().unwrap();
    claims.iter().map(|it| (it["id"].as_str().unwrap().to_owned(), it["became"].clone())).collect()
}

#[test]
fn it_reports_what_is_over_and_touches_nothing_until_told_to() {
    let world = World::new();
    world.say("add last --max-attempts 1");
    world.expired("last");
    let token = world.expired("lost");
    let live = world.take("live --owner alice");
    world.take("given-back");
    let before = world.snapshot();
    let expected = vec![("last".to_owned(), json!(null)), ("lost".to_owned(), json!(null))];
    assert_eq!(over(&world, "reap"), expected);
    let line = world.say("reap").out;
    assert!(
        line.contains("lost the claim of old ended ") && line.contains("(generation 1, attempt 1)"),
        "{line}"
    );
    assert_eq!(world.snapshot(), before, "looking writes nothing");
    let applied = vec![("last".to_owned(), json!("failed")), ("lost".to_owned(), json!("ready"))];
    assert_eq!(over(&world, "reap --apply"), applied);
    assert_eq!(
        (world.stored("lost")["attempt"].as_u64(), world.stored("lost")["generation"].as_u64()),
        (Some(1), Some(1))
    );
    assert_eq!(
        world.say(&format!("check live --token {}", live.token)).exit,
        0,
        "a live lease is never touched"
    );
    assert_eq!(over(&world, "reap --apply"), [], "there is nothing left to do");
    assert!(world.say("reap").err.contains("no claim is over"));
    // Who was reaped and comes back is fenced, and harms nobody.
    world.refused(&format!("release lost --token {token}"), 3, "STALE_CLAIM");
    assert_eq!(world.stored("lost")["state"], "ready");
}

#[test]
fn it_owns_nothing_and_the_next_one_gets_it() {
    let world = World::new();
    world.say("add t");
    world.expired("t");
    assert_eq!(over(&world, "reap --apply"), [("t".to_owned(), json!("ready"))]);
    let next: Value = world.json("next --owner w").expect(0);
    assert_eq!((&next["id"], &next["attempt"], &next["generation"]), (&json!("t"), &json!(2), &json!(2)));
    let none = World::new();
    assert_eq!(over(&none, "reap"), []);
    assert!(!none.dir().exists(), "looking makes no directory");
}
