//! A claim that takes a path, a slot and an amount along and is stopped for good before each of its calls of the
//! store, and what others find then.

use claimdir::{Acquire, Code, Refusal};

use crate::explore::id;
use crate::pools::{furnish, name};
use crate::stops::{World, keyed};
use crate::{LEASE, with_path};

fn all(owner: &str) -> Acquire {
    with_path(owner, "p").pool(name("one")).quota(name("two"), 1)
}

/// Runs `then` for a claim on `n` that was stopped before its first call, its second, and so on.
fn at_every_stop(receipt: bool, then: impl Fn(&World, usize)) {
    for left in 0.. {
        let world = World::default();
        furnish(&world.directory());
        let stopping = world.stopping(left, false);
        let stopping = if receipt { keyed(stopping) } else { stopping };
        if world.request(&stopping, "n", &all("n")).is_ok() {
            assert!(left > 10, "all done after {left} calls");
            return;
        }
        then(&world, left);
    }
}

#[track_caller]
fn refused(world: &World, node: &str, request: &Acquire) -> Refusal {
    world.directory().try_acquire(&id(node), request).unwrap().map(drop).unwrap_err()
}

#[test]
fn another_node_gets_all_of_it_unless_the_claim_stands() {
    for receipt in [false, true] {
        at_every_stop(receipt, |world, left| {
            let stands = world.directory().node(&id("n")).unwrap().is_some();
            let told = world.request(&world.directory(), "m", &all("m")).unwrap();
            assert_eq!(told.is_none(), stands, "stopped before call {left}");
            if stands {
                // Of each alone, too.
                let pool = Acquire::by("o").pool(name("one"));
                assert_eq!(refused(world, "o", &pool).code(), Code::PoolFull);
                assert_eq!(refused(world, "o", &with_path("o", "p/q")).code(), Code::PathClash);
                world.clock.advance(LEASE.as_millis() as i64);
                assert!(world.request(&world.directory(), "m", &all("m")).unwrap().is_some());
            }
            assert_eq!(world.directory().pool(&name("one")).unwrap().unwrap().used.len(), 1);
            assert_eq!(world.directory().reserved().unwrap().len(), 1);
            // What the stopped one took of the quota counts, whatever became of it.
            let used = world.directory().quota(&name("two")).unwrap().unwrap().used;
            assert!((1..=2).contains(&used) && (used == 2 || !stands), "stopped before call {left}: {used}");
        });
    }
}

#[test]
fn a_retry_with_the_receipt_gets_the_claim_and_all_that_goes_with_it() {
    at_every_stop(true, |world, left| {
        let told = world.request(&keyed(world.directory()), "n", &all("n")).unwrap();
        let again = world.request(&keyed(world.directory()), "n", &all("n")).unwrap();
        assert!(told.is_some() && again == told, "stopped before call {left}");
        assert_eq!(refused(world, "m", &all("m")).code(), Code::PathClash);
        assert_eq!(world.directory().pool(&name("one")).unwrap().unwrap().used.len(), 1);
    });
}

/// Others in the way at any one swap change nothing but the time it takes, and nothing is taken twice.
#[test]
fn a_cancelled_swap_is_tried_again() {
    for left in 1..30 {
        let world = World::default();
        furnish(&world.directory());
        let told = world.request(&keyed(world.stopping(left, true)), "n", &all("n")).unwrap();
        assert!(told.is_some(), "cancelled at call {left}");
        assert_eq!(
            world.directory().quota(&name("two")).unwrap().unwrap().used,
            1,
            "cancelled at call {left}"
        );
        let pool = world.directory().pool(&name("one")).unwrap().unwrap();
        assert_eq!((pool.used.len(), pool.used[0].0.as_str()), (1, "n"), "cancelled at call {left}");
    }
}

/// Whichever roster refuses: nothing is left of what the others had given.
#[test]
fn a_refusal_costs_nothing() {
    let world = World::default();
    furnish(&world.directory());
    assert!(world.request(&world.directory(), "h", &Acquire::by("h").pool(name("one"))).unwrap().is_some());
    let spend = Acquire::by("s").quota(name("one"), 1);
    assert!(world.request(&world.directory(), "s", &spend).unwrap().is_some());
    let before = |what: &str| format!("{what}: {:?}", world.directory().quotas().unwrap());
    let quotas = before("quotas");
    let full = with_path("x", "p").pool(name("one")).pool(name("two")).quota(name("two"), 2);
    assert_eq!(refused(&world, "n", &full).code(), Code::PoolFull);
    let used = with_path("x", "p").pool(name("two")).quota(name("two"), 2).quota(name("one"), 1);
    assert_eq!(refused(&world, "n", &used).code(), Code::QuotaUsed);
    let unknown = with_path("x", "p").pool(name("zzz"));
    assert_eq!(refused(&world, "n", &unknown).code(), Code::NotFound);
    assert_eq!(before("quotas"), quotas);
    let key = |text: &str| claimdir::store::Key::internal(text).unwrap();
    for roster in ["rosters/paths.roster", "rosters/pools/two"] {
        let bytes = claimdir::store::Store::read(world.memory.as_ref(), &key(roster)).unwrap().unwrap();
        assert!(!String::from_utf8(bytes).unwrap().contains("token_hash"), "{roster}");
    }
    assert!(world.directory().node(&id("n")).unwrap().is_none());
}
