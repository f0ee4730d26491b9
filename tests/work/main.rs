//! `claim work` on real processes.
//!
//! A test waits for a file, a line, an end; where it waits, it waits for ever but for a generous guard.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod death;
mod lost;
mod many;
mod outcome;
mod stop;
#[path = "../run/support.rs"]
#[allow(dead_code, reason = "the tests of `run` use the rest")]
mod support;

use std::fs;
use std::process::Command;

use rustix::process::Pid;
use support::World;

/// `claim work` with these words, and a shell script as the command.
fn work(world: &World, words: &str, script: &str) -> Command {
    let mut command = world.claim(&format!("work {words}"));
    command.args(["--", "sh", "-c", script]);
    command
}

/// Runs `claim` with these words to a good end.
#[track_caller]
fn good(world: &World, words: &str) -> String {
    let output = world.claim(words).output().unwrap();
    assert_eq!(support::code(&output), Some(0), "{words}: {}", support::stderr(&output));
    support::stdout(&output)
}

/// The children of all threads of a process.
fn children(of: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", of.as_raw_nonzero())) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| {
        list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect::<Vec<_>>()
    };
    lists.flat_map(pids).collect()
}
