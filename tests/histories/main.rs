//! Histories: many workers on a few nodes, killed and frozen at random, and every answer they got must be one that
//! some order of their calls explains.
//!
//! `CLAIM_HISTORY_SECONDS` and `CLAIM_HISTORY_WORKERS` make it longer and larger, `CLAIM_HISTORY_SYNC=1` syncs.
//! The logs of a run that broke something are kept.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod checker;
mod examples;
mod log;
mod model;
mod place;
mod plan;
mod processes;
mod random;
mod threads;
mod verdict;
mod worker;

use std::env;
use std::fs;
use std::sync::Arc;

use claimdir::Directory;
use claimdir::host::Os;
use claimdir::store::{Memory, Store};
use tempfile::TempDir;

use log::Log;
use place::Place;
use plan::{Fates, Plan};
use worker::Worker;

#[test]
fn processes_on_a_directory() {
    let sync = env::var_os("CLAIM_HISTORY_SYNC").is_some_and(|value| value == "1");
    let scratch = tempfile::tempdir().unwrap();
    let place = Place::Files { path: scratch.path().join(".claims"), sync };
    let plan = plan(&scratch);
    let fates = processes::run(&place, &plan);
    conclude(if sync { "synced" } else { "unsynced" }, scratch, &place.open(), &plan, &fates);
}

#[test]
fn threads_on_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let plan = plan(&scratch);
    let fates = threads::run(&store, &plan);
    conclude("memory", scratch, &Directory::over(store, Arc::new(Os::new())), &plan, &fates);
}

/// The body of a worker process; nothing when started by hand.
#[test]
#[ignore = "started by processes_on_a_directory"]
fn worker() {
    processes::worker();
}

fn plan(scratch: &TempDir) -> Plan {
    let folder = scratch.path().join("logs");
    fs::create_dir(&folder).unwrap();
    Plan::from_environment(folder)
}

/// Looks at each node for a last time, and judges.
fn conclude(name: &str, scratch: TempDir, directory: &Directory, plan: &Plan, fates: &Fates) {
    let log = Log::create(&plan.folder, plan.workers, 0, Arc::new(Os::new()));
    let mut last = Worker::new(directory.clone(), log, plan.random(plan.workers, 0));
    for node in directory.list().unwrap().nodes {
        last.look(node.id.as_str());
    }
    println!("seed {}", plan.seed);
    verdict::judge(directory, plan, fates).hold(name, scratch);
}
