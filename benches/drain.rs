//! Twenty at a time take one after the other of 10,000 tasks, each take a process of its own, beside others' programs:
//! nodes a second over the first `BENCH_SECONDS`. `BENCH_PEERS` names the queue on SQLite (`benches/peers`);
//! `BENCH_CLAIMD` the program of the crate `claimd`. What is not there is left out.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]

mod table;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use claimdir::domain::Submission;
use claimdir::store::files::Options;
use claimdir::{Directory, NodeId};
use serde_json::json;
use tempfile::TempDir;

const TASKS: usize = 10_000;
const CALLERS: usize = 20;

fn main() {
    for (name, folder) in table::folders() {
        let ours = |sync: bool| drained(&folder, filled, move |path, _| claim(path, sync));
        let sqlite = |sync: &'static str| {
            let program = std::env::var_os("BENCH_PEERS")?;
            let fill = program.clone();
            let fill =
                move |path: &Path| run(Command::new(&fill).arg(path).args([&TASKS.to_string(), "0", "off"]));
            Some(drained(&folder, fill, move |path, _| command(&program, path, &["next", sync])))
        };
        for (how, sync, level) in [("synced", true, "full"), ("unsynced", false, "off")] {
            row(&format!("{name}, {how}, SQLite"), ours(sync), sqlite(level));
        }
        row(&format!("{name}, claimd"), ours(true), claimd(&folder));
    }
    kept().clear();
}

/// Ahead is below 1.
fn row(what: &str, ours: f64, theirs: Option<f64>) {
    // One that takes nothing does not work here, which is no figure.
    let Some(theirs) = theirs.filter(|rate| *rate > 0.0) else {
        return println!("20 drain 10,000, {what}: not there");
    };
    let measured = format!("{ours:.0} nodes/s, beside {theirs:.0}");
    table::row(&format!("20 drain 10,000, {what}"), &measured, theirs / ours, 1.0);
}

/// Nodes a second, the middle of three. `take` makes the command that takes the so manieth.
fn drained(folder: &Path, fill: impl Fn(&Path), take: impl Fn(&Path, usize) -> Command + Sync) -> f64 {
    let once = |_| {
        let scratch = tempfile::tempdir_in(folder).unwrap();
        let path = scratch.path().join("queue");
        fill(&path);
        let rate = rate(|number| take(&path, number));
        kept().push(scratch);
        rate
    };
    table::median((0..3).map(once).collect())
}

/// What was measured stays to the end: ext4 without a journal passes over the inodes of files that were removed within
/// the last minutes, one by one, at each file that is made.
fn kept() -> MutexGuard<'static, Vec<TempDir>> {
    static KEPT: Mutex<Vec<TempDir>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap()
}

fn rate(take: impl Fn(usize) -> Command + Sync) -> f64 {
    let seconds = std::env::var("BENCH_SECONDS").map_or(5, |text| text.parse().unwrap());
    let (number, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                while Instant::now() < end {
                    let mut command = take(number.fetch_add(1, Ordering::Relaxed));
                    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                    if !command.status().unwrap().success() {
                        return;
                    }
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    taken.into_inner() as f64 / start.elapsed().as_secs_f64()
}

fn run(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}");
}

fn command(program: &OsString, path: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg(path).args(arguments);
    command
}

fn filled(path: &Path) {
    let directory = Directory::open_with(path, Options { sync: false, ..Options::default() }).unwrap();
    for task in 0..TASKS {
        directory.submit(&NodeId::new(format!("t{task}")).unwrap(), &Submission::by("s")).unwrap().unwrap();
    }
}

fn claim(path: &Path, sync: bool) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_claim"));
    command.args(["next", "--lease", "1h", "--dir"]).arg(path);
    command.args(if sync { [].as_slice() } else { ["--no-sync"].as_slice() });
    command
}

/// It has no command that takes the next one: each is told which, without having to look, which flatters it.
fn claimd(folder: &Path) -> Option<f64> {
    let program = std::env::var_os("BENCH_CLAIMD")?;
    let id = |task: usize| format!("00000000-0000-4000-8000-{task:012}");
    let fill = |path: &Path| {
        let at = "2026-01-01T00:00:00Z";
        let item = |task| json!({"id": id(task), "title": "t", "status": "new", "priority": 5, "created_at": at, "updated_at": at});
        let items: Vec<_> = (0..TASKS).map(item).collect();
        let project = path.join("projects/p");
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("tasks.json"), json!({"items": items}).to_string()).unwrap();
    };
    Some(drained(folder, fill, |path, task| {
        let mut command = Command::new(&program);
        command.args(["claim", &id(task), "--agent", "a", "--project", "p", "--dir"]).arg(path);
        command
    }))
}
