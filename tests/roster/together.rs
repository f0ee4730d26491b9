//! A claim that takes a path, a slot and an amount along and is stopped for good before each of its calls of the
//! store, and what others find then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claimdir::host::{Host, Life, Now, Place, Process};
use claimdir::store::{Key, Memory, Store};
use claimdir::{Acquire, Code, Directory, Refusal, Result};

use crate::explore::{TestHost, id};
use crate::pools::{furnish, name};
use crate::stops::{World, keyed};
use crate::{LEASE, with_path};

const PATHS: &str = "rosters/paths.roster";

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
    for roster in [PATHS, "rosters/pools/two"] {
        let bytes = world.memory.read(&Key::internal(roster).unwrap()).unwrap().unwrap();
        assert!(!String::from_utf8(bytes).unwrap().contains("token_hash"), "{roster}");
    }
    assert!(world.directory().node(&id("n")).unwrap().is_none());
}

/// Two attempts at one node are one node: there is room, and so nobody makes it say that it has moved on.
#[test]
fn a_pool_counts_nodes_and_not_attempts() {
    for (first, second) in (0..10).flat_map(|first| (0..14).map(move |second| (first, second))) {
        let world = World::default();
        furnish(&world.directory());
        let request = Acquire::by("n").lease(LEASE).pool(name("two"));
        for left in [first, second] {
            let _ = world.request(&world.stopping(left, false), "n", &request);
        }
        let stands = world.directory().node(&id("n")).unwrap().is_some();
        let other = Acquire::by("m").lease(LEASE).pool(name("two"));
        assert!(world.request(&world.directory(), "m", &other).unwrap().is_some(), "{first}, {second}");
        assert_eq!(world.directory().node(&id("n")).unwrap().is_some(), stands, "{first}, {second}");
    }
}

/// A host during whose first pause somebody empties the roster of paths, and no time passes.
struct Meddling {
    host: TestHost,
    memory: Arc<Memory>,
    done: AtomicBool,
}

impl Host for Meddling {
    fn now(&self) -> Now {
        self.host.now()
    }
    fn mono_ns(&self) -> u64 {
        self.host.mono_ns()
    }
    fn place(&self) -> &Place {
        self.host.place()
    }
    fn name(&self) -> String {
        self.host.name()
    }
    fn random(&self) -> Result<u128> {
        self.host.random()
    }
    fn pause(&self, length: Duration) {
        if self.done.swap(true, Ordering::SeqCst) {
            return self.host.pause(length);
        }
        let key = Key::internal(PATHS).unwrap();
        let bytes = self.memory.read(&key).unwrap().unwrap();
        let empty = br#"{"format":1,"version":9,"write":"9","entries":[]}"#;
        self.memory.replace(&key, &bytes, empty).unwrap();
    }
    fn process(&self, pid: u32, group: Option<u32>) -> Result<Process> {
        self.host.process(pid, group)
    }
    fn life(&self, process: &Process) -> Life {
        self.host.life(process)
    }
}

/// Who is refused by a later roster takes its path back; whoever was waiting for it goes on, and leaves a node alone
/// that nobody has owned.
#[test]
fn what_its_author_has_taken_back_is_in_nobodys_way() {
    let mut met = false;
    for left in 0..12 {
        let world = World::default();
        let _ = world.request(&world.stopping(left, false), "n", &with_path("n", "p"));
        let stands = world.directory().node(&id("n")).unwrap().is_some();
        let host = TestHost::new(&world.clock, 77);
        let host = Arc::new(Meddling { host, memory: world.memory.clone(), done: AtomicBool::new(false) });
        let directory = Directory::over(world.memory.clone(), host.clone());
        let told = world.request(&directory, "m", &with_path("m", "p")).unwrap();
        if host.done.load(Ordering::SeqCst) {
            met = true;
            assert!(told.is_some() && !stands, "stopped before call {left}");
            assert!(world.directory().node(&id("n")).unwrap().is_none(), "stopped before call {left}");
        }
    }
    assert!(met, "nobody waited");
}
