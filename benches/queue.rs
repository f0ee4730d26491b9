//! Tasks a second, through the library's worker and through `claim work`, beside a queue on SQLite with the same
//! durability. `BENCH_PEERS` names the other's program (`benches/peers`), `BENCH_TASKS` how many tasks.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use claimdir::domain::Submission;
use claimdir::store::files::Options;
use claimdir::{Acquire, Directory, Next, NodeId, Stop, Worker};
use serde_json::json;

fn main() {
    let tasks: u64 = std::env::var("BENCH_TASKS").map_or(10_000, |text| text.parse().unwrap());
    let folders = [("disk", std::env::temp_dir()), ("tmpfs", "/dev/shm".into())];
    for (name, folder) in folders.iter().filter(|(_, folder)| folder.is_dir()) {
        for sync in [true, false] {
            let how = format!("{name}, {}", if sync { "synced" } else { "unsynced" });
            let scratch = tempfile::tempdir_in(folder).unwrap();
            let ours = consumed(&scratch.path().join("lib"), sync, tasks);
            let theirs = sqlite(&scratch.path().join("lib.db"), sync, tasks, 8, &[]);
            row(&format!("8 workers, {how}"), ours, theirs);
            let ours = worked(&scratch.path().join("work"), sync, tasks / 10);
            let theirs = sqlite(&scratch.path().join("work.db"), sync, tasks / 10, 2, &["true"]);
            row(&format!("work -- true, 2 at once, {how}"), ours, theirs);
        }
    }
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
    let worker = Worker::on(Next::of(Acquire::by("w"))).concurrency(8).max(tasks);
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

/// The same on SQLite, if its program is there.
fn sqlite(file: &Path, sync: bool, tasks: u64, workers: u64, command: &[&str]) -> Option<f64> {
    let program = std::env::var_os("BENCH_PEERS")?;
    let sync = if sync { "full" } else { "off" };
    let mut peers = Command::new(program);
    peers.arg(file).args([&tasks.to_string(), &workers.to_string(), sync]).args(command);
    String::from_utf8(peers.output().unwrap().stdout).unwrap().trim().parse().ok()
}

fn row(what: &str, ours: f64, theirs: Option<f64>) {
    let ratio = theirs.map(|theirs| ours / theirs);
    let theirs = theirs.map_or("not measured".to_owned(), |theirs| format!("{theirs:.0}"));
    let measured = format!("{ours:.0} tasks/s, SQLite {theirs}");
    println!("{what:44} {measured:34} {:6.2} >= 1.00", ratio.unwrap_or(f64::NAN));
}
