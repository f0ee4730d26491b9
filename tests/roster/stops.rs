//! A claim with paths that is stopped for good before each of its calls of the store, and what others find then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use claimdir::store::{Finding, Key, Memory, Prefix, Replaced, Store, Watch};
use claimdir::{Acquire, Code, Directory, Error, ReceiptKey, Result};

use crate::explore::{Clock, TestHost, id, sound};
use crate::{LEASE, with_path};

/// A store that is reached so many times and then never again; with `cancel`, the last time only to be told that
/// others were in the way, and then as often as you like.
struct Stopping {
    memory: Arc<Memory>,
    left: AtomicUsize,
    cancel: bool,
}

impl Stopping {
    /// `true`: this call is the one.
    fn step(&self) -> Result<bool> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(1) => Ok(true),
            Err(_) if !self.cancel => Err(Error::new(Code::StoreUnavailable, "stopped")),
            _ => Ok(false),
        }
    }
}

impl Store for Stopping {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.step()?;
        self.memory.read(key)
    }
    fn make(&self, key: &Key) -> Result<bool> {
        self.step()?;
        self.memory.make(key)
    }
    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        if self.step()? && self.cancel {
            return Ok(Replaced::Cancelled);
        }
        self.memory.replace(key, expected, new)
    }
    fn confirm(&self, _key: &Key) -> Result<()> {
        self.step().map(drop)
    }
    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        self.step()?;
        self.memory.publish(key, bytes)
    }
    fn remove(&self, key: &Key) -> Result<bool> {
        self.step()?;
        self.memory.remove(key)
    }
    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        self.memory.list(prefix, after, limit)
    }
    fn watch(&self, key: &Key) -> Box<dyn Watch + '_> {
        self.memory.watch(key)
    }
    fn prepare(&self) -> Result<bool> {
        Ok(false)
    }
    fn place(&self, key: Option<&Key>) -> String {
        self.memory.place(key)
    }
    fn inspect(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}

/// A store in memory, its time, and hosts that draw different numbers.
#[derive(Default)]
pub struct World {
    pub memory: Arc<Memory>,
    pub clock: Clock,
    hosts: AtomicUsize,
}

impl World {
    pub fn directory(&self) -> Directory {
        let seed = self.hosts.fetch_add(1, Ordering::SeqCst) as u64;
        Directory::over(self.memory.clone(), Arc::new(TestHost::new(&self.clock, seed)))
    }

    pub fn stopping(&self, left: usize, cancel: bool) -> Directory {
        let seed = self.hosts.fetch_add(1, Ordering::SeqCst) as u64;
        let store = Stopping { memory: self.memory.clone(), left: AtomicUsize::new(left), cancel };
        Directory::over(Arc::new(store), Arc::new(TestHost::new(&self.clock, seed)))
    }

    /// Takes `node`; the token, if it was told yes.
    fn take(&self, directory: &Directory, node: &str, path: &str) -> Result<Option<String>> {
        self.request(directory, node, &with_path(node, path))
    }

    pub fn request(&self, directory: &Directory, node: &str, request: &Acquire) -> Result<Option<String>> {
        let answer = directory.try_acquire(&id(node), request)?;
        sound(&self.directory());
        Ok(answer.ok().map(|lease| lease.leave().0.reveal().to_owned()))
    }
}

pub fn keyed(directory: Directory) -> Directory {
    directory.with_receipt(ReceiptKey::new("key").unwrap())
}

/// Runs `then` for a claim on `n` that was stopped before its first call, its second, and so on.
fn at_every_stop(receipt: bool, then: impl Fn(&World, usize)) {
    let maybe = |directory: Directory| if receipt { keyed(directory) } else { directory };
    for left in 0.. {
        let world = World::default();
        if world.take(&maybe(world.stopping(left, false)), "n", "p").is_ok() {
            assert!(left > 5, "all done after {left} calls");
            return;
        }
        then(&world, left);
    }
}

#[test]
fn another_node_gets_the_path_unless_the_claim_stands() {
    for receipt in [false, true] {
        at_every_stop(receipt, |world, left| {
            let stands = world.directory().node(&id("n")).unwrap().is_some();
            let told = world.take(&world.directory(), "m", "p/below").unwrap();
            assert_eq!(told.is_none(), stands, "stopped before call {left}");
            if stands {
                world.clock.advance(LEASE.as_millis() as i64);
                assert!(world.take(&world.directory(), "m", "p/below").unwrap().is_some());
            }
            let reserved = world.directory().reserved().unwrap();
            assert_eq!(reserved.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["p/below"]);
        });
    }
}

#[test]
fn a_retry_with_the_receipt_gets_the_claim_and_its_path() {
    at_every_stop(true, |world, left| {
        let before = world.directory().node(&id("n")).unwrap();
        let told = world.take(&keyed(world.directory()), "n", "p").unwrap();
        let told = told.unwrap_or_else(|| panic!("refused after a stop before call {left}"));
        let again = world.take(&keyed(world.directory()), "n", "p").unwrap();
        assert_eq!(again, Some(told), "stopped before call {left}");
        let node = world.directory().node(&id("n")).unwrap().unwrap();
        assert_eq!(node.generation, 1, "stopped before call {left}");
        assert!(before.is_none_or(|before| before.write == node.write));
        assert_eq!(world.take(&world.directory(), "m", "p").unwrap(), None);
    });
}

#[test]
fn a_retry_after_another_took_the_path_is_told_of_that() {
    at_every_stop(true, |world, left| {
        world.clock.advance(LEASE.as_millis() as i64);
        assert!(world.take(&world.directory(), "m", "p").unwrap().is_some(), "{left}");
        let retried = keyed(world.directory()).try_acquire(&id("n"), &with_path("n", "p")).unwrap();
        // The old answer, which says that the claim is lost, or a refusal.
        match retried {
            Ok(lease) => assert!(lease.is_lost(), "stopped before call {left}"),
            Err(refusal) => assert_eq!(refusal.code(), Code::PathClash),
        }
        sound(&world.directory());
    });
}

/// Others in the way at any one swap change nothing but the time it takes.
#[test]
fn a_cancelled_swap_is_tried_again() {
    for left in 1..20 {
        let world = World::default();
        let told = world.take(&keyed(world.stopping(left, true)), "n", "p").unwrap();
        assert!(told.is_some(), "cancelled at call {left}");
        let reserved = world.directory().reserved().unwrap();
        assert_eq!((reserved.len(), reserved[0].node.as_str()), (1, "n"), "cancelled at call {left}");
        assert_eq!(world.take(&world.directory(), "m", "p").unwrap(), None);
    }
}

/// What is dead goes as others come, though nobody asks for its path.
#[test]
fn the_roster_does_not_grow_with_the_claims_there_were() {
    let world = World::default();
    for round in 0..200 {
        let (node, path) = (format!("n{round}"), format!("p{round}"));
        let lease = world.directory().try_acquire(&id(&node), &with_path("x", &path)).unwrap().unwrap();
        lease.release().unwrap().unwrap();
    }
    let key = Key::Internal(id("rosters/paths.roster"));
    let bytes = String::from_utf8(world.memory.read(&key).unwrap().unwrap()).unwrap();
    let entries = bytes.matches("\"attempt\"").count();
    assert!(entries < 10, "{entries} entries are left");
}
