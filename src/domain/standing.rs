//! What state a record is in *now*. Every command decides by this one function.

use super::record::{Block, Bound, Claim, Ending, Moment, Need, Node, Outcome, State};
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
}

/// What state `node` is in now.
pub fn standing<'a>(node: &'a Node, facts: &Facts<'a>) -> Standing<'a> {
    match &node.state {
        State::Ready => idle(node, facts),
        State::Claimed(claim) => match hold(claim, facts) {
            Standing::Lapsed { claim, .. } if node.is_spent() => Standing::Spent { claim },
            standing => standing,
        },
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
    let delay = node.not_before.as_ref();
    let remaining = delay.map(|delay| (remaining_ms(&delay.until, facts), delay.length_ms));
    match remaining {
        Some((remaining_ms, length)) if (1..=length).contains(&remaining_ms) => {
            Standing::NotYet { remaining_ms }
        }
        _ => Standing::Free,
    }
}

/// Milliseconds until `moment`. Same boot: the monotonic clock decides, so neither a stepped clock nor a sleeping
/// machine takes anything from anybody. Elsewhere only the wall clock is left.
pub(super) fn remaining_ms(moment: &Moment, facts: &Facts<'_>) -> i64 {
    let same_clock = moment.place.same_clock(facts.place);
    #[cfg(feature = "testing")]
    let same_clock = same_clock && !crate::testing::fault("wall clock on the same boot");
    if same_clock {
        moment.mono_ms.saturating_sub(facts.now.mono_ms)
    } else {
        moment.wall_ms.saturating_sub(facts.now.wall_ms)
    }
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
    } else if remaining > claim.lease_ms {
        Standing::Adrift { claim }
    } else {
        Standing::Held { claim, remaining_ms: Some(remaining) }
    }
}
