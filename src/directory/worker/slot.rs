//! One of a worker's slots: one task at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Delivery, Settled, Shared, Trouble};
use crate::directory::Lease;
use crate::directory::next::GLANCE;
use crate::domain::Retry;
use crate::error::Result;

/// The longest pause after an error.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How often a settlement that failed is tried again while the lease lasts.
const SETTLE_AGAIN: Duration = Duration::from_millis(50);

/// What a slot has in hand, for those who keep it.
#[derive(Default)]
pub(super) struct Slot {
    hand: Mutex<Hand>,
    ended: Condvar,
}

#[derive(Default)]
struct Hand {
    delivery: Option<Arc<Delivery>>,
    ended: bool,
}

impl Slot {
    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn delivery(&self) -> Option<Arc<Delivery>> {
        self.hand().delivery.clone()
    }

    fn put(&self, delivery: Option<Arc<Delivery>>) {
        self.hand().delivery = delivery;
    }

    /// Gives back what is in hand. Was there anything?
    pub(super) fn give_back(&self) -> bool {
        let delivery = self.delivery();
        delivery.is_some_and(|delivery| delivery.settled().is_none() && delivery.release().is_ok())
    }

    /// Nothing is kept any more.
    pub(super) fn end(&self) {
        self.hand().ended = true;
        self.ended.notify_all();
    }

    /// Waits for `length`, or until the worker ends. Has it?
    fn nap(&self, length: Duration) -> bool {
        let waited = self.ended.wait_timeout_while(self.hand(), length, |hand| !hand.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// Renews whatever is in hand. Nobody wakes this thread when something new is: it looks often enough to find it
    /// long before it is due.
    pub(super) fn keep(&self, lease: Duration) {
        loop {
            let pause = match self.delivery() {
                Some(delivery) if delivery.lost().is_none() => delivery.kept.tend(),
                _ => lease,
            };
            if self.nap(pause.min(lease / 6)) {
                return;
            }
        }
    }
}

/// Loses each lease at its end that could not be renewed.
pub(super) fn watch(slots: &[Arc<Slot>], lease: Duration) {
    let Some(first) = slots.first() else { return };
    loop {
        let deliveries = slots.iter().filter_map(|slot| slot.delivery());
        let next = deliveries.filter(|it| it.lost().is_none()).map(|it| it.kept.mind_end()).min();
        if first.nap(next.unwrap_or(lease).min(lease / 6)) {
            return;
        }
    }
}

impl Shared {
    /// A slot's whole life.
    pub(super) fn work(self: &Arc<Shared>, slot: &Slot) -> Result<()> {
        let mut idle = Duration::ZERO;
        let mut pause = GLANCE;
        while !self.stop.is_stopped() && self.begin() {
            let taken = self.directory.try_next(&self.worker.next);
            let nothing = match taken {
                Ok(Ok(lease)) => {
                    (idle, pause) = (Duration::ZERO, GLANCE);
                    self.handle(slot, lease);
                    continue;
                }
                Ok(Err(nothing)) => nothing,
                Err(error) => {
                    self.begun_in_vain();
                    if error.code().is_hopeless() {
                        return Err(error);
                    }
                    (self.calls.on_trouble)(&Trouble::Store(&error), None);
                    self.stop.wait(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
            };
            self.begun_in_vain();
            if nothing.cancelled.is_some() {
                return Ok(());
            }
            if self.worker.idle_exit.is_some_and(|most| idle >= most) {
                return Ok(());
            }
            let nap = self.directory.glance(&nothing);
            self.stop.wait(nap);
            idle += nap;
        }
        Ok(())
    }

    /// Counts one task more, if there may be one more.
    fn begin(&self) -> bool {
        let mut state = self.state();
        let may = self.worker.max.is_none_or(|max| state.begun < max);
        state.begun += u64::from(may);
        may
    }

    fn begun_in_vain(&self) {
        self.state().begun -= 1;
    }

    fn handle(&self, slot: &Slot, lease: Lease) {
        let delivery = Arc::new(Delivery::new(lease, self.stop.clone()));
        slot.put(Some(delivery.clone()));
        let handled = catch_unwind(AssertUnwindSafe(|| (self.calls.handler)(&delivery)));
        let trouble = |trouble: &Trouble<'_>| (self.calls.on_trouble)(trouble, Some(&delivery));
        let settled = match handled {
            Ok(Ok(result)) => self.settle(&delivery, |delivery| delivery.complete(&result)),
            Ok(Err(error)) => {
                trouble(&Trouble::Handler(error.as_ref()));
                self.settle(&delivery, |delivery| delivery.retry(&because(&error.to_string())))
            }
            Err(_) => {
                trouble(&Trouble::Panicked);
                self.settle(&delivery, |delivery| delivery.retry(&because("the handler panicked")))
            }
        };
        slot.put(None);
        if let (Settled::Lost, Some(refusal)) = (settled, delivery.lost()) {
            trouble(&Trouble::Lost(&refusal));
        }
        let worked = &mut self.state().worked;
        let count = match settled {
            Settled::Done => &mut worked.done,
            Settled::Retried => &mut worked.retried,
            Settled::Failed => &mut worked.failed,
            Settled::Released => &mut worked.released,
            Settled::Lost => &mut worked.lost,
        };
        *count += 1;
    }

    /// Settles a delivery, again and again while its lease lasts.
    fn settle(&self, delivery: &Delivery, settle: impl Fn(&Delivery) -> Result<Settled>) -> Settled {
        loop {
            match settle(delivery) {
                Ok(settled) => return settled,
                Err(error) => (self.calls.on_trouble)(&Trouble::Store(&error), Some(delivery)),
            }
            if delivery.lost().is_some() {
                return Settled::Lost;
            }
            std::thread::sleep(SETTLE_AGAIN);
        }
    }
}

fn because(reason: &str) -> Retry {
    Retry { reason: Some(reason.to_owned()), ..Retry::default() }
}
