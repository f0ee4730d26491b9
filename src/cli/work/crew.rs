//! What the slots of a worker share.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use claimdir::host::Group;
use claimdir::{Acquire, Directory, Error, Lease, Next, Result};

use super::orders::Orders;
use super::tally::Tally;
use crate::cli::run::guard::Guard;

/// What to do, and what has been done of it.
pub(crate) struct Crew {
    pub(crate) directory: Directory,
    /// The directory, as commands are told of it.
    pub(crate) dir: PathBuf,
    pub(crate) command: Vec<OsString>,
    /// How a task is taken, but for the processes that the claim is bound to.
    pub(crate) acquire: Acquire,
    pub(crate) next: Next,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) orders: Orders,
    pub(crate) tally: Tally,
    idle_exit: Option<Duration>,
    guard: Mutex<Option<Guard>>,
    state: Mutex<State>,
    /// How many slots have a task, or are just looking for one without waiting.
    busy: AtomicUsize,
    /// Held by the slot that waits for work; the others wait for it.
    turn: Mutex<()>,
}

struct State {
    /// How many more tasks may be taken.
    left: Option<u64>,
    /// When a task was taken or settled last.
    active: Instant,
    /// There was nothing to take for long enough, or there will be nothing any more: its scope was cancelled.
    idled_out: bool,
    /// What ended the worker.
    end: Option<End>,
}

/// What a worker can't go on with.
pub(crate) enum End {
    Failed(Error),
    /// The command can't be started.
    NotStarted(io::Error),
}

/// A slot at work. Dropped, it is not any more.
pub(crate) struct Busy<'a>(&'a Crew);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.state().active = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Crew {
    pub(crate) fn new(
        directory: Directory,
        dir: PathBuf,
        command: Vec<OsString>,
        acquire: Acquire,
        next: Next,
        tally: Tally,
        limits: Limits,
    ) -> io::Result<Crew> {
        let state = State { left: limits.max, active: Instant::now(), idled_out: false, end: None };
        Ok(Crew {
            directory,
            dir,
            command,
            acquire,
            next,
            shutdown_timeout: limits.shutdown_timeout,
            orders: Orders::new()?,
            tally,
            idle_exit: limits.idle_exit,
            guard: Mutex::default(),
            state: Mutex::new(state),
            busy: AtomicUsize::new(0),
            turn: Mutex::new(()),
        })
    }

    /// May one more task be taken? Then it counts as taken.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.state();
        if !self.wants_more(&state) {
            return false;
        }
        state.left = state.left.map(|left| left - 1);
        true
    }

    /// It was not taken.
    pub(crate) fn begun_in_vain(&self) {
        let mut state = self.state();
        state.left = state.left.map(|left| left + 1);
    }

    /// Is it likely that [`Crew::begin`] says yes once more?
    pub(crate) fn goes_on(&self) -> bool {
        self.wants_more(&self.state())
    }

    fn wants_more(&self, state: &State) -> bool {
        !(self.is_over(state) || state.left == Some(0))
    }

    /// Is nobody to take anything any more?
    fn is_over(&self, state: &State) -> bool {
        state.idled_out || self.orders.is_draining()
    }

    /// Takes the next task as `acquire` says, waiting for it. `None`: nothing more is to be taken.
    pub(crate) fn take(&self, acquire: Acquire) -> Result<Option<(Busy<'_>, Lease)>> {
        let request = self.next.clone().taken_as(acquire);
        let since = self.state().active;
        let busy = self.busy();
        let first = self.directory.try_next(&request);
        if let Ok(Ok(lease)) = first {
            return Ok(Some((busy, lease)));
        }
        drop(busy);
        first.inspect_err(|_| self.state().active = since)?.ok(); // it did nothing
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_over(&self.state()) {
            let nothing = match self.directory.try_next(&request)? {
                Ok(lease) => return Ok(Some((self.busy(), lease))),
                Err(nothing) => nothing,
            };
            let patience = self.patience().filter(|_| nothing.cancelled.is_none());
            let Some(patience) = patience else {
                self.state().idled_out = true;
                break;
            };
            self.orders.nap(patience.min(self.directory.glance(&nothing)));
        }
        Ok(None)
    }

    /// For how long it may be waited for work; `None`: it was for long enough.
    fn patience(&self) -> Option<Duration> {
        let Some(most) = self.idle_exit else { return Some(Duration::MAX) };
        // Who works may add work.
        if self.busy.load(Ordering::Acquire) > 0 {
            return Some(Duration::MAX);
        }
        most.checked_sub(self.state().active.elapsed()).filter(|left| !left.is_zero())
    }

    /// Was there nothing to take, for whatever reason, for as long as it is to be waited for it?
    pub(crate) fn has_idled(&self) -> bool {
        self.patience().is_none()
    }

    fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy(self)
    }

    /// Has the group that a command leads ended with this process.
    pub(crate) fn guard(&self, group: Group) -> io::Result<()> {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *guard {
            Some(guard) => guard.watch(group),
            None => guard.insert(Guard::start()?).watch(group),
        }
    }

    /// Its end is dealt with.
    pub(crate) fn unguard(&self, group: Group) {
        if let Some(guard) = &*self.guard.lock().unwrap_or_else(PoisonError::into_inner) {
            guard.done(group);
        }
    }

    /// Ends the worker for this reason, unless there is one already; the other slots drain.
    pub(crate) fn end(&self, why: End) {
        self.state().end.get_or_insert(why);
        self.orders.drain();
    }

    /// Why it ended, if not because it was to.
    pub(crate) fn ended(self) -> (Tally, Option<End>) {
        if let Some(guard) = self.guard.into_inner().unwrap_or_else(PoisonError::into_inner) {
            guard.dismiss();
        }
        (self.tally, self.state.into_inner().unwrap_or_else(PoisonError::into_inner).end)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long the worker goes on.
pub(crate) struct Limits {
    pub(crate) max: Option<u64>,
    pub(crate) idle_exit: Option<Duration>,
    pub(crate) shutdown_timeout: Duration,
}
