//! Writing down what time alone has done, or the end of its scope: a claim is over, or the whole node is.

use super::Step;
use super::halt::Halt;
use super::record::{AttemptEnd, Claim, Moment, Node, Outcome, State, Task, WriteId};
use super::refusal::{Reason, Refusal, passed};
use super::standing::{Facts, Lapse, Standing, standing};

/// The record of a node whose claim is over: ready, its attempt counted, or ended if time has ended it. An end that
/// can't be believed becomes one that this machine's clock can reach. `None`: nothing of that is so.
pub(crate) fn over(node: &Node, facts: &Facts<'_>, write: WriteId) -> Option<Node> {
    match standing(node, facts) {
        Standing::Lapsed { claim, why } => Some(lapsed(node, claim, why, facts, write, State::Ready)),
        Standing::Adrift { claim } => Some(rebased(node, claim, facts, write)),
        _ => ended_by_time(node, facts, write),
    }
}

/// The record of a node that time or the end of its scope has ended, and nobody has written that down: failed with
/// the end of its last attempt, expired, or cancelled. `None`: it has not, or there is no record to say so.
pub(crate) fn ended_by_time(node: &Node, facts: &Facts<'_>, write: WriteId) -> Option<Node> {
    match standing(node, facts) {
        Standing::Spent { claim, why } => Some(spent(node, claim, why, facts, write)),
        Standing::Overdue { task, deadline, claim } => {
            Some(expired(node, task, deadline, claim, facts, write))
        }
        Standing::CalledOff { scope, claim } if node.version > 0 => {
            Some(called_off(node, scope, claim, facts, write))
        }
        _ => None,
    }
}

/// Refuses what an ended node can't be asked for. If time has ended it, that is written down.
pub(super) fn refuse_ended<T>(node: &Node, facts: &Facts<'_>, write: WriteId) -> Step<T> {
    let next = ended_by_time(node, facts, write);
    let now = next.as_ref().unwrap_or(node);
    let reason = match (now.outcome(), facts.scope) {
        (Some((ending, outcome)), _) => Reason::ended(ending, outcome),
        (None, Some(scope)) => scope.refusal(),
        (None, None) => Reason::NotFound,
    };
    Step { answer: Err(Refusal::new(now, reason)), write: next }
}

/// Failed, since the last attempt is over.
pub(super) fn spent(node: &Node, claim: &Claim, why: Lapse, facts: &Facts<'_>, write: WriteId) -> Node {
    let reason = format!("its attempts are used up: the lease of attempt {} ended", node.attempt);
    let failed = Outcome::without_result(node, facts.now.wall_ms, &claim.owner, reason);
    lapsed(node, claim, why, facts, write, State::Failed(failed))
}

/// Expired, on behalf of who set the deadline.
fn expired(
    node: &Node,
    task: &Task,
    deadline: &Moment,
    claim: Option<&Claim>,
    facts: &Facts<'_>,
    write: WriteId,
) -> Node {
    let now = facts.now.wall_ms;
    let state = State::Expired(Outcome::without_result(node, now, &task.by, passed(deadline)));
    match claim {
        Some(claim) => node.after_attempt(write, state, claim, (AttemptEnd::Expired, None, now)),
        None => node.next(write, state),
    }
}

/// Cancelled, on behalf of who cancelled its scope.
fn called_off(node: &Node, scope: &Halt, claim: Option<&Claim>, facts: &Facts<'_>, write: WriteId) -> Node {
    let (now, reason) = (facts.now.wall_ms, scope.of_scope());
    let state = State::Cancelled(Outcome::without_result(node, now, &scope.by, reason.clone()));
    let mut next = match claim {
        Some(claim) => node.after_attempt(write, state, claim, (AttemptEnd::Cancelled, Some(&reason), now)),
        None => node.next(write, state),
    };
    next.not_before = None;
    next
}

/// In another state, since the claim is over.
pub(super) fn lapsed(
    node: &Node,
    claim: &Claim,
    why: Lapse,
    facts: &Facts<'_>,
    write: WriteId,
    state: State,
) -> Node {
    let now = facts.now.wall_ms;
    let end = match why {
        Lapse::LeaseOver(ago) => (AttemptEnd::LeaseOver, None, now.saturating_sub(ago)),
        Lapse::ProcessGone => (AttemptEnd::ProcessGone, None, now),
    };
    node.after_attempt(write, state, claim, end)
}

/// The claim with an end by this machine's clock: the holder keeps its full lease once.
pub(super) fn rebased(node: &Node, claim: &Claim, facts: &Facts<'_>, write: WriteId) -> Node {
    let ends = Moment::after(claim.lease_ms, facts);
    node.next(write, State::Claimed(Claim { ends, ..claim.clone() }))
}
