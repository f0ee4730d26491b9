//! A request with a receipt happens once, however often it is sent and wherever it was stopped.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use claimdir::domain::{Retry, Submission, Verdict};
use claimdir::host::Os;
use claimdir::store::{Memory, Store};
use claimdir::{Acquire, Code, Directory, NodeId, ReceiptKey, Renewal, Token};
use serde_json::{Value, json};
use support::stops::Stops;
use support::{World, race};

fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn key(text: &str) -> ReceiptKey {
    ReceiptKey::new(text).unwrap()
}

fn over(store: Arc<dyn Store>) -> Directory {
    Directory::over(store, Arc::new(Os::new()))
}

#[test]
fn the_same_key_and_request_gets_the_old_answer_and_writes_nothing() {
    let world = World::new();
    let first: Value = world.json("acquire n --owner a --receipt k").expect(0);
    let before = world.snapshot();
    let again: Value = world.json("acquire n --owner a --receipt k").expect(0);
    assert_eq!(world.snapshot(), before, "a replay writes nothing");
    for field in ["token", "generation", "version", "attempt", "expires_at", "owner"] {
        assert_eq!(first[field], again[field], "{field}");
    }
    assert_eq!((&first["replay"], &again["replay"]), (&json!(false), &json!(true)));
    let line = world.say("acquire n --owner a --receipt k");
    assert!(line.line().ends_with(" (replay)"), "{line:?}");
}

#[test]
fn a_retried_add_is_answered_as_the_first_time() {
    let world = World::new();
    world.say("add there --input 1 --title T");
    for line in [
        "add r1 --receipt k1",
        "add --input 2 --receipt k2",
        "add --input 3 --work-key w --receipt k3",
        "add there --input 1 --title U --priority 3 --subscriber s --receipt k4",
    ] {
        let mut first: Value = world.json(line).expect(0);
        let before = world.snapshot();
        let again: Value = world.json(line).expect(0);
        assert_eq!((&first["replay"], &again["replay"]), (&json!(false), &json!(true)), "{line}");
        first["replay"] = json!(true);
        assert_eq!(first, again, "{line}");
        let said = world.say(line);
        let word = if first["existing"] == true { "EXISTS" } else { "ADDED" };
        assert!(said.line().starts_with(word) && said.line().ends_with(" (replay)"), "{said:?}");
        assert_eq!(world.snapshot(), before, "a replay writes nothing: {line}");
    }
    let directory = over(Arc::new(Memory::default())).with_receipt(key("k"));
    let submitted = |_| directory.submit(&id("n"), &Submission::by("a")).unwrap().unwrap();
    let told = [1, 2].map(submitted).map(|it| (it.existing, it.replay));
    assert_eq!(told, [(false, false), (false, true)]);
}

#[test]
fn the_same_key_and_another_request_is_refused_with_both_fingerprints() {
    let world = World::new();
    world.say("acquire n --owner a --receipt k");
    let before = world.snapshot();
    for other in ["acquire n --owner b", "acquire n --owner a --lease 5m", "acquire m --owner a", "add n"] {
        let refused: Value = world.json(&format!("{other} --receipt k")).expect(4);
        assert_eq!(refused["code"], "RECEIPT_CONFLICT", "{other}");
        let message = refused["message"].as_str().unwrap();
        let prints: HashSet<&str> =
            message.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() == 64).collect();
        assert_eq!(prints.len(), 2, "both fingerprints: {message}");
    }
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_refused_request_writes_no_receipt_and_may_be_sent_again() {
    let world = World::new();
    let token = world.take_any("n --owner a");
    let before = world.snapshot();
    assert_eq!(world.json("acquire n --owner b --receipt k").exit, 1);
    assert_eq!(world.snapshot(), before, "refused at once: nothing written");
    assert_eq!(world.say(&format!("release n --token {token}")).exit, 0);
    let taken: Value = world.json("acquire n --owner b --receipt k").expect(0);
    assert_eq!((&taken["generation"], &taken["replay"]), (&json!(2), &json!(false)));
}

#[test]
fn a_retried_claim_that_has_ended_gets_its_token_back_and_is_told_that_it_is_lost() {
    let world = World::new();
    let first: Value = world.json("acquire n --owner a --receipt k").expect(0);
    let token = first["token"].as_str().unwrap();
    world.edit("n", |json| {
        json["claim"]["clock"]["ends_mono_ms"] = 1.into();
        json["claim"]["expires_at"] = "2020-01-01T00:00:00Z".into();
    });
    world.take_any("n --owner b");
    let said = world.json("acquire n --owner a --receipt k");
    let again: Value = said.expect(0);
    assert_eq!((&again["token"], &again["lost"]), (&json!(token), &json!(true)), "{said:?}");
    assert!(said.err.contains("is lost"), "{said:?}");
    assert_eq!(world.json(&format!("renew n --token {token}")).exit, 3);
}

#[test]
fn every_write_takes_a_receipt() {
    let world = World::new();
    let twice = |line: &str| -> Value {
        let first: Value = world.json(line).expect(0);
        let before = world.snapshot();
        let again: Value = world.json(line).expect(0);
        assert_eq!(world.snapshot(), before, "{line}");
        assert_eq!((&first["replay"], &again["replay"]), (&json!(false), &json!(true)), "{line}");
        assert_eq!(first["version"], again["version"], "{line}");
        first
    };
    twice("add t --review --input 1 --receipt add");
    let token = twice("acquire t --owner a --receipt acquire")["token"].as_str().unwrap().to_owned();
    twice(&format!("renew t --token {token} --lease 1h --receipt renew"));
    twice(&format!("release t --token {token} --receipt release"));
    let token = world.take_any("t --owner a");
    twice(&format!("retry t --token {token} --receipt retry"));
    let taken: Value = world.json("acquire t --owner a --wait=1m").expect(0);
    let token = taken["token"].as_str().unwrap();
    twice(&format!("complete t --token {token} --result 1 --receipt complete"));
    twice("review t --accept --by r --receipt review");
    assert_eq!(fs::read_dir(world.dir().join(".store/receipts")).unwrap().count().min(1), 1);
}

#[test]
fn what_takes_no_receipt_minds_none_in_the_environment() {
    let world = World::new();
    for line in ["init", "init", "prune", "list", "doctor", "where"] {
        let mut command = world.claim();
        let said = support::said(command.arg(line).env("CLAIM_RECEIPT", "k"));
        assert_eq!(said.exit, 0, "{line}: {said:?}");
    }
}

#[test]
fn of_twenty_retries_at_once_all_get_one_claim() {
    let world = World::new();
    for round in 0..5 {
        let line = format!("acquire n{round} --owner a --receipt k{round} --json");
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let answers = race(&world, &vec![command; 20]);
        let told: Vec<Value> = answers.iter().map(|said| said.expect(0)).collect();
        let tokens: HashSet<&str> = told.iter().map(|json| json["token"].as_str().unwrap()).collect();
        assert_eq!(tokens.len(), 1, "one claim, one token");
        assert_eq!(told.iter().filter(|json| json["replay"] == false).count(), 1, "one effect");
        assert_eq!(world.stored(&format!("n{round}"))["generation"], 1);
    }
}

#[test]
fn the_key_is_nowhere_on_disk_and_neither_is_the_token() {
    let world = World::new();
    let taken: Value = world.json("acquire n --owner a --receipt a-secret-key").expect(0);
    let token = taken["token"].as_str().unwrap();
    let all = world.snapshot().concat();
    let bytes = |text: &str| format!("{:?}", text.as_bytes()).trim_matches(['[', ']']).to_owned();
    assert!(!all.contains(&bytes("a-secret-key")) && !all.contains(&bytes(token)));
    assert!(all.contains(&bytes("\"nonce\"")), "the receipt is there, and this test can see into files");
}

#[test]
fn prune_forgets_what_is_old_and_only_that() {
    let world = World::new();
    world.say("acquire n --owner a --receipt k");
    assert_eq!(world.say("prune").line(), "forgot 0 receipts");
    assert_eq!(world.say("prune --older 0s --dry-run").line(), "would forget 1 receipts");
    assert_eq!(world.say("prune --older 0s").line(), "forgot 1 receipts");
    // The record itself still tells.
    let again: Value = world.json("acquire n --owner a --receipt k").expect(0);
    assert_eq!(again["replay"], true);
}

#[test]
fn a_receipt_that_cannot_be_read_is_named_and_left() {
    let world = World::new();
    world.say("acquire n --owner a --receipt k");
    let folder = fs::read_dir(world.dir().join(".store/receipts")).unwrap().next().unwrap().unwrap().path();
    let file = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    fs::write(&file, "{").unwrap();
    let refused: Value = world.json("acquire n --owner a --receipt k").expect(6);
    assert!(refused["message"].as_str().unwrap().contains(".receipt"), "{refused}");
    assert_eq!(world.say("doctor").exit, 6);
    assert_eq!(fs::read(&file).unwrap(), b"{");
}

/// An operation sent with a receipt; its effect, told as text that is the same for the same effect.
type Request<'a> = dyn Fn(&Directory) -> claimdir::Result<String> + 'a;

/// Stops `request` after each number of calls to the store, has another writer overwrite the record and stop
/// anywhere too, then sends the request twice more: one effect, one answer.
fn stopped_anywhere_it_happens_once(
    prepare: &dyn Fn(&Directory) -> Token,
    request: &dyn Fn(&Directory, &Token) -> claimdir::Result<String>,
) {
    let mut whole = false;
    for stop in 0.. {
        assert!(stop < 100, "it never ends");
        for overwriter in 0..12 {
            let memory: Arc<dyn Store> = Arc::new(Memory::default());
            let healthy = over(memory.clone());
            let token = prepare(&healthy);
            let before = writes_of_request(&healthy);
            let send: &Request<'_> = &|directory| request(&directory.with_receipt(key("k")), &token);
            let first = send(&over(Arc::new(Stops::after(stop, memory.clone()))));
            let other = over(Arc::new(Stops::after(overwriter, memory.clone())));
            let _ = other.submit(&id("n"), &Submission::by("other"));
            let again = send(&healthy).unwrap();
            let at = format!("stopped after {stop} calls, overwriter after {overwriter}");
            assert_eq!(send(&healthy).unwrap(), again, "{at}: one answer");
            assert_eq!(writes_of_request(&healthy), before + 1, "{at}: one effect");
            if let Ok(first) = &first {
                assert_eq!(*first, again, "{at}: what was answered stands");
            }
            whole = first.is_ok();
        }
        if whole {
            return;
        }
    }
}

/// How often the record was written, less the overwriter's write.
fn writes_of_request(directory: &Directory) -> u64 {
    let Some(node) = directory.node(&id("n")).unwrap() else { return 0 };
    node.version - u64::from(node.task.is_some_and(|task| task.by == "other"))
}

fn nothing(_: &Directory) -> Token {
    Token::shown("none")
}

fn taken(directory: &Directory) -> Token {
    let lease = directory.try_acquire(&id("n"), &Acquire::by("a")).unwrap().unwrap();
    lease.leave().0
}

#[test]
fn an_acquire_stopped_anywhere_happens_once() {
    stopped_anywhere_it_happens_once(&nothing, &|directory, _| {
        let (token, acquired) = directory.try_acquire(&id("n"), &Acquire::by("a"))?.unwrap().leave();
        Ok(format!("{} {}", token.reveal(), acquired.node.version))
    });
}

#[test]
fn a_renewal_stopped_anywhere_happens_once() {
    stopped_anywhere_it_happens_once(&taken, &|directory, token| {
        let renewal = Renewal { lease: Some(Duration::from_secs(99)), progress: Some(json!({"at": 1})) };
        Ok(format!("{}", directory.renew(&id("n"), token, &renewal)?.unwrap().node.version))
    });
}

#[test]
fn a_release_stopped_anywhere_happens_once() {
    stopped_anywhere_it_happens_once(&taken, &|directory, token| {
        Ok(format!("{}", directory.release(&id("n"), token, None)?.unwrap().node.version))
    });
}

#[test]
fn a_retry_stopped_anywhere_happens_once() {
    stopped_anywhere_it_happens_once(&taken, &|directory, token| {
        Ok(format!("{}", directory.retry(&id("n"), token, &Retry::default())?.unwrap().node.version))
    });
}

#[test]
fn another_request_under_a_begun_key_is_refused() {
    let memory: Arc<dyn Store> = Arc::new(Memory::default());
    for stop in 0..8 {
        let n = id(&format!("n{stop}"));
        let k = key(&format!("k{stop}"));
        let stopped = over(Arc::new(Stops::after(stop, memory.clone()))).with_receipt(k.clone());
        let first = stopped.try_acquire(&n, &Acquire::by("a"));
        drop(first.map(|answer| answer.map(|lease| lease.leave())));
        let receipt_there = !memory
            .list(&claimdir::store::Prefix::Internal("receipts"), None, 99)
            .unwrap()
            .iter()
            .all(|key| memory.read(key).unwrap().unwrap().is_empty() || !key.name().contains(&k.hash()));
        let other = over(memory.clone()).with_receipt(k).try_acquire(&n, &Acquire::by("b")).unwrap();
        match other {
            Ok(lease) => {
                assert!(!receipt_there, "the key was pinned to another request");
                lease.leave();
            }
            Err(refusal) => assert_eq!(refusal.code(), Code::ReceiptConflict, "stopped after {stop} calls"),
        }
    }
}

#[test]
fn a_verdict_stopped_anywhere_happens_once() {
    let done = |directory: &Directory| {
        let task = Submission::by("boss").review();
        directory.submit(&id("n"), &task).unwrap().unwrap();
        let token = taken(directory);
        directory.complete(&id("n"), &token, &json!(1)).unwrap().unwrap();
        token
    };
    stopped_anywhere_it_happens_once(&done, &|directory, _| {
        let verdict = Verdict { accept: true, by: "r".into(), note: None, allow_self: false, seen: None };
        Ok(format!("{}", directory.review(&id("n"), &verdict)?.unwrap().node.version))
    });
}

#[test]
fn work_with_a_receipt_is_done_at_most_once() {
    let directory = over(Arc::new(Memory::default())).with_receipt(key("k"));
    let mut times = 0;
    // The owner is the same as long as the process is.
    assert_eq!(directory.run(&id("n"), |_| times += 1).unwrap().map(|ran| ran.lost), Ok(None));
    let refusal = directory.run(&id("n"), |_| times += 1).unwrap().map(|_| ()).unwrap_err();
    assert_eq!((refusal.code(), times), (Code::AlreadyRun, 1));
}

impl World {
    /// Takes a node; its token.
    fn take_any(&self, line: &str) -> String {
        let taken: Value = self.json(&format!("acquire {line}")).expect(0);
        taken["token"].as_str().unwrap().to_owned()
    }
}
