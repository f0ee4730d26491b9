//! Requests with a receipt, made again by a second process, and once more when all is over: one effect, one answer,
//! and after a power cut both or neither.

use super::judge::Task;
use super::search::{Before, Case, LEASE_MS, NODE, Part, force, release, take};
use super::worker::{Held, Wish, Worker};

const KEY: &str = "a key";

fn take_once(worker: &Worker, _: Option<&Held>) {
    worker.once(KEY).acquire_once(&Wish::of(NODE, LEASE_MS));
}

fn renew_once(worker: &Worker, held: Option<&Held>) {
    worker.once(KEY).write_once(Task::Renew, held.unwrap());
}

fn release_once(worker: &Worker, held: Option<&Held>) {
    worker.once(KEY).write_once(Task::Release, held.unwrap());
}

fn complete_once(worker: &Worker, held: Option<&Held>) {
    worker.once(KEY).write_once(Task::Complete, held.unwrap());
}

fn add_once(worker: &Worker, _: Option<&Held>) {
    worker.once(KEY).add_once(NODE);
}

/// Replaces the record and leaves the claim as it is.
fn add(worker: &Worker, _: Option<&Held>) {
    worker.add(NODE);
}

/// A request made by two processes, and the others beside them.
fn twice(name: &'static str, before: Before, part: Part, others: &[Part], preemptions: u32) -> Case {
    let parts = [&[part, part], others].concat();
    Case::of(name, before, &parts, preemptions).again(part)
}

/// A request made by one process, others beside it, and the power cut anywhere.
fn cut(name: &'static str, before: Before, part: Part, others: &[Part]) -> Case {
    let parts = [&[part], others].concat();
    Case::of(name, before, &parts, 1).cuts(1).again(part)
}

pub fn cases() -> Vec<Case> {
    use Before::{Claim, Directory, Expired};
    vec![
        twice("once: acquire, retry", Directory, take_once, &[], 2),
        twice("once: acquire, retry: expired", Expired, take_once, &[], 1).jumps(1),
        twice("once: acquire, retry, force", Directory, take_once, &[force], 2),
        twice("once: renew, retry, add", Claim, renew_once, &[add], 2),
        twice("once: release, retry, acquire", Claim, release_once, &[take], 2),
        twice("once: complete, retry", Claim, complete_once, &[], 2),
        twice("once: add, retry, release", Claim, add_once, &[release], 2),
        twice("once, a kill: acquire, retry", Directory, take_once, &[], 1).crashes(1),
        twice("once, a kill: renew, retry, add", Claim, renew_once, &[add], 1).crashes(1),
        twice("once, a kill: complete, retry", Claim, complete_once, &[], 1).crashes(1),
        twice("once, a fault: renew, retry", Claim, renew_once, &[], 1).faults(1),
        cut("once, a power cut: acquire", Directory, take_once, &[]),
        cut("once, a power cut: release, acquire", Claim, release_once, &[take]),
        cut("once, a power cut: renew, add", Claim, renew_once, &[add]),
        cut("once, a power cut: complete, retry", Claim, complete_once, &[complete_once]),
        cut("once, a power cut: add, release", Claim, add_once, &[release]),
    ]
}

/// Faults of the receipts' own code, and the case that finds each.
#[cfg(feature = "testing")]
pub fn mutants() -> Vec<(&'static str, Case)> {
    use Before::Claim;
    let overwritten = || twice("renew, retry, add", Claim, renew_once, &[add], 1);
    vec![
        ("no receipt before the effect", overwritten()),
        ("replaced before its receipt is settled", overwritten()),
        (
            "a receipt settled before its change is on disk",
            cut("release, acquire", Claim, release_once, &[take]),
        ),
        ("names not synced", cut("a power cut", Claim, release_once, &[])),
    ]
}
