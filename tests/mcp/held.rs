//! What a server knows of the claims that it took.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::agent::Agent;
use crate::support::{Running, World, until};

#[test]
fn an_agent_that_thinks_for_long_keeps_its_claim() {
    let world = World::new();
    let agent = Agent::start(&world, "");
    agent.call("claim", json!({"id": "parser", "lease": "9s"})).is(0);
    let (version, ends) =
        (world.stored("parser")["version"].clone(), world.stored("parser")["claim"].clone());
    until("renewed twice without a word", || {
        world.stored("parser")["version"].as_u64() >= version.as_u64().map(|version| version + 2)
    });
    assert_eq!(world.stored("parser")["claim"]["token_hash"], ends["token_hash"]);
    let told = agent.call("look", json!({"what": "check", "id": "parser"}));
    told.is(0);
    assert!(told.lost().is_empty(), "{told:?}");
    agent.call("finish", json!({"id": "parser", "outcome": "complete"})).is(0);
}

#[test]
fn a_claim_whose_lease_is_over_is_lost_and_that_is_told_once() {
    let world = World::new();
    let agent = Agent::start(&world, "--keep 0s");
    agent.take("parser");
    agent.take("lexer");
    world.end_lease("parser");
    world.take("parser --owner bob");
    let told = agent.call("look", json!({"what": "why", "id": "lexer"}));
    assert_eq!(told.lost(), ["parser"], "{told:?}");
    assert_eq!(told.object["lost_claims"][0]["code"], "STALE_CLAIM", "{told:?}");
    assert!(told.text.starts_with("LOST parser generation=1 — "), "{told:?}");
    let told = agent.call("look", json!({"what": "why", "id": "lexer"}));
    assert!(told.lost().is_empty(), "{told:?}");
    // Its old token still is the one that is meant, and opens nothing.
    agent.call("finish", json!({"id": "parser", "outcome": "complete"})).is_no(3, "STALE_CLAIM");
    agent.call("finish", json!({"id": "lexer", "outcome": "release"})).is(0);
}

#[test]
fn whatever_takes_a_claim_away_is_told_of_with_the_next_answer() {
    let world = World::new();
    let agent = Agent::start(&world, "");
    for id in ["forced", "cancelled", "kept"] {
        agent.take(id);
    }
    assert_eq!(world.say("acquire forced --owner bob --force urgent").exit, 0);
    assert_eq!(world.say("cancel cancelled").exit, 0);
    let told = agent.call("claim", json!({"id": "forced"}));
    told.is_no(1, "CLAIM_HELD");
    assert_eq!(told.lost(), ["forced", "cancelled"], "{told:?}");
    assert_eq!(agent.call("look", json!({"what": "state"})).object["held_here"][0]["id"], "kept");
}

#[test]
fn a_claim_that_was_settled_elsewhere_with_its_token_is_not_lost() {
    let world = World::new();
    let agent = Agent::start(&world, "");
    for (id, command) in [("done", "complete"), ("free", "release"), ("taken", "release")] {
        let token = agent.take(id).token();
        assert_eq!(world.say(&format!("{command} {id} --token {token}")).exit, 0);
    }
    world.take("taken --owner bob");
    let told = agent.call("look", json!({"what": "state"}));
    assert!(told.lost().is_empty(), "{told:?}");
    assert_eq!(told.object["held_here"], json!([]), "{told:?}");
    // Taken again, it is held again.
    agent.take("free");
    agent.call("finish", json!({"id": "free", "outcome": "release"})).is(0);
}

#[test]
fn a_claim_that_the_server_was_started_under_is_known() {
    let world = World::new();
    let token = world.take("outer").token;
    let mut command = world.claim();
    command.arg("mcp").env("CLAIM_ID", "outer").env("CLAIM_TOKEN", &token);
    let agent = Agent::of(command);
    agent.call("look", json!({"what": "check", "id": "outer"})).is(0);
    agent.call("renew", json!({"id": "other"})).is_no(2, "USAGE");
    agent.call("finish", json!({"id": "outer", "outcome": "complete"})).is(0);
}

#[test]
fn when_an_agent_is_killed_others_take_over_at_once() {
    let world = World::new();
    let agent = Agent::start(&world, "--owner alice");
    let other = Agent::start(&world, "--owner bob");
    agent.take("parser");
    agent.call("claim", json!({"id": "lexer", "receipt": "key"})).is(0);
    other.call("claim", json!({"id": "parser"})).is_no(1, "CLAIM_HELD");
    agent.kill();
    // The lease is one of an hour.
    let told = other.call("claim", json!({"id": "parser", "wait": "50s"}));
    told.is(0);
    assert_eq!(told.object["reclaimed_from"], "alice", "{told:?}");
    // A claim with a receipt waits for whoever has the key.
    other.call("claim", json!({"id": "lexer"})).is_no(1, "CLAIM_HELD");
    let again = Agent::start(&world, "--owner alice");
    let told = again.call("claim", json!({"id": "lexer", "receipt": "key"}));
    told.is(0);
    assert_eq!((&told.object["replay"], &told.object["lost"]), (&json!(true), &json!(false)), "{told:?}");
    again.call("finish", json!({"id": "lexer", "outcome": "complete"})).is(0);
}

#[test]
fn an_unbound_claim_outlives_its_server() {
    let world = World::new();
    let agent = Agent::start(&world, "--owner alice --unbound");
    let token = agent.take("parser").token();
    agent.leave();
    world.refused("acquire parser", 1, "CLAIM_HELD");
    let other = Agent::start(&world, "--owner alice");
    other.call("finish", json!({"id": "parser", "token": token, "outcome": "release"})).is(0);
}

#[test]
fn the_end_of_the_input_and_sigterm_are_clean_ends() {
    let world = World::new();
    let mut command = world.claim();
    let mut server = Running::spawn(command.arg("mcp").stdin(Stdio::piped()));
    drop(server.0.stdin.take());
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
    for signal in [Signal::TERM, Signal::INT] {
        let agent = Agent::start(&world, "");
        agent.take(&format!("node-{}", signal.as_raw()));
        // Somebody waits, too.
        let other = Agent::start(&world, "");
        let _waiting =
            other.begin("claim", json!({"id": format!("node-{}", signal.as_raw()), "wait": "50s"}));
        for pid in [agent.pid, other.pid] {
            kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
        }
        until("others have it", || world.say(&format!("acquire node-{}", signal.as_raw())).exit == 0);
    }
    let mut command = world.claim();
    let mut server = Running::spawn(command.arg("mcp").stdin(Stdio::piped()));
    until("it listens for signals", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap().to_owned();
        u64::from_str_radix(&caught, 16).unwrap() & (1 << 14) != 0
    });
    kill_process(Pid::from_raw(server.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}
