//! Faults for tests; never in a build that ships.
//!
//! `CLAIM_TEST_PAUSES` puts a random pause of up to 200 µs before each call, so that a race that is possible
//! happens. `CLAIM_TEST_BARRIER` names a folder with two FIFOs: before its first call a process says so in
//! `ready` and waits until somebody opens `barrier`, so that starting up does not spread the racers out; then,
//! for those whose way is shorter, up to `CLAIM_TEST_LATE` microseconds more.
//! `CLAIM_TEST_KILL=made` kills the process between making a cell and writing to it.
//! `CLAIM_TEST_MUTANT` puts a broken protocol in the swap's place.

mod mutants;

use std::env::{var, var_os};
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use rustix::rand::{GetRandomFlags, getrandom};

static START: Once = Once::new();

/// A point between two calls.
pub(super) fn step() {
    START.call_once(line_up);
    if var_os("CLAIM_TEST_PAUSES").is_some() {
        pause(200);
    }
}

fn line_up() {
    if let Some(folder) = var_os("CLAIM_TEST_BARRIER").map(PathBuf::from) {
        let _ = fs::write(folder.join("ready"), "\n");
        let _ = File::open(folder.join("barrier"));
    }
    if let Some(most) = var("CLAIM_TEST_LATE").ok().and_then(|most| most.parse().ok()) {
        pause(most);
    }
}

/// A random pause of less than `most` microseconds.
fn pause(most: u64) {
    let mut random = [0; 8];
    let _ = getrandom(&mut random, GetRandomFlags::empty());
    std::thread::sleep(Duration::from_micros(u64::from_le_bytes(random) % most.max(1)));
}

/// The point at which a cell has been made and nothing is in it.
pub(super) fn made() {
    if var("CLAIM_TEST_KILL").is_ok_and(|point| point == "made") {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
