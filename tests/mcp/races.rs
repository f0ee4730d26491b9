//! Several agents, each with a server of its own.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::thread;

use serde_json::json;

use crate::agent::Agent;
use crate::support::World;

#[test]
fn of_two_agents_that_reach_for_a_node_exactly_one_has_it() {
    let world = World::new();
    let mut agents = [Agent::start(&world, "--owner alice"), Agent::start(&world, "--owner bob")];
    for round in 0..25 {
        let id = format!("node-{round}");
        let start = Arc::new(Barrier::new(agents.len()));
        let reach = |agent: Agent| {
            let (start, id) = (start.clone(), id.clone());
            thread::spawn(move || {
                start.wait();
                let told = agent.call("claim", json!({"id": id}));
                (agent, told)
            })
        };
        let reached = agents.map(reach).map(|thread| thread.join().unwrap());
        let mut won = 0;
        agents = reached.map(|(agent, told)| {
            match told.object["ok"].as_bool().unwrap() {
                true => won += 1,
                false => drop(told.is_no(1, "CLAIM_HELD")),
            }
            agent
        });
        assert_eq!(won, 1, "round {round}");
    }
}

#[test]
fn two_worktrees_share_their_claims_with_nothing_set() {
    let world = World::new();
    let git = |line: &str| {
        let mut git = world.clean("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(line.split(' '));
        assert!(git.output().unwrap().status.success(), "git {line}");
    };
    git("init -q main");
    git("-C main commit -q --allow-empty -m one");
    git("-C main worktree add -q ../other");
    let agent = |folder: &str| {
        let mut command: Command = world.claim();
        command.arg("mcp").env_remove("CLAIMS_DIR").current_dir(world.root.join(folder));
        Agent::of(command)
    };
    let (one, other) = (agent("main"), agent("other"));
    fs::create_dir_all(world.root.join("other/src")).unwrap();
    one.call("claim", json!({"id": "parser", "paths": ["src/parser.rs"]})).is(0);
    let lost = other.call("claim", json!({"id": "parser"}));
    lost.is_no(1, "CLAIM_HELD");
    assert!(lost.object["dir"].as_str().unwrap().ends_with("/main/.claims"), "{lost:?}");
    assert!(lost.object["holder"]["owner"].as_str().unwrap().ends_with(":main"), "{lost:?}");
    other.call("claim", json!({"id": "lexer", "paths": ["src"]})).is_no(4, "PATH_CLASH");
    one.call("finish", json!({"id": "parser", "outcome": "release"})).is(0);
    other.call("claim", json!({"id": "lexer", "paths": ["src"]})).is(0);
}

#[test]
fn a_call_that_waits_keeps_no_other_from_its_answer() {
    let world = World::new();
    let (one, other) = (Agent::start(&world, "--owner alice"), Agent::start(&world, "--owner bob"));
    one.take("parser");
    let waiting = other.begin("claim", json!({"id": "parser", "wait": "50s"}));
    for n in 0..5 {
        other.take(&format!("n{n}"));
    }
    one.call("finish", json!({"id": "parser", "outcome": "complete"})).is(0);
    assert_eq!(other.end(waiting)["code"], "ALREADY_DONE");
    one.take("lexer");
    let waiting = other.begin("claim", json!({"id": "lexer", "wait": "50s"}));
    one.call("finish", json!({"id": "lexer", "outcome": "release"})).is(0);
    assert_eq!(other.end(waiting)["generation"], 2);
}
