//! `claim prime`: little, the most important first, whatever is in the directory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use claimdir::store::files::Options;
use claimdir::{Acquire, Directory, NodeId};
use serde_json::Value;
use support::{Said, World, fed, said};

const ROLES: [&str; 3] = ["worker", "reviewer", "lead"];

/// What an agent that is `owner` is told.
#[track_caller]
fn told(world: &World, owner: &str, line: &str) -> String {
    let said = primed(world, owner, line);
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(said.out.len() < 2048, "{} bytes: {}", said.out.len(), said.out);
    said.out
}

fn primed(world: &World, owner: &str, line: &str) -> Said {
    let mut command = world.claim();
    said(command.arg("prime").args(line.split_whitespace()).env("CLAIM_OWNER", owner))
}

/// They are all there, in this order.
#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not there, or not in order: {text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn a_worker_is_told_what_it_holds_then_how_to_work_then_what_is_next() {
    let world = World::new();
    world.take("parser --owner alice --lease 10m");
    world.take("lexer --owner bob");
    world.say("add docs --title the-docs --owner lead");
    world.run(&["mail", "send", "alice", "1"]);
    world.run(&["mail", "send", "news", "1"]);
    world.run(&["mail", "read", "news", "--as", "alice"]);
    world.run(&["mail", "send", "elsewhere", "1"]);
    let before = world.snapshot();
    let text = told(&world, "alice", "");
    assert_eq!(world.snapshot(), before, "it wrote");
    let parts = [
        "You are alice.",
        "You hold parser (ends in ",
        "1. Take.",
        "claim renew",
        "claim check",
        "claim complete",
    ];
    in_order(&text, &parts);
    let codes = [
        "Exit codes: 0",
        "1 somebody else's",
        "3 fenced",
        "4 refused",
        "Next to take: docs, the-docs.",
        "1 in alice, 1 in news",
    ];
    in_order(&text, &codes);
    assert!(!text.contains("lexer") && !text.contains("elsewhere"), "{text}");
    assert!(told(&world, "carol", "").contains("You hold nothing."));
}

#[test]
fn a_lost_claim_comes_first_of_all() {
    let world = World::new();
    let token = world.take("parser --owner alice").token;
    let prime = || {
        let mut command = world.claim();
        said(
            command
                .arg("prime")
                .env("CLAIM_OWNER", "alice")
                .env("CLAIM_ID", "parser")
                .env("CLAIM_TOKEN", &token),
        )
    };
    assert!(!prime().out.contains("STOP"));
    world.say("acquire parser --owner bob --force late");
    let text = prime().out;
    assert!(text.starts_with("STOP working on parser: the claim is not valid: bob holds it"), "{text}");
}

#[test]
fn a_reviewer_is_told_what_waits_for_a_review_and_a_lead_how_it_stands() {
    let world = World::new();
    for id in ["design", "own-work"] {
        world.say(&format!("add {id} --review --owner lead"));
        let owner = if id == "design" { "alice" } else { "carol" };
        let token = world.take(&format!("{id} --owner {owner}")).token;
        assert_eq!(world.say(&format!("complete {id} --token {token}")).exit, 0);
    }
    world.say("add ready --owner lead");
    let text = told(&world, "carol", "--role reviewer");
    in_order(&text, &["For you to review: design.", "claim review ID --accept", "--reject"]);
    assert!(!text.contains("own-work"), "her own work: {text}");
    let text = told(&world, "carol", "--role lead");
    in_order(
        &text,
        &["Nodes: ", "2 done", "1 ready", "claim add", "claim list", "claim why", "claim reap", "scope"],
    );
}

#[test]
fn it_is_short_whatever_is_there() {
    let world = World::new();
    let options = Options { sync: false, ..Options::default() };
    let directory = Directory::open_with(world.dir(), options).unwrap();
    let owner = "ö".repeat(128);
    for n in 0..500 {
        let id = NodeId::new(format!("{n:03}/{}", "\u{1b}".repeat(996))).unwrap();
        assert_eq!(id.as_str().len(), 1000);
        directory
            .try_acquire(&id, &Acquire::by(&owner).lease(Duration::from_secs(3600)))
            .unwrap()
            .unwrap()
            .leave();
    }
    for n in 0..20 {
        world.run(&["mail", "send", &format!("{n}{}", "b".repeat(200)), "1"]);
    }
    for role in ROLES {
        let text = told(&world, &owner, &format!("--role {role}"));
        in_order(
            &text,
            &[
                "You hold 000/",
                "and 497 more: claim list",
                "Exit codes: 0",
                "Never edit or remove anything in .claims.",
            ],
        );
        let object = primed(&world, &owner, &format!("--role {role} --json"));
        let object: Value = serde_json::from_str(object.line()).unwrap();
        assert!(object["text"].as_str().unwrap().len() < 2048);
        assert_eq!(object["held"].as_array().unwrap().len(), 500);
        assert_eq!((&object["role"], &object["owner"]), (&Value::from(role), &Value::from(owner.as_str())));
        assert_eq!(object["held"][0]["id"].as_str().unwrap().len(), 1000);
    }
}

#[test]
fn as_a_hook_it_is_told_whose_session_it_is_and_where() {
    let world = World::new();
    let mut take = world.claim();
    take.args(["acquire", "parser"]).env("CLAUDE_CODE_SESSION_ID", "s-7");
    assert_eq!(said(&mut take).exit, 0);
    for (call, held) in [
        (r#"{"session_id": "s-7", "hook_event_name": "SessionStart", "cwd": "/"}"#, true),
        (r#"{"session_id": "s-8"}"#, false),
        ("no call", false),
    ] {
        let mut command = world.claim();
        command.args(["prime", "--hook", "claude-code"]);
        let said = fed(command, call.as_bytes());
        assert_eq!((said.exit, said.out.contains("You hold parser")), (0, held), "{call}: {said:?}");
    }
}

#[test]
fn where_no_claim_directory_is_used_it_says_nothing() {
    let world = World::new();
    let silent = |command: &mut Command| {
        let said = said(command);
        assert_eq!((said.exit, said.out.as_str(), said.err.as_str()), (0, "", ""), "{said:?}");
    };
    silent(world.claim().args(["prime"]));
    silent(world.claim().args(["prime", "--role", "lead"]).env_remove("CLAIMS_DIR"));
    assert!(!world.dir().exists());
    let object = said(world.claim().args(["prime", "--json"]));
    assert_eq!(object.expect::<Value>(0)["text"], "");
    assert_eq!(world.say("prime --role boss").exit, 2);
}

#[test]
fn it_never_waits_and_tells_how_to_work_all_the_same() {
    let world = World::new();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&world.root).status().unwrap().success());
    world.take("parser --owner alice");
    let config = world.root.join(".git/config");
    fs::remove_file(&config).unwrap();
    assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
    let mut command = world.claim();
    command
        .arg("prime")
        .env_remove("CLAIMS_DIR")
        .env_remove("CLAIM_PATIENCE")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "it hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = Said::of(child.wait_with_output().unwrap());
    assert!(
        said.exit == 0 && said.out.contains("Exit codes: 0") && said.err.contains("not known"),
        "{said:?}"
    );
}
