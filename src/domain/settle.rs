//! What a holder does with its claim: check, renew, release, complete. Nothing of it works without the token.

use std::time::Duration;

use serde_json::Value;

use super::Step;
use super::node::{Block, Claim, LeaseEnd, Node, Outcome, State, Token, WriteId};
use super::refusal::{Holder, Reason, Stale};
use super::standing::{Ending, Facts, Standing, standing};

/// A live claim, seen with its token.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The record as read.
    pub node: Node,
    /// Milliseconds to the lease's end; `None`: as long as its process lives.
    pub remaining_ms: Option<i64>,
}

/// How to renew.
#[derive(Clone, Debug, Default)]
pub struct Renewal {
    /// Another length from now on.
    pub lease: Option<Duration>,
    /// What the next owner should find if this one dies; replaces what was there.
    pub progress: Option<Value>,
}

/// A change that stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The record as written.
    pub node: Node,
    /// Did it stand already, by an earlier call of the same request?
    pub replay: bool,
}

impl Written {
    fn step(node: Node) -> Step<Written> {
        Step::write(node.clone(), Written { node, replay: false })
    }
}

/// The claim that `token` holds on `node` now, or why it holds none.
fn held<'a>(node: &'a Node, facts: &Facts<'_>, token: &Token) -> Result<(&'a Claim, Option<i64>), Reason> {
    let (claim, remaining_ms) = match standing(node, facts) {
        Standing::Held { claim, remaining_ms } => (claim, remaining_ms),
        // Nobody else may take it before somebody has written down an end that can be believed.
        Standing::Adrift { claim } => (claim, Some(claim.lease_ms)),
        Standing::Lapsed { .. } => return Err(Reason::Stale(Stale::Over)),
        Standing::Free if node.version == 0 => return Err(Reason::Stale(Stale::NoRecord)),
        Standing::Free | Standing::Blocked(_) | Standing::Ended(..) => {
            return Err(Reason::Stale(Stale::NotHeld(node.state.name())));
        }
    };
    if claim.token_hash != token.hash() {
        return Err(Reason::Stale(Stale::Replaced(Holder::of(node, claim, remaining_ms))));
    }
    Ok((claim, remaining_ms))
}

/// Is `token` the live holder's?
pub(crate) fn check(node: &Node, facts: &Facts<'_>, token: &Token) -> Step<Checked> {
    match held(node, facts, token) {
        Ok((_, remaining_ms)) => Step::answer(Checked { node: node.clone(), remaining_ms }),
        Err(reason) => Step::refuse(node, reason),
    }
}

/// A new end for the lease, counted from now.
pub(crate) fn renew(
    node: &Node,
    facts: &Facts<'_>,
    token: &Token,
    renewal: &Renewal,
    write: WriteId,
) -> Step<Written> {
    let claim = match held(node, facts, token) {
        Ok((claim, _)) => claim,
        Err(reason) => return Step::refuse(node, reason),
    };
    let asked = renewal.lease.map(|lease| i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
    let lease_ms = asked.unwrap_or(claim.lease_ms);
    let ends = LeaseEnd::after(lease_ms, facts);
    let mut next = node.next(write, State::Claimed(Claim { ends, lease_ms, ..claim.clone() }));
    if renewal.progress.is_some() {
        next.progress = renewal.progress.clone();
    }
    Written::step(next)
}

/// Gives the node back, and the attempt with it: ready, or blocked for a reason.
pub(crate) fn release(
    node: &Node,
    facts: &Facts<'_>,
    token: &Token,
    block: Option<&str>,
    write: WriteId,
) -> Step<Written> {
    let claim = match held(node, facts, token) {
        Ok((claim, _)) => claim,
        Err(reason) => return Step::refuse(node, reason),
    };
    let state = match block {
        None => State::Ready,
        Some(reason) => State::Blocked(Block {
            reason: reason.to_owned(),
            by: claim.owner.clone(),
            at_ms: facts.now.wall_ms,
            extra: Default::default(),
        }),
    };
    let mut next = node.next(write, state);
    next.attempt = node.attempt.saturating_sub(1);
    Written::step(next)
}

/// The node without the claim that `token` took, even if that is over; the attempt is given back too. `None`:
/// the node has moved on.
pub(crate) fn given_back(node: &Node, token: &Token, write: WriteId) -> Option<Node> {
    node.claim().filter(|claim| claim.token_hash == token.hash())?;
    let mut next = node.next(write, State::Ready);
    next.attempt = node.attempt.saturating_sub(1);
    Some(next)
}

/// Ends the node as done with its one result. The same token and result again is a replay.
pub(crate) fn complete(
    node: &Node,
    facts: &Facts<'_>,
    token: &Token,
    result: &Value,
    write: WriteId,
) -> Step<Written> {
    if let Standing::Ended(Ending::Done, outcome) = standing(node, facts)
        && outcome.token_hash == Some(token.hash())
    {
        return if outcome.result == *result {
            Step::answer(Written { node: node.clone(), replay: true })
        } else {
            Step::refuse(node, Reason::OtherResult)
        };
    }
    let claim = match held(node, facts, token) {
        Ok((claim, _)) => claim,
        Err(reason) => return Step::refuse(node, reason),
    };
    let outcome = Outcome {
        result: result.clone(),
        reason: None,
        by: claim.owner.clone(),
        generation: node.generation,
        at_ms: facts.now.wall_ms,
        token_hash: Some(claim.token_hash),
        extra: Default::default(),
    };
    let next = node.next(write, State::Done(outcome));
    Written::step(next)
}
