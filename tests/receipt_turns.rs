//! Receipts under every order of calls: retries beside each other, beside other requests under the same key, and
//! beside writers who replace the record. One effect, one answer.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimdir::domain::{Node, Reason, Submission};
use claimdir::store::{Key, Memory, Store};
use claimdir::{Acquire, Directory, Force, NodeId, ReceiptKey, Renewal, Token};
use serde_json::json;
use support::fake::Fake;
use support::turns::{Actor, Scenario, explore};

/// What each retry was told, as text that is the same for the same effect; `None`: another request has the key.
type Told = Arc<Mutex<Vec<Option<String>>>>;

fn n() -> NodeId {
    NodeId::new("n").unwrap()
}

fn over(store: Arc<dyn Store>) -> Directory {
    Directory::over(store, Fake::new("boot"))
}

fn once(store: Arc<dyn Store>) -> Directory {
    over(store).with_receipt(ReceiptKey::new("k").unwrap())
}

/// A held node, and its token.
fn held() -> (Arc<Memory>, Token) {
    let memory = Arc::new(Memory::default());
    let (token, _) = over(memory.clone()).try_acquire(&n(), &Acquire::by("a")).unwrap().unwrap().leave();
    (memory, token)
}

/// Renews with the receipt; each renewal that happens is a version more.
fn renewer(token: &Token, progress: u64, to: &Told) -> Actor {
    let (token, told) = (token.clone(), to.clone());
    Box::new(move |store| {
        let renewal = Renewal { lease: Some(Duration::from_secs(60)), progress: Some(json!(progress)) };
        let answer = once(store).renew(&n(), &token, &renewal).unwrap();
        told.lock().unwrap().push(match answer {
            Ok(written) => Some(written.node.version.to_string()),
            Err(refusal) => {
                assert!(matches!(refusal.reason, Reason::OtherRequest { .. }), "{refusal:?}");
                None
            }
        });
    })
}

fn acquirer(to: &Told) -> Actor {
    let told = to.clone();
    Box::new(move |store| {
        if let Ok(lease) = once(store).try_acquire(&n(), &Acquire::by("a")).unwrap() {
            let (token, acquired) = lease.leave();
            told.lock().unwrap().push(Some(format!("{} {}", token.reveal(), acquired.node.generation)));
        }
    })
}

/// Replaces the record and leaves the claim as it is.
fn overwriter() -> Actor {
    Box::new(|store| drop(over(store).submit(&n(), &Submission::by("w")).unwrap()))
}

/// Takes the node by force and gives it back, so that a second effect would be possible.
fn taker() -> Actor {
    Box::new(|store| {
        let directory = over(store);
        let force = Force::because("a test").unwrap();
        if let Ok(lease) = directory.try_acquire(&n(), &Acquire::by("w").force(force)).unwrap() {
            let _ = lease.release();
        }
    })
}

fn one(told: &Told) -> Option<String> {
    let told = told.lock().unwrap();
    let mut answers = told.iter().flatten();
    let first = answers.next().cloned();
    assert!(answers.all(|answer| Some(answer) == first.as_ref()), "one answer: {told:?}");
    first
}

/// How often the record was written, apart from being taken once and overwritten once.
fn renewals(memory: &Memory) -> u64 {
    let bytes = memory.read(&Key::Node(n())).unwrap().unwrap();
    let node = Node::from_bytes(&n(), &bytes).unwrap();
    node.version - 1 - u64::from(node.task.is_some())
}

fn renewals_beside(progress: &'static [u64], changes: usize) {
    explore(changes, || {
        let (memory, token) = held();
        let told = Told::default();
        let mut actors: Vec<Actor> =
            progress.iter().map(|progress| renewer(&token, *progress, &told)).collect();
        actors.push(overwriter());
        let check = {
            let (memory, told) = (memory.clone(), told.clone());
            Box::new(move || {
                assert!(one(&told).is_some(), "somebody's request was the first");
                assert_eq!(renewals(&memory), 1, "one effect under one key");
            })
        };
        Scenario { memory, actors, check }
    });
}

#[test]
fn a_retry_beside_the_first_try_and_an_overwriter_is_one_effect() {
    renewals_beside(&[1, 1], 3);
}

#[test]
fn two_requests_under_one_key_beside_an_overwriter_are_one_effect() {
    renewals_beside(&[1, 2], 3);
}

#[test]
fn three_tries_beside_an_overwriter_are_one_effect() {
    renewals_beside(&[1, 1, 1], 2);
}

#[test]
fn a_retried_claim_beside_a_taker_is_one_claim() {
    explore(3, || {
        let memory = Arc::new(Memory::default());
        let told = Told::default();
        let actors = vec![acquirer(&told), acquirer(&told), taker()];
        let check = Box::new(move || drop(one(&told)));
        Scenario { memory, actors, check }
    });
}
