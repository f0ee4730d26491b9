//! Why a request was refused: what was read, whose it is and until when, and the legal next step.

mod words;

use super::fate::Became;
use super::record::{Block, Claim, Ending, Fingerprint, Lack, Moment, Name, Need, Node, Outcome, Task};
use super::shared::{PathClash, PoolFull, QuotaUsed};
use crate::error::Code;
use crate::id::NodeId;
use crate::time::{human, rfc3339_seconds};

/// A request that was answered with no. A value, not an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The node.
    pub id: NodeId,
    /// The version that the answer was decided by; 0 if there is no record.
    pub version: u64,
    /// That version's generation.
    pub generation: u64,
    /// Why.
    pub reason: Reason,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Somebody holds it.
    Held(Holder),
    /// It has ended.
    Ended {
        /// How.
        ending: Ending,
        /// By whom.
        by: String,
        /// The reason recorded then.
        reason: Option<String>,
    },
    /// It is blocked.
    Blocked {
        /// The reason recorded then.
        reason: String,
        /// By whom.
        by: String,
        /// When that ends by itself, on the wall clock: milliseconds since 1970.
        until_ms: Option<i64>,
    },
    /// The version shown is not the current one.
    StaleVersion {
        /// The version shown.
        seen: u64,
    },
    /// The token shown is not the live holder's.
    Stale(Stale),
    /// It is done already, by the same token, with another result.
    OtherResult,
    /// The receipt's key was used for another request.
    OtherRequest {
        /// The fingerprint of the request that was made with this key.
        recorded: Fingerprint,
        /// The fingerprint of the one that was refused.
        shown: Fingerprint,
    },
    /// An earlier call of the same request has taken the node, and its work is not done a second time.
    AlreadyRun {
        /// The generation of the claim that it took.
        generation: u64,
        /// What became of that claim.
        became: Became,
    },
    /// The id is that of another task, or of a node that ended without being one.
    OtherInput,
    /// The work key stands for another input, in the node named.
    OtherWork,
    /// It waits for another task.
    Waits(Need),
    /// It can be taken only later: in so many milliseconds.
    NotYet(i64),
    /// So many attempts were started, and there are no more.
    Spent(u64),
    /// It was requeued this often, and there is no more of that.
    Requeued(u64),
    /// It is not in the state that was asked for.
    NotInState {
        /// The state asked for.
        wanted: &'static str,
        /// The state it is in.
        state: &'static str,
    },
    /// It has not ended; the state it is in.
    NotEnded(&'static str),
    /// It has ended, and its input was pruned: it can't run again.
    Tombstoned,
    /// It is a bare key, and no task.
    NoTask,
    /// What is asked for can't be, whatever the node is like.
    Unfit(String),
    /// It is not done, so there is nothing to review; the state it is in.
    NotDone(&'static str),
    /// It doesn't ask for a review.
    NoReviewDue,
    /// It has been reviewed already.
    Reviewed {
        /// By whom.
        by: String,
        /// And how.
        accepted: bool,
    },
    /// The reviewer did the work.
    SelfReview {
        /// Who.
        by: String,
    },
    /// Another claim has a path that clashes with one asked for.
    PathClash(Box<PathClash>),
    /// A pool asked for has no free slot.
    PoolFull(Box<PoolFull>),
    /// Not enough is left of a quota asked for, or there never can be.
    QuotaUsed(Box<QuotaUsed>),
    /// Nobody has said how many slots this pool has.
    NoPool(Name),
    /// Nobody has said how much of this quota there is.
    NoQuota(Name),
    /// There is no such node.
    NotFound,
    /// A task is to wait for this node, which is none.
    NotSubmitted,
    /// The wait ended first; what it waited for.
    TimedOut(Box<Refusal>),
}

impl Reason {
    pub(crate) fn ended(ending: Ending, outcome: &Outcome) -> Reason {
        Reason::Ended { ending, by: outcome.by.clone(), reason: outcome.reason.clone() }
    }

    pub(super) fn blocked(block: &Block) -> Reason {
        let until_ms = block.until.as_ref().map(|until| until.until.wall_ms);
        Reason::Blocked { reason: block.reason.clone(), by: block.by.clone(), until_ms }
    }

    pub(super) fn too_many_subscribers() -> Reason {
        Reason::Unfit(format!("a task has at most {} subscribers", Task::MAX_SUBSCRIBERS))
    }

    /// It would expire at once.
    pub(super) fn overdue(task: &Task, deadline: &Moment) -> Reason {
        Reason::Ended { ending: Ending::Expired, by: task.by.clone(), reason: Some(passed(deadline)) }
    }
}

/// What a task's expiry says.
pub(super) fn passed(deadline: &Moment) -> String {
    format!("its deadline was {}", rfc3339_seconds(deadline.wall_ms))
}

/// Who holds a node, and until when.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// The holder's name.
    pub owner: String,
    /// What drives the holder, if that was said.
    pub engine: Option<Box<Name>>,
    /// The claim's generation.
    pub generation: u64,
    /// When the lease ends on the wall clock: milliseconds since 1970.
    pub expires_ms: i64,
    /// Milliseconds to the lease's end; `None`: as long as its process lives.
    pub remaining_ms: Option<i64>,
}

impl Holder {
    /// The holder as `node`'s record names it.
    pub fn of(node: &Node, claim: &Claim, remaining_ms: Option<i64>) -> Holder {
        Holder {
            owner: claim.owner.clone(),
            engine: claim.engine.clone().map(Box::new),
            generation: node.generation,
            expires_ms: claim.ends.wall_ms,
            remaining_ms,
        }
    }

    /// Until when, in words.
    pub fn until(&self) -> String {
        match self.remaining_ms {
            Some(ms) => format!("ends in {}", human(ms)),
            None => "ends with its process".to_owned(),
        }
    }
}

/// Why a token is worth nothing (any more).
#[derive(Clone, Debug, PartialEq)]
pub enum Stale {
    /// There is no record.
    NoRecord,
    /// Another claim holds the node.
    Replaced(Holder),
    /// The claim is over: its lease ended, or its process is gone.
    Over,
    /// Nobody holds the node; the state it is in.
    NotHeld(&'static str),
    /// The node's scope was cancelled; who reads it is told so.
    CalledOff(String),
    /// The claim was published only after its own end, and given back.
    TooLate,
}

impl Reason {
    /// Is it about what goes with the claim, and not about the node?
    pub(crate) fn is_of_resources(&self) -> bool {
        let of_pools = matches!(self, Reason::PoolFull(_) | Reason::NoPool(_));
        of_pools || matches!(self, Reason::PathClash(_) | Reason::QuotaUsed(_) | Reason::NoQuota(_))
    }
}

impl Refusal {
    /// A refusal decided by `node`.
    pub(crate) fn new(node: &Node, reason: Reason) -> Refusal {
        Refusal { id: node.id.clone(), version: node.version, generation: node.generation, reason }
    }

    /// There is no node `id`.
    pub fn not_found(id: &NodeId) -> Refusal {
        Refusal { id: id.clone(), version: 0, generation: 0, reason: Reason::NotFound }
    }

    /// The task waited for has not been submitted.
    pub fn not_submitted(on: &NodeId) -> Refusal {
        Refusal { reason: Reason::NotSubmitted, ..Refusal::not_found(on) }
    }

    /// The same for another reason.
    pub(crate) fn because(self, reason: Reason) -> Refusal {
        Refusal { reason, ..self }
    }

    /// The code that decides the exit code.
    pub fn code(&self) -> Code {
        match &self.reason {
            Reason::Held(_) => Code::ClaimHeld,
            Reason::Ended { ending: Ending::Done, .. } => Code::AlreadyDone,
            Reason::Ended { ending: Ending::Failed, .. } => Code::Failed,
            Reason::Ended { ending: Ending::Cancelled, .. } => Code::Cancelled,
            Reason::Ended { ending: Ending::Expired, .. } => Code::Expired,
            Reason::Blocked { .. } => Code::Blocked,
            Reason::StaleVersion { .. } => Code::StaleVersion,
            Reason::Stale(_) => Code::StaleClaim,
            Reason::OtherResult
            | Reason::OtherInput
            | Reason::OtherWork
            | Reason::NoReviewDue
            | Reason::Reviewed { .. } => Code::IdempotencyConflict,
            Reason::Waits(Need { lacks: Lack::Unreadable { code, .. }, .. }) => *code,
            Reason::Waits(_) => Code::DependencyNotAccepted,
            Reason::NotYet(_)
            | Reason::NotDone(_)
            | Reason::NotEnded(_)
            | Reason::NotInState { .. }
            | Reason::Tombstoned => Code::NotReady,
            Reason::Spent(_) | Reason::Requeued(_) => Code::AttemptsExhausted,
            Reason::Unfit(_) => Code::Usage,
            Reason::SelfReview { .. } => Code::SelfReview,
            Reason::OtherRequest { .. } => Code::ReceiptConflict,
            Reason::AlreadyRun { .. } => Code::AlreadyRun,
            Reason::PathClash(_) => Code::PathClash,
            Reason::PoolFull(_) => Code::PoolFull,
            Reason::QuotaUsed(_) => Code::QuotaUsed,
            Reason::NoPool(_) | Reason::NoQuota(_) => Code::NotFound,
            Reason::NotFound | Reason::NotSubmitted | Reason::NoTask => Code::NotFound,
            Reason::TimedOut(_) => Code::WaitTimeout,
        }
    }

    /// Was it refused because something that it depends on can't be read, so that nothing is known?
    pub fn is_of_the_store(&self) -> bool {
        matches!(&self.reason, Reason::Waits(Need { lacks: Lack::Unreadable { .. }, .. }))
    }

    /// Can this pass by itself, so that waiting helps?
    pub fn passes(&self) -> bool {
        match &self.reason {
            Reason::Held(_) | Reason::Blocked { .. } | Reason::NotYet(_) => true,
            Reason::Waits(need) => need.passes(),
            Reason::PathClash(clash) => clash.holder.is_some(),
            Reason::PoolFull(full) => full.holder.is_some(),
            Reason::QuotaUsed(used) => !used.is_hopeless(),
            _ => false,
        }
    }

    /// When it passes by itself at the latest, in milliseconds from when it was decided, where that is known.
    pub fn passes_in_ms(&self) -> Option<i64> {
        match &self.reason {
            Reason::NotYet(ms) => Some(*ms),
            Reason::QuotaUsed(used) => Some(used.free_in_ms),
            _ => self.holder().and_then(|holder| holder.remaining_ms),
        }
    }

    /// The node whose change may make it pass, the first to end if there are several.
    pub fn waits_for(&self) -> &NodeId {
        match &self.reason {
            Reason::Waits(need) => &need.on,
            Reason::PathClash(clash) => &clash.node,
            Reason::PoolFull(full) => &full.node,
            _ => &self.id,
        }
    }

    /// All nodes of which each may make it pass by a change.
    pub(crate) fn waits_for_any(&self) -> &[NodeId] {
        match &self.reason {
            Reason::PoolFull(full) => &full.nodes,
            _ => std::slice::from_ref(self.waits_for()),
        }
    }

    /// Who holds the node, the path that clashes, or the pool's slot that ends first, where the refusal is about that.
    pub fn holder(&self) -> Option<&Holder> {
        match &self.reason {
            Reason::Held(holder)
            | Reason::Stale(Stale::Replaced(holder))
            | Reason::AlreadyRun { became: Became::Held(holder), .. } => Some(holder),
            Reason::PathClash(clash) => clash.holder.as_ref(),
            Reason::PoolFull(full) => full.holder.as_ref(),
            Reason::TimedOut(inner) => inner.holder(),
            _ => None,
        }
    }

    /// The paths that clash, where the refusal is about that.
    pub fn path_clash(&self) -> Option<&PathClash> {
        match &self.reason {
            Reason::PathClash(clash) => Some(clash),
            Reason::TimedOut(inner) => inner.path_clash(),
            _ => None,
        }
    }

    /// The pool that is full, where the refusal is about that.
    pub fn pool_full(&self) -> Option<&PoolFull> {
        match &self.reason {
            Reason::PoolFull(full) => Some(full),
            Reason::TimedOut(inner) => inner.pool_full(),
            _ => None,
        }
    }

    /// The quota that is used up, where the refusal is about that.
    pub fn quota_used(&self) -> Option<&QuotaUsed> {
        match &self.reason {
            Reason::QuotaUsed(used) => Some(used),
            Reason::TimedOut(inner) => inner.quota_used(),
            _ => None,
        }
    }
}
