//! A node's record: what one `.claims/<id>.claim` says.

use serde_json::{Map, Value};

use super::blob::Blob;
use super::history::{Attempt, Note};
use super::name::Name;
use super::request::LastWrite;
use super::resources::Resources;
use super::task::{Review, Task};
use super::token::{TokenHash, WriteId};
use crate::host::{Place, Process};
use crate::id::NodeId;

/// One node as its record says it, at one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The node's id, also in the record: a file system that folds case can't pass it off as another.
    pub id: NodeId,
    /// How often the record was written; 0 for a node that nobody has owned.
    pub version: u64,
    /// Which write made this version.
    pub write: WriteId,
    /// How many claims the node has had: the fencing number, +1 whenever ownership changes hands.
    pub generation: u64,
    /// How many attempts have been started and not given back. Never set back.
    pub attempt: u64,
    /// How often it was requeued after it had failed; each time it got as many attempts more.
    pub requeues: u64,
    /// Its state, with all that the state has.
    pub state: State,
    /// What it is a task for, once somebody has submitted it as one.
    pub task: Option<Task>,
    /// What a reviewer said of the outcome.
    pub review: Option<Review>,
    /// From when on it can be taken, after a retry.
    pub not_before: Option<Delay>,
    /// What the last owner left for the next one.
    pub progress: Option<Value>,
    /// The last takeover by force.
    pub forced: Option<Forced>,
    /// A task's attempts that have ended, the newest [`Attempt::KEPT`] in order.
    pub attempts: Vec<Attempt>,
    /// What people noted, the newest [`Note::KEPT`] in order.
    pub notes: Vec<Note>,
    /// It has ended, and its input and result were pruned; their hashes are left.
    pub tombstoned: bool,
    /// The hint that leads `next` here: its name in the store.
    pub hint: Option<String>,
    /// The request that made this version, if it came with a receipt.
    pub last_write: Option<LastWrite>,
    /// Fields of the same format that this program doesn't know; a rewrite keeps them.
    pub extra: Map<String, Value>,
}

impl Node {
    /// A node that nobody has owned.
    pub fn unowned(id: NodeId) -> Node {
        Node {
            id,
            version: 0,
            write: WriteId(0),
            generation: 0,
            attempt: 0,
            requeues: 0,
            state: State::Ready,
            task: None,
            review: None,
            not_before: None,
            progress: None,
            forced: None,
            attempts: Vec::new(),
            notes: Vec::new(),
            tombstoned: false,
            hint: None,
            last_write: None,
            extra: Map::new(),
        }
    }

    /// The record's successor, made by the write `write`, in another state.
    pub(crate) fn next(&self, write: WriteId, state: State) -> Node {
        Node { version: self.version + 1, write, state, last_write: None, ..self.clone() }
    }

    /// How it ended, if it has, as far as that is written down.
    pub fn outcome(&self) -> Option<(Ending, &Outcome)> {
        match &self.state {
            State::Ready | State::Claimed(_) | State::Blocked(_) => None,
            State::Done(outcome) => Some((Ending::Done, outcome)),
            State::Failed(outcome) => Some((Ending::Failed, outcome)),
            State::Cancelled(outcome) => Some((Ending::Cancelled, outcome)),
            State::Expired(outcome) => Some((Ending::Expired, outcome)),
        }
    }

    /// What the record keeps beside it: its input, its result.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        let input = self.task.as_ref().and_then(|task| task.input_blob.as_ref());
        let result = self.outcome().and_then(|(_, outcome)| outcome.blob.as_ref());
        input.into_iter().chain(result)
    }

    /// The claim on disk, live or over.
    pub fn claim(&self) -> Option<&Claim> {
        match &self.state {
            State::Claimed(claim) => Some(claim),
            _ => None,
        }
    }
}

/// A record's state. Each variant holds what that state has.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Nobody's.
    Ready,
    /// Somebody's, until the lease ends. A claim whose lease is over still reads so on disk.
    Claimed(Claim),
    /// Not to be taken, but by force, until the block ends. One that is over still reads so on disk.
    Blocked(Block),
    /// Ended well.
    Done(Outcome),
    /// Ended badly.
    Failed(Outcome),
    /// Called off.
    Cancelled(Outcome),
    /// Not done in time.
    Expired(Outcome),
}

impl State {
    /// The name in records and answers.
    pub fn name(&self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Claimed(_) => "claimed",
            State::Blocked(_) => "blocked",
            State::Done(_) => "done",
            State::Failed(_) => "failed",
            State::Cancelled(_) => "cancelled",
            State::Expired(_) => "expired",
        }
    }
}

/// A node's ownership.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Whose it is; a name for people, it grants nothing.
    pub owner: String,
    /// What drives the owner, if that was said; a name for people too.
    pub engine: Option<Name>,
    /// The hash of the token that the winner alone has.
    pub token_hash: TokenHash,
    /// When it was taken: milliseconds since 1970.
    pub acquired_ms: i64,
    /// When the lease ends.
    pub ends: Moment,
    /// How long a renewal lasts, in milliseconds.
    pub lease_ms: i64,
    /// When its holder last told of progress; `None`: not since it was taken.
    pub progressed: Option<Box<Moment>>,
    /// The host's name.
    pub host: String,
    /// The process that took it, for people.
    pub pid: u32,
    /// The process that the claim is bound to.
    pub bound: Option<Bound>,
    /// What it has beside the node.
    pub resources: Box<Resources>,
    /// Fields that this program doesn't know; under `clock` and `process`, theirs.
    pub extra: Map<String, Value>,
}

/// A moment, such as a lease's end, on both clocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// On the wall clock: milliseconds since 1970.
    pub wall_ms: i64,
    /// On the monotonic clock of `place`, in milliseconds. It decides wherever it can be read.
    pub mono_ms: i64,
    /// Where that monotonic clock counts.
    pub place: Place,
}

/// A moment that something lasts until: before it, a node given back is not to be taken, or a block holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// From when on.
    pub until: Moment,
    /// How long that was when it was written, in milliseconds: a moment that seems further away than this is
    /// past, as after a reboot with the clock set back.
    pub length_ms: i64,
    /// The reason given.
    pub reason: Option<String>,
}

/// The process a claim is bound to, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The process; when it is known to be gone, so is the claim.
    pub process: Process,
    /// Also the other way: as long as it is known to live, the claim does too, renewed or not.
    pub until_exit: bool,
}

/// Why a node is blocked.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The reason given.
    pub reason: String,
    /// Who blocked it.
    pub by: String,
    /// When: milliseconds since 1970.
    pub at_ms: i64,
    /// When the block ends by itself; `None`: it doesn't.
    pub until: Option<Delay>,
    /// Fields that this program doesn't know.
    pub extra: Map<String, Value>,
}

/// A takeover by force.
#[derive(Clone, Debug, PartialEq)]
pub struct Forced {
    /// The reason given.
    pub reason: String,
    /// Who forced it.
    pub by: String,
    /// From whom, if somebody held it.
    pub from: Option<String>,
    /// When: milliseconds since 1970.
    pub at_ms: i64,
    /// Fields that this program doesn't know.
    pub extra: Map<String, Value>,
}

/// How a node ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The result given, `null` if none was, or if it is a blob.
    pub result: Value,
    /// Where the result is, if it is too large for the record.
    pub blob: Option<Blob>,
    /// The reason given.
    pub reason: Option<String>,
    /// Who ended it.
    pub by: String,
    /// The generation that ended it.
    pub generation: u64,
    /// When: milliseconds since 1970.
    pub at_ms: i64,
    /// The hash of the token that ended it, so that a repeated call is known as one.
    pub token_hash: Option<TokenHash>,
    /// In a tombstone, the blake3 hash of the result in canonical form, or of a blob's bytes.
    pub result_hash: Option<String>,
    /// Fields that this program doesn't know.
    pub extra: Map<String, Value>,
}

impl Outcome {
    /// An end by who holds the node with `claim`.
    pub(crate) fn by_holder(node: &Node, claim: &Claim, at_ms: i64, reason: Option<String>) -> Outcome {
        Outcome {
            result: Value::Null,
            blob: None,
            reason,
            by: claim.owner.clone(),
            generation: node.generation,
            at_ms,
            token_hash: Some(claim.token_hash),
            result_hash: None,
            extra: Map::new(),
        }
    }

    /// An end that has a reason and no result.
    pub(crate) fn without_result(node: &Node, at_ms: i64, by: &str, reason: String) -> Outcome {
        Outcome {
            result: Value::Null,
            blob: None,
            reason: Some(reason),
            by: by.to_owned(),
            generation: node.generation,
            at_ms,
            token_hash: None,
            result_hash: None,
            extra: Map::new(),
        }
    }
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Well.
    Done,
    /// Badly.
    Failed,
    /// Called off.
    Cancelled,
    /// Not in time.
    Expired,
}

impl Ending {
    /// The state's name.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Done => "done",
            Ending::Failed => "failed",
            Ending::Cancelled => "cancelled",
            Ending::Expired => "expired",
        }
    }

    /// The state and whose doing it was, in words. A deadline that passes is nobody's: the record names who set it.
    pub fn by(self, by: &str) -> String {
        match self {
            Ending::Expired => self.name().to_owned(),
            _ => format!("{} by {by}", self.name()),
        }
    }
}
