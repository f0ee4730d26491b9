//! Calls whose answer the client throws away leave no claim that nobody knows of.

use serde_json::json;

use crate::agent::Agent;
use crate::support::{World, until};
use crate::wire::Raw;

#[test]
fn a_wait_that_is_called_off_takes_nothing() {
    let world = World::new();
    let (holder, agent) = (Agent::start(&world, "--owner alice"), Agent::start(&world, "--owner bob"));
    holder.take("parser");
    let call = agent.begin("claim", json!({"id": "parser", "wait": "50s"}));
    agent.call_off(call);
    holder.call("finish", json!({"id": "parser", "outcome": "release"})).is(0);
    // It may have been about to take it, and then gives it back.
    until("it can be had", || world.say("acquire parser --owner carol").exit == 0);
    agent.call("look", json!({"what": "check", "id": "parser"})).is_no(2, "USAGE");
    let told = agent.call("look", json!({"what": "state"}));
    assert_eq!((told.lost().len(), &told.object["held_here"]), (0, &json!([])), "{told:?}");
}

#[test]
fn calls_that_are_called_off_at_once_leave_nothing_behind() {
    let world = World::new();
    let agent = Agent::start(&world, "--owner bob");
    for round in 0..40 {
        let id = format!("node-{round}");
        let call = agent.begin("claim", json!({"id": id}));
        agent.call_off(call);
        until("given back, or never taken", || world.say(&format!("acquire {id} --owner carol")).exit == 0);
    }
    let told = agent.call("look", json!({"what": "state"}));
    assert_eq!((told.lost().len(), &told.object["held_here"]), (0, &json!([])), "{told:?}");
}

#[test]
fn a_word_that_comes_after_the_answer_is_heard_as_well() {
    let world = World::new();
    let mut raw = Raw::start(&world, "--owner bob");
    let told = raw.call(7, "claim", json!({"id": "parser"}));
    assert_eq!(told["result"]["structuredContent"]["ok"], true, "{told}");
    world.refused("acquire parser", 1, "CLAIM_HELD");
    raw.call_off(7);
    until("it was given back", || world.say("acquire parser --owner carol").exit == 0);
    // Once the agent has spoken of the claim, it has had the answer.
    raw.call(8, "claim", json!({"id": "lexer"}));
    raw.call(9, "renew", json!({"id": "lexer"}));
    raw.call_off(8);
    let told = raw.call(10, "look", json!({"what": "check", "id": "lexer"}));
    assert_eq!(told["result"]["structuredContent"]["ok"], true, "{told}");
}

#[test]
fn with_a_receipt_the_claim_waits_for_the_retry() {
    let world = World::new();
    let mut raw = Raw::start(&world, "--owner bob");
    let first = raw.call(7, "claim", json!({"id": "parser", "receipt": "key"}));
    raw.call_off(7);
    let again = raw.call(8, "claim", json!({"id": "parser", "receipt": "key"}));
    let (first, again) = (&first["result"]["structuredContent"], &again["result"]["structuredContent"]);
    assert_eq!((&again["token"], &again["replay"]), (&first["token"], &json!(true)), "{again}");
    assert_eq!(again["lost"], false, "{again}");
}

#[test]
fn what_was_told_with_an_answer_that_is_thrown_away_is_told_again() {
    let world = World::new();
    let mut raw = Raw::start(&world, "--owner bob");
    raw.call(1, "claim", json!({"id": "parser"}));
    assert_eq!(world.say("cancel parser").exit, 0);
    let told = raw.call(2, "look", json!({"what": "state"}));
    assert_eq!(told["result"]["structuredContent"]["lost_claims"][0]["id"], "parser", "{told}");
    raw.call_off(2);
    let mut ids = 3..;
    until("it is told again", || {
        let told = raw.call(ids.next().unwrap(), "look", json!({"what": "state"}));
        told["result"]["structuredContent"]["lost_claims"][0]["id"] == "parser"
    });
}
