//! The library against the bare system calls that its protocol needs, in a loop beside it.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]

mod table;

use std::path::Path;
use std::time::{Duration, Instant};

use claimdir::store::files::Options;
use claimdir::{Acquire, Directory, NodeId, Renewal};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, RawDir, fdatasync, fstat, fsync, openat, renameat};
use rustix::rand::{GetRandomFlags, getrandom};

/// Blocks of each side, taken in turns, so that what else the machine does hits both.
const BLOCKS: usize = 41;

fn main() {
    for (name, folder) in table::folders() {
        compare(name, &folder, false, 100, 1.5);
    }
    let (name, folder) = table::folders().swap_remove(0);
    compare(name, &folder, true, 20, 1.2);
}

/// All three operations on one file system; `count` operations a block.
fn compare(name: &str, folder: &Path, sync: bool, count: usize, most: f64) {
    let scratch = tempfile::tempdir_in(folder).unwrap();
    let ours = Ours::new(&scratch.path().join(".claims"), sync);
    let bare = Bare::new(&scratch.path().join("bare"), sync);
    let name = if sync { format!("{name}, synced") } else { name.to_owned() };
    let report = |what: &str, (ours, bare): (f64, f64)| {
        let measured = format!("{ours:.1} µs, bare calls {bare:.1}");
        table::row(&format!("library: {what}, {name}"), &measured, ours / bare, most);
    };
    let fresh = |ours: &Ours, n: usize| ours.acquire(n, Acquire::DEFAULT_LEASE);
    report("fresh acquire", turns(count, true, |n| fresh(&ours, n), |n| bare.fresh(n)));

    // The block that is taken over was taken before, and its leases have ended.
    let short = Duration::from_millis(400);
    let base = BLOCKS * count;
    for n in 0..count {
        ours.acquire(base + n, short);
        bare.fresh(base + n);
    }
    let over = |ours: &Ours, n: usize| ours.acquire(base + n, short);
    let wait = || std::thread::sleep(short + Duration::from_millis(10));
    report("takeover", turns_after(wait, count, |n| over(&ours, n), |n| bare.replace(base + n)));

    let held = ours.held();
    report("renewal", turns(count, false, |_| ours.renew(&held), |n| bare.replace(base + n % count)));
}

/// Microseconds an operation, for both, by medians of blocks. `fresh`: no number is used twice.
fn turns(count: usize, fresh: bool, ours: impl Fn(usize), bare: impl Fn(usize)) -> (f64, f64) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for block in 0..BLOCKS {
        let first = if fresh { block * count } else { 0 };
        a.push(timed(first, count, &ours));
        b.push(timed(first, count, &bare));
    }
    (table::median(a), table::median(b))
}

/// The same numbers in each block, after `wait`.
fn turns_after(wait: impl Fn(), count: usize, ours: impl Fn(usize), bare: impl Fn(usize)) -> (f64, f64) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..BLOCKS / 3 {
        wait();
        a.push(timed(0, count, &ours));
        b.push(timed(0, count, &bare));
    }
    (table::median(a), table::median(b))
}

fn timed(first: usize, count: usize, act: &impl Fn(usize)) -> f64 {
    let started = Instant::now();
    (first..first + count).for_each(act);
    started.elapsed().as_secs_f64() * 1e6 / count as f64
}

/// The library.
struct Ours {
    directory: Directory,
}

impl Ours {
    fn new(path: &Path, sync: bool) -> Ours {
        let options = Options { sync, ..Options::default() };
        let directory = Directory::open_with(path, options).unwrap();
        directory.create().unwrap();
        Ours { directory }
    }

    fn acquire(&self, number: usize, lease: Duration) {
        let id = NodeId::new(format!("node{number}")).unwrap();
        let request = Acquire::by("bench").lease(lease);
        self.directory.try_acquire(&id, &request).unwrap().unwrap().leave();
    }

    fn held(&self) -> (NodeId, claimdir::Token) {
        let id = NodeId::new("held").unwrap();
        let lease = self.directory.try_acquire(&id, &Acquire::by("bench")).unwrap().unwrap();
        (id, lease.leave().0)
    }

    fn renew(&self, (id, token): &(NodeId, claimdir::Token)) {
        self.directory.renew(id, token, &Renewal::default()).unwrap().unwrap();
    }
}

/// The calls of the protocol and nothing else: no JSON, no hashes, no decisions.
struct Bare {
    root: OwnedFd,
    intents: OwnedFd,
    sync: bool,
    record: Vec<u8>,
    buffer: std::cell::RefCell<Vec<u8>>,
}

impl Bare {
    fn new(path: &Path, sync: bool) -> Bare {
        std::fs::create_dir_all(path.join("intents")).unwrap();
        let folder = |path: &Path| OwnedFd::from(std::fs::File::open(path).unwrap());
        let buffer = std::cell::RefCell::new(Vec::with_capacity(256 << 10));
        Bare {
            root: folder(path),
            intents: folder(&path.join("intents")),
            sync,
            record: vec![b' '; 640],
            buffer,
        }
    }

    fn create(&self, folder: &OwnedFd, name: &str) -> OwnedFd {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(folder, name, flags, Mode::from_raw_mode(0o666)).unwrap()
    }

    fn read(&self, name: &str) {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(file) = openat(&self.root, name, flags, Mode::empty()) {
            let mut bytes = Vec::with_capacity(fstat(&file).unwrap().st_size as usize + 1);
            rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)).unwrap();
        }
    }

    fn swap(&self, name: &str) {
        let mut random = [0; 48]; // token, write id, and the intent's name
        getrandom(&mut random, GetRandomFlags::empty()).unwrap();
        let random = u128::from_ne_bytes(random[..16].try_into().unwrap());
        let (staged, mine) = (format!("tmp.{random:032x}"), format!("{random:032x}.{random:032x}"));
        let file = self.create(&self.intents, &staged);
        rustix::io::write(&file, &self.record).unwrap();
        if self.sync {
            fdatasync(&file).unwrap();
        }
        drop(file);
        renameat(&self.intents, &staged, &self.intents, &mine).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = openat(&self.intents, ".", flags, Mode::empty()).unwrap();
        let mut buffer = self.buffer.borrow_mut();
        let mut entries = RawDir::new(listed, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            entry.unwrap();
        }
        drop(entries);
        self.read(name);
        renameat(&self.intents, &mine, &self.root, name).unwrap();
        if self.sync {
            fsync(&self.root).unwrap();
        }
    }

    fn fresh(&self, number: usize) {
        let name = format!("node{number}.claim");
        self.read(&name);
        drop(self.create(&self.root, &name));
        self.swap(&name);
    }

    fn replace(&self, number: usize) {
        let name = format!("node{number}.claim");
        self.read(&name);
        self.swap(&name);
    }
}
