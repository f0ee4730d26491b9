//! Histories: many workers on a few nodes, killed and frozen at random, and every answer they got must be one that
//! some order of their calls explains.
//!
//! `CLAIM_HISTORY_SECONDS` and `CLAIM_HISTORY_WORKERS` make it longer and larger, `CLAIM_HISTORY_SYNC=1` syncs,
//! `scripts/soak.sh` goes on for minutes.
//! The logs of a run that broke something are kept. With the feature `testing` there are pauses between the
//! file-system calls, and broken protocols must be caught.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod checker;
mod examples;
mod log;
mod model;
mod place;
mod plan;
mod processes;
mod random;
#[cfg(feature = "etcd")]
#[path = "../etcd/server.rs"]
mod server;
mod threads;
mod verdict;
mod worker;

use std::env;
use std::fs;
use std::sync::Arc;
#[cfg(feature = "testing")]
use std::time::Duration;

use claimdir::Directory;
use claimdir::host::Os;
use claimdir::store::{Memory, Store};
use tempfile::TempDir;

use log::Log;
use place::Place;
use plan::{Fates, Plan};
use verdict::Verdict;
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

/// Beside the workers, servers are killed and frozen, one at a time: most of them always go on.
#[cfg(feature = "etcd")]
#[test]
fn processes_on_etcd() {
    let mut cluster = server::Cluster::start(3);
    let scratch = tempfile::tempdir().unwrap();
    let place = Place::Etcd { url: cluster.url("histories") };
    let plan = Plan { workers: 8, ..plan(&scratch) };
    let mut fates = std::thread::scope(|scope| {
        let running = scope.spawn(|| processes::run(&place, &plan));
        let mut turn = 0;
        while !running.is_finished() {
            cluster.trouble(turn);
            turn += 1;
        }
        running.join().unwrap()
    });
    cluster.wait();
    fates.outages = true;
    conclude("etcd", scratch, &place.open(), &plan, &fates);
}

/// The body of a worker process; nothing when started by hand.
#[test]
fn worker() {
    processes::worker();
}

fn plan(scratch: &TempDir) -> Plan {
    let folder = scratch.path().join("logs");
    fs::create_dir(&folder).unwrap();
    Plan::from_environment(folder)
}

/// What the test sees is worth what it can see.
#[cfg(feature = "testing")]
#[test]
fn broken_protocols_are_caught() {
    const MUTANTS: [&str; 6] = [
        "unlink-create",
        "aside-create",
        "aside-verify-drop",
        "aside-verify-link-back",
        "over-reread",
        "renew-by-rename",
    ];
    for mutant in MUTANTS {
        let is_caught = || {
            let scratch = tempfile::tempdir().unwrap();
            let place = Place::Files { path: scratch.path().join(".claims"), sync: false };
            let plan = Plan { length: Duration::from_secs(3), mutant: Some(mutant), ..plan(&scratch) };
            let fates = processes::run(&place, &plan);
            last_look(&place.open(), &plan, &fates).is_broken()
        };
        assert!((0..20).any(|_| is_caught()), "{mutant} broke nothing that was seen");
    }
}

fn conclude(name: &str, scratch: TempDir, directory: &Directory, plan: &Plan, fates: &Fates) {
    println!("seed {}", plan.seed);
    last_look(directory, plan, fates).hold(name, scratch);
}

/// Looks at each node for a last time, and judges.
fn last_look(directory: &Directory, plan: &Plan, fates: &Fates) -> Verdict {
    let log = Log::create(&plan.folder, plan.workers, 0, Arc::new(Os::new()));
    let mut last = Worker::new(directory.clone(), log, plan.random(plan.workers, 0));
    for node in directory.list().unwrap().nodes {
        last.look(node.id.as_str());
    }
    verdict::judge(directory, plan, fates)
}
