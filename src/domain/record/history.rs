//! What happened to a node: the attempts at a task, and notes.

use serde_json::{Map, Value};

use super::name::Name;
use super::node::{Claim, Node, State};
use super::token::WriteId;

/// An attempt at a task that has ended. One that was released is given back, and not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Which attempt it was, counted from 1. One that was taken over by force goes on under its number.
    pub number: u64,
    /// Whose claim it was.
    pub worker: String,
    /// What drove the worker, if that was said.
    pub engine: Option<Name>,
    /// The claim's generation.
    pub generation: u64,
    /// When the claim was taken: milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended: milliseconds since 1970.
    pub ended_ms: i64,
    /// How it ended.
    pub end: AttemptEnd,
    /// What went wrong, if that was said: at most [`Attempt::MAX_ERROR`] bytes of it.
    pub error: Option<String>,
    /// Fields that this program doesn't know.
    pub extra: Map<String, Value>,
}

impl Attempt {
    /// How many attempts a record keeps: the newest.
    pub const KEPT: usize = 100;
    /// How many bytes of an error a record keeps with its attempt.
    pub const MAX_ERROR: usize = 1024;
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// With a result.
    Completed,
    /// Given back for another one.
    Retried,
    /// With the task's failure, by the worker's word.
    Rejected,
    /// Its lease ended.
    LeaseOver,
    /// Its process ended.
    ProcessGone,
    /// Another took the node by force.
    Forced,
    /// The task was called off.
    Cancelled,
    /// The task's deadline passed.
    Expired,
}

impl AttemptEnd {
    const ALL: [AttemptEnd; 8] = [
        AttemptEnd::Completed,
        AttemptEnd::Retried,
        AttemptEnd::Rejected,
        AttemptEnd::LeaseOver,
        AttemptEnd::ProcessGone,
        AttemptEnd::Forced,
        AttemptEnd::Cancelled,
        AttemptEnd::Expired,
    ];

    /// The name in records and answers.
    pub fn name(self) -> &'static str {
        match self {
            AttemptEnd::Completed => "completed",
            AttemptEnd::Retried => "retried",
            AttemptEnd::Rejected => "rejected",
            AttemptEnd::LeaseOver => "lease over",
            AttemptEnd::ProcessGone => "process gone",
            AttemptEnd::Forced => "forced",
            AttemptEnd::Cancelled => "cancelled",
            AttemptEnd::Expired => "expired",
        }
    }

    pub(in crate::domain) fn named(name: &str) -> Option<AttemptEnd> {
        AttemptEnd::ALL.into_iter().find(|end| end.name() == name)
    }
}

/// What somebody had to say about a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The text.
    pub text: String,
    /// Who noted it.
    pub by: String,
    /// When: milliseconds since 1970.
    pub at_ms: i64,
    /// Fields that this program doesn't know.
    pub extra: Map<String, Value>,
}

impl Note {
    /// How many notes a record keeps: the newest.
    pub const KEPT: usize = 100;
}

impl Node {
    /// The record's successor in another state, where that ends the attempt that `claim` is. A bare key keeps no
    /// attempts: it may have any number of them.
    pub(in crate::domain) fn after_attempt(
        &self,
        write: WriteId,
        state: State,
        claim: &Claim,
        (end, error, ended_ms): (AttemptEnd, Option<&str>, i64),
    ) -> Node {
        let mut next = self.next(write, state);
        if self.task.is_some() {
            next.attempts.push(Attempt {
                number: self.attempt,
                worker: claim.owner.clone(),
                engine: claim.engine.clone(),
                generation: self.generation,
                started_ms: claim.acquired_ms,
                ended_ms,
                end,
                error: error.map(|error| beginning(error, Attempt::MAX_ERROR).to_owned()),
                extra: Map::new(),
            });
            keep_newest(&mut next.attempts, Attempt::KEPT);
        }
        next
    }
}

/// Drops the oldest of `list` beyond `most`.
pub(in crate::domain) fn keep_newest<T>(list: &mut Vec<T>, most: usize) {
    list.drain(..list.len().saturating_sub(most));
}

/// The beginning of `text`, at most `most` bytes of it.
pub(in crate::domain) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
