//! Pools and quotas in every order of their calls, and the faults that this must find.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimdir::{Acquire, Directory, Name, Rate, Renewal, Token};

use crate::explore::{Act, Scene, TICK_MS, capacity, id};
use crate::{LEASE, nothing, turns, with_path};

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A slot of a pool.
fn slot(owner: &str, of: &str) -> Acquire {
    Acquire::by(owner).lease(LEASE).pool(name(of))
}

/// So much of a quota.
fn amount(owner: &str, of: &str, amount: u64) -> Acquire {
    Acquire::by(owner).lease(LEASE).quota(name(of), amount)
}

fn acquire(node: &'static str, request: Acquire) -> Act {
    Arc::new(move |directory| match directory.try_acquire(&id(node), &request) {
        Ok(Ok(lease)) => {
            lease.leave();
            true
        }
        _ => false,
    })
}

/// Pools and quotas of every capacity there is.
pub fn furnish(directory: &Directory) {
    for of in ["one", "two"].map(name) {
        directory.set_pool(&of, capacity(&of)).unwrap();
        directory.set_quota(&of, Rate::new(capacity(&of), Duration::from_secs(3_600)).unwrap()).unwrap();
    }
}

fn furnished(then: Act) -> Act {
    Arc::new(move |directory| {
        furnish(directory);
        then(directory)
    })
}

fn two_nodes() -> Scene {
    let actors = vec![acquire("n", slot("a", "one")), acquire("m", slot("b", "one"))];
    Scene { setup: furnished(nothing()), actors, ticks: 1, until: 2, preemptions: turns(2) }
}

fn two_attempts_and_another_node() -> Scene {
    let actors =
        vec![acquire("n", slot("a", "one")), acquire("n", slot("c", "one")), acquire("m", slot("b", "one"))];
    Scene { setup: furnished(nothing()), actors, ticks: 1, until: 2, preemptions: turns(1) }
}

fn three_nodes_two_slots() -> Scene {
    let actors = ["n", "m", "o"].map(|node| acquire(node, slot(node, "two"))).to_vec();
    Scene { setup: furnished(nothing()), actors, ticks: 0, until: 1, preemptions: turns(1) }
}

fn late_renewal() -> Scene {
    let token: Arc<Mutex<Option<Token>>> = Arc::default();
    let held = token.clone();
    let setup: Act = Arc::new(move |directory| {
        let request = slot("h", "one").lease(Duration::from_millis(TICK_MS as u64));
        *held.lock().unwrap() = Some(directory.try_acquire(&id("n"), &request).unwrap().unwrap().leave().0);
        true
    });
    let renew: Act = Arc::new(move |directory| {
        let token = token.lock().unwrap().clone().unwrap();
        let longer = Renewal { lease: Some(LEASE), progress: None };
        matches!(directory.renew(&id("n"), &token, &longer), Ok(Ok(_)))
    });
    let actors = vec![renew, acquire("m", slot("b", "one"))];
    Scene { setup: furnished(setup), actors, ticks: 2, until: 3, preemptions: turns(2) }
}

/// A path, a slot and an amount, all or none, and another that wants one of them after the other.
fn together() -> Scene {
    let all = with_path("a", "p").pool(name("one")).quota(name("one"), 1);
    let actors = vec![acquire("n", all), acquire("m", slot("b", "one").quota(name("one"), 1))];
    Scene { setup: furnished(nothing()), actors, ticks: 1, until: 2, preemptions: turns(2) }
}

fn a_quota() -> Scene {
    let actors = vec![acquire("n", amount("a", "one", 1)), acquire("m", amount("b", "one", 1))];
    Scene { setup: furnished(nothing()), actors, ticks: 1, until: 2, preemptions: turns(2) }
}

/// A node that two reach for, of whom one gets it and the other takes exactly its own out, and one who wants all.
fn a_quota_and_two_attempts() -> Scene {
    let actors = vec![
        acquire("n", amount("a", "two", 1)),
        acquire("n", amount("c", "two", 1)),
        acquire("m", amount("b", "two", 2)),
    ];
    Scene { setup: furnished(nothing()), actors, ticks: 0, until: 1, preemptions: turns(2) }
}

#[test]
fn one_slot_has_one_node() {
    assert!(two_nodes().explore() > 100);
}

#[test]
fn one_slot_has_one_node_of_two_that_three_reach_for() {
    assert!(two_attempts_and_another_node().explore() > 1_000);
}

#[test]
fn two_slots_have_two_nodes() {
    assert!(three_nodes_two_slots().explore() > 1_000);
}

#[test]
fn a_late_renewal_meets_a_slot_taken_over() {
    assert!(late_renewal().explore() > 100);
}

#[test]
fn all_that_is_asked_for_or_none() {
    assert!(together().explore() > 100);
}

#[test]
fn a_quota_is_not_overspent() {
    assert!(a_quota().explore() > 100);
    assert!(a_quota_and_two_attempts().explore() > 500);
}

#[cfg(feature = "testing")]
type MakeScene = fn() -> Scene;

/// Faults built in on purpose, each of which must be found.
#[cfg(feature = "testing")]
#[test]
fn the_faults_are_found() {
    let faults: [(&'static str, MakeScene); 8] = [
        ("a roster decided once", two_nodes),
        ("a roster decided once", three_nodes_two_slots),
        ("a roster decided once", a_quota),
        ("a pending entry makes room", two_nodes),
        ("a claim that is over makes room", late_renewal),
        ("entries taken out by node", two_attempts_and_another_node),
        ("amounts taken out without looking", a_quota_and_two_attempts),
        ("only the first roster", together),
    ];
    for (fault, scene) in faults {
        let mut scene = scene();
        scene.actors = scene.actors.into_iter().map(|act| faulty(fault, act)).collect();
        let explored = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scene.explore()));
        assert!(explored.is_err(), "{fault:?} was not found");
    }
}

#[cfg(feature = "testing")]
fn faulty(fault: &'static str, act: Act) -> Act {
    Arc::new(move |directory| {
        claimdir::testing::choose(Some(fault));
        act(directory)
    })
}
