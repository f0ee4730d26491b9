//! A worker: takes tasks as they come up, has a function do each, and settles it.
//!
//! ```text
//! slot 1..n     take, handle, settle, again
//! keeper 1..n   renews what its slot has in hand
//! watcher       loses, at its end, each lease that could not be renewed
//! ```
//!
//! The threads live as long as the worker, so a small task costs no more than taking and settling it.

mod delivery;
mod slot;

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Directory, Next, keeper};
use crate::domain::Refusal;
use crate::error::{Code, Error, Result};
pub use delivery::{Delivery, Settled};
use slot::Slot;

/// How a worker goes about it.
#[derive(Clone, Debug)]
pub struct Worker {
    next: Next,
    concurrency: usize,
    max: Option<u64>,
    idle_exit: Option<Duration>,
    shutdown_timeout: Duration,
}

impl Worker {
    /// Without anything said: 30 seconds.
    pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

    /// One that takes what `next` asks for, one task at a time, until it is stopped.
    pub fn on(next: Next) -> Worker {
        let shutdown_timeout = Worker::SHUTDOWN_TIMEOUT;
        Worker { next, concurrency: 1, max: None, idle_exit: None, shutdown_timeout }
    }

    /// So many tasks at once: 1 to 1,024, clamped to that.
    pub fn concurrency(mut self, tasks: usize) -> Worker {
        self.concurrency = tasks.clamp(1, 1024);
        self
    }

    /// Ends after so many tasks.
    pub fn max(mut self, tasks: u64) -> Worker {
        self.max = Some(tasks);
        self
    }

    /// Ends when there has been nothing to take for so long.
    pub fn idle_exit(mut self, idle: Duration) -> Worker {
        self.idle_exit = Some(idle);
        self
    }

    /// How long running handlers get after the worker was told to stop. Then their tasks are given back.
    pub fn shutdown_timeout(mut self, length: Duration) -> Worker {
        self.shutdown_timeout = length;
        self
    }
}

/// Tells a worker to take nothing more. Clones tell the same one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// One that nobody has been told by yet.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// From now on nothing more is taken.
    pub fn stop(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Has it been said?
    pub fn is_stopped(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is said, or for `length`. Has it been?
    fn wait(&self, length: Duration) -> bool {
        let stopped = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.1.wait_timeout_while(stopped, length, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// What a handler returns: the task's result, or why it could not be done this time.
pub type Handled = std::result::Result<Value, Box<dyn std::error::Error + Send + Sync>>;

/// What went wrong for a worker that goes on.
#[derive(Debug)]
pub enum Trouble<'a> {
    /// A handler failed; its task is given back for another attempt.
    Handler(&'a (dyn std::error::Error + Send + Sync)),
    /// A handler panicked; its task is given back for another attempt.
    Panicked,
    /// The lease was lost before the task was settled: what the handler did counts for nothing.
    Lost(&'a Refusal),
    /// The store failed. What it was about is tried again.
    Store(&'a Error),
}

impl fmt::Display for Trouble<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Handler(error) => write!(f, "the handler failed: {error}"),
            Trouble::Panicked => write!(f, "the handler panicked"),
            Trouble::Lost(refusal) => write!(f, "the lease was lost: {}", refusal.message()),
            Trouble::Store(error) => error.fmt(f),
        }
    }
}

/// How many tasks a worker settled, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worked {
    /// Ended as done.
    pub done: u64,
    /// Given back for another attempt.
    pub retried: u64,
    /// Ended as failed: rejected, or after their last attempt.
    pub failed: u64,
    /// Given back with their attempt, since the worker was stopped.
    pub released: u64,
    /// Lost to others, or called off.
    pub lost: u64,
}

type Handler = dyn Fn(&Delivery) -> Handled + Send + Sync;
type OnTrouble = dyn Fn(&Trouble<'_>, Option<&Delivery>) + Send + Sync;

/// What a worker calls.
struct Calls {
    handler: Box<Handler>,
    on_trouble: Box<OnTrouble>,
}

/// What the threads of a worker share.
struct Shared {
    directory: Directory,
    worker: Worker,
    stop: Stop,
    calls: Calls,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many slots have not ended yet.
    running: usize,
    /// How many tasks were taken, and those that are just being looked for.
    begun: u64,
    worked: Worked,
    /// What no slot can go on with.
    failed: Option<Error>,
}

impl Directory {
    /// Takes tasks as they come up and has `handler` do them, until `stop` says so or [`Worker`] does.
    ///
    /// Each lease is renewed while its handler runs. Returning a value completes the task with it; an error, or a
    /// panic, gives it back for another attempt after a backoff; both unless the handler has settled its
    /// [`Delivery`] itself. A handler is not interrupted when its lease is lost: it can ask [`Delivery::check`].
    /// Its result is refused then, and the task keeps that of whoever held it.
    ///
    /// Told to stop, it takes nothing more and waits for running handlers as long as [`Worker::shutdown_timeout`]
    /// says; what is unfinished then is given back, and its handlers' threads are left behind.
    ///
    /// It also ends, with what it has done, when the scope that it works in is cancelled: nothing new comes up there, and
    /// what is in hand is lost.
    ///
    /// `on_trouble` is told of what goes wrong. What trying again can't cure ends the worker with that error: wrong
    /// usage, no such directory, no permission, a newer format. Through the rest it goes on.
    pub fn consume(
        &self,
        worker: &Worker,
        stop: &Stop,
        handler: impl Fn(&Delivery) -> Handled + Send + Sync + 'static,
        on_trouble: impl Fn(&Trouble<'_>, Option<&Delivery>) + Send + Sync + 'static,
    ) -> Result<Worked> {
        let calls = Calls { handler: Box::new(handler), on_trouble: Box::new(on_trouble) };
        let state = Mutex::new(State { running: worker.concurrency, ..State::default() });
        let shared = Arc::new(Shared {
            directory: self.without_receipt(),
            worker: worker.clone(),
            stop: stop.clone(),
            calls,
            state,
            changed: Condvar::new(),
        });
        let slots: Vec<Arc<Slot>> = (0..worker.concurrency).map(|_| Arc::default()).collect();
        let started = shared.start(&slots);
        if started.is_err() {
            stop.stop();
        }
        shared.wait(&slots);
        slots.iter().for_each(|slot| slot.end());
        self.store.tidy();
        started?;
        let mut state = shared.state();
        state.failed.take().map_or(Ok(state.worked), Err)
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Each change below leaves the counts whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Shared>, slots: &[Arc<Slot>]) -> Result<()> {
        let failed = |e| Error::new(Code::StoreUnavailable, format!("cannot start a worker's threads: {e}"));
        let lease = self.worker.next.acquire.lease;
        for (at, slot) in slots.iter().enumerate() {
            let (shared, own, kept) = (self.clone(), slot.clone(), slot.clone());
            let begun = keeper::spawn("claim-keeper", move || kept.keep(lease)).and_then(|()| {
                keeper::spawn("claim-worker", move || {
                    let answer = shared.work(&own);
                    shared.ended(answer);
                })
            });
            if let Err(e) = begun {
                self.state().running -= slots.len() - at;
                return Err(failed(e));
            }
        }
        let watched = slots.to_vec();
        keeper::spawn("claim-watcher", move || slot::watch(&watched, lease)).map_err(failed)
    }

    /// One slot has come to its end.
    fn ended(&self, answer: Result<()>) {
        let mut state = self.state();
        state.running -= 1;
        if let Err(error) = answer {
            state.failed.get_or_insert(error);
            self.stop.stop();
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for all slots; once told to stop, not for long.
    fn wait(&self, slots: &[Arc<Slot>]) {
        let mut patience: Option<Instant> = None;
        let mut state = self.state();
        while state.running > 0 {
            if patience.is_none() && self.stop.is_stopped() {
                patience = Some(Instant::now() + self.worker.shutdown_timeout);
            }
            let left = patience.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let nap = left.unwrap_or(Duration::from_millis(50)).min(Duration::from_millis(50));
            state = self.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        for slot in slots {
            if slot.give_back() {
                self.state().worked.released += 1;
            }
        }
    }
}
