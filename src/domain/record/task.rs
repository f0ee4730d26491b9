//! Tasks: nodes that somebody has submitted, with what must be done before them and who reviews them.

use serde_json::{Map, Value};

use super::blob::Blob;
use super::name::Name;
use super::node::{Ending, Moment, Node, State};
use super::resources::Resources;
use crate::error::Code;
use crate::id::NodeId;

/// What a node is a task for.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// What a person reads.
    pub title: Option<String>,
    /// What a worker gets; `null` if nothing was said, or if it is a blob.
    pub input: Value,
    /// Where the input is, if it is too large for the record.
    pub input_blob: Option<Blob>,
    /// The blake3 hash of the input in canonical form, or of a blob's bytes, which stays when the input goes.
    pub input_hash: String,
    /// Who takes it with `next` asks for this queue.
    pub queue: Name,
    /// What it belongs to, for people and filters.
    pub project: Option<Name>,
    /// 0, which goes first, to 9.
    pub priority: u8,
    /// The tasks that must be done first and, where they ask for it, accepted.
    pub after: Vec<NodeId>,
    /// Must its outcome be accepted by a reviewer?
    pub review: bool,
    /// What each claim on it takes along.
    pub resources: Resources,
    /// How many attempts it gets, at least 1.
    pub max_attempts: u64,
    /// When it expires if it has not ended.
    pub deadline: Option<Moment>,
    /// Who is interested in it, in order of their joining, at most [`Task::MAX_SUBSCRIBERS`]. None left ends nothing.
    pub subscribers: Vec<Name>,
    /// Who submitted it.
    pub by: String,
    /// When: milliseconds since 1970.
    pub submitted_ms: i64,
    /// Fields that this program doesn't know.
    pub extra: Map<String, Value>,
}

impl Task {
    /// The queue of tasks of which nothing else was said: `default`.
    pub fn default_queue() -> Name {
        Name::known("default")
    }

    /// The priority of tasks of which nothing else was said.
    pub const DEFAULT_PRIORITY: u8 = 5;
    /// The priority that goes last.
    pub const LAST_PRIORITY: u8 = 9;
    /// The longest title, in bytes.
    pub const MAX_TITLE: usize = 1024;
    /// How many subscribers a task may have.
    pub const MAX_SUBSCRIBERS: usize = 1000;
}

/// What a reviewer said of an outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// Accepted, or rejected?
    pub accepted: bool,
    /// The reviewer.
    pub by: String,
    /// What the reviewer noted.
    pub note: Option<String>,
    /// When: milliseconds since 1970.
    pub at_ms: i64,
    /// Fields that this program doesn't know.
    pub extra: Map<String, Value>,
}

/// A task that another one waits for and that is not met.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// The task waited for.
    pub on: NodeId,
    /// What it lacks.
    pub lacks: Lack,
}

/// Why a dependency is not met.
#[derive(Clone, Debug, PartialEq)]
pub enum Lack {
    /// It has not ended; the state it is in.
    Unfinished(&'static str),
    /// It is done, and its review is due.
    Unreviewed,
    /// It has ended, and not well.
    Ended(Ending),
    /// It is not there any more.
    Gone,
    /// It has not ended, and waits itself, maybe through others, for this: which can't come without somebody's act.
    Stuck(Box<Need>),
    /// Its record can't be read, so nothing is known of it.
    Unreadable {
        /// The code of the error.
        code: Code,
        /// The error, which names the file.
        why: String,
    },
}

impl Need {
    /// What `node`, the task `on`, lacks to be met; `None`: nothing.
    pub(crate) fn of(on: &NodeId, node: Option<&Node>) -> Option<Need> {
        let lacks = match node {
            None => Lack::Gone,
            Some(node) => match &node.state {
                State::Done(_) if !node.asks_for_review() || node.is_accepted() => return None,
                State::Done(_) => Lack::Unreviewed,
                State::Failed(_) => Lack::Ended(Ending::Failed),
                State::Cancelled(_) => Lack::Ended(Ending::Cancelled),
                State::Expired(_) => Lack::Ended(Ending::Expired),
                State::Ready | State::Claimed(_) | State::Blocked(_) => Lack::Unfinished(node.state.name()),
            },
        };
        Some(Need { on: on.clone(), lacks })
    }

    /// Can this pass by itself, so that waiting helps?
    pub fn passes(&self) -> bool {
        matches!(self.lacks, Lack::Unfinished(_) | Lack::Unreviewed)
    }

    /// What it comes down to: what `on` waits for in vain, or itself.
    pub fn root(&self) -> &Need {
        match &self.lacks {
            Lack::Stuck(root) => root,
            _ => self,
        }
    }

    /// In one clause.
    pub fn message(&self) -> String {
        let on = &self.on;
        match &self.lacks {
            Lack::Unfinished(state) => format!("it waits for {on}, which is {state}"),
            Lack::Unreviewed => format!("it waits for {on}, which is done and not accepted yet"),
            Lack::Ended(ending) => format!("it waits for {on}, which is {}", ending.name()),
            Lack::Gone => format!("it waits for {on}, which is not there any more"),
            Lack::Stuck(root) => {
                let is = match &root.lacks {
                    Lack::Ended(ending) => format!("is {}", ending.name()),
                    _ => "is not there any more".to_owned(),
                };
                format!("it waits for {on}, which waits in vain for {}: that {is}", root.on)
            }
            Lack::Unreadable { why, .. } => format!("it waits for {on}, of which nothing is known: {why}"),
        }
    }
}

impl Node {
    /// Does its outcome need a reviewer's word?
    pub fn asks_for_review(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.review)
    }

    /// Has a reviewer accepted it?
    pub fn is_accepted(&self) -> bool {
        self.review.as_ref().is_some_and(|review| review.accepted)
    }

    /// Are all its attempts used up, also those that it was requeued with? Never, for a bare key.
    pub fn is_spent(&self) -> bool {
        let most = |task: &Task| task.max_attempts.saturating_mul(self.requeues.saturating_add(1));
        self.task.as_ref().is_some_and(|task| self.attempt >= most(task))
    }
}
