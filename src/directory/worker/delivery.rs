//! A task in a handler's hands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::Stop;
use crate::directory::Lease;
use crate::directory::{Opened, keeper};
use crate::domain::{Answer, Checked, Node, Refusal, Renewal, Retry, State, Text, Token, Written};
use crate::error::Result;
use crate::id::NodeId;

/// A task that a worker's handler has been given. It is settled once: whatever comes after that does nothing.
pub struct Delivery {
    node: Node,
    token: Token,
    stop: Stop,
    pub(super) kept: Arc<keeper::Shared>,
    lease: Mutex<Option<Lease>>,
    settled: Mutex<Option<Settled>>,
}

/// How a delivery was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The task is done.
    Done,
    /// It is given back for another attempt.
    Retried,
    /// It has failed: rejected, or that was its last attempt.
    Failed,
    /// It is given back, and the attempt with it.
    Released,
    /// The lease was lost before, so nothing was recorded.
    Lost,
}

impl Delivery {
    pub(super) fn new(lease: Lease, stop: Stop) -> Delivery {
        Delivery {
            node: lease.acquired().node.clone(),
            token: lease.token().clone(),
            stop,
            kept: lease.shared().clone(),
            lease: Mutex::new(Some(lease)),
            settled: Mutex::new(None),
        }
    }

    /// The task.
    pub fn id(&self) -> &NodeId {
        &self.node.id
    }

    /// The task's input, `null` if it has none, or if it has more than 16 KiB: then [`Delivery::open_input`] reads it.
    pub fn input(&self) -> &Value {
        self.node.task.as_ref().map_or(&Value::Null, |task| &task.input)
    }

    /// The task's input of whatever size, to be read piece by piece, wherever it is kept.
    pub fn open_input(&self) -> Result<Opened> {
        self.kept.open_input(&self.node)
    }

    /// The record as it was taken.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The secret that every write under this claim needs.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// The fencing number, to be stored with what the work writes elsewhere.
    pub fn generation(&self) -> u64 {
        self.node.generation
    }

    /// Which attempt at the task this is.
    pub fn attempt(&self) -> u64 {
        self.node.attempt
    }

    /// Is the worker told to stop? A long handler may end early then, with [`Delivery::release`].
    pub fn is_stopping(&self) -> bool {
        self.stop.is_stopped()
    }

    /// Why the claim is lost, if that is known. Costs one look at the clock.
    pub fn lost(&self) -> Option<Refusal> {
        self.kept.lost()
    }

    /// Has `tell` called once the claim is lost: its lease ended, or the task was called off or taken by others.
    pub fn on_lost(&self, tell: impl FnOnce(&Refusal) + Send + 'static) {
        self.kept.on_lost(Box::new(tell));
    }

    /// Asks the store whether the claim is live: for the moment before a side effect.
    pub fn check(&self) -> Result<Answer<Checked>> {
        self.kept.check()
    }

    /// Keeps something for the next owner, should this one die.
    pub fn progress(&self, progress: Value) -> Result<Answer<Written>> {
        self.kept.renew(&Renewal { lease: None, progress: Some(progress) })
    }

    /// Ends the task as done with its one result.
    pub fn complete(&self, result: &Value) -> Result<Settled> {
        self.settle(|lease| lease.complete(result), |_| Settled::Done)
    }

    /// Gives the task back for another attempt, after a backoff; failed if that was the last.
    pub fn retry(&self, how: &Retry) -> Result<Settled> {
        let ends = |node: &Node| match node.state {
            State::Failed(_) => Settled::Failed,
            _ => Settled::Retried,
        };
        self.settle(|lease| lease.retry(how), ends)
    }

    /// Ends the task as failed, without another attempt.
    pub fn reject(&self, reason: Option<&Text>) -> Result<Settled> {
        self.settle(|lease| lease.reject(reason), |_| Settled::Failed)
    }

    /// Gives the task back, and the attempt with it.
    pub fn release(&self) -> Result<Settled> {
        self.settle(Lease::release, |_| Settled::Released)
    }

    /// How it was settled, if it was.
    pub fn settled(&self) -> Option<Settled> {
        *self.locked()
    }

    fn locked(&self) -> MutexGuard<'_, Option<Settled>> {
        // Each change is one assignment.
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(
        &self,
        settle: impl FnOnce(Lease) -> Result<Answer<Written>, Box<crate::directory::Unsettled>>,
        ends: impl FnOnce(&Node) -> Settled,
    ) -> Result<Settled> {
        let mut settled = self.locked();
        let mut held = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lease) = held.take() else { return Ok(settled.unwrap_or(Settled::Lost)) };
        let how = match settle(lease) {
            Ok(Ok(written)) => ends(&written.node),
            Ok(Err(refusal)) => {
                self.kept.lose(refusal);
                Settled::Lost
            }
            Err(unsettled) => {
                *held = Some(unsettled.lease);
                return Err(unsettled.error);
            }
        };
        *settled = Some(how);
        Ok(how)
    }
}
