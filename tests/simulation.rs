//! The engine and the operations that ship, on a simulated disk under a simulated clock: every call is a point at
//! which others may run, time may pass, the call may fail and the process may end.
//!
//! Small cases are searched to the end, `CLAIM_SIM_DEEPER` more turns taken away than usual; larger ones are rolled
//! by seed, from `CLAIM_SIM_FROM` to `CLAIM_SIM_RUNS`. A seed that fails is printed with the command that repeats
//! it, step by step: `CLAIM_SIM_SEED`.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(unreachable_pub, reason = "the modules of one test")]

#[path = "simulation/answers.rs"]
mod answers;
#[path = "simulation/choice.rs"]
mod choice;
#[path = "simulation/clock.rs"]
mod clock;
#[path = "simulation/disk.rs"]
mod disk;
#[path = "simulation/files.rs"]
mod files;
#[path = "simulation/host.rs"]
mod host;
#[path = "simulation/judge.rs"]
mod judge;
#[cfg(feature = "testing")]
#[path = "simulation/mutants.rs"]
mod mutants;
#[path = "simulation/oracle.rs"]
mod oracle;
#[path = "simulation/pool.rs"]
mod pool;
#[path = "simulation/receipts.rs"]
mod receipts;
#[path = "simulation/record.rs"]
mod record;
#[path = "simulation/roll.rs"]
mod roll;
#[path = "simulation/rules.rs"]
mod rules;
#[path = "simulation/search.rs"]
mod search;
#[path = "simulation/state.rs"]
mod state;
#[path = "simulation/worker.rs"]
mod worker;
#[path = "simulation/world.rs"]
mod world;

use std::sync::Arc;
use std::time::Instant;

use claimdir::domain::Reason;
use pool::Pool;
use search::{
    Before, Case, add, complete, force, next, release, remove_and_take, renew, renew_longer, renew_shorter,
    renew_twice, set_clock_ahead, set_clock_back, take, take_and_complete, take_renew_and_complete,
};
use state::Verdict;
use worker::{Held, Told};
use world::World;

/// Chooses the fault that the calling thread's code has built in.
#[cfg(feature = "testing")]
fn mutate(mutant: Option<&'static str>) {
    claimdir::testing::choose(mutant);
}

#[cfg(not(feature = "testing"))]
fn mutate(_: Option<&'static str>) {}

/// Who comes last, with nobody in the way and every lease over, must get the node or be told how it ended.
fn check_last(world: &Arc<World>, told: Option<Told<Held>>) {
    let fine = match &told {
        Some(Told::Yes(_)) => true,
        Some(Told::No(refusal)) => matches!(refusal.reason, Reason::Ended { .. }),
        _ => false,
    };
    if !fine {
        let what = match told {
            Some(Told::No(refusal)) => refusal.message(),
            Some(Told::Failed(error)) => error.to_string(),
            _ => "the directory can't be opened".to_owned(),
        };
        world.stop(world.lock(), format!("nobody is in the way, and yet: {what}"));
    }
}

fn two_processes() -> Vec<Case> {
    use Before::{Claim, Directory, Empty, Expired, Hidden, Nothing};
    vec![
        Case::of("acquire, acquire: no directory", Nothing, &[take, take], 2),
        Case::of("acquire, acquire: fresh", Directory, &[take, take], 3),
        Case::of("acquire, acquire: fresh, late", Directory, &[take, take], 1).jumps(1),
        Case::of("acquire, acquire: maker died", Empty, &[take, take], 2),
        Case::of("acquire, acquire: maker died, late", Empty, &[take, take], 1).jumps(1),
        Case::of("acquire, acquire: expired", Expired, &[take, take], 3).jumps(1),
        Case::of("renew, takeover", Claim, &[renew, take], 3).jumps(1),
        Case::of("release, takeover", Claim, &[release, take], 3).jumps(1),
        Case::of("complete, takeover", Claim, &[complete, take], 3).jumps(1),
        Case::of("renew, force", Claim, &[renew, force], 3),
        Case::of("force, force", Claim, &[force, force], 3),
        Case::of("renew, renew longer", Claim, &[renew, renew_longer], 3).jumps(1),
        Case::of("renew, release", Claim, &[renew, release], 3),
        Case::of("renew, complete", Claim, &[renew, complete], 3),
        Case::of("acquire and complete, acquire", Directory, &[take_and_complete, take], 2).jumps(1),
        Case::of("acquire and complete, force", Directory, &[take_and_complete, force], 3),
        Case::of("acquire, renew and complete", Directory, &[take_renew_and_complete, take], 1).jumps(1),
        Case::of("removed from outside, acquire", Expired, &[take, remove_and_take], 3).removals(),
        Case::of("clock set ahead, acquire", Claim, &[set_clock_ahead, take, renew], 2),
        Case::of("clock set back, acquire", Claim, &[set_clock_back, take, renew], 2).jumps(1),
        Case::of("a hidden process, acquire", Hidden, &[take, renew], 2),
    ]
}

fn three_processes() -> Vec<Case> {
    use Before::{Claim, Directory, Expired};
    vec![
        Case::of("acquire thrice: fresh", Directory, &[take, take, take], 2),
        Case::of("acquire thrice: expired", Expired, &[take, take, take], 2),
        Case::of("renew, two takeovers", Claim, &[renew, take, take], 2).jumps(1),
        Case::of("release, takeover, force", Claim, &[release, take, force], 2).jumps(1),
    ]
}

fn with_trouble() -> Vec<Case> {
    use Before::{Claim, Directory, Expired, Nothing};
    vec![
        Case::of("a fault: fresh", Directory, &[take, take], 1).faults(1),
        Case::of("a fault: expired", Expired, &[take, take], 2).faults(1),
        Case::of("a fault: renew, takeover", Claim, &[renew, take], 1).faults(1).jumps(1),
        Case::of("a fault: renewals by one token", Claim, &[renew, renew_twice], 2).faults(1),
        Case::of("a fault: complete, renew", Claim, &[complete, renew_shorter], 1).faults(1),
        Case::of("a kill: no directory", Nothing, &[take, take], 1).crashes(1),
        Case::of("a kill: fresh", Directory, &[take, take], 2).crashes(1),
        Case::of("a kill: renew, takeover", Claim, &[renew, take], 2).crashes(1).jumps(1),
        Case::of("a kill: complete, release", Claim, &[complete, release], 2).crashes(1),
        Case::of("a power cut: no directory", Nothing, &[take, take], 1).cuts(1),
        Case::of("a power cut: fresh", Directory, &[take, take], 1).cuts(1),
        Case::of("a power cut: renew, force", Claim, &[renew, force], 1).cuts(1),
        Case::of("a power cut: complete, complete", Claim, &[complete, complete], 1).cuts(1),
    ]
}

/// Tasks that are found by their hints, also by those who come after a power cut that took all hints.
fn by_turn() -> Vec<Case> {
    use Before::{Directory, Task, TaskClaim};
    vec![
        Case::of("next, next", Task, &[next, next], 2),
        Case::of("next, next: late", Task, &[next, next], 1).jumps(1),
        Case::of("next, acquire", Task, &[next, take], 2),
        Case::of("next, release", TaskClaim, &[next, release], 1).jumps(1),
        Case::of("next, renew", TaskClaim, &[next, renew], 2).jumps(1),
        Case::of("next, add", Directory, &[next, add], 2),
        Case::of("a kill: next, next", Task, &[next, next], 0).crashes(1),
        Case::of("a kill: next, release", TaskClaim, &[next, release], 1).crashes(1),
        Case::of("a fault: next, next", Task, &[next, next], 0).faults(1),
        Case::of("a power cut: next", Task, &[next], 0).cuts(1),
        Case::of("a power cut: next, release", TaskClaim, &[next, release], 0).cuts(1),
    ]
}

#[test]
fn every_order_of_those_who_ask_for_a_task_holds() {
    search_all(by_turn());
}

fn search_all(cases: Vec<Case>) {
    let mut pool = Pool::default();
    let mut wrong = Vec::new();
    for mut case in cases {
        let start = Instant::now();
        case.budget.preemptions += number("CLAIM_SIM_DEEPER").unwrap_or(0) as u32;
        let found = case.search(&mut pool, None, usize::MAX);
        let seconds = start.elapsed().as_secs_f64();
        println!("{:40} {:8} runs {:8} states {seconds:6.1} s", case.name, found.runs, found.states);
        if let Some((what, trace)) = found.violation {
            println!("{}\n{what}", trace.join("\n"));
            wrong.push(format!("{}: {what}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_order_of_two_processes_holds() {
    search_all(two_processes());
}

#[test]
fn every_order_of_three_processes_holds() {
    search_all(three_processes());
}

#[test]
fn every_fault_and_power_cut_is_survived() {
    search_all(with_trouble());
}

#[test]
fn every_request_with_a_receipt_is_one_effect_and_one_answer() {
    search_all(receipts::cases());
}

/// So many seeds are rolled unless something else is said.
const RUNS: u64 = 5_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
fn whatever_happens_it_holds() {
    let mut pool = Pool::default();
    if let Some(seed) = number("CLAIM_SIM_SEED") {
        let (verdict, trace) = roll::roll(&mut pool, seed, None, true);
        println!("{}", trace.join("\n"));
        assert_eq!(verdict, Verdict::Holds);
        return;
    }
    let start = Instant::now();
    let (first, end) = (number("CLAIM_SIM_FROM").unwrap_or(0), number("CLAIM_SIM_RUNS").unwrap_or(RUNS));
    for seed in first..end {
        let (verdict, _) = roll::roll(&mut pool, seed, None, false);
        assert_eq!(
            verdict,
            Verdict::Holds,
            "repeat with: CLAIM_SIM_SEED={seed} cargo test --test simulation whatever -- --nocapture"
        );
    }
    let runs = end.saturating_sub(first);
    println!("{runs} seeds hold, {:.0} a second", runs as f64 / start.elapsed().as_secs_f64());
}
