//! What the guide on claims promises of a claim, promise by promise.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::collections::HashSet;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use claimdir::domain::{Reason, Stale};
use claimdir::{Acquire, Directory, Force};
use support::fake::{Fake, Rigged, by, id, lose, take};
use support::{Running, World, until};

#[test]
fn without_wait_it_loses_at_once() {
    let world = World::new();
    world.take("company:acme --owner alice --lease 30d");
    // That this comes back at all is the point: the holder's lease lasts for a month.
    let lost = world.refused("acquire company:acme --owner bob", 1, "CLAIM_HELD");
    let holder = lost.holder.unwrap();
    assert_eq!((holder.owner.as_str(), holder.generation), ("alice", 1));
    let remaining = holder.remaining_ms.unwrap();
    assert!(remaining > 0 && remaining <= 30 * 24 * 3600 * 1000, "{remaining}");
}

#[test]
fn with_wait_it_waits_until_the_claim_is_free() {
    let world = World::new();
    let alice = world.take("company:acme --owner alice --lease 1h");
    let waiting = Running::spawn(world.claim().args([
        "acquire",
        "company:acme",
        "--owner",
        "bob",
        "--wait=1h",
        "--json",
    ]));
    assert_eq!(world.say(&format!("release company:acme --token {}", alice.token)).exit, 0);
    let bob: support::Claimed = waiting.said().expect(0);
    assert_eq!((bob.owner.as_str(), bob.generation), ("bob", 2));
    assert_eq!(bob.reclaimed_from, None, "it was given back, not taken over");
}

#[test]
fn with_wait_it_waits_until_the_time_is_out() {
    let world = World::new();
    world.take("company:acme --owner alice --lease 1h");
    let waited = world.refused("acquire company:acme --owner bob --wait=80ms", 5, "WAIT_TIMEOUT");
    assert_eq!(waited.holder.unwrap().owner, "alice");
    assert!(waited.message.contains("ends in 59m"), "{}", waited.message);
}

#[test]
fn a_lease_is_renewed_at_a_third_of_its_length() {
    let host = Fake::new("boot");
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store.clone(), host.clone());
    let lease = take(&directory, &Acquire::by("alice").lease(Duration::from_millis(300)));
    let taken = host.now().mono_ms;
    lease.keep().unwrap();
    until("the renewer has begun", || host.looks.load(SeqCst) > 0);
    // The renewer alone looks at this clock. Once it has looked again it has seen the 99 ms.
    for passed in [50, 49] {
        host.pass(passed);
        let looks = host.looks.load(SeqCst);
        until("the renewer looks at the clock", || host.looks.load(SeqCst) > looks + 1);
        assert_eq!(store.writes.load(SeqCst), 1, "renewed before a third of the lease");
    }
    for third in 1..=3 {
        host.pass(if third == 1 { 1 } else { 100 });
        until("it is renewed", || store.writes.load(SeqCst) == 1 + third);
        let node = directory.node(&id("n")).unwrap().unwrap();
        assert_eq!(node.claim().unwrap().ends.mono_ms, taken + third as i64 * 100 + 300);
        let looks = host.looks.load(SeqCst);
        until("the renewer has taken note", || host.looks.load(SeqCst) > looks + 1);
    }
    assert!(!lease.is_lost());
}

#[test]
fn a_lost_lease_is_marked_and_never_quietly_taken_again() {
    let host = Fake::new("boot");
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store.clone(), host.clone());
    let (told, hears) = mpsc::channel();
    let ran = directory
        .run_as(&id("n"), &by("alice").lease(Duration::from_millis(300)), Duration::ZERO, |lease| {
            until("the renewer has begun", || host.looks.load(SeqCst) > 0);
            lease.on_lost(move |refusal| told.send(refusal.clone()).unwrap());
            assert!(!lease.is_lost());
            let bob = take(&directory, &by("bob").force(Force::because("alice hangs").unwrap()));
            host.pass(100); // the next renewal finds out
            let refusal = hears.recv_timeout(Duration::from_secs(60)).unwrap();
            assert!(matches!(refusal.reason, Reason::Stale(Stale::Replaced(_))), "{refusal:?}");
            assert_eq!((lease.is_lost(), lease.remaining()), (true, Some(Duration::ZERO)));
            let (token, _) = bob.leave();
            assert!(directory.release(&id("n"), &token, None).unwrap().is_ok());
            let writes = store.writes.load(SeqCst);
            host.pass(60_000);
            assert!(lease.is_lost(), "the node is free again, and that brings no lost lease back");
            (writes, lease.generation())
        })
        .unwrap()
        .unwrap();
    assert_eq!(ran.value, (store.writes.load(SeqCst), 1), "a lost lease wrote to the node");
    assert!(ran.lost.is_some());
    let node = directory.node(&id("n")).unwrap().unwrap();
    assert_eq!((node.generation, node.state.name()), (2, "ready"));
}

#[test]
fn a_lease_that_can_not_be_renewed_is_lost_at_its_end_and_not_before() {
    let host = Fake::new("boot");
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store.clone(), host.clone());
    let lease = take(&directory, &by("alice"));
    lease.keep().unwrap();
    store.broken.store(true, SeqCst);
    host.pass(9_999);
    assert!(!lease.is_lost());
    assert_eq!(lease.remaining(), Some(Duration::from_millis(1)));
    host.pass(1);
    assert!(lease.is_lost());
    store.broken.store(false, SeqCst);
    assert!(lease.renew(&Default::default()).unwrap().is_err());
    assert!(matches!(lose_at_release(lease).reason, Reason::Stale(Stale::Over)));
    drop(take(&directory, &by("bob")));
}

fn lose_at_release(lease: claimdir::Lease) -> claimdir::Refusal {
    lease.release().map_err(|unsettled| unsettled.error).unwrap().unwrap_err()
}

#[test]
fn run_gives_the_node_back_when_the_function_returns_and_when_it_panics() {
    let host = Fake::new("boot");
    let directory = Directory::over(Rigged::new(host.clone()), host.clone());
    let ran = directory.run(&id("n"), |lease| {
        lose(&directory, &by("bob"));
        lease.generation()
    });
    assert_eq!(ran.unwrap().unwrap().value, 1);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = directory.run(&id("n"), |_| std::panic::resume_unwind(Box::new(())));
    }));
    assert!(panicked.is_err());
    assert_eq!(take(&directory, &by("bob")).generation(), 3);
}

#[test]
fn generations_increase_with_every_owner() {
    let world = World::new();
    let mut last = 0;
    for round in 0..6 {
        let claimed = world.take(&format!("company:acme --owner w{round} --lease 1h --force because"));
        assert_eq!(claimed.generation, last + 1);
        last = claimed.generation;
        match round % 3 {
            0 => assert_eq!(world.say(&format!("release company:acme --token {}", claimed.token)).exit, 0),
            1 => {
                let renewed = world.say(&format!("renew company:acme --token {}", claimed.token));
                assert!(renewed.line().contains(&format!("generation={last} ")), "{renewed:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn tokens_are_opaque_and_nobody_has_the_same() {
    let world = World::new();
    let mut seen = HashSet::new();
    for round in 0..8 {
        for node in ["a", "b"] {
            let claimed = world.take(&format!("{node} --owner same --force again"));
            let token = claimed.token;
            assert!(token.len() >= 32 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{token}");
            assert!(!std::fs::read_to_string(world.record(node)).unwrap().contains(&token));
            assert!(seen.insert(token), "round {round}");
        }
    }
    // Another node's token, an old one, a part of one and the generation are all worth nothing.
    for token in seen.iter().take(14).map(String::as_str).chain(["8", "x"]) {
        let stale = world.say(&format!("check c --token {token}"));
        assert_eq!(stale.exit, 3, "{stale:?}");
    }
    let claimed = world.take("c");
    for token in [&claimed.token[..31], &claimed.token.to_uppercase(), &format!("{}0", claimed.token)] {
        world.refused(&format!("release c --token {token}"), 3, "STALE_CLAIM");
    }
}

#[test]
fn a_worker_that_comes_back_late_is_rejected() {
    let host = Fake::new("boot");
    let directory = Directory::over(Rigged::new(host.clone()), Arc::clone(&host) as _);
    let (old, _) = take(&directory, &by("alice")).leave();
    host.pass(10_000);
    let bob = take(&directory, &by("bob"));
    assert_eq!((bob.generation(), bob.attempt()), (2, 2));
    let late = directory.complete(&id("n"), &old, &"late".into()).unwrap().unwrap_err();
    assert_eq!(late.code().name(), "STALE_CLAIM");
    let done = bob.complete(&"bob's".into()).map_err(|unsettled| unsettled.error).unwrap().unwrap();
    assert!(!done.replay);
    let late = directory.complete(&id("n"), &old, &"late".into()).unwrap().unwrap_err();
    assert_eq!(late.code().name(), "STALE_CLAIM");
}
