//! What a walk leaves to the next ones of its process: the tasks that it has listed beyond the one that it took.

use std::collections::VecDeque;
use std::sync::{MutexGuard, PoisonError};

use super::Nothing;
use super::run::{Run, Turn};
use super::walk::Walk;
use crate::directory::known::Read;
use crate::domain::{Answer, Name};
use crate::error::Result;

/// How long what is listed stands for what there is, in nanoseconds: who comes first in the order meanwhile waits as
/// long for its turn at the most, and one whose process asks once is never passed by.
const LISTED_NS: u64 = 10_000_000;

/// What a walk has listed beyond the task that it took.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Whose: the lane, and the projects asked for.
    of: (String, Vec<Name>),
    /// When, in nanoseconds on the monotonic clock.
    at_ns: u64,
    turns: VecDeque<Turn>,
}

impl Walk<'_> {
    /// Takes the first task of those that are listed already.
    pub(super) fn take_listed<T>(
        &mut self,
        take: &mut dyn FnMut(Read) -> Result<Answer<T>>,
    ) -> Result<Option<T>> {
        while let Some(turn) = self.next_listed() {
            if let Some(taken) = self.meet(turn, true, take)? {
                return Ok(Some(taken));
            }
        }
        // Only a whole walk tells that there is nothing.
        (self.lost, self.nothing) = (false, Nothing::default());
        self.passed_by.clear();
        self.in_hand.clear();
        Ok(None)
    }

    fn next_listed(&self) -> Option<Turn> {
        self.listed().turns.pop_front()
    }

    /// Is anything listed already?
    pub(super) fn has_listed(&self) -> bool {
        !self.listed().turns.is_empty()
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        let mut listed = self.directory.queues.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let age = self.directory.host.mono_ns().saturating_sub(listed.at_ns);
        if age > LISTED_NS || listed.of != self.asked_for() {
            listed.turns.clear();
        }
        listed
    }

    fn asked_for(&self) -> (String, Vec<Name>) {
        (self.lane(), self.request.projects.clone())
    }

    /// Leaves for the next ones what is listed, as long as it is known to be in order.
    pub(super) fn leave_listed(&mut self, runs: &mut [Run], since_ns: u64) -> Result<()> {
        let mut turns = VecDeque::new();
        while runs.iter().all(|run| run.ended || !run.page.is_empty())
            && let Some(turn) = self.first(runs)?
        {
            turns.push_back(turn);
        }
        let listed = Listed { of: self.asked_for(), at_ns: since_ns, turns };
        *self.directory.queues.listed.lock().unwrap_or_else(PoisonError::into_inner) = listed;
        Ok(())
    }
}
