//! What a holder does with its claim: check, renew, release, complete. Nothing of it works without the token.

use std::time::Duration;

use serde_json::Value;

use super::Step;
use super::over::ended_by_time;
use super::record::Ending;
use super::record::{AttemptEnd, Block, Claim, Content, Delay, Moment, Node, Outcome, State, Token, WriteId};
use super::refusal::{Holder, Reason, Refusal, Stale};
use super::standing::{Facts, Standing, standing, trusted_ms};

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
    pub(super) fn step(node: Node) -> Step<Written> {
        Step::write(node.clone(), Written { node, replay: false })
    }
}

/// The claim that `token` holds on `node` now, or why it holds none.
fn held<'a>(node: &'a Node, facts: &Facts<'a>, token: &Token) -> Result<(&'a Claim, Option<i64>), Reason> {
    let (claim, remaining_ms) = match standing(node, facts) {
        Standing::Held { claim, remaining_ms } => (claim, remaining_ms),
        // Nobody else may take it before somebody has written down an end that can be believed.
        Standing::Adrift { claim } => (claim, Some(claim.lease_ms)),
        #[cfg(feature = "testing")]
        Standing::Lapsed { claim, .. } if crate::testing::fault("a token good after its end") => {
            (claim, None)
        }
        Standing::Lapsed { .. } | Standing::Spent { .. } => return Err(Reason::Stale(Stale::Over)),
        Standing::CalledOff { scope, .. } if node.version > 0 => {
            return Err(Reason::Stale(Stale::CalledOff(scope.of_scope())));
        }
        // The same, written down.
        Standing::Ended(Ending::Cancelled, outcome)
            if facts.scope.is_some_and(|scope| outcome.reason.as_ref() == Some(&scope.of_scope())) =>
        {
            return Err(Reason::Stale(Stale::CalledOff(outcome.reason.clone().unwrap_or_default())));
        }
        _ if node.version == 0 => return Err(Reason::Stale(Stale::NoRecord)),
        standing => return Err(Reason::Stale(Stale::NotHeld(standing.name()))),
    };
    #[cfg(feature = "testing")]
    if crate::testing::fault("without the token") {
        return Ok((claim, remaining_ms));
    }
    if claim.token_hash != token.hash() {
        return Err(Reason::Stale(Stale::Replaced(Holder::of(node, claim, remaining_ms))));
    }
    if remaining_ms.is_none() || facts.skew_ms == 0 {
        return Ok((claim, remaining_ms));
    }
    match trusted_ms(&claim.ends, facts) {
        trusted if trusted > 0 => Ok((claim, Some(trusted))),
        _ => Err(Reason::Stale(Stale::Over)),
    }
}

/// Refuses whose claim is lost. If time has ended the node, that is written down.
fn lost<T>(node: &Node, facts: &Facts<'_>, reason: Reason, write: WriteId) -> Step<T> {
    Step { write: ended_by_time(node, facts, write), answer: Err(Refusal::new(node, reason)) }
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
        Err(reason) => return lost(node, facts, reason, write),
    };
    let asked = renewal.lease.map(|lease| i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
    let lease_ms = asked.unwrap_or(claim.lease_ms);
    let ends = Moment::after(lease_ms, facts);
    let mut renewed = Claim { ends, lease_ms, ..claim.clone() };
    if renewal.progress.is_some() {
        renewed.progressed = Some(Box::new(Moment::after(0, facts)));
    }
    let mut next = node.next(write, State::Claimed(renewed));
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
        Err(reason) => return lost(node, facts, reason, write),
    };
    let state = match block {
        None => State::Ready,
        Some(reason) => State::Blocked(Block {
            reason: reason.to_owned(),
            by: claim.owner.clone(),
            at_ms: facts.now.wall_ms,
            until: None,
            extra: Default::default(),
        }),
    };
    let mut next = node.next(write, state);
    next.attempt = node.attempt.saturating_sub(1);
    Written::step(next)
}

/// How to give a node back for another attempt.
#[derive(Clone, Debug, Default)]
pub struct Retry {
    /// Why.
    pub reason: Option<String>,
    /// Not before this long from now; never less than the backoff.
    pub after: Duration,
}

/// The first backoff. It doubles with each attempt.
const BACKOFF_MS: i64 = 1_000;
/// The longest backoff.
const MAX_BACKOFF_MS: i64 = 5 * 60 * 1_000;

/// How long a node rests after its `attempt`-th attempt: 1 s, 2 s, 4 s … up to 5 min, and up to half of that more
/// by `share` of 256, so that what failed together doesn't come back together.
fn backoff_ms(attempt: u64, share: u8) -> i64 {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(20);
    let length = BACKOFF_MS.saturating_mul(1 << doublings).min(MAX_BACKOFF_MS);
    length + length / 2 * i64::from(share) / 256
}

/// Gives the node back with the attempt counted: to be taken after a backoff, or failed if that was the last one.
pub(crate) fn retry(
    node: &Node,
    facts: &Facts<'_>,
    token: &Token,
    retry: &Retry,
    write: WriteId,
) -> Step<Written> {
    let claim = match held(node, facts, token) {
        Ok((claim, _)) => claim,
        Err(reason) => return lost(node, facts, reason, write),
    };
    let end = (AttemptEnd::Retried, retry.reason.as_deref(), facts.now.wall_ms);
    if node.is_spent() {
        let reason = retry.reason.clone().unwrap_or_else(|| "its attempts are used up".to_owned());
        let failed = State::Failed(Outcome::by_holder(node, claim, facts.now.wall_ms, Some(reason)));
        return Written::step(node.after_attempt(write, failed, claim, end));
    }
    let asked = i64::try_from(retry.after.as_millis()).unwrap_or(i64::MAX);
    let length_ms = backoff_ms(node.attempt, write.low_byte()).max(asked);
    let mut next = node.after_attempt(write, State::Ready, claim, end);
    next.not_before =
        Some(Delay { until: Moment::after(length_ms, facts), length_ms, reason: retry.reason.clone() });
    Written::step(next)
}

/// Ends the node as failed: no attempt will help. The same token and reason again is a replay.
pub(crate) fn reject(
    node: &Node,
    facts: &Facts<'_>,
    token: &Token,
    reason: Option<&str>,
    write: WriteId,
) -> Step<Written> {
    if let Standing::Ended(Ending::Failed, outcome) = standing(node, facts)
        && outcome.token_hash == Some(token.hash())
    {
        return if outcome.reason.as_deref() == reason {
            Step::answer(Written { node: node.clone(), replay: true })
        } else {
            Step::refuse(node, Reason::ended(Ending::Failed, outcome))
        };
    }
    let claim = match held(node, facts, token) {
        Ok((claim, _)) => claim,
        Err(reason) => return lost(node, facts, reason, write),
    };
    let now = facts.now.wall_ms;
    let failed = State::Failed(Outcome::by_holder(node, claim, now, reason.map(str::to_owned)));
    Written::step(node.after_attempt(write, failed, claim, (AttemptEnd::Rejected, reason, now)))
}

/// The node without the claim that `token` took, even if that is over; the attempt is given back too. `None`:
/// the node has moved on.
pub(crate) fn given_back(node: &Node, token: &Token, write: WriteId) -> Option<Node> {
    node.claim().filter(|claim| claim.token_hash == token.hash())?;
    let mut next = node.next(write, State::Ready);
    next.attempt = node.attempt.saturating_sub(1);
    Some(next)
}

/// The generation under which `token` may end the node as done, or has.
pub(crate) fn may_complete(node: &Node, facts: &Facts<'_>, token: &Token) -> Step<u64> {
    match standing(node, facts) {
        Standing::Ended(Ending::Done, outcome) if outcome.token_hash == Some(token.hash()) => {
            Step::answer(outcome.generation)
        }
        _ => match held(node, facts, token) {
            Ok(_) => Step::answer(node.generation),
            Err(reason) => Step::refuse(node, reason),
        },
    }
}

/// Ends the node as done with its one result. The same token and result again is a replay.
pub(crate) fn complete(
    node: &Node,
    facts: &Facts<'_>,
    token: &Token,
    result: &Content,
    write: WriteId,
) -> Step<Written> {
    if let Standing::Ended(Ending::Done, outcome) = standing(node, facts)
        && outcome.token_hash == Some(token.hash())
    {
        return if is_same(outcome, result) {
            Step::answer(Written { node: node.clone(), replay: true })
        } else {
            Step::refuse(node, Reason::OtherResult)
        };
    }
    let claim = match held(node, facts, token) {
        Ok((claim, _)) => claim,
        Err(reason) => return lost(node, facts, reason, write),
    };
    let now = facts.now.wall_ms;
    let (result, blob) = result.parts();
    let outcome = Outcome { result, blob, ..Outcome::by_holder(node, claim, now, None) };
    let end = (AttemptEnd::Completed, None, now);
    let mut next = node.after_attempt(write, State::Done(outcome), claim, end);
    next.review = None; // one of an earlier outcome
    Written::step(next)
}

/// Is `result` the one that is recorded?
fn is_same(outcome: &Outcome, result: &Content) -> bool {
    if let Some(hash) = &outcome.result_hash {
        return *hash == result.hash();
    }
    match (&outcome.blob, result) {
        (Some(recorded), Content::Blob(blob)) => recorded.is_same(blob),
        (None, Content::Value(value)) => outcome.result == *value,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backoff_doubles_up_to_five_minutes_and_scatters() {
        assert_eq!(
            [1, 2, 3, 9, 10, u64::MAX].map(|n| backoff_ms(n, 0)),
            [1_000, 2_000, 4_000, 256_000, 300_000, 300_000]
        );
        assert_eq!(backoff_ms(1, 128), 1_250);
        assert!(backoff_ms(1, 255) < 1_500);
    }
}
