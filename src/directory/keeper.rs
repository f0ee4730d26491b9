//! Keeping a lease alive in the background, and knowing when it is lost.
//!
//! Two threads. One renews at a third of the lease, looks at the record between, and a slow disk may hold it up for
//! long; the other only watches the clock, so that a lease that could not be renewed is known to be lost at its end and not later.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Directory, Opened};
use crate::domain::{Answer, Checked, Node, Reason, Refusal, Renewal, Stale, Token, Written};
use crate::error::Result;
use crate::id::NodeId;

/// How long it takes at most until a takeover by force, or a cancellation, is noticed.
const LOOK: Duration = Duration::from_millis(500);

type OnLost = Box<dyn FnOnce(&Refusal) + Send>;

/// What a lease's owner and its threads know of it.
pub(super) struct Shared {
    directory: Directory,
    id: NodeId,
    token: Token,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// When the lease ends on the monotonic clock, in milliseconds; `None`: with its process.
    ends_mono_ms: Option<i64>,
    lease_ms: i64,
    /// When to renew, on the monotonic clock in nanoseconds.
    due_ns: u64,
    lost: Option<Refusal>,
    stopped: bool,
    on_lost: Vec<OnLost>,
}

impl Shared {
    pub(super) fn new(
        directory: Directory,
        id: NodeId,
        token: Token,
        ends_mono_ms: Option<i64>,
        lease_ms: i64,
    ) -> Shared {
        let due_ns = 0;
        let state = State { ends_mono_ms, lease_ms, due_ns, lost: None, stopped: false, on_lost: Vec::new() };
        let shared = Shared { directory, id, token, state: Mutex::new(state), changed: Condvar::new() };
        shared.state().due_ns = shared.due_in(shared.pace(lease_ms));
        shared
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change below leaves the state whole, so a callback that panicked did no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The input of `node`, which is the lease's.
    pub(super) fn open_input(&self, node: &Node) -> Result<Opened> {
        self.directory.open_input(node)
    }

    /// Milliseconds to the end as far as it can be trusted, 0 when it is over or lost; `None`: as long as its process lives.
    pub(super) fn remaining_ms(&self) -> Option<i64> {
        let state = self.state();
        if state.lost.is_some() {
            return Some(0);
        }
        let skew = self.directory.skew_ms();
        let left = |end: i64| end.saturating_sub(self.directory.host.now().mono_ms).saturating_sub(skew);
        state.ends_mono_ms.map(|end| left(end).max(0))
    }

    /// Why the lease is lost, if it is.
    pub(super) fn lost(&self) -> Option<Refusal> {
        if self.remaining_ms() == Some(0) {
            self.lose(self.over());
        }
        self.state().lost.clone()
    }

    /// Calls `tell` once the lease is lost; now, if it is.
    pub(super) fn on_lost(&self, tell: OnLost) {
        let mut state = self.state();
        match state.lost.clone() {
            Some(refusal) => {
                drop(state);
                tell(&refusal);
            }
            None => state.on_lost.push(tell),
        }
    }

    /// No more renewals, and nobody is told of a loss any more.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        if state.stopped {
            return;
        }
        state.stopped = true;
        state.on_lost.clear();
        self.changed.notify_all();
    }

    /// The lease's end is what `node`, just written or checked, says.
    pub(super) fn renewed(&self, node: &Node) {
        let Some(claim) = node.claim() else { return };
        let until_exit = claim.bound.as_ref().is_some_and(|bound| bound.until_exit);
        let mut state = self.state();
        state.ends_mono_ms = (!until_exit).then_some(claim.ends.mono_ms);
        state.lease_ms = claim.lease_ms;
        self.changed.notify_all();
    }

    pub(super) fn lose(&self, refusal: Refusal) {
        let mut state = self.state();
        if state.lost.is_some() || state.stopped {
            return;
        }
        state.lost = Some(refusal.clone());
        let tell = std::mem::take(&mut state.on_lost);
        self.changed.notify_all();
        drop(state);
        tell.into_iter().for_each(|tell| tell(&refusal));
    }

    /// Asks the store whether the claim is live.
    pub(super) fn check(&self) -> Result<Answer<Checked>> {
        let answer = self.directory.check(&self.id, &self.token)?;
        Ok(answer.inspect_err(|refusal| self.lose(refusal.clone())))
    }

    /// Renews now.
    pub(super) fn renew(&self, renewal: &Renewal) -> Result<Answer<Written>> {
        let answer = self.directory.renew(&self.id, &self.token, renewal)?;
        Ok(answer
            .inspect(|renewed| self.renewed(&renewed.node))
            .inspect_err(|refusal| self.lose(refusal.clone())))
    }

    /// Renews the lease if that is due, and else looks whether somebody has called it off or taken it. How long to
    /// leave it alone then.
    pub(super) fn tend(&self) -> Duration {
        let now = self.directory.host.mono_ns();
        let due = self.state().due_ns;
        if now < due {
            let _ = self.check(); // what can't be read now is read again
            return Duration::from_nanos(due - now).min(LOOK);
        }
        let answer = self.renew(&Renewal::default());
        let lease_ms = self.state().lease_ms;
        let mut pause = self.pace(lease_ms);
        if answer.is_err() {
            // The disk may come back before the lease ends; the watcher minds the end.
            pause = (pause / 10).max(Duration::from_millis(5));
        }
        self.state().due_ns = self.due_in(pause);
        pause.min(LOOK)
    }

    /// How long after a renewal the next one is due: a third of the time that the lease can be trusted.
    fn pace(&self, lease_ms: i64) -> Duration {
        third(lease_ms.saturating_sub(self.directory.skew_ms()))
    }

    fn due_in(&self, pause: Duration) -> u64 {
        self.directory.host.mono_ns().saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Loses the lease if its end has come, renewed or not. How long that will not be so.
    pub(super) fn mind_end(&self) -> Duration {
        let left = self.remaining_ms().unwrap_or(i64::from(u16::MAX));
        if left == 0 {
            self.lose(self.over());
        }
        Duration::from_millis(left.unsigned_abs())
    }

    fn over(&self) -> Refusal {
        Refusal { id: self.id.clone(), version: 0, generation: 0, reason: Reason::Stale(Stale::Over) }
    }

    /// Sleeps for `length` or until something changes. Is there still something to keep?
    fn nap(&self, length: Duration) -> bool {
        let state = self.state();
        if state.stopped || state.lost.is_some() {
            return false;
        }
        let (state, _) = self.changed.wait_timeout(state, length).unwrap_or_else(PoisonError::into_inner);
        !state.stopped && state.lost.is_none()
    }
}

/// Starts both threads.
pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<()> {
    let renewer = shared.clone();
    spawn("claim-renew", move || {
        let mut pause = renewer.tend();
        while renewer.nap(pause) {
            pause = renewer.tend();
        }
    })?;
    let watcher = shared.clone();
    spawn("claim-watch", move || while watcher.nap(watcher.mind_end()) {})
}

/// A thread with a name.
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

fn third(lease_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(lease_ms / 3).unwrap_or(1).max(1))
}
