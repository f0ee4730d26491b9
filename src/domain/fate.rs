//! What became of a claim, told by the record alone: settled with its token, or lost.

use super::record::{Attempt, AttemptEnd, Ending, Node, Outcome, State};
use super::refusal::Holder;
use super::standing::{Facts, Standing, standing};

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The record still names it. Whether it is live is the clock's to say.
    Named,
    /// Somebody who has its token ended it or gave it back.
    Settled,
    /// Another took the node over, or the claim was called off.
    Lost,
}

/// What became of the claim that made the record `taken`, now that the record says `now`.
///
/// A task's record says how its attempts ended. Beside that only the token gives an attempt back, so the counter tells a claim that was released from one that was
/// taken over, also when the next claim stands there already. Where it can't tell, the claim counts as lost.
pub fn fate(taken: &Node, now: &Node) -> Fate {
    let token = taken.claim().map(|claim| claim.token_hash);
    let by_token = [AttemptEnd::Completed, AttemptEnd::Retried, AttemptEnd::Rejected];
    let is_its_end =
        |attempt: &Attempt| attempt.generation == taken.generation && by_token.contains(&attempt.end);
    if now.attempts.iter().any(is_its_end) {
        return Fate::Settled;
    }
    let given_back = taken.attempt.saturating_sub(1);
    let settled = match &now.state {
        State::Claimed(claim) if now.generation == taken.generation => {
            return if Some(claim.token_hash) == token { Fate::Named } else { Fate::Lost };
        }
        // The next owner's. A takeover by force leaves the counter alone, and its reason in the record.
        State::Claimed(_) => {
            now.generation == taken.generation + 1
                && now.attempt == given_back + 1
                && now.forced == taken.forced
        }
        State::Ready | State::Blocked(_) => now.generation == taken.generation && now.attempt == given_back,
        State::Done(outcome) | State::Failed(outcome) => {
            outcome.token_hash.is_some_and(|hash| Some(hash) == token)
        }
        State::Cancelled(_) | State::Expired(_) => false,
    };
    if settled { Fate::Settled } else { Fate::Lost }
}

/// What became of a claim that an earlier call of the same request took, as far as the record tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Became {
    /// It is live.
    Held(Holder),
    /// It is over, and nobody has taken the node since.
    Over,
    /// The node was ended with its token.
    Ended(Ending, Box<Outcome>),
    /// The record doesn't name it any more; the state that the node is in.
    Gone(&'static str),
}

impl Became {
    /// The name in answers.
    pub fn name(&self) -> &'static str {
        match self {
            Became::Held(_) => "held",
            Became::Over => "over",
            Became::Ended(ending, _) => ending.name(),
            Became::Gone(_) => "gone",
        }
    }
}

/// What became of the claim that made the record `taken`, now that the record says `now`.
pub(crate) fn became(taken: &Node, now: &Node, facts: &Facts<'_>) -> Became {
    let token = taken.claim().map(|claim| claim.token_hash);
    match (&now.state, standing(now, facts)) {
        (State::Claimed(claim), at) if Some(claim.token_hash) == token => match at {
            Standing::Held { claim, remaining_ms } => Became::Held(Holder::of(now, claim, remaining_ms)),
            Standing::Adrift { claim } => Became::Held(Holder::of(now, claim, Some(claim.lease_ms))),
            _ => Became::Over,
        },
        (_, Standing::Ended(ending, outcome)) if token.is_some() && outcome.token_hash == token => {
            Became::Ended(ending, Box::new(outcome.clone()))
        }
        (state, _) => Became::Gone(state.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, Token, WriteId};
    use crate::domain::{Acquire, Facts, Force, Mint, acquire, complete, release};
    use crate::host::{Life, Now, Place};
    use crate::id::NodeId;

    const WRITE: WriteId = WriteId(1);

    fn at<T>(ms: i64, tell: impl FnOnce(&Facts<'_>) -> T) -> T {
        let place = Place { boot: "a boot".to_owned(), ..Place::default() };
        tell(&Facts {
            now: Now { wall_ms: ms, mono_ms: ms },
            place: &place,
            life: Life::Unknown,
            needs: &[],
            scope: None,
            skew_ms: 0,
        })
    }

    fn token(bits: u128) -> Token {
        Token::of(bits)
    }

    fn take(node: &Node, by: u128, ms: i64, force: bool) -> Node {
        let mut request = Acquire::by("somebody");
        if force {
            request = request.force(Force::because("a reason").unwrap());
        }
        let mint = Mint { token: token(by), nonce: None, write: WRITE, host: "h".to_owned(), pid: 1 };
        at(ms, |facts| acquire(node, facts, &request, &mint)).write.unwrap()
    }

    fn free(node: &Node, by: u128, block: Option<&str>) -> Node {
        at(0, |facts| release(node, facts, &token(by), block, WRITE)).write.unwrap()
    }

    #[test]
    fn settled_is_told_from_lost() {
        // A node with a history: an attempt used up, and a takeover by force.
        let first = take(&Node::unowned(NodeId::new("n").unwrap()), 1, 0, false);
        let mine = take(&take(&first, 2, 40_000, false), 3, 0, true);
        let done =
            at(0, |facts| complete(&mine, facts, &token(3), &Content::Value(1.into()), WRITE)).write.unwrap();
        let forced = take(&mine, 4, 1, true);
        let lapsed = take(&mine, 4, 90_000, false);
        for (what, now, expected) in [
            ("untouched", mine.clone(), Fate::Named),
            ("released", free(&mine, 3, None), Fate::Settled),
            ("blocked", free(&mine, 3, Some("why")), Fate::Settled),
            ("completed", done.clone(), Fate::Settled),
            ("released and taken", take(&free(&mine, 3, None), 4, 0, false), Fate::Settled),
            ("taken by force", forced.clone(), Fate::Lost),
            ("taken after the lease", lapsed.clone(), Fate::Lost),
            ("taken by force and released", free(&forced, 4, None), Fate::Lost),
            ("taken after the lease and released", free(&lapsed, 4, None), Fate::Lost),
            ("made ready by others", Node { state: State::Ready, ..mine.clone() }, Fate::Lost),
            ("removed and taken", take(&Node::unowned(mine.id.clone()), 4, 0, false), Fate::Lost),
        ] {
            assert_eq!(fate(&mine, &now), expected, "{what}");
        }
        assert_eq!(fate(&first, &done), Fate::Lost, "another's result");
    }
}
