//! What `next`, `add` and `list` cost among 100, 10,000, 100,000 and 1,000,000 tasks, and what a task takes on disk.
//! `BENCH_NODES` says the most.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]

mod table;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use claimdir::domain::Submission;
use claimdir::store::files::Options;
use claimdir::{Acquire, Directory, Next, NodeId};

const SIZES: [u64; 4] = [100, 10_000, 100_000, 1_000_000];
/// How often each is measured.
const CALLS: u64 = 51;

fn main() {
    let most = std::env::var("BENCH_NODES").map_or(1_000_000, |text| text.parse().unwrap());
    for (name, folder) in table::folders() {
        let mut first = None;
        // What was measured stays to the end: see `kept` of benches/drain.rs.
        let mut kept = Vec::new();
        // In memory a million tasks need more of it than most machines have to spare.
        let most = if name == "disk" { most } else { most.min(100_000) };
        for size in SIZES.into_iter().filter(|size| *size <= most) {
            let scratch = tempfile::tempdir_in(&folder).unwrap();
            let path = scratch.path().join("claims");
            fill(&path, size);
            let bytes = used(&path) as f64 / size as f64 / 1024.0;
            table::figure(&format!("a task among {size}, {name}"), &format!("{bytes:.1} KiB"));
            let taken = Costs { next: next(&path), add: add(&path) };
            let first = first.get_or_insert(taken);
            let what = format!("next among {size}, {name}");
            table::row(&what, &ms(taken.next), taken.next / first.next, 1.5);
            table::row(&format!("{what}, to 1 ms"), &ms(taken.next), taken.next, 1.0);
            table::row(&format!("add among {size}, {name}"), &ms(taken.add), taken.add / first.add, 1.5);
            let listed = list(&path);
            table::row(&format!("list of {size}, {name}, to 0.5 s"), &ms(listed), listed / 500.0, 1.0);
            kept.push(scratch);
        }
    }
}

/// Medians in milliseconds.
#[derive(Clone, Copy)]
struct Costs {
    next: f64,
    add: f64,
}

fn ms(value: f64) -> String {
    format!("{value:.3} ms")
}

fn open(path: &Path) -> Directory {
    Directory::open_with(path, Options { sync: false, ..Options::default() }).unwrap()
}

/// Two at once, each from its end.
fn fill(path: &Path, size: u64) {
    open(path).create().unwrap();
    thread::scope(|scope| {
        for part in 0..2 {
            scope.spawn(move || {
                let directory = open(path);
                for number in (part..size).step_by(2) {
                    submit(&directory, number);
                }
            });
        }
    });
    open(path).would_next(&any()).unwrap().unwrap();
}

fn submit(directory: &Directory, number: u64) {
    let id = NodeId::new(format!("TK/{}/{number}", number / 1000)).unwrap();
    directory.submit(&id, &Submission::by("bench")).unwrap().unwrap();
}

fn any() -> Next {
    Next::of(Acquire::by("bench").lease(Duration::from_secs(3600)))
}

/// Each by a directory of its own, as in a process of its own: nothing is known from the call before.
fn next(path: &Path) -> f64 {
    let once = |_| {
        let directory = open(path);
        let start = Instant::now();
        let lease = directory.try_next(&any()).unwrap().unwrap();
        let took = start.elapsed();
        lease.leave();
        took.as_secs_f64() * 1e3
    };
    once(0); // the marker of this boot is written by the first
    table::median((0..CALLS).map(once).collect())
}

fn add(path: &Path) -> f64 {
    let once = |number| {
        let directory = open(path);
        let start = Instant::now();
        submit(&directory, 10_000_000 + number);
        start.elapsed().as_secs_f64() * 1e3
    };
    table::median((0..CALLS).map(once).collect())
}

/// The whole process.
fn list(path: &Path) -> f64 {
    let once = |_| {
        let start = Instant::now();
        let mut list = Command::new(env!("CARGO_BIN_EXE_claim"));
        let status = list.args(["list", "--dir"]).arg(path).stdout(Stdio::null()).status();
        assert!(status.unwrap().success());
        start.elapsed().as_secs_f64() * 1e3
    };
    table::median((0..3).map(once).collect())
}

/// The bytes of all files and folders at `path`, as the disk counts them.
fn used(path: &Path) -> u64 {
    let entry = fs::symlink_metadata(path).unwrap();
    let below = if entry.is_dir() { fs::read_dir(path).unwrap() } else { return entry.blocks() * 512 };
    entry.blocks() * 512 + below.map(|entry| used(&entry.unwrap().path())).sum::<u64>()
}
