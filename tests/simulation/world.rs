//! One run: processes that take turns, one at a time, on one disk under one clock.
//!
//! Each process is a thread, since the code under test blocks. The thread whose turn it is decides at each of its
//! calls who goes on; all others wait. A process that died unwinds and can do nothing on its way out.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::choice::Choices;
use super::clock::Time;
use super::disk::Disk;
use super::oracle::Oracle;
use super::pool::Pool;
use super::rules::{Call, Event, Rules};
use super::state::{Process, State, Status, Verdict};

/// The most processes of one run.
pub const MOST: usize = 24;
/// More calls than any operation needs. Who makes more goes round in circles.
const ENDLESS: u64 = 50_000;

pub struct World {
    state: Mutex<State>,
    turns: [Condvar; MOST],
    idle: Condvar,
}

/// What a process that died unwinds with.
struct Gone;

impl World {
    pub fn new(rules: Rules, choices: Choices, traced: bool) -> Arc<World> {
        let left = rules.budget.clone();
        Arc::new(World {
            state: Mutex::new(State {
                turn: None,
                processes: Vec::new(),
                disk: Disk::new(),
                time: Time::default(),
                choices,
                oracle: Oracle::default(),
                rules,
                left,
                verdict: Verdict::Holds,
                trace: traced.then(Vec::new),
            }),
            turns: [const { Condvar::new() }; MOST],
            idle: Condvar::new(),
        })
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a process that will do `body` once it gets a turn.
    pub fn spawn(self: &Arc<World>, pool: &mut Pool, body: impl FnOnce(usize) + Send + 'static) {
        let mut state = self.lock();
        let me = state.processes.len();
        assert!(me < MOST, "too many processes");
        let process =
            Process { status: Status::Ready, finished: false, history: me as u64, steps: 0, in_one: false };
        state.processes.push(process);
        let mutant = state.rules.mutant;
        drop(state);
        let world = self.clone();
        pool.run(
            me,
            Box::new(move || {
                super::mutate(mutant);
                let ran = catch_unwind(AssertUnwindSafe(|| {
                    if world.wait_for_turn(world.lock(), me).is_some() {
                        body(me);
                    }
                }));
                let mut state = world.lock();
                if let Err(payload) = ran
                    && !payload.is::<Gone>()
                {
                    state.violate(format!("process {me} panicked"));
                }
                world.finish(state, me);
            }),
        );
    }

    /// Lets the processes run until each has ended, died or is frozen.
    pub fn run(&self) {
        let mut state = self.lock();
        if state.verdict != Verdict::Holds {
            state.end_all();
            self.wake_all(&state);
        } else if state.turn.is_none() {
            self.pass_on(&mut state);
        }
        while !state.processes.iter().all(|p| p.finished || p.status == Status::Frozen) {
            state = self.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Before a call of process `me`: others may go first, time may pass, and it may never come back. Returns
    /// with the state to which the call is then made in one step; `None` to a process that is dead.
    pub fn point(&self, me: usize, call: &Call<'_>) -> Option<MutexGuard<'_, State>> {
        let mut state = self.lock();
        if !state.is_alive(me) {
            return die(state);
        }
        if state.processes[me].in_one {
            return Some(state);
        }
        state.processes[me].steps += 1;
        if state.processes[me].steps > ENDLESS {
            return self.stop(state, format!("process {me} goes round in circles"));
        }
        loop {
            match state.event(me, call) {
                // A power cut, the end of the run or of the process alone came with the event.
                Event::Go if !state.is_alive(me) => {
                    self.wake_all(&state);
                    return die(state);
                }
                Event::Go => return Some(state),
                Event::Switch(next) => {
                    state.note(|| format!("-- {next} goes on"));
                    state.turn = Some(next);
                    self.turns[next].notify_one();
                    state = self.wait_for_turn(state, me)?;
                }
                Event::Stop(status) => {
                    state.note(|| format!("{me}: before {call}: {status:?}"));
                    state.processes[me].status = status;
                    self.pass_on(&mut state);
                    state = self.wait_for_turn(state, me)?;
                }
                Event::Again => {}
            }
        }
    }

    /// Ends the run with a violation.
    pub fn stop<'a>(&self, mut state: MutexGuard<'a, State>, what: String) -> Option<MutexGuard<'a, State>> {
        state.violate(what);
        self.wake_all(&state);
        die(state)
    }

    /// Gives up the turn until it is given back.
    pub fn give_way(&self, mut state: MutexGuard<'_, State>, me: usize) {
        self.pass_on(&mut state);
        self.wait_for_turn(state, me);
    }

    /// The next turn: somebody's who is ready, or when all sleep, at the moment when the first wakes.
    fn pass_on(&self, state: &mut State) {
        state.turn = state.next();
        match state.turn {
            Some(next) => self.turns[next].notify_one(),
            None => self.idle.notify_all(),
        }
    }

    fn wait_for_turn<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        me: usize,
    ) -> Option<MutexGuard<'a, State>> {
        loop {
            if !state.is_alive(me) {
                return die(state);
            }
            if state.turn == Some(me) {
                state.processes[me].status = Status::Ready;
                return Some(state);
            }
            state = self.turns[me].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, mut state: MutexGuard<'_, State>, me: usize) {
        state.processes[me].finished = true;
        if state.is_alive(me) {
            state.processes[me].status = Status::Ended;
        }
        if state.turn == Some(me) {
            self.pass_on(&mut state);
        }
        if state.turn.is_none() {
            self.wake_all(&state);
        }
    }

    /// So that those who died meanwhile see it.
    fn wake_all(&self, state: &State) {
        self.turns.iter().take(state.processes.len()).for_each(Condvar::notify_all);
        self.idle.notify_all();
    }

    /// Lets who is frozen go on, at the next run.
    pub fn thaw(&self) {
        for process in &mut self.lock().processes {
            if process.status == Status::Frozen {
                process.status = Status::Ready;
            }
        }
    }
}

/// Unwinds a process that is no more; one that unwinds already is only told so.
fn die<'a>(state: MutexGuard<'a, State>) -> Option<MutexGuard<'a, State>> {
    drop(state);
    if std::thread::panicking() {
        return None;
    }
    resume_unwind(Box::new(Gone))
}
