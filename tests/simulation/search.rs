//! Small cases, searched to the end: every order of turns within a bound, and every place of a leap in time, of a
//! fault, of a power cut.

use std::sync::{Arc, Mutex};

use super::choice::{Choices, Search};
use super::pool::Pool;
use super::rules::{Left, Rules};
use super::state::Verdict;
use super::worker::{Held, Wish, Worker};
use super::world::World;

/// One process's part in a case; it gets the claim that was there at first, if one was.
pub type Part = fn(&Worker, Option<&Held>);

/// What is there before the parts begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    /// The directory, and no node.
    Directory,
    /// A node's file, whose maker got no further.
    Empty,
    /// A claim with a lease of 10 s.
    Claim,
    /// The same, bound to a process that cannot be seen.
    Hidden,
    /// A claim that is over.
    Expired,
    /// A task that nobody has.
    Task,
    /// A task that is claimed with a lease of 10 s.
    TaskClaim,
}

#[derive(Clone)]
pub struct Case {
    pub name: &'static str,
    pub before: Before,
    pub parts: Vec<Part>,
    pub budget: Left,
    /// What is done once more when all is over.
    again: Option<Part>,
    /// Is one of the parts to remove the record from outside?
    removals: bool,
}

/// What a search has seen.
#[derive(Debug)]
pub struct Searched {
    pub runs: usize,
    pub states: usize,
    /// What was found to be wrong first, with the steps that lead there.
    pub violation: Option<(String, Vec<String>)>,
}

pub const NODE: &str = "node";
pub const LEASE_MS: u64 = 10_000;
const HIDDEN: u32 = 1 << 30;

impl Case {
    pub fn of(name: &'static str, before: Before, parts: &[Part], preemptions: u32) -> Case {
        Case {
            name,
            before,
            parts: parts.to_vec(),
            budget: Left { preemptions, ..Left::default() },
            again: None,
            removals: false,
        }
    }

    /// Does this once more when all is over.
    pub fn again(mut self, part: Part) -> Case {
        self.again = Some(part);
        self
    }

    /// All clocks may leap beyond every lease, so many times.
    pub fn jumps(mut self, jumps: u32) -> Case {
        self.budget.jumps = jumps;
        self
    }

    pub fn removals(mut self) -> Case {
        self.removals = true;
        self
    }

    pub fn faults(mut self, faults: u32) -> Case {
        self.budget.faults = faults;
        self
    }

    /// So many processes may be killed.
    pub fn crashes(mut self, crashes: u32) -> Case {
        self.budget.crashes = crashes;
        self
    }

    pub fn cuts(mut self, cuts: u32) -> Case {
        self.budget.cuts = cuts;
        self
    }

    /// Visits all runs, or stops at `most`, or at the first that is wrong.
    pub fn search(&self, pool: &mut Pool, mutant: Option<&'static str>, most: usize) -> Searched {
        let rules =
            Rules { budget: self.budget.clone(), jump_ms: LEASE_MS + 1000, mutant, ..Rules::default() };
        let mut search = Search::default();
        let mut runs = 0;
        loop {
            let (verdict, done, _) = self.run(pool, &rules, search, false);
            runs += 1;
            let states = done.seen.len();
            if let Verdict::Violated(what) = verdict {
                let (_, _, trace) = self.run(pool, &rules, done.again(), true);
                return Searched { runs, states, violation: Some((what, trace)) };
            }
            match done.next() {
                Some(next) if runs < most => search = next,
                _ => return Searched { runs, states, violation: None },
            }
        }
    }

    fn run(
        &self,
        pool: &mut Pool,
        rules: &Rules,
        search: Search,
        traced: bool,
    ) -> (Verdict, Search, Vec<String>) {
        let quiet = Rules { budget: Left::default(), mutant: None, ..rules.clone() };
        let world = World::new(quiet, Choices::Search(search), traced);
        let held = self.prepare(&world, pool);
        {
            let mut state = world.lock();
            state.rules = rules.clone();
            state.oracle.removals = self.removals;
            state.left = rules.budget.clone();
        }
        for part in &self.parts {
            let (part, world_, held) = (*part, world.clone(), held.clone());
            world.spawn(pool, move |me| {
                if let Some(worker) = Worker::open(&world_, me) {
                    part(&worker, held.as_ref());
                }
            });
        }
        world.run();
        self.afterwards(&world, pool, held);
        let mut state = world.lock();
        let trace = state.trace.take().unwrap_or_default();
        let verdict = state.verdict.clone();
        match std::mem::replace(&mut state.choices, Choices::Search(Search::default())) {
            Choices::Search(search) => (verdict, search, trace),
            Choices::Dice(_) => (verdict, Search::default(), trace),
        }
    }

    fn prepare(&self, world: &Arc<World>, pool: &mut Pool) -> Option<Held> {
        let before = self.before;
        if before == Before::Nothing {
            return None;
        }
        let held = Arc::new(Mutex::new(None));
        let (world_, held_) = (world.clone(), held.clone());
        world.spawn(pool, move |me| {
            let worker = Worker::open(&world_, me).unwrap();
            worker.create();
            let wish = Wish::of(NODE, LEASE_MS);
            let wish = if before == Before::Hidden { wish.bound(&world_, HIDDEN, false) } else { wish };
            if matches!(before, Before::Task | Before::TaskClaim) {
                worker.add(NODE);
            }
            if matches!(before, Before::Claim | Before::Hidden | Before::Expired | Before::TaskClaim) {
                *held_.lock().unwrap() = worker.acquire(&wish).yes();
            }
            if before == Before::Task {
                let claim = worker.acquire(&wish).yes().unwrap();
                worker.next(&wish);
                worker.release(&claim, None);
            }
            if before == Before::TaskClaim {
                // From here on a hint that is missing is missed: all of this boot are known to be there.
                worker.next(&wish);
            }
        });
        world.run();
        let mut state = world.lock();
        match before {
            Before::Empty => {
                let path = format!("{NODE}.claim");
                state.disk.create(&path).unwrap();
            }
            Before::Expired => state.time.pass_ms(LEASE_MS + 1000),
            _ => {}
        }
        drop(state);
        held.lock().unwrap().clone()
    }

    /// Whatever happened, one who comes later and waits gets the node, a task by its turn, or is told how it ended.
    fn afterwards(&self, world: &Arc<World>, pool: &mut Pool, held: Option<Held>) {
        {
            let mut state = world.lock();
            if state.verdict != Verdict::Holds {
                return;
            }
            if state.left.cuts > 0 && state.choices.pick(2) == 1 {
                state.power_cut();
            }
            state.left = Left::default();
            state.rules.budget = Left::default();
        }
        if let Some(again) = self.again {
            let world_ = world.clone();
            world.spawn(pool, move |me| {
                if let Some(worker) = Worker::open(&world_, me) {
                    again(&worker, held.as_ref());
                }
            });
            world.run();
        }
        world.lock().time.pass_ms(4 * LEASE_MS);
        let world_ = world.clone();
        let by_turn = matches!(self.before, Before::Task | Before::TaskClaim);
        world.spawn(pool, move |me| {
            let wish = Wish::of(NODE, LEASE_MS);
            let told = Worker::open(&world_, me)
                .map(|worker| if by_turn { worker.next(&wish) } else { worker.acquire(&wish) });
            super::check_last(&world_, told);
        });
        world.run();
    }
}

pub fn take(worker: &Worker, _: Option<&Held>) {
    worker.acquire(&Wish::of(NODE, LEASE_MS));
}

pub fn next(worker: &Worker, _: Option<&Held>) {
    worker.next(&Wish::of(NODE, LEASE_MS));
}

pub fn add(worker: &Worker, _: Option<&Held>) {
    worker.add(NODE);
}

pub fn force(worker: &Worker, _: Option<&Held>) {
    worker.acquire(&Wish::of(NODE, LEASE_MS).by_force());
}

pub fn renew(worker: &Worker, held: Option<&Held>) {
    worker.renew(held.unwrap(), None);
}

pub fn renew_shorter(worker: &Worker, held: Option<&Held>) {
    worker.renew(held.unwrap(), Some(LEASE_MS / 10));
}

pub fn renew_longer(worker: &Worker, held: Option<&Held>) {
    worker.renew(held.unwrap(), Some(LEASE_MS * 3));
}

pub fn renew_twice(worker: &Worker, held: Option<&Held>) {
    renew(worker, held);
    renew_shorter(worker, held);
}

pub fn release(worker: &Worker, held: Option<&Held>) {
    worker.release(held.unwrap(), None);
}

pub fn complete(worker: &Worker, held: Option<&Held>) {
    worker.complete(held.unwrap());
}

/// Takes the node and ends it by its lease.
pub fn take_and_complete(worker: &Worker, _: Option<&Held>) {
    worker.acquire_and_complete(&Wish::of(NODE, LEASE_MS), None);
}

pub fn take_renew_and_complete(worker: &Worker, _: Option<&Held>) {
    worker.acquire_and_complete(&Wish::of(NODE, LEASE_MS), Some(3 * LEASE_MS));
}

/// Removes the record from outside, and takes the node anew.
pub fn remove_and_take(worker: &Worker, _: Option<&Held>) {
    worker.remove(NODE);
    take(worker, None);
}

pub fn set_clock_ahead(worker: &Worker, _: Option<&Held>) {
    worker.set_clock(2 * LEASE_MS as i64);
}

pub fn set_clock_back(worker: &Worker, _: Option<&Held>) {
    worker.set_clock(-2 * LEASE_MS as i64);
}
