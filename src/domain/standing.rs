//! What state a record is in *now*. Every command decides by this one function.

use super::halt::Halt;
use super::record::{Block, Bound, Claim, Delay, Ending, Moment, Need, Node, Outcome, State, Task};
use crate::host::{Life, Now, Place};

/// What the host tells a decision.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Both clocks, read after the record.
    pub now: Now,
    /// Where that monotonic clock counts.
    pub place: &'a Place,
    /// What is known of the process that the record's claim is bound to; `Unknown` if there is none.
    pub life: Life,
    /// What the node waits for and has not got.
    pub needs: &'a [Need],
    /// Who cancelled the scope that the node is in, read after the record; `None`: nobody, or it is in none.
    pub scope: Option<&'a Halt>,
    /// How far apart the wall clocks of those who share the directory may be, in milliseconds.
    pub skew_ms: i64,
}

/// A record's state now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing<'a> {
    /// Nobody's: it can be taken.
    Free,
    /// Nobody's, and it waits for another task.
    Waiting(&'a Need),
    /// Nobody's, and not to be taken for so many milliseconds.
    NotYet {
        /// How long from now.
        remaining_ms: i64,
    },
    /// Somebody's.
    Held {
        /// The live claim.
        claim: &'a Claim,
        /// Milliseconds to the lease's end; `None`: it lives as long as its process.
        remaining_ms: Option<i64>,
    },
    /// Somebody's once; it can be taken, and its token is worth nothing any more.
    Lapsed {
        /// The claim that is over.
        claim: &'a Claim,
        /// Why it is over.
        why: Lapse,
    },
    /// Somebody's once, and that was the last attempt: it has failed, whether that is written down or not.
    Spent {
        /// The claim that is over.
        claim: &'a Claim,
        /// Why it is over.
        why: Lapse,
    },
    /// Its deadline has passed: it has expired, whether that is written down or not.
    Overdue {
        /// What it is a task for.
        task: &'a Task,
        /// When it should have ended.
        deadline: &'a Moment,
        /// The claim there was, live or over.
        claim: Option<&'a Claim>,
    },
    /// Its scope was cancelled, and so is it, whether that is written down or not.
    CalledOff {
        /// Who cancelled the scope.
        scope: &'a Halt,
        /// The claim there was, live or over.
        claim: Option<&'a Claim>,
    },
    /// Somebody's, and its end can't be believed: it lies further away than the lease is long, as after a
    /// reboot with the clock set back. Who wants the node first writes down an end by its own clock and waits
    /// that out.
    Adrift {
        /// The claim in question.
        claim: &'a Claim,
    },
    /// Not to be taken, but by force.
    Blocked(&'a Block),
    /// Over for good.
    Ended(Ending, &'a Outcome),
}

/// Why a claim is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lapse {
    /// Its lease ended, this many milliseconds ago.
    LeaseOver(i64),
    /// The process it was bound to is gone.
    ProcessGone,
}

impl Standing<'_> {
    /// Can the node be taken now, without force?
    pub fn takeable(&self) -> bool {
        matches!(self, Standing::Free | Standing::Lapsed { .. })
    }

    /// The state's name, as filters and answers have it: as in records, and `waiting` for what nobody has and
    /// nobody can take yet.
    pub fn name(&self) -> &'static str {
        match self {
            Standing::Free | Standing::Lapsed { .. } => "ready",
            Standing::Waiting(_) | Standing::NotYet { .. } => "waiting",
            Standing::Held { .. } | Standing::Adrift { .. } => "claimed",
            Standing::Blocked(_) => "blocked",
            Standing::Spent { .. } => Ending::Failed.name(),
            Standing::Overdue { .. } => Ending::Expired.name(),
            Standing::CalledOff { .. } => Ending::Cancelled.name(),
            Standing::Ended(ending, _) => ending.name(),
        }
    }
}

/// What state `node` is in now.
pub fn standing<'a>(node: &'a Node, facts: &Facts<'a>) -> Standing<'a> {
    let standing = by_itself(node, facts);
    let Some(scope) = facts.scope else { return standing };
    let since = remaining_ms(&scope.at, facts).saturating_neg();
    match standing {
        Standing::Ended(..) => standing,
        // It had ended before.
        Standing::Spent { why: Lapse::LeaseOver(ago), .. } if ago >= since => standing,
        Standing::Overdue { deadline, .. } if remaining_ms(deadline, facts).saturating_neg() >= since => {
            standing
        }
        _ => Standing::CalledOff { scope, claim: node.claim() },
    }
}

/// The same, whatever became of its scope.
fn by_itself<'a>(node: &'a Node, facts: &Facts<'a>) -> Standing<'a> {
    let standing = before_deadline(node, facts);
    let Some((task, deadline)) = node.task.as_ref().and_then(|task| Some((task, task.deadline.as_ref()?)))
    else {
        return standing;
    };
    let left = remaining_ms(deadline, facts);
    match standing {
        Standing::Ended(..) => standing,
        // It had failed before.
        Standing::Spent { why: Lapse::LeaseOver(ago), .. } if ago >= left.saturating_neg() => standing,
        _ if left <= 0 => Standing::Overdue { task, deadline, claim: node.claim() },
        standing => standing,
    }
}

fn before_deadline<'a>(node: &'a Node, facts: &Facts<'a>) -> Standing<'a> {
    match &node.state {
        State::Ready => idle(node, facts),
        State::Claimed(claim) => match hold(claim, facts) {
            Standing::Lapsed { claim, why } if node.is_spent() => Standing::Spent { claim, why },
            standing => standing,
        },
        State::Blocked(Block { until: Some(until), .. }) if left_ms(until, facts).is_none() => {
            idle(node, facts)
        }
        State::Blocked(block) => Standing::Blocked(block),
        State::Done(outcome) => Standing::Ended(Ending::Done, outcome),
        State::Failed(outcome) => Standing::Ended(Ending::Failed, outcome),
        State::Cancelled(outcome) => Standing::Ended(Ending::Cancelled, outcome),
        State::Expired(outcome) => Standing::Ended(Ending::Expired, outcome),
    }
}

fn idle<'a>(node: &'a Node, facts: &Facts<'a>) -> Standing<'a> {
    if let Some(need) = facts.needs.first() {
        return Standing::Waiting(need);
    }
    match node.not_before.as_ref().and_then(|delay| left_ms(delay, facts)) {
        Some(remaining_ms) => Standing::NotYet { remaining_ms },
        None => Standing::Free,
    }
}

/// How much of `delay` is left, in milliseconds; `None`: it is over.
fn left_ms(delay: &Delay, facts: &Facts<'_>) -> Option<i64> {
    let left = remaining_ms(&delay.until, facts);
    (1..=furthest_ms(&delay.until, delay.length_ms, facts)).contains(&left).then_some(left)
}

/// When `node` changes by itself next, in milliseconds from now: a lease, a block, a delay or the whole task ends.
/// `None`: that is not known.
pub(crate) fn next_end_ms(node: &Node, facts: &Facts<'_>) -> Option<i64> {
    let now = standing(node, facts);
    let deadline = node.task.as_ref().and_then(|task| task.deadline.as_ref());
    let deadline = match now {
        Standing::Ended(..) | Standing::Spent { .. } | Standing::CalledOff { .. } => None,
        _ => deadline.map(|deadline| remaining_ms(deadline, facts)),
    };
    let own = match now {
        Standing::Held { remaining_ms, .. } => remaining_ms,
        Standing::NotYet { remaining_ms } => Some(remaining_ms),
        Standing::Blocked(block) => block.until.as_ref().and_then(|until| left_ms(until, facts)),
        _ => None,
    };
    own.into_iter().chain(deadline).filter(|left| *left > 0).min()
}

/// Milliseconds until `moment` has certainly come: one of another clock may come later than this machine's says.
pub(super) fn remaining_ms(moment: &Moment, facts: &Facts<'_>) -> i64 {
    by_clock_ms(moment, facts).saturating_add(doubt_ms(moment, facts))
}

/// Milliseconds until `moment`. Same boot: the monotonic clock decides, so neither a stepped clock nor a sleeping
/// machine takes anything from anybody. Elsewhere only the wall clock is left.
pub(super) fn by_clock_ms(moment: &Moment, facts: &Facts<'_>) -> i64 {
    if is_here(moment, facts) {
        moment.mono_ms.saturating_sub(facts.now.mono_ms)
    } else {
        moment.wall_ms.saturating_sub(facts.now.wall_ms)
    }
}

/// For how long the holder of a lease that ends at `ends` may go by it: others' clocks may be ahead of its own.
pub(super) fn trusted_ms(ends: &Moment, facts: &Facts<'_>) -> i64 {
    by_clock_ms(ends, facts).saturating_sub(facts.skew_ms)
}

/// How far away the end of something that lasts for `length_ms` may seem to be and still be believed.
pub(super) fn furthest_ms(end: &Moment, length_ms: i64, facts: &Facts<'_>) -> i64 {
    length_ms.saturating_add(doubt_ms(end, facts).saturating_mul(2))
}

/// By how much this machine's clock may be wrong about `moment`.
fn doubt_ms(moment: &Moment, facts: &Facts<'_>) -> i64 {
    if is_here(moment, facts) { 0 } else { facts.skew_ms }
}

/// Does the monotonic clock here tell when `moment` comes?
fn is_here(moment: &Moment, facts: &Facts<'_>) -> bool {
    let same_clock = moment.place.same_clock(facts.place);
    #[cfg(feature = "testing")]
    let same_clock = same_clock && !crate::testing::fault("wall clock on the same boot");
    same_clock
}

/// How long `claim` has shown no progress, in milliseconds: since its holder last told of some, else since it was taken,
/// of which only the wall clock tells.
pub(crate) fn idle_ms(claim: &Claim, facts: &Facts<'_>) -> i64 {
    let left = match &claim.progressed {
        Some(progressed) => remaining_ms(progressed, facts),
        None => claim.acquired_ms.saturating_sub(facts.now.wall_ms),
    };
    left.saturating_neg().max(0)
}

fn hold<'a>(claim: &'a Claim, facts: &Facts<'_>) -> Standing<'a> {
    match (&claim.bound, facts.life) {
        #[cfg(feature = "testing")]
        (Some(_), Life::Unknown) if crate::testing::fault("a hidden process taken for gone") => {
            return Standing::Lapsed { claim, why: Lapse::ProcessGone };
        }
        (Some(_), Life::Gone) => return Standing::Lapsed { claim, why: Lapse::ProcessGone },
        (Some(Bound { until_exit: true, .. }), Life::Alive) => {
            return Standing::Held { claim, remaining_ms: None };
        }
        _ => {}
    }
    let remaining = remaining_ms(&claim.ends, facts);
    if remaining <= 0 {
        Standing::Lapsed { claim, why: Lapse::LeaseOver(remaining.saturating_neg()) }
    } else if remaining > furthest_ms(&claim.ends, claim.lease_ms, facts) {
        Standing::Adrift { claim }
    } else {
        Standing::Held { claim, remaining_ms: Some(remaining) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Token, WriteId};
    use crate::domain::{Acquire, Mint, Reason, Stale, acquire, check};
    use crate::id::NodeId;
    use std::time::Duration;

    const SKEW: i64 = 2_000;

    /// On a machine whose clock is ahead by `ahead` at the true time `ms`; both machines started at 0.
    fn on<T>(boot: &str, ahead: i64, ms: i64, tell: impl FnOnce(&Facts<'_>) -> T) -> T {
        let place = Place { boot: boot.to_owned(), ..Place::default() };
        let now = Now { wall_ms: ms + ahead, mono_ms: ms };
        tell(&Facts { now, place: &place, life: Life::Unknown, needs: &[], scope: None, skew_ms: SKEW })
    }

    fn taken(ahead: i64) -> (Node, Token) {
        let token = Token::of(7);
        let mint =
            Mint { token: token.clone(), nonce: None, write: WriteId(1), host: "a".to_owned(), pid: 1 };
        let (node, request) =
            (Node::unowned(NodeId::new("x").unwrap()), Acquire::by("a").lease(Duration::from_secs(10)));
        (on("a", ahead, 0, |facts| acquire(&node, facts, &request, &mint)).write.unwrap(), token)
    }

    #[test]
    fn no_clock_within_the_skew_takes_a_lease_that_its_holder_trusts() {
        // Machine a takes it at 0 for 10 s; whoever trusts it then, and whoever takes it, at the same true time.
        for ahead in [-SKEW, -1_000, 0, 1_000, SKEW] {
            let (node, token) = taken(ahead);
            for ms in (0..16_000).step_by(100) {
                let trusted = on("a", ahead, ms, |facts| check(&node, facts, &token).answer.is_ok());
                assert_eq!(trusted, ms < 8_000, "trusted at {ms}");
                let own = on("a", ahead, ms, |facts| standing(&node, facts).takeable());
                assert_eq!(own, ms >= 10_000, "taken on the holder's machine at {ms}");
                for others in [0, ahead - SKEW, ahead + SKEW] {
                    let seen = on("b", others, ms, |facts| match standing(&node, facts) {
                        Standing::Held { .. } => false,
                        Standing::Lapsed { .. } => true,
                        other => panic!("{other:?} at {ms}, {others} ahead"),
                    });
                    assert!(
                        !(seen && ms < 10_000),
                        "taken at {ms} by a clock {others} ahead, the holder's {ahead}"
                    );
                    assert!(seen || ms < 10_000 + 2 * SKEW, "waits for ever at {ms}");
                }
            }
        }
    }

    #[test]
    fn an_end_far_beyond_the_skew_is_not_believed() {
        let (node, token) = taken(60_000);
        assert!(on("b", 0, 0, |facts| matches!(standing(&node, facts), Standing::Adrift { .. })));
        let late = on("a", 60_000, 9_000, |facts| check(&node, facts, &token).answer.unwrap_err().reason);
        assert!(matches!(late, Reason::Stale(Stale::Over)), "{late:?}");
    }
}
