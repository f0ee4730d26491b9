//! Two worlds, alike but for who asks: a tool answers what the command answers with `--json`.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::agent::{Agent, Told};
use crate::support::{World, said};

/// One world's agent, and the other's shell.
struct Twins {
    told: World,
    said: World,
    agent: Agent,
    /// The tokens that the shell has to pass itself.
    tokens: HashMap<String, String>,
}

impl Twins {
    fn new() -> Twins {
        let told = World::new();
        let agent = Agent::start(&told, "--unbound --owner alice");
        Twins { told, said: World::new(), agent, tokens: HashMap::new() }
    }

    /// In both worlds, by the shell.
    #[track_caller]
    fn both(&self, line: &str) {
        for world in [&self.told, &self.said] {
            let said = world.say(line);
            assert_eq!(said.exit, 0, "{line}: {said:?}");
        }
    }

    /// The tool's answer, which is the command's; `TOKEN` in `line` is the one of the node `id`.
    #[track_caller]
    fn same(&mut self, tool: &str, arguments: Value, line: &str) -> Told {
        let id = arguments["id"].as_str().unwrap_or_default().to_owned();
        let token = self.tokens.get(&id).cloned().unwrap_or_default();
        let words = line.split_whitespace().map(|word| if word == "TOKEN" { &token } else { word });
        let said = said(self.said.claim().args(["--json", "--owner", "alice"]).args(words));
        let told = self.agent.call(tool, arguments);
        told.is(said.exit as u64);
        let object: Value = serde_json::from_str(said.line()).unwrap();
        if let Some(token) = object["token"].as_str() {
            self.tokens.insert(id, token.to_owned());
        }
        let mut asked = told.object.clone();
        asked.as_object_mut().unwrap().shift_remove("exit");
        assert_eq!(steady(asked, &self.told), steady(object, &self.said), "{tool}, {line}");
        told
    }
}

/// An answer without what differs from one moment, one process and one folder to the next.
fn steady(value: Value, world: &World) -> Value {
    match value {
        Value::String(text) => {
            let text = text.replace(world.root.to_str().unwrap(), "ROOT");
            let text = text.replace(world.root.file_name().unwrap().to_str().unwrap(), "NAME");
            let is_hex = text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            let digits = |c: char| if c.is_ascii_digit() { '#' } else { c };
            let text: String = if is_hex { "HEX".to_owned() } else { text.chars().map(digits).collect() };
            // Lengths of time have one digit or two.
            Value::String(text.replace("##", "#").replace("##", "#"))
        }
        Value::Array(values) => values.into_iter().map(|value| steady(value, world)).collect(),
        Value::Object(fields) => {
            let passing =
                |name: &str| name.ends_with("_ms") && name != "lease_ms" || name == "pid" || name == "clock";
            let of = |(name, value): (String, Value)| {
                let value =
                    if passing(&name) && !value.is_null() { json!("passing") } else { steady(value, world) };
                (name, value)
            };
            Value::Object(fields.into_iter().map(of).collect())
        }
        value => value,
    }
}

#[test]
fn a_claim_is_taken_renewed_and_finished_as_by_the_commands() {
    let mut twins = Twins::new();
    let told = twins.same("claim", json!({"id": "parser"}), "acquire parser");
    assert!(told.text.starts_with("CLAIMED parser by alice generation=1 attempt=1 token="), "{told:?}");
    twins.same("claim", json!({"id": "parser"}), "acquire parser").is_no(1, "CLAIM_HELD");
    let renew = json!({"id": "parser", "lease": "2h", "progress": {"done": 3}});
    twins.same("renew", renew, r#"renew parser --token TOKEN --lease 2h --progress {"done":3}"#).is(0);
    twins.same("look", json!({"what": "check", "id": "parser"}), "check parser --token TOKEN").is(0);
    let finish = json!({"id": "parser", "outcome": "complete", "result": "it works"});
    twins.same("finish", finish.clone(), r#"complete parser --token TOKEN --result "it\u0020works""#).is(0);
    let told = twins.same("finish", finish, r#"complete parser --token TOKEN --result "it\u0020works""#);
    assert_eq!(told.object["replay"], true, "{told:?}");
    let other = json!({"id": "parser", "outcome": "complete", "result": {"number": 1}});
    twins
        .same("finish", other, r#"complete parser --token TOKEN --result {"number":1}"#)
        .is_no(4, "IDEMPOTENCY_CONFLICT");
    twins.same("claim", json!({"id": "parser"}), "acquire parser").is_no(1, "ALREADY_DONE");
}

#[test]
fn every_outcome_is_its_command() {
    let mut twins = Twins::new();
    for (outcome, reason, command) in [
        ("retry", Some("later"), "retry ID --token TOKEN --reason later --after 1h"),
        ("reject", Some("never"), "reject ID --token TOKEN --reason never"),
        ("release", None, "release ID --token TOKEN"),
        ("block", Some("asks"), "release ID --token TOKEN --block asks"),
    ] {
        let id = format!("task/{outcome}");
        twins.both(&format!("add {id} --input {{\"n\":1}}"));
        twins.same("claim", json!({"id": id}), &format!("acquire {id}")).is(0);
        let mut arguments = json!({"id": id, "outcome": outcome});
        if let Some(reason) = reason {
            arguments["reason"] = json!(reason);
        }
        if outcome == "retry" {
            arguments["after"] = json!("1h");
        }
        let line = command.replace("ID", &id);
        twins.same("finish", arguments.clone(), &line).is(0);
        // The second time the claim is over; an end for good is told of again.
        let told = twins.same("finish", arguments, &line);
        assert_eq!(told.object["replay"] == true, outcome == "reject", "{told:?}");
        for what in ["show", "why"] {
            twins.same("look", json!({"what": what, "id": id}), &format!("{what} {id}")).is(0);
        }
    }
}

#[test]
fn next_takes_what_the_command_takes() {
    let mut twins = Twins::new();
    twins.same("next", json!({}), "next").is_no(1, "NOTHING_ELIGIBLE");
    twins.both("add one --input 12345678901234567890123 --queue build --title Build");
    twins.both("add two --queue build --project p --priority 9");
    twins.same("next", json!({"queue": "build", "dry_run": true}), "next --queue build --dry-run").is(0);
    let told = twins.same("next", json!({"queue": "build"}), "next --queue build");
    assert!(told.text.contains("\ninput: 12345678901234567890123"), "{told:?}");
    let of_project = json!({"queue": "build", "projects": ["p"], "lease": "5m", "receipt": "k"});
    twins.same("next", of_project.clone(), "next --queue build --project p --lease 5m --receipt k").is(0);
    let told = twins.same("next", of_project, "next --queue build --project p --lease 5m --receipt k");
    assert_eq!(told.object["replay"], true, "{told:?}");
    twins
        .same("next", json!({"queue": "build", "wait": "50ms"}), "next --queue build --wait=50ms")
        .is_no(5, "WAIT_TIMEOUT");
}

#[test]
fn refusals_are_the_commands() {
    let mut twins = Twins::new();
    twins.same("look", json!({"what": "show", "id": "nothing"}), "show nothing").is_no(1, "NOT_FOUND");
    twins.same("claim", json!({"id": "a//b"}), "acquire a//b").is_no(2, "INVALID_ID");
    twins.same("claim", json!({"id": "a", "paths": ["src/a"]}), "acquire a --path src/a").is(0);
    twins.same("claim", json!({"id": "b", "paths": ["src"]}), "acquire b --path src").is_no(4, "PATH_CLASH");
    twins
        .same("claim", json!({"id": "b", "paths": ["/etc"]}), "acquire b --path /etc")
        .is_no(2, "INVALID_PATH");
    twins.same("claim", json!({"id": "b", "pools": ["gpu"]}), "acquire b --pool gpu").is(1);
    twins.both("pool set gpu 1");
    twins.same("claim", json!({"id": "b", "pools": ["gpu"]}), "acquire b --pool gpu").is(0);
    twins.same("claim", json!({"id": "c", "pools": ["gpu"]}), "acquire c --pool gpu").is_no(4, "POOL_FULL");
    twins.same("claim", json!({"id": "a", "wait": "20ms"}), "acquire a --wait=20ms").is_no(5, "WAIT_TIMEOUT");
    let wrong = json!({"id": "a", "token": "00", "outcome": "release"});
    twins.same("finish", wrong, "release a --token 00").is_no(3, "STALE_CLAIM");
    twins.same("renew", json!({"id": "a", "token": "00"}), "renew a --token 00").is_no(3, "STALE_CLAIM");
    twins
        .same("look", json!({"what": "check", "paths": ["src/a"]}), "check --path src/a")
        .is_no(4, "PATH_CLASH");
}

#[test]
fn looking_shows_what_the_commands_show_and_no_more_than_is_asked_for() {
    let mut twins = Twins::new();
    twins.both("acquire b --owner bob");
    twins.both("add a --queue q --project p");
    twins.both("add c --after a");
    let list = |arguments: Value| {
        let mut whole = json!({"what": "list"});
        whole.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        whole
    };
    for (arguments, ids, left_out) in [
        (json!({}), vec!["a", "b", "c"], 0),
        (json!({"limit": 2}), vec!["a", "b"], 1),
        (json!({"states": ["ready", "claimed"]}), vec!["a", "b"], 0),
        (json!({"states": ["waiting"]}), vec!["c"], 0),
        (json!({"queues": ["q"], "projects": ["p"]}), vec!["a"], 0),
        (json!({"owner": "bob"}), vec!["b"], 0),
        (json!({"owner": "alice"}), vec![], 0),
    ] {
        let told = twins.agent.call("look", list(arguments.clone()));
        told.is(0);
        let found: Vec<&str> =
            told.object["nodes"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!((found, &told.object["left_out"]), (ids, &json!(left_out)), "{arguments}");
    }
    let told = twins.agent.call("look", json!({"what": "list"}));
    assert_eq!(told.text, "a ready\nb claimed by bob\nc waiting", "{told:?}");
    let whole = twins.same("look", json!({"what": "show", "id": "b"}), "show b");
    assert_eq!(told.object["nodes"][1]["claim"], whole.object["claim"]);
    let told = twins.same("look", json!({"what": "log", "id": "b"}), "log b");
    assert!(told.text.contains(" claimed b by bob"), "{told:?}");
    let told = twins.agent.call("look", json!({"what": "log", "limit": 1}));
    assert_eq!(told.object["events"].as_array().unwrap().len(), 1, "{told:?}");
    twins.agent.take("mine");
    let told = twins.agent.call("look", json!({"what": "state"}));
    assert_eq!(told.object["owner"], "alice", "{told:?}");
    assert_eq!(told.object["held"][0]["id"], "mine", "{told:?}");
    assert_eq!(told.object["held_here"], json!([{"id": "mine", "generation": 1}]), "{told:?}");
    assert!(told.text.contains("mine"), "{told:?}");
}

#[test]
fn very_many_nodes_do_not_fill_an_agents_memory() {
    let world = World::new();
    let note = "x".repeat(9000);
    for id in ["a", "b", "c", "d", "e"] {
        assert_eq!(world.run(&["add", id, "--input", &format!("{note:?}")]).exit, 0);
    }
    let told = Agent::start(&world, "").call("look", json!({"what": "list"}));
    assert_eq!(told.object["nodes"].as_array().unwrap().len(), 3, "{told:?}");
    assert_eq!(told.object["left_out"], 2, "{told:?}");
    assert!(told.text.ends_with("\nand 2 more"), "{told:?}");
}

#[test]
fn mail_goes_as_by_the_commands() {
    let mut twins = Twins::new();
    let send = json!({"action": "send", "box": "bob", "payload": {"n": 1}, "work_key": "w"});
    twins.same("mail", send.clone(), r#"mail send bob {"n":1} --work-key w"#).is(0);
    let told = twins.same("mail", send, r#"mail send bob {"n":1} --work-key w"#);
    assert_eq!(told.object["replay"], true, "{told:?}");
    let read = json!({"action": "read", "box": "bob", "as": "bob", "wait": "1s"});
    let told = twins.same("mail", read, "mail read bob --as bob --wait=1s");
    assert!(told.text.contains(r#"{"n":1}"#), "{told:?}");
    twins.same("mail", json!({"action": "peek", "box": "bob"}), "mail list bob").is(0);
    twins.same("mail", json!({"action": "peek"}), "mail list").is(0);
    twins.same(
        "mail",
        json!({"action": "ack", "box": "bob", "number": 9, "as": "bob"}),
        "mail ack bob 9 --as bob",
    );
    twins
        .same(
            "mail",
            json!({"action": "ack", "box": "bob", "number": 1, "as": "bob"}),
            "mail ack bob 1 --as bob",
        )
        .is(0);
    let read = json!({"action": "read", "box": "bob", "as": "bob", "limit": 1, "wait": "20ms"});
    twins.same("mail", read, "mail read bob --as bob --limit 1 --wait=20ms").is_no(5, "WAIT_TIMEOUT");
    // Under a claim, as long as that is live.
    twins.agent.take("node");
    let send = json!({"action": "send", "box": "bob", "payload": 2, "claim": "node"});
    twins.agent.call("mail", send.clone()).is(0);
    twins.agent.call("finish", json!({"id": "node", "outcome": "release"})).is(0);
    twins.agent.call("mail", send).is_no(3, "STALE_CLAIM");
}

#[test]
fn null_is_nothing_said_and_whole_numbers_may_have_a_point() {
    let mut twins = Twins::new();
    let claim = json!({"id": "a", "lease": null, "wait": null, "paths": null, "pools": null, "quotas": null, "receipt": null});
    twins.same("claim", claim, "acquire a").is(0);
    twins.same("next", json!({"projects": null, "dry_run": null}), "next").is_no(1, "NOTHING_ELIGIBLE");
    let list = json!({"what": "list", "states": null, "queues": null, "projects": null, "paths": null, "limit": 5.0});
    twins.agent.call("look", list).is(0);
    let send = json!({"action": "send", "box": "bob", "payload": null, "number": null});
    twins.same("mail", send, "mail send bob null").is(0);
    let read = json!({"action": "read", "box": "bob", "as": "bob", "payload": null, "limit": 1.0});
    let told = twins.same("mail", read, "mail read bob --as bob --limit 1");
    assert_eq!(told.object["messages"][0]["payload"], json!(null), "{told:?}");
    let ack = json!({"action": "ack", "box": "bob", "number": 1.0, "as": "bob"});
    twins.same("mail", ack, "mail ack bob 1 --as bob").is(0);
    let ack = json!({"action": "ack", "box": "bob", "number": 1.5, "as": "bob"});
    twins.agent.call("mail", ack).is_no(2, "USAGE");
    twins.agent.call("claim", json!({"id": "b", "force": null})).is_no(2, "USAGE");
}

#[test]
fn what_is_not_understood_is_one_clear_line() {
    let world = World::new();
    let agent = Agent::start(&world, "");
    let long = json!({"id": "a", "outcome": "complete", "result": 1, "reason": "why"});
    for (tool, arguments, message) in [
        ("claim", json!({}), "missing field `id`"),
        ("claim", json!({"id": 5}), "id: invalid type: integer `5`, expected a string"),
        (
            "claim",
            json!({"id": "a", "paths": ["x", 2]}),
            "paths[1]: invalid type: integer `2`, expected a string",
        ),
        ("claim", json!({"id": "a", "force": "mine"}), "unknown field `force`, expected one of "),
        ("claim", json!({"id": "a", "wait": "long"}), "wait: not a duration: \"long\"; write it like "),
        ("claim", json!({"id": "a", "lease": "1ms"}), "a lease lasts from 50ms to 30d, not 1ms"),
        ("next", json!({"dry_run": true, "wait": "1s"}), "dry_run does not wait"),
        ("renew", json!({"id": "a"}), "no token: a was not claimed here"),
        ("finish", json!({"id": "a", "outcome": "win"}), "outcome: unknown variant `win`, expected one of "),
        ("finish", long, "reason does not go with complete"),
        ("finish", json!({"id": "a", "outcome": "block"}), "block needs a reason"),
        ("look", json!({"what": "show"}), "show needs `id`"),
        ("look", json!({"what": "list", "id": "a"}), "id does not go with list"),
        ("look", json!({"what": "list", "limit": -1}), "limit: invalid value: integer `-1`, expected usize"),
        ("mail", json!({"action": "send", "box": "b"}), "send needs `payload`"),
        ("mail", json!({"action": "read"}), "read needs `box`"),
        ("mail", json!({"action": "read", "box": "b", "limit": 0}), "limit: at least 1"),
    ] {
        let told = agent.call(tool, arguments);
        told.is_no(2, "USAGE");
        let said = told.object["message"].as_str().unwrap();
        assert!(said.starts_with(message) && !said.contains('\n'), "{said} instead of {message}");
        assert!(told.text.starts_with(&format!("claim: {message}")), "{told:?}");
    }
    assert!(!world.dir().exists(), "nothing of that has made a directory");
}

#[test]
fn where_no_claim_directory_is_it_says_so() {
    let world = World::new();
    let mut command = world.claim();
    command.arg("mcp").env_remove("CLAIMS_DIR");
    let agent = Agent::of(command);
    agent.call("claim", json!({"id": "a"})).is_no(7, "NO_STORE");
    agent.call("look", json!({"what": "state"})).is_no(7, "NO_STORE");
    // It is looked for again each time.
    assert_eq!(said(world.claim().arg("init").env_remove("CLAIMS_DIR")).exit, 0);
    agent.take("a");
}
