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

/// Short blocks of each side, taken in turns: what else the machine does hits both, and few of them.
const BLOCKS: usize = 201;
/// Rounds of takeovers, each after a wait for the leases to end.
const ROUNDS: usize = 10;

fn main() {
    for (name, folder) in table::folders() {
        compare(name, &folder, false, 10, 1.5);
    }
    let (name, folder) = table::folders().swap_remove(0);
    compare(name, &folder, true, 2, 1.2);
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
    report("fresh acquire", turns(count, |n| fresh(&ours, n), |n| bare.fresh(n)));

    // Rounds of blocks over the same nodes, whose leases of the round before have ended.
    let (short, base, nodes) = (Duration::from_millis(500), BLOCKS * count, BLOCKS / ROUNDS * count);
    for n in base..base + nodes {
        ours.acquire(n, short);
        bare.fresh(n);
    }
    let over = || {
        std::thread::sleep(short + Duration::from_millis(10));
        turns_from(base, BLOCKS / ROUNDS, count, &|n| ours.acquire(n, short), &|n| bare.replace(n))
    };
    report("takeover", medians((0..ROUNDS).map(|_| over())));

    let held = ours.held();
    report("renewal", turns(count, |_| ours.renew(&held), |n| bare.replace(base + n % nodes)));
}

type Times = (Vec<f64>, Vec<f64>);

/// Microseconds an operation, for both sides, in blocks of `count` with numbers from `first` on.
fn turns_from(
    first: usize,
    blocks: usize,
    count: usize,
    ours: &impl Fn(usize),
    bare: &impl Fn(usize),
) -> Times {
    let block = |n: usize| first + n * count;
    (0..blocks).map(|n| (timed(block(n), count, ours), timed(block(n), count, bare))).unzip()
}

fn medians(rounds: impl Iterator<Item = Times>) -> (f64, f64) {
    let (ours, bare): (Vec<_>, Vec<_>) = rounds.unzip();
    (table::median(ours.concat()), table::median(bare.concat()))
}

fn turns(count: usize, ours: impl Fn(usize), bare: impl Fn(usize)) -> (f64, f64) {
    medians(std::iter::once(turns_from(0, BLOCKS, count, &ours, &bare)))
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
