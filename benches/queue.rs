//! Tasks a second, through the library's worker and through `claim work`, beside a queue on SQLite with the same
//! durability. `BENCH_PEERS` names the other's program (`benches/peers`), `BENCH_TASKS` how many tasks.
//!
//! "The bare calls" are what as many threads do that make only the file-system calls that two swaps and their hints
//! can't do without: from there to SQLite is the price of a file a task, from there to ours is what is ours.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use claimdir::domain::Submission;
use claimdir::store::files::Options;
use claimdir::{Acquire, Directory, Next, NodeId, Stop, Worker};
use serde_json::json;

mod bare;
mod table;

/// How many threads take tasks.
const WORKERS: u64 = 8;

fn main() {
    let tasks: u64 = std::env::var("BENCH_TASKS").map_or(10_000, |text| text.parse().unwrap());
    for (name, folder) in &table::folders() {
        let taken = table::median((0..11).map(|_| takeover(folder)).collect());
        table::row(
            &format!("takeover of a killed worker, {name}"),
            &format!("{taken:.1} ms"),
            taken / 50.0,
            1.0,
        );
        for sync in [true, false] {
            let how = format!("{name}, {}", if sync { "synced" } else { "unsynced" });
            let ours = thrice(folder, |path| Some(consumed(path, sync, tasks)));
            let theirs = thrice(folder, |path| sqlite(path, sync, tasks, WORKERS, &[]));
            row(&format!("{WORKERS} workers, {how}"), ours, theirs);
            let bare = thrice(folder, |path| Some(bare::tasks(path, sync, tasks, WORKERS)));
            table::row(
                &format!("{WORKERS} workers beside the bare calls, {how}"),
                &format!("{ours:.0} tasks/s, bare {bare:.0}"),
                bare / ours,
                2.0,
            );
            let ours = thrice(folder, |path| Some(worked(path, sync, tasks / 10)));
            let theirs = thrice(folder, |path| sqlite(path, sync, tasks / 10, 2, &["true"]));
            row(&format!("work -- true, 2 at once, {how}"), ours, theirs);
        }
    }
}

/// The middle one of three, each in a place of its own; NaN: it can't be measured.
fn thrice(folder: &Path, measure: impl Fn(&Path) -> Option<f64>) -> f64 {
    let once = |_| {
        let scratch = tempfile::tempdir_in(folder).unwrap();
        measure(&scratch.path().join("queue")).unwrap_or(f64::NAN)
    };
    table::median((0..3).map(once).collect())
}

fn filled(path: &Path, sync: bool, tasks: u64) -> Directory {
    let directory = Directory::open_with(path, Options { sync, ..Options::default() }).unwrap();
    let unsynced = Directory::open_with(path, Options { sync: false, ..Options::default() }).unwrap();
    for task in 0..tasks {
        unsynced.submit(&NodeId::new(format!("t{task}")).unwrap(), &Submission::by("s")).unwrap().unwrap();
    }
    directory
}

fn consumed(path: &Path, sync: bool, tasks: u64) -> f64 {
    let directory = filled(path, sync, tasks);
    let worker = Worker::on(Next::of(Acquire::by("w"))).concurrency(WORKERS as usize).max(tasks);
    let start = Instant::now();
    let worked =
        directory.consume(&worker, &Stop::new(), |_| Ok(json!(null)), |trouble, _| println!("{trouble}"));
    let rate = tasks as f64 / start.elapsed().as_secs_f64();
    assert_eq!(worked.unwrap().done, tasks);
    rate
}

fn worked(path: &Path, sync: bool, tasks: u64) -> f64 {
    filled(path, sync, tasks);
    let mut work = Command::new(env!("CARGO_BIN_EXE_claim"));
    work.args(["work", "--quiet", "--concurrency", "2", "--max", &tasks.to_string(), "--dir"]).arg(path);
    work.args(if sync { [].as_slice() } else { ["--no-sync"].as_slice() }).args(["--", "true"]);
    let start = Instant::now();
    assert!(work.status().unwrap().success());
    tasks as f64 / start.elapsed().as_secs_f64()
}

/// Milliseconds from the SIGKILL of a worker whose command has children, to the next worker's command.
fn takeover(folder: &Path) -> f64 {
    let scratch = tempfile::tempdir_in(folder).unwrap();
    let (dir, first, second) = (scratch.path().join("c"), scratch.path().join("1"), scratch.path().join("2"));
    filled(&dir, true, 1);
    let worker = |script: String| {
        let mut work = Command::new(env!("CARGO_BIN_EXE_claim"));
        work.args(["work", "--quiet", "--max", "1", "--lease", "60s", "--dir"]).arg(&dir);
        work.args(["--", "sh", "-c", &script]).spawn().unwrap()
    };
    let mut killed = worker(format!("sleep 600 & touch {}; sleep 600", first.display()));
    until(&first);
    let mut next = worker(format!("touch {}", second.display()));
    std::thread::sleep(Duration::from_millis(200)); // it has found nothing, and waits
    let start = Instant::now();
    killed.kill().unwrap();
    until(&second);
    let took = start.elapsed().as_secs_f64() * 1e3;
    killed.wait().unwrap();
    next.wait().unwrap();
    took
}

fn until(file: &Path) {
    while !file.exists() {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The same on SQLite, if its program is there.
fn sqlite(file: &Path, sync: bool, tasks: u64, workers: u64, command: &[&str]) -> Option<f64> {
    let program = std::env::var_os("BENCH_PEERS")?;
    let sync = if sync { "full" } else { "off" };
    let mut peers = Command::new(program);
    peers.arg(file).args([&tasks.to_string(), &workers.to_string(), sync]).args(command);
    String::from_utf8(peers.output().unwrap().stdout).unwrap().trim().parse().ok()
}

/// Ahead is below 1: how long ours takes beside theirs.
fn row(what: &str, ours: f64, theirs: f64) {
    table::row(what, &format!("{ours:.0} tasks/s, SQLite {theirs:.0}"), theirs / ours, 1.0);
}
