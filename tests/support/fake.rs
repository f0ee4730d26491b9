//! A host and a store that do what a test says.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use claimdir::host::{Host, Life, Now, Place, Process};
use claimdir::store::{Finding, Key, Memory, Prefix, Replaced, Store, Watch};
use claimdir::{Acquire, Code, Directory, Error, Lease, NodeId, Refusal, Result};

/// A machine's clocks and processes. They move only when the test, or a pause, moves them.
pub struct Fake {
    place: Place,
    mono_ns: AtomicU64,
    /// The wall clock less the monotonic one.
    offset_ms: AtomicI64,
    /// How often the monotonic clock was looked at.
    pub looks: AtomicU64,
    pub life: Mutex<Life>,
}

/// 2026-11-29T13:00:00Z.
pub const START_MS: i64 = 1_795_957_200_000;

impl Fake {
    /// A machine an hour after it was started.
    pub fn new(boot: &str) -> Arc<Fake> {
        let place = Place { machine: "m".into(), boot: boot.into(), time_namespace: "t".into() };
        Fake::at(place, 3_600_000, START_MS)
    }

    pub fn at(place: Place, mono_ms: i64, wall_ms: i64) -> Arc<Fake> {
        Arc::new(Fake {
            place,
            mono_ns: AtomicU64::new(mono_ms as u64 * 1_000_000),
            offset_ms: AtomicI64::new(wall_ms - mono_ms),
            looks: AtomicU64::new(0),
            life: Mutex::new(Life::Unknown),
        })
    }

    /// Time passes.
    pub fn pass(&self, ms: i64) {
        self.mono_ns.fetch_add(ms as u64 * 1_000_000, SeqCst);
    }

    /// Somebody sets the wall clock.
    pub fn step(&self, ms: i64) {
        self.offset_ms.fetch_add(ms, SeqCst);
    }

    pub fn now(&self) -> Now {
        Host::now(self)
    }
}

impl Host for Fake {
    fn now(&self) -> Now {
        let mono_ms = (self.mono_ns.load(SeqCst) / 1_000_000) as i64;
        Now { wall_ms: mono_ms.saturating_add(self.offset_ms.load(SeqCst)), mono_ms }
    }

    fn mono_ns(&self) -> u64 {
        self.looks.fetch_add(1, SeqCst);
        self.mono_ns.load(SeqCst)
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn name(&self) -> String {
        "host".to_owned()
    }

    /// No two hosts of a test draw the same.
    fn random(&self) -> Result<u128> {
        static DRAWN: AtomicU64 = AtomicU64::new(1);
        let drawn = DRAWN.fetch_add(1, SeqCst);
        Ok((u128::from(drawn) << 64) | u128::from(drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    fn pause(&self, length: Duration) {
        self.mono_ns.fetch_add(length.as_nanos() as u64, SeqCst);
    }

    fn process(&self, pid: u32, _group: Option<u32>) -> Result<Process> {
        let (machine, boot) = (self.place.machine.clone(), self.place.boot.clone());
        Ok(Process { pid, start: 1, group: None, machine, boot, namespace: "n".into() })
    }

    fn life(&self, _process: &Process) -> Life {
        *self.life.lock().unwrap()
    }
}

/// A store in memory that a test can freeze, break, and look into.
pub struct Rigged {
    pub memory: Memory,
    host: Arc<Fake>,
    /// How long the next replacements are frozen before they are published.
    pub freeze_ms: AtomicI64,
    /// Do replacements fail?
    pub broken: AtomicBool,
    pub writes: AtomicU64,
    /// Do watches wait for nothing but the descriptors they are given?
    pub only_others: AtomicBool,
}

impl Rigged {
    pub fn new(host: Arc<Fake>) -> Arc<Rigged> {
        let memory = Memory::default();
        let (freeze_ms, broken, writes, only_others) = Default::default();
        Arc::new(Rigged { memory, host, freeze_ms, broken, writes, only_others })
    }
}

impl Store for Rigged {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.memory.read(key)
    }

    fn make(&self, key: &Key) -> Result<bool> {
        self.memory.make(key)
    }

    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        if self.broken.load(SeqCst) {
            return Err(Error::new(Code::StoreUnavailable, "the disk is away"));
        }
        self.host.pass(self.freeze_ms.swap(0, SeqCst));
        self.writes.fetch_add(1, SeqCst);
        self.memory.replace(key, expected, new)
    }

    fn confirm(&self, key: &Key) -> Result<()> {
        self.memory.confirm(key)
    }

    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        self.memory.publish(key, bytes)
    }

    fn remove(&self, key: &Key) -> Result<bool> {
        self.memory.remove(key)
    }

    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        self.memory.list(prefix, after, limit)
    }

    /// Never wakes for a change: waiting must do without.
    fn watch(&self, _key: &Key) -> Box<dyn Watch + '_> {
        Box::new(Deaf(self))
    }

    fn prepare(&self) -> Result<bool> {
        self.memory.prepare()
    }

    fn place(&self, key: Option<&Key>) -> String {
        self.memory.place(key)
    }

    fn inspect(&self) -> Result<Vec<Finding>> {
        self.memory.inspect()
    }
}

struct Deaf<'a>(&'a Rigged);

impl Watch for Deaf<'_> {
    fn wait(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) {
        if !self.0.only_others.load(SeqCst) {
            return self.0.host.pause(timeout);
        }
        let mut fds: Vec<_> = others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let guard = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut fds, Some(&guard)), Ok(1), "nothing to wait for, or it never came");
    }
}

pub fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

/// A request with a lease of ten seconds.
pub fn by(owner: &str) -> Acquire {
    Acquire::by(owner).lease(Duration::from_secs(10))
}

/// Takes `n`, which can be taken.
#[track_caller]
pub fn take(directory: &Directory, request: &Acquire) -> Lease {
    directory.try_acquire(&id("n"), request).unwrap().unwrap_or_else(|no| panic!("{no:?}"))
}

/// Is refused `n`.
#[track_caller]
pub fn lose(directory: &Directory, request: &Acquire) -> Refusal {
    match directory.try_acquire(&id("n"), request).unwrap() {
        Ok(lease) => panic!("taken: {:?}", lease.leave().1),
        Err(refusal) => refusal,
    }
}
