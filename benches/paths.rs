//! What paths cost a claim, in the library.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]

mod table;

use std::path::Path;
use std::time::{Duration, Instant};

use claimdir::store::files::Options;
use claimdir::{Acquire, Directory, NodeId, ReceiptKey, RepoPath};
use table::{folders, median, row};

/// How often each thing is done; the middle time counts.
const TIMES: usize = 201;
/// How many paths are reserved by others.
const RESERVED: usize = 1_000;

fn main() {
    for (name, folder) in &folders() {
        fresh(name, folder);
        crowded(name, folder);
    }
}

/// A claim with a receipt, with three paths, and with both, each beside a bare one, on fresh nodes and given back.
fn fresh(name: &str, folder: &Path) {
    let (_scratch, directory) = directory(folder);
    let mut times = [const { Vec::new() }; 4];
    for n in 0..TIMES {
        let bare = Acquire::by("a");
        let paths = (0..3).fold(bare.clone(), |request, at| request.path(path(&format!("d{at}/f{n}"))));
        for (kind, times) in times.iter_mut().enumerate() {
            let node = id(&format!("n{kind}-{n}"));
            let request = if kind < 2 { &bare } else { &paths };
            let key = ReceiptKey::new(format!("{kind} {n}")).unwrap();
            let once = if kind % 2 == 1 { directory.with_receipt(key) } else { directory.clone() };
            let mut lease = None;
            times.push(timed(|| lease = once.try_acquire(&node, request).unwrap().ok()));
            lease.unwrap().release().unwrap().unwrap();
        }
    }
    let [bare, receipt, paths, both] = times.map(median);
    for (what, time, most) in
        [("receipt", receipt, 4.0), ("3 paths", paths, 4.0), ("receipt and 3 paths", both, 4.0)]
    {
        row(
            &format!("{what} beside bare, {name}"),
            &format!("{time:.1} µs, bare {bare:.1}"),
            time / bare,
            most,
        );
    }
}

/// With many paths reserved: a look for a clash, and what each of these claims costs more than a bare one.
fn crowded(name: &str, folder: &Path) {
    let (_scratch, directory) = directory(folder);
    let long = Acquire::by("a").lease(Duration::from_secs(3600));
    for n in 0..RESERVED {
        take(&directory, &format!("held{n}"), &long.clone().path(path(&format!("src/d{}/f{n}", n % 40))));
    }
    let asked = [path("src/d7/none"), path("src/d8/none"), path("other")];
    let check = median(
        (0..TIMES).map(|_| timed(|| drop(directory.check_paths(&asked, None).unwrap().unwrap()))).collect(),
    );
    row(&format!("clash check at 1,000 paths, {name}"), &format!("{check:.1} µs"), check / 1_000.0, 1.0);
    let refused = Acquire::by("b").path(path("src/d7"));
    let clash = median(
        (0..TIMES)
            .map(|_| timed(|| drop(directory.try_acquire(&id("n"), &refused).unwrap().unwrap_err())))
            .collect(),
    );
    row(&format!("a refusal among them, {name}"), &format!("{clash:.1} µs"), clash / 1_000.0, 1.0);
}

fn directory(folder: &Path) -> (tempfile::TempDir, Directory) {
    let scratch = tempfile::tempdir_in(folder).unwrap();
    let options = Options { sync: false, ..Options::default() };
    let directory = Directory::open_with(scratch.path().join(".claims"), options).unwrap();
    (scratch, directory)
}

fn take(directory: &Directory, node: &str, request: &Acquire) {
    directory.try_acquire(&id(node), request).unwrap().unwrap().leave();
}

fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

/// Microseconds.
fn timed(act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_secs_f64() * 1e6
}
