//! What anybody may do to a node without holding it: call it off, block it, let it run again.

use serde_json::{Value, json};

use super::Step;
use super::over::{lapsed, refuse_ended};
use super::record::{AttemptEnd, Block, Delay, Ending, Moment, Node, Outcome, State, WriteId};
use super::refusal::{Holder, Reason};
use super::settle::Written;
use super::standing::{Facts, Standing, standing};
use super::text::Text;
use crate::time::When;

/// Calls a node off, whoever holds it: that claim is lost.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Who calls it off.
    pub by: String,
    /// Why.
    pub reason: Option<Text>,
}

impl Cancel {
    pub(crate) fn arguments(&self) -> Value {
        json!([self.reason.as_ref().map(Text::as_str)])
    }
}

/// Keeps a node that nobody holds from being taken.
#[derive(Clone, Debug)]
pub struct Blocking {
    /// Who blocks it.
    pub by: String,
    /// Why.
    pub reason: Text,
    /// When the block ends by itself; `None`: it doesn't.
    pub until: Option<When>,
}

impl Blocking {
    pub(crate) fn arguments(&self) -> Value {
        json!([self.reason.as_str(), self.until.map(When::arguments)])
    }
}

/// How often a node may be requeued, so that no loop is endless.
pub(crate) const MAX_REQUEUES: u64 = 10;

/// Ends the node as cancelled. The same reason again is a replay.
pub(crate) fn cancel(node: &Node, facts: &Facts<'_>, request: &Cancel, write: WriteId) -> Step<Written> {
    let reason = request.reason.as_ref().map(Text::as_str);
    let outcome = || Outcome {
        reason: reason.map(str::to_owned),
        ..Outcome::without_result(node, facts.now.wall_ms, &request.by, String::new())
    };
    let cancelled = || State::Cancelled(outcome());
    let mut next = match standing(node, facts) {
        _ if node.version == 0 => return Step::refuse(node, Reason::NotFound),
        Standing::Ended(Ending::Cancelled, outcome) if outcome.reason.as_deref() == reason => {
            return Step::answer(Written { node: node.clone(), replay: true });
        }
        Standing::Ended(..)
        | Standing::Spent { .. }
        | Standing::Overdue { .. }
        | Standing::CalledOff { .. } => {
            return refuse_ended(node, facts, write);
        }
        Standing::Held { claim, .. } | Standing::Adrift { claim } => {
            let end = (AttemptEnd::Cancelled, reason, facts.now.wall_ms);
            node.after_attempt(write, cancelled(), claim, end)
        }
        Standing::Lapsed { claim, why } => lapsed(node, claim, why, facts, write, cancelled()),
        Standing::Free | Standing::Waiting(_) | Standing::NotYet { .. } | Standing::Blocked(_) => {
            node.next(write, cancelled())
        }
    };
    next.not_before = None;
    Written::step(next)
}

/// Blocks the node. The same again is a replay; a block for the same reason gets the new end.
pub(crate) fn block(node: &Node, facts: &Facts<'_>, request: &Blocking, write: WriteId) -> Step<Written> {
    let until = request.until.map(|until| {
        let moment = Moment::at(until, facts);
        let length_ms = moment.wall_ms.saturating_sub(facts.now.wall_ms);
        Delay { until: moment, length_ms, reason: None }
    });
    if until.as_ref().is_some_and(|until| until.length_ms <= 0) {
        return Step::refuse(node, Reason::Unfit("a block can't end in the past".to_owned()));
    }
    let endless = until.is_none();
    let blocked = || {
        State::Blocked(Block {
            reason: request.reason.as_str().to_owned(),
            by: request.by.clone(),
            at_ms: facts.now.wall_ms,
            until: until.clone(),
            extra: Default::default(),
        })
    };
    match standing(node, facts) {
        _ if node.version == 0 => Step::refuse(node, Reason::NotFound),
        Standing::Held { claim, remaining_ms } => {
            Step::refuse(node, Reason::Held(Holder::of(node, claim, remaining_ms)))
        }
        Standing::Adrift { claim } => {
            Step::refuse(node, Reason::Held(Holder::of(node, claim, Some(claim.lease_ms))))
        }
        Standing::Blocked(there) if there.reason != request.reason.as_str() => {
            Step::refuse(node, Reason::blocked(there))
        }
        Standing::Blocked(there) if endless && there.until.is_none() => {
            Step::answer(Written { node: node.clone(), replay: true })
        }
        Standing::Ended(..)
        | Standing::Spent { .. }
        | Standing::Overdue { .. }
        | Standing::CalledOff { .. } => refuse_ended(node, facts, write),
        Standing::Lapsed { claim, why } => Written::step(lapsed(node, claim, why, facts, write, blocked())),
        Standing::Blocked(_) | Standing::Free | Standing::Waiting(_) | Standing::NotYet { .. } => {
            Written::step(node.next(write, blocked()))
        }
    }
}

/// Ends the node's block.
pub(crate) fn unblock(node: &Node, facts: &Facts<'_>, write: WriteId) -> Step<Written> {
    match standing(node, facts) {
        _ if node.version == 0 => Step::refuse(node, Reason::NotFound),
        Standing::Blocked(_) => Written::step(node.next(write, State::Ready)),
        Standing::Ended(..)
        | Standing::Spent { .. }
        | Standing::Overdue { .. }
        | Standing::CalledOff { .. } => refuse_ended(node, facts, write),
        other => Step::refuse(node, Reason::NotInState { wanted: "blocked", state: other.name() }),
    }
}

/// Lets a node that has failed run again, with as many attempts as it got at first. What it has had stays counted,
/// and so does this, up to [`MAX_REQUEUES`].
pub(crate) fn requeue(node: &Node, facts: &Facts<'_>, write: WriteId) -> Step<Written> {
    let mut next = match standing(node, facts) {
        _ if node.version == 0 => return Step::refuse(node, Reason::NotFound),
        Standing::Ended(Ending::Failed, _) => node.next(write, State::Ready),
        Standing::Spent { claim, why } => lapsed(node, claim, why, facts, write, State::Ready),
        Standing::Ended(..) | Standing::Overdue { .. } | Standing::CalledOff { .. } => {
            return refuse_ended(node, facts, write);
        }
        other => {
            return Step::refuse(node, Reason::NotInState { wanted: "failed", state: other.name() });
        }
    };
    if node.tombstoned {
        return Step::refuse(node, Reason::Tombstoned);
    }
    if node.requeues >= MAX_REQUEUES {
        return Step::refuse(node, Reason::Requeued(node.requeues));
    }
    next.requeues += 1;
    next.not_before = None;
    // What would expire at once, or be cancelled with its scope, is not let loose.
    match standing(&next, facts) {
        Standing::Overdue { task, deadline, .. } => Step::refuse(node, Reason::overdue(task, deadline)),
        Standing::CalledOff { scope, .. } => Step::refuse(node, scope.refusal()),
        _ => Written::step(next),
    }
}
