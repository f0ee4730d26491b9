//! Paths, pools and quotas over the store in memory: every interleaving of small scenes, and a stop between any two calls.

#![allow(unreachable_pub, reason = "modules of a test")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod explore;
mod pools;
mod stops;
mod together;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimdir::{Acquire, Directory, ReceiptKey, Renewal, RepoPath, Token};
use explore::{Act, Scene, TICK_MS, id};

/// How long the claims here last.
const LEASE: Duration = Duration::from_millis(3 * TICK_MS as u64);

fn with_path(owner: &str, path: &str) -> Acquire {
    Acquire::by(owner).lease(LEASE).path(RepoPath::new(path).unwrap())
}

fn acquire(node: &'static str, owner: &'static str, path: &'static str) -> Act {
    Arc::new(move |directory| match directory.try_acquire(&id(node), &with_path(owner, path)) {
        Ok(Ok(lease)) => {
            lease.leave();
            true
        }
        _ => false,
    })
}

/// The same with a receipt.
fn once() -> Act {
    Arc::new(move |directory| {
        let directory = directory.with_receipt(ReceiptKey::new("key").unwrap());
        acquire("n", "a", "p")(&directory)
    })
}

/// How often the explorer turns from an actor that could go on. More can be asked for, and takes its time.
fn turns(few: usize) -> usize {
    std::env::var("EXPLORE_TURNS").map_or(few, |turns| turns.parse().unwrap())
}

fn nothing() -> Act {
    Arc::new(|_| true)
}

/// Somebody holds `n` with the path.
fn held(token: &Arc<Mutex<Option<Token>>>) -> Act {
    let token = token.clone();
    Arc::new(move |directory| {
        let request = with_path("h", "p").lease(Duration::from_millis(TICK_MS as u64));
        let lease = directory.try_acquire(&id("n"), &request).unwrap().unwrap();
        *token.lock().unwrap() = Some(lease.leave().0);
        true
    })
}

fn renew(token: &Arc<Mutex<Option<Token>>>) -> Act {
    let token = token.clone();
    Arc::new(move |directory: &Directory| {
        let token = token.lock().unwrap().clone().unwrap();
        // Longer than the lease before, so that one decided before that ended is live when published after.
        let longer = Renewal { lease: Some(LEASE), progress: None };
        matches!(directory.renew(&id("n"), &token, &longer), Ok(Ok(_)))
    })
}

#[test]
fn two_nodes_reach_for_one_path() {
    let actors = vec![acquire("n", "a", "p"), acquire("m", "b", "p/below")];
    assert!(Scene { setup: nothing(), actors, ticks: 1, until: 2, preemptions: turns(2) }.explore() > 100);
}

#[test]
fn a_late_renewal_meets_a_path_taken_over() {
    let token = Arc::default();
    let actors = vec![renew(&token), acquire("m", "b", "p")];
    let states = Scene { setup: held(&token), actors, ticks: 2, until: 3, preemptions: turns(2) }.explore();
    eprintln!("{states} states");
    assert!(states > 100);
}

#[test]
fn a_late_renewal_a_takeover_and_another_node() {
    let token = Arc::default();
    let actors = vec![renew(&token), acquire("n", "a", "p"), acquire("m", "b", "p")];
    let states = Scene { setup: held(&token), actors, ticks: 2, until: 2, preemptions: turns(1) }.explore();
    eprintln!("{states} states");
    assert!(states > 1_000);
}

#[test]
fn two_of_one_node_and_one_of_another() {
    let actors = vec![acquire("n", "a", "p"), acquire("n", "c", "p"), acquire("m", "b", "p")];
    assert!(Scene { setup: nothing(), actors, ticks: 1, until: 2, preemptions: turns(1) }.explore() > 1_000);
}

#[test]
fn two_tries_with_one_receipt_and_another_node() {
    let actors = vec![once(), once(), acquire("m", "b", "p")];
    assert!(Scene { setup: nothing(), actors, ticks: 1, until: 2, preemptions: turns(1) }.explore() > 1_000);
}
