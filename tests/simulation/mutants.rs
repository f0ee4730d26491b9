//! Faults built in on purpose, each of which must be found: a proof that finds nothing in them proves nothing.

use std::time::Instant;

use super::pool::Pool;
use super::roll::roll;
use super::search::{
    Before, Case, complete, force, next, release, remove_and_take, renew, renew_twice, set_clock_ahead, take,
    take_and_complete,
};
use super::state::Verdict;

/// How many runs may go by before a fault is found.
const MOST: usize = 20_000;
/// Among so many seeds one may find it too; that is told, and not asked for.
const SEEDS: u64 = 500;

/// Each fault, and the small case that finds it. What cannot be seen in `src/host` is judged in `tests/host.rs`:
/// there, a zombie is gone and a hidden process is not.
fn mutants() -> Vec<(&'static str, Case)> {
    use Before::{Claim, Directory, Expired, Hidden, Nothing, Task, TaskClaim};
    let expired = || Case::of("expired", Expired, &[take, take], 2);
    let takeover = |part| Case::of("takeover", Claim, &[part, take], 2).jumps(1);
    vec![
        ("no cancel", expired()),
        ("no validate", expired()),
        ("cancel after validate", expired()),
        ("failing cancel ignored", expired().faults(1)),
        ("compare by version", Case::of("removed", Expired, &[take, remove_and_take], 2).removals()),
        ("unlink-create", expired()),
        ("aside-create", expired()),
        ("aside-verify-drop", expired()),
        ("aside-verify-link-back", expired()),
        ("over-reread", expired()),
        ("renew-by-rename", takeover(renew)),
        ("without the token", Case::of("release", Claim, &[force, release], 1)),
        ("without the token", Case::of("complete", Claim, &[force, complete], 1)),
        ("without the token", Case::of("renew", Claim, &[force, renew], 1)),
        ("a token good after its end", takeover(renew)),
        ("generation not raised", expired()),
        ("wall clock on the same boot", Case::of("clock set", Claim, &[set_clock_ahead, take], 1)),
        ("end checked at the start only", takeover(renew)),
        ("published after its end, answered as won", Case::of("late", Directory, &[take], 0).jumps(1)),
        ("decision repeated", takeover(renew)),
        ("decision repeated over what is there now", expired()),
        ("a hidden process taken for gone", Case::of("hidden", Hidden, &[take], 0)),
        ("an unknown write taken for won", Case::of("a fault", Claim, &[renew, renew_twice], 1).faults(1)),
        ("names not synced", Case::of("a power cut", Directory, &[take], 0).cuts(1)),
        ("names not synced", Case::of("a power cut", Nothing, &[take], 0).cuts(1)),
        ("no hint before the write", Case::of("next", Task, &[next], 0).crashes(1)),
        (
            "a hint dropped since its task can't be taken",
            Case::of("next, release", TaskClaim, &[next, release], 2),
        ),
        ("hints of before the boot relied on", Case::of("a power cut", Task, &[next], 0).cuts(1)),
        ("answered by a record from before", Case::of("check", Directory, &[take_and_complete, force], 1)),
        ("a replay not confirmed", Case::of("a power cut", Claim, &[complete, complete], 1).cuts(1)),
    ]
}

#[test]
fn every_mutant_is_caught() {
    let mut pool = Pool::default();
    let mut survivors = Vec::new();
    for (mutant, case) in mutants().into_iter().chain(super::receipts::mutants()) {
        let start = Instant::now();
        let found = case.search(&mut pool, Some(mutant), MOST);
        let seed = (0..SEEDS)
            .find(|seed| matches!(roll(&mut pool, *seed, Some(mutant), false).0, Verdict::Violated(_)));
        let rolled = seed.map_or("no seed".to_owned(), |seed| format!("seed {seed}"));
        let seconds = start.elapsed().as_secs_f64();
        match found.violation {
            Some((what, _)) => {
                println!("{mutant:42} run {:5}, {rolled:9} {seconds:5.1} s  {what}", found.runs)
            }
            None => survivors.push(format!("{mutant}: {} runs of {:?}, {rolled}", found.runs, case.name)),
        }
    }
    assert!(survivors.is_empty(), "not caught: {survivors:#?}");
}
