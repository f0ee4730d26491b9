//! Scopes and paused queues, by real processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use claimdir::domain::Cancel;
use claimdir::store::files::Options;
use claimdir::{Acquire, Delivery, Directory, Handled, Name, Next, Scope, Stop, Trouble, Worker};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use support::{Running, World, race, said, until, words};

#[track_caller]
fn value(world: &World, line: &str, exit: i32) -> Value {
    world.json(line).expect(exit)
}

fn listed(world: &World, line: &str) -> Vec<String> {
    let nodes = value(world, line, 0)["nodes"].clone();
    nodes.as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
}

fn done(world: &World, line: &str) {
    let claimed = world.take(line);
    world.json(&format!("complete {} --token {}", claimed.id, claimed.token)).expect::<Value>(0);
}

#[test]
fn the_same_key_in_two_scopes_is_two_nodes() {
    let world = World::new();
    for (line, id) in [("a", "a"), ("a --scope s", "@s/a"), ("a --scope t", "@t/a")] {
        assert_eq!(world.take(line).id, id);
    }
    world.refused("acquire a --scope s", 1, "CLAIM_HELD");
    for (scope, input) in [("s", 1), ("t", 2)] {
        assert_eq!(value(&world, &format!("--scope {scope} add x --input {input}"), 0)["existing"], false);
        assert_eq!(value(&world, &format!("--scope {scope} add x --input {input}"), 0)["existing"], true);
        let added = value(&world, &format!("add y --after x --scope {scope}"), 0);
        assert_eq!(added["id"], format!("@{scope}/y"));
        assert_eq!(world.stored(&format!("@{scope}/y"))["task"]["after"], json!([format!("@{scope}/x")]));
    }
    world.refused("add x --scope s --input 2", 4, "IDEMPOTENCY_CONFLICT");
    assert_eq!(listed(&world, "list --scope s"), ["@s/a", "@s/x", "@s/y"]);
    assert_eq!(listed(&world, "list").len(), 7);
    // What waits may wait for another scope's task.
    let added = value(&world, "add z --scope s --after @t/x", 0);
    assert_eq!((&added["id"], &added["state"]), (&json!("@s/z"), &json!("ready")));
    world.refused("acquire @s/z", 4, "DEPENDENCY_NOT_ACCEPTED");
}

#[test]
fn a_plain_message_is_in_the_scope_and_its_work_key_is_the_scopes_own() {
    let world = World::new();
    let mut ids = Vec::new();
    for scope in ["", "--scope s", "--scope t"] {
        let first = value(&world, &format!("{scope} add --work-key k --input 1"), 0);
        let again = value(&world, &format!("{scope} add --work-key k --input 1"), 0);
        assert_eq!((&again["id"], &again["replay"]), (&first["id"], &json!(true)));
        ids.push(first["id"].as_str().unwrap().to_owned());
    }
    assert!(ids[1].starts_with("@s/msg-") && ids[2].starts_with("@t/msg-"), "{ids:?}");
    let taken: Value = world.json("next --scope t").expect(0);
    assert_eq!(taken["id"], ids[2]);
}

#[test]
fn next_takes_only_what_is_in_its_scope() {
    let world = World::new();
    for line in ["add in-none", "add x --scope s --priority 9", "add x --scope t --priority 0"] {
        world.json(line).expect::<Value>(0);
    }
    for (line, id) in [("next", "in-none"), ("next --scope s", "@s/x"), ("next --scope t", "@t/x")] {
        assert_eq!(value(&world, &format!("{line} --dry-run"), 0)["id"], id);
        assert_eq!(value(&world, line, 0)["id"], id);
        world.refused(line, 1, "NOTHING_ELIGIBLE");
    }
}

#[test]
fn the_id_that_a_command_is_given_is_good_in_its_scope() {
    let world = World::new();
    let script = r#"printf %s "$CLAIM_ID" >id; exec "$CLAIM" complete --result '"by hand"' >&2"#;
    world.say("add job --scope s");
    let mut command = world.claim();
    command.args(["run", "job", "--", "sh", "-c", script]).env("CLAIM_SCOPE", "s");
    command.env("CLAIM", env!("CARGO_BIN_EXE_claim"));
    let ran = said(&mut command);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(world.root.join("id")).unwrap(), "@s/job");
    let result = said(world.claim().args(["result", "job", "--json"]).env("CLAIM_SCOPE", "s"));
    assert_eq!(result.expect::<Value>(0)["result"], "by hand");
    // And one handed on stays what it is where another scope is set.
    let other =
        said(world.claim().args(["result", "--json"]).env("CLAIM_SCOPE", "t").env("CLAIM_ID", "@s/job"));
    assert_eq!(other.expect::<Value>(0)["id"], "@s/job");
    // An empty variable is none, and the option goes first.
    let none = said(world.claim().args(["acquire", "a", "--json"]).env("CLAIM_SCOPE", ""));
    assert_eq!(none.expect::<Value>(0)["id"], "a");
    let option = said(world.claim().args(["--scope", "u", "acquire", "a", "--json"]).env("CLAIM_SCOPE", "s"));
    assert_eq!(option.expect::<Value>(0)["id"], "@u/a");
}

#[test]
fn a_cancelled_scope_stops_what_is_held_and_lets_nothing_start() {
    let world = World::new();
    done(&world, "early --scope s --owner al");
    world.say("add waits --scope s");
    let held = world.take("job --scope s --owner al");
    let outside = world.take("job --owner al");
    let cancelled = value(&world, "scope cancel s --reason enough --owner bo", 0);
    assert_eq!(
        (&cancelled["nodes"], &cancelled["replay"], &cancelled["by"]),
        (&json!(2), &json!(false), &json!("bo"))
    );
    for line in ["renew", "complete", "release", "retry", "reject", "check"] {
        let refused =
            world.refused(&format!("{line} job --scope s --token {}", held.token), 3, "STALE_CLAIM");
        assert!(refused.message.contains("its scope s was cancelled: enough"), "{line}: {}", refused.message);
    }
    for line in [
        "acquire job",
        "acquire new",
        "acquire new --wait",
        "acquire new --dry-run",
        "add new",
        "next",
        "next --wait",
        "next --dry-run",
    ] {
        let refused = world.refused(&format!("--scope s {line}"), 4, "CANCELLED");
        assert!(
            refused.message.contains("cancelled") && refused.message.contains("enough"),
            "{}",
            refused.message
        );
    }
    assert_eq!(world.say("run new --scope s -- touch there").exit, 75);
    assert!(!world.root.join("there").exists() && !world.record("@s/new").exists());
    // What had ended is as it was, and so is what is elsewhere.
    world.refused("acquire early --scope s", 1, "ALREADY_DONE");
    assert_eq!(value(&world, "add waits --scope s", 0)["state"], "cancelled");
    assert_eq!(world.stored("@s/job")["outcome"]["reason"], "its scope s was cancelled: enough");
    world.json(&format!("complete job --token {}", outside.token)).expect::<Value>(0);
    // Again is a replay, whatever the reason.
    let again = value(&world, "scope cancel s --reason other", 0);
    assert_eq!(
        (&again["nodes"], &again["replay"], &again["reason"]),
        (&json!(0), &json!(true), &json!("enough"))
    );
    let shown = value(&world, "scope show s", 0);
    assert_eq!(
        (&shown["state"], &shown["states"]),
        (&json!("cancelled"), &json!({"cancelled": 2, "done": 1}))
    );
    assert_eq!(value(&world, "scope show t", 0)["state"], "open");
}

#[test]
fn what_would_run_again_in_a_cancelled_scope_is_left_as_it_ended() {
    let world = World::new();
    let failed = world.take("f --scope s");
    world.json(&format!("reject @s/f --token {}", failed.token)).expect::<Value>(0);
    world.say("add r --scope s --review");
    done(&world, "r --scope s --owner al");
    world.say("scope cancel s");
    world.refused("requeue f --scope s", 4, "CANCELLED");
    world.refused("review r --scope s --reject --by bo", 4, "CANCELLED");
    value(&world, "review r --scope s --accept --by bo", 0);
    assert_eq!(world.stored("@s/f")["state"], "failed");
    assert_eq!(world.stored("@s/r")["state"], "done");
}

#[test]
fn looking_at_what_is_cancelled_and_not_written_down_yet_writes_nothing() {
    let world = World::new();
    world.say("add x --scope s");
    world.say("add n --after @s/x");
    let before = fs::read(world.record("@s/x")).unwrap();
    world.say("scope cancel s");
    // As if whoever cancelled had been killed before it came to this one.
    fs::write(world.record("@s/x"), before).unwrap();
    let seen = world.snapshot();
    assert_eq!(value(&world, "list --state cancelled", 0)["nodes"].as_array().unwrap().len(), 1);
    assert!(world.say("show @s/x").out.starts_with("@s/x cancelled with its scope s by "));
    assert_eq!(value(&world, "why @s/x", 0)["reason"], "CANCELLED");
    assert_eq!(value(&world, "why n", 0)["reason"], "DEPENDENCY_NOT_ACCEPTED");
    assert_eq!(value(&world, "scope show s", 0)["states"], json!({"cancelled": 1}));
    assert_eq!(value(&world, "result @s/x", 4)["code"], "CANCELLED");
    assert_eq!(world.say("doctor").exit, 0);
    assert_eq!(world.snapshot(), seen);
    world.refused("acquire @s/x", 4, "CANCELLED");
    assert_eq!(world.stored("@s/x")["state"], "cancelled");
    assert_eq!(value(&world, "scope cancel s", 0)["nodes"], 0);
}

#[test]
fn of_two_cancellations_at_once_one_is_the_first() {
    let world = World::new();
    for round in 0..10 {
        let scope = format!("s{round}");
        for node in ["a", "b", "c"] {
            world.take(&format!("{node} --scope {scope}"));
        }
        let commands: Vec<_> =
            (0..4).map(|at| words(&format!("scope cancel {scope} --reason r{at} --json"))).collect();
        let answers: Vec<Value> = race(&world, &commands).iter().map(|said| said.expect(0)).collect();
        assert_eq!(answers.iter().filter(|answer| answer["replay"] == false).count(), 1, "{answers:?}");
        assert!(answers.iter().all(|answer| answer["reason"] == answers[0]["reason"]), "{answers:?}");
        for node in ["a", "b", "c"] {
            assert_eq!(world.stored(&format!("@{scope}/{node}"))["state"], "cancelled");
        }
    }
}

#[test]
fn a_running_command_and_whoever_waits_end_with_their_scope() {
    let world = World::new();
    let waiting = Running::spawn(world.claim().args(words("next --scope s --wait=1h --json")));
    let counting = Running::spawn(world.claim().args(words("scope wait s --succeeded 1 --wait=1h --json")));
    let mut command =
        world.shell(r#"exec "$CLAIM" run job --scope s -- sh -c 'echo >there; exec sleep 1000'"#);
    let running = Running::spawn(&mut command);
    until("a command at work", || world.root.join("there").exists());
    world.say("scope cancel s --reason enough");
    assert_eq!(waiting.said().expect::<Value>(4)["code"], "CANCELLED");
    assert_eq!(counting.said().expect::<Value>(4)["code"], "CANCELLED");
    let ran = running.said();
    assert_eq!(ran.exit, 76, "{ran:?}");
    assert!(ran.err.contains("its scope s was cancelled: enough"), "{ran:?}");
}

#[test]
fn a_worker_ends_with_its_scope_and_its_command_is_stopped() {
    let world = World::new();
    world.say("add x --scope t");
    world.say("add x --scope s");
    let script =
        r#"exec "$CLAIM" work --scope s --concurrency 2 -- sh -c 'echo $CLAIM_ID >there; exec sleep 1000'"#;
    let worker = Running::spawn(&mut world.shell(script));
    let there = world.root.join("there");
    until("a command at work", || fs::read_to_string(&there).is_ok_and(|text| text == "@s/x\n"));
    world.say("scope cancel s");
    let worked = worker.said();
    assert_eq!(worked.exit, 0, "{worked:?}");
    assert_eq!(world.stored("@s/x")["state"], "cancelled");
    assert_eq!(world.stored("@t/x")["state"], "ready");
}

fn quiet(_: &Trouble<'_>, _: Option<&Delivery>) {}

#[test]
fn a_worker_of_the_library_ends_with_its_scope() {
    let world = World::new();
    world.say("add x --scope s");
    let directory = Directory::open_with(world.dir(), Options { sync: false, ..Options::default() }).unwrap();
    let worker = Worker::on(Next::of(Acquire::by("w")).scope(Scope::new("s").unwrap())).concurrency(3);
    let inner = directory.clone();
    let (begun, hear) = mpsc::channel();
    let handler = move |delivery: &Delivery| -> Handled {
        begun.send(()).unwrap();
        while delivery.check().unwrap().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(json!("too late"))
    };
    let worked = std::thread::spawn(move || directory.consume(&worker, &Stop::new(), handler, quiet));
    hear.recv().unwrap();
    let request = Cancel { by: "c".to_owned(), reason: None };
    inner.cancel_scope(&Name::new("s").unwrap(), &request).unwrap();
    let worked = worked.join().unwrap().unwrap();
    assert_eq!((worked.lost, worked.done), (1, 0));
    assert_eq!(world.stored("@s/x")["state"], "cancelled");
}

#[test]
fn a_wait_ends_when_enough_have_succeeded_and_may_cancel_the_rest() {
    let world = World::new();
    for at in 0..4 {
        world.say(&format!("add t{at} --scope s"));
    }
    world.say("add r --scope s --review");
    let waiting = Running::spawn(
        world.claim().args(words("scope wait s --succeeded 3 --wait=1h --cancel-rest --json")),
    );
    // Neither a bare key nor what is not accepted yet counts.
    done(&world, "key --scope s");
    done(&world, "r --scope s --owner al");
    done(&world, "t0 --scope s");
    let vain = world.json("scope wait s --succeeded 2 --wait=50ms");
    let vain: Value = vain.expect(5);
    assert_eq!(
        (&vain["code"], &vain["succeeded"], &vain["nodes"]),
        (&json!("WAIT_TIMEOUT"), &json!(1), &json!(6))
    );
    world.say("review r --scope s --accept --by bo");
    value(&world, "scope wait s --succeeded 2", 0);
    assert_eq!(value(&world, "scope show s", 0)["state"], "open");
    done(&world, "t1 --scope s");
    let answer: Value = waiting.said().expect(0);
    assert_eq!(
        (&answer["succeeded"], &answer["state"], &answer["cancelled"]),
        (&json!(3), &json!("cancelled"), &json!(2))
    );
    let shown = value(&world, "scope show s", 0);
    assert_eq!(shown["states"], json!({"cancelled": 2, "done": 4}));
    assert_eq!(shown["reason"], "3 of its tasks have succeeded");
    // Enough is enough, also afterwards.
    value(&world, "scope wait s --succeeded 3", 0);
    assert_eq!(world.json("scope wait s --succeeded 4 --wait=1h").expect::<Value>(4)["code"], "CANCELLED");
    assert_eq!(world.say("scope wait s --succeeded 0").exit, 2);
    assert_eq!(world.say("scope wait --succeeded 1").exit, 2);
}

#[test]
fn a_paused_queue_gives_nothing_until_it_is_resumed() {
    let world = World::new();
    world.say("add a --queue q");
    world.say("add b --queue q");
    world.say("add c --queue other");
    let paused = value(&world, "pause q --reason deploy --owner al", 0);
    assert_eq!(
        (&paused["state"], &paused["replay"], &paused["by"]),
        (&json!("paused"), &json!(false), &json!("al"))
    );
    let again = value(&world, "pause q --reason again --owner bo", 0);
    assert_eq!(
        (&again["replay"], &again["by"], &again["reason"]),
        (&json!(true), &json!("al"), &json!("deploy"))
    );
    for line in ["next --queue q", "next --queue q --dry-run"] {
        let nothing = value(&world, line, 1);
        assert_eq!((&nothing["code"], &nothing["paused"]["by"]), (&json!("NOTHING_ELIGIBLE"), &json!("al")));
        let message = nothing["message"].as_str().unwrap();
        assert!(message.ends_with("the queue q is paused by al: deploy"), "{message}");
    }
    assert_eq!(value(&world, "next --queue q --wait=50ms", 5)["code"], "WAIT_TIMEOUT");
    let why = value(&world, "why a", 0);
    assert_eq!((&why["takeable"], &why["paused"]["reason"]), (&json!(true), &json!("deploy")));
    assert!(why["why"].as_str().unwrap().ends_with("its queue q is paused by al: deploy"), "{why}");
    assert_eq!(value(&world, "why c", 0)["paused"], Value::Null);
    // By its id it can be taken, and other queues go on.
    world.take("b");
    assert_eq!(value(&world, "next --queue other", 0)["id"], "c");
    let waiting = Running::spawn(world.claim().args(words("next --queue q --wait=1h --json")));
    assert_eq!(world.stored("a")["state"], "ready");
    assert_eq!(value(&world, "resume q", 0)["replay"], false);
    assert_eq!(waiting.said().expect::<Value>(0)["id"], "a");
    assert_eq!(value(&world, "resume q", 0)["replay"], true);
    assert_eq!(value(&world, "resume never-paused", 0)["replay"], true);
    assert_eq!(value(&world, "pause q", 0)["replay"], false);
}

#[test]
fn a_queue_is_paused_in_its_scope_only() {
    let world = World::new();
    for line in ["add x", "add x --scope s", "pause default --scope s"] {
        world.json(line).expect::<Value>(0);
    }
    assert_eq!(value(&world, "next", 0)["id"], "x");
    world.refused_by_pause("next --scope s");
    assert_eq!(value(&world, "why @s/x", 0)["paused"]["reason"], Value::Null);
    value(&world, "resume default", 0);
    world.refused_by_pause("next --scope s");
    value(&world, "resume default --scope s", 0);
    assert_eq!(value(&world, "next --scope s", 0)["id"], "@s/x");
}

impl World {
    #[track_caller]
    fn refused_by_pause(&self, line: &str) {
        assert!(value(self, line, 1)["paused"].is_object());
    }
}

#[test]
fn names_are_any_text_of_256_bytes() {
    let world = World::new();
    let long = ["x".repeat(256), "/".repeat(256)];
    let names = ["a/b", "a%2Fb", "%", ".", "..", "@", "-", "a b\u{1b}", long[0].as_str(), long[1].as_str()];
    for name in names {
        let scoped = |rest: &[&str]| world.run(&[&["--json", &format!("--scope={name}")], rest].concat());
        assert_eq!(scoped(&["add", "x"]).exit, 0, "{name}");
        assert_eq!(scoped(&["pause", name]).exit, 0, "{name}");
        let taken: Value = scoped(&["next"]).expect(0);
        let id = taken["id"].as_str().unwrap();
        assert_eq!(scoped(&["list"]).expect::<Value>(0)["nodes"].as_array().unwrap().len(), 1, "{name}");
        // A scope is told by its nodes' ids alone.
        assert_eq!(scoped(&["scope", "cancel"]).expect::<Value>(0)["scope"], *name);
        assert_eq!(world.run(&["acquire", id]).exit, 4, "{name}");
        assert_eq!(scoped(&["scope", "show", name]).expect::<Value>(0)["states"], json!({"cancelled": 1}));
    }
    assert_eq!(listed(&world, "list").len(), names.len());
    assert_eq!(world.say("doctor").exit, 0);
    for bad in ["", &"x".repeat(257)] {
        assert_eq!(world.run(&["--scope", bad, "acquire", "x"]).exit, 2, "{bad}");
        assert_eq!(world.run(&["scope", "cancel", bad]).exit, 2, "{bad}");
        assert_eq!(world.run(&["pause", bad]).exit, 2, "{bad}");
    }
    assert_eq!(world.run(&["--scope", "s", "acquire", ""]).exit, 2);
    assert_eq!(world.run(&["--scope", "s", "acquire", &"x".repeat(1022)]).exit, 2);
}

#[test]
fn boxes_pools_and_receipts_are_shared_by_all_scopes() {
    let world = World::new();
    world.say("mail send box 1 --scope s");
    assert_eq!(value(&world, "mail read box --scope t", 0)["messages"].as_array().unwrap().len(), 1);
    world.say("pool set gpu 1");
    world.take("a --scope s --pool gpu --receipt r");
    world.refused("acquire a --scope t --pool gpu", 4, "POOL_FULL");
    world.refused("acquire a --scope t --receipt r", 4, "RECEIPT_CONFLICT");
    // A sender is fenced by its claim in a scope.
    let claimed = world.take("m --scope s");
    let send = format!("mail send box 2 --scope s --claim m --token {}", claimed.token);
    assert_eq!(world.say(&send).exit, 0);
    world.say("scope cancel s");
    assert_eq!(world.say(&send).exit, 3);
}

#[test]
fn a_record_that_can_not_be_read_stops_its_scope_and_is_named() {
    let world = World::new();
    world.say("add x --scope s");
    world.say("scope cancel t");
    world.say("pause q");
    let cell = |name: &str| world.dir().join(".store").join(name);
    fs::write(cell("scopes/s"), fs::read(cell("scopes/t")).unwrap()).unwrap();
    world.refused("acquire x --scope s", 6, "RECORD_UNREADABLE");
    fs::write(cell("scopes/s"), "{").unwrap();
    world.refused("acquire x --scope s", 6, "RECORD_UNREADABLE");
    world.refused("add new --scope s", 6, "RECORD_UNREADABLE");
    world.refused("scope cancel s", 6, "RECORD_UNREADABLE");
    assert_eq!(listed(&world, "list --scope s"), ["@s/x"]);
    fs::write(cell("queues/-/q"), "").unwrap();
    assert_eq!(world.say("doctor --json").expect::<Value>(6)["faults"], 1);
    fs::write(cell("queues/-/q"), "[]").unwrap();
    let faults = world.say("doctor").out;
    assert!(faults.contains("scopes/s") && faults.contains("queues/-/q"), "{faults}");
    // An empty one is one that somebody died in the midst of making.
    fs::write(cell("scopes/s"), "").unwrap();
    world.take("x --scope s");
    assert_eq!(value(&world, "scope cancel s", 0)["nodes"], 1);
}

/// What a terminal shows of `claim` with these words, which ends once `meanwhile` has done its part.
fn on_terminal(world: &World, line: &str, meanwhile: impl FnOnce(&dyn Fn() -> String)) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave: Stdio = rustix::fs::open(&name, flags, Mode::empty()).unwrap().into();
    let mut command = world.claim();
    let mut child = command.args(words(line)).stdout(Stdio::null()).stderr(slave).spawn().unwrap();
    drop(command); // it has the terminal open, too
    let shown = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = shown.clone();
    let reader = std::thread::spawn(move || {
        let mut terminal = fs::File::from(master);
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut bytes) {
            kept.lock().unwrap().extend_from_slice(&bytes[..count]);
        }
    });
    meanwhile(&|| String::from_utf8_lossy(&shown.lock().unwrap()).into_owned());
    assert!(child.wait().unwrap().success());
    reader.join().unwrap();
    String::from_utf8(shown.lock().unwrap().clone()).unwrap()
}

#[test]
fn a_wait_on_a_terminal_shows_how_far_it_is_and_cleans_up() {
    let world = World::new();
    world.say("add a --scope s");
    world.say("add b --scope s");
    let erased = "\r\u{1b}[K";
    let shown = on_terminal(&world, "scope wait s --succeeded 1 --wait=1h", |shown| {
        until("a line", || shown().contains("s: 0 of 1; nodes=2 ready=2"));
        done(&world, "a --scope s");
    });
    assert!(shown.starts_with(erased) && shown.contains(" left") && shown.ends_with(erased), "{shown:?}");
    let shown = on_terminal(&world, "result b --scope s --wait=1h", |shown| {
        until("a line", || shown().contains("@s/b: ready, "));
        done(&world, "b --scope s");
    });
    assert!(shown.ends_with(erased) && !shown.contains('\n'), "{shown:?}");
    // Elsewhere there is none.
    for line in ["scope wait s --succeeded 1", "result b --scope s --wait"] {
        assert_eq!(world.say(line).err, "");
    }
}
