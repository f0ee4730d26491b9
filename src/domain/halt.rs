//! What stops at somebody's word: a scope for good, a queue until it is resumed.

use serde_json::{Map, Value};

use super::record::{Ending, Moment, Name};
use super::refusal::Reason;

/// Somebody's word that a scope or a queue stops.
#[derive(Clone, Debug, PartialEq)]
pub struct Halt {
    /// The scope, or the queue.
    pub name: Name,
    /// Who said so.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub at: Moment,
}

impl Halt {
    /// What is recorded of each node of a scope that was cancelled.
    pub(crate) fn of_scope(&self) -> String {
        format!("its scope {} was cancelled{}", self.name, self.because())
    }

    /// The answer to what is asked of such a node.
    pub(crate) fn refusal(&self) -> Reason {
        Reason::Ended { ending: Ending::Cancelled, by: self.by.clone(), reason: Some(self.of_scope()) }
    }

    /// Who and why, as a line goes on.
    pub fn by_and_why(&self) -> String {
        format!("by {}{}", self.by, self.because())
    }

    fn because(&self) -> String {
        self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
    }
}

/// What can be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gated {
    Scope,
    Queue,
}

impl Gated {
    /// The name of the state in which it is stopped.
    pub(crate) fn stopped(self) -> &'static str {
        match self {
            Gated::Scope => "cancelled",
            Gated::Queue => "paused",
        }
    }
}

/// The record of what can be stopped. One that nobody has written is open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gate {
    /// How often it was written.
    pub(crate) version: u64,
    /// The part of the scope that a queue is in.
    pub(crate) scope: Option<String>,
    pub(crate) is_open: bool,
    /// Who said so last.
    pub(crate) last: Halt,
    /// Fields that this program doesn't know.
    pub(crate) extra: Map<String, Value>,
}

impl Gate {
    /// Why it is stopped, if it is.
    pub(crate) fn halt(self) -> Option<Halt> {
        (!self.is_open).then_some(self.last)
    }
}
