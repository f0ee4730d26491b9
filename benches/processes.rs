//! `claim acquire` as a whole process against the least that a claim can be, and against `flock(1)`.
//!
//! `BENCH_MINIMAL` names the program that `examples/minimal.rs` makes; `scripts/bench.sh` sets it.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]

mod table;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CLAIM: &str = env!("CARGO_BIN_EXE_claim");
const RUNS: usize = 501;
const ROUNDS: usize = 101;
const PROCESSES: usize = 20;

fn main() {
    let minimal = PathBuf::from(std::env::var_os("BENCH_MINIMAL").unwrap());
    for (name, folder) in table::folders() {
        let scratch = tempfile::tempdir_in(folder).unwrap();
        let bench = Bench { scratch: scratch.path(), minimal: &minimal };
        bench.init();
        bench.one(name);
        bench.round(name);
    }
    let scratch = tempfile::tempdir().unwrap();
    let bench = Bench { scratch: scratch.path(), minimal: &minimal };
    bench.init();
    bench.memory();
    let size = fs::metadata(CLAIM).unwrap().len() as f64 / f64::from(1 << 20);
    table::row("binary size, MiB", &format!("{size:.2} MiB"), size, 5.0);
}

struct Bench<'a> {
    scratch: &'a Path,
    minimal: &'a Path,
}

impl Bench<'_> {
    fn init(&self) {
        assert!(self.claim(&["init"]).status().unwrap().success());
    }

    fn claim(&self, args: &[&str]) -> Command {
        let mut command = Command::new(CLAIM);
        command.args(args).arg("--no-sync").arg("--dir").arg(self.scratch.join("claims"));
        self.quietly(command)
    }

    fn minimal(&self, name: &str) -> Command {
        let mut command = Command::new(self.minimal);
        command.arg(self.scratch.join(name));
        self.quietly(command)
    }

    fn flock(&self, name: &str) -> Command {
        let mut command = Command::new("flock");
        command.arg("-n").arg(self.scratch.join(name)).arg("true");
        self.quietly(command)
    }

    fn quietly(&self, mut command: Command) -> Command {
        command.current_dir(self.scratch).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// One process, nobody else there.
    fn one(&self, name: &str) {
        let (mut ours, mut least, mut flock) = (Vec::new(), Vec::new(), Vec::new());
        for run in 0..RUNS {
            ours.push(timed(self.claim(&["acquire", &format!("node{run}")])));
            least.push(timed(self.minimal(&format!("file{run}"))));
            flock.push(timed(self.flock(&format!("lock{run}"))));
        }
        let (ours, least, flock) = (table::median(ours), table::median(least), table::median(flock));
        let what = format!("process: acquire, {name}");
        table::row(&what, &format!("{ours:.2} ms, minimal {least:.2}"), ours / least, 1.5);
        let what = format!("process: acquire against flock, {name}");
        table::row(&what, &format!("{ours:.2} ms, flock -n FILE true {flock:.2}"), ours / flock, 1.0);
    }

    /// Twenty at one node, from the first start to the last exit.
    fn round(&self, name: &str) {
        let (mut ours, mut least) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let (node, file) = (format!("raced{round}"), format!("raced{round}"));
            ours.push(raced(|| self.claim(&["acquire", &node])));
            least.push(raced(|| self.minimal(&file)));
        }
        let (ours, least) = (table::median(ours), table::median(least));
        let what = format!("process: a round of {PROCESSES} at one node, {name}");
        table::row(&what, &format!("{ours:.1} ms, minimal {least:.1}"), ours / least, 1.5);
    }

    fn memory(&self) {
        let ours: Vec<f64> = (0..9).map(|n| peak(self.claim(&["acquire", &format!("held{n}")]))).collect();
        let least: Vec<f64> = (0..9)
            .map(|n| {
                let mut command = self.minimal(&format!("held{n}"));
                command.arg("print");
                peak(command)
            })
            .collect();
        let (ours, least) = (table::median(ours), table::median(least));
        let measured = format!("{ours:.2} MiB, minimal {least:.2}");
        // 1.5 times and 2 MiB, as one ratio.
        table::row("process: peak memory of acquire", &measured, ours / least, (1.5 * least + 2.0) / least);
    }
}

/// Milliseconds from start to exit.
fn timed(mut command: Command) -> f64 {
    let started = Instant::now();
    let status = command.status().unwrap();
    let ms = started.elapsed().as_secs_f64() * 1e3;
    assert!(status.success(), "{command:?}: {status}");
    ms
}

fn raced(command: impl Fn() -> Command) -> f64 {
    let mut commands: Vec<Command> = (0..PROCESSES).map(|_| command()).collect();
    let started = Instant::now();
    let mut racers: Vec<_> = commands.iter_mut().map(|command| command.spawn().unwrap()).collect();
    let won = racers.iter_mut().filter_map(|racer| racer.wait().ok()).filter(|exit| exit.success()).count();
    let ms = started.elapsed().as_secs_f64() * 1e3;
    assert_eq!(won, 1);
    ms
}

/// The most memory a process had, in MiB, looked at while it waits to write its answer to a full pipe.
fn peak(mut command: Command) -> f64 {
    let (reader, mut writer) = io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while writer.write(&[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&writer, flags).unwrap();
    let mut child = command.stdout(writer).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let guard = Instant::now() + Duration::from_secs(10);
    let mut before = String::new();
    let text = loop {
        let now = fs::read_to_string(&status).unwrap();
        if now == before && now.contains("State:\tS") {
            break now;
        }
        assert!(Instant::now() < guard, "{command:?} has no answer");
        before = now;
        std::thread::sleep(Duration::from_millis(5));
    };
    drop(reader);
    child.kill().unwrap();
    child.wait().unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}
