//! The events that a change of a record was, told by the record before it and the record after it.

use super::{Event, What};
use crate::domain::record::{AttemptEnd, Block, Claim, Ending, Name, Node, Outcome, State};

/// What happened between two versions of a record, of which the second was written over the first. Mostly one thing;
/// nothing where only a lease was renewed, or an end was written anew.
pub(crate) fn told(before: &Node, after: &Node, at_ms: i64) -> Vec<Event> {
    let event = |what| Event::of(what, after, at_ms);
    if after.tombstoned && !before.tombstoned {
        return vec![event(What::Pruned)];
    }
    let mut events = Vec::new();
    if let (None, Some(task)) = (&before.task, &after.task) {
        let not_before_ms = after.not_before.as_ref().map(|delay| delay.until.wall_ms);
        events.push(Event { by: Some(task.by.clone()), not_before_ms, ..event(What::Added) });
    }
    if let Some(review) = after.review.as_ref().filter(|review| before.review.as_ref() != Some(*review)) {
        events.push(Event {
            by: Some(review.by.clone()),
            accepted: Some(review.accepted),
            reason: review.note.clone(),
            ..event(What::Reviewed)
        });
    }
    events.extend(turned(before, after, at_ms));
    if let Some(note) = after.notes.last().filter(|note| before.notes.last() != Some(*note)) {
        let (by, reason) = (Some(note.by.clone()), Some(note.text.clone()));
        events.push(Event { by, reason, ..event(What::Noted) });
    }
    if before.task.is_some() {
        let named = |what: What| move |name: &Name| (what, name.as_str().to_owned());
        let joined = added(subscribers(before), subscribers(after)).map(named(What::Joined));
        let detached = added(subscribers(after), subscribers(before)).map(named(What::Detached));
        events.extend(joined.chain(detached).map(|(what, name)| Event { by: Some(name), ..event(what) }));
    }
    events
}

fn subscribers(node: &Node) -> &[Name] {
    node.task.as_ref().map_or(&[], |task| &task.subscribers)
}

/// What `now` has and `there` has not.
fn added<'a>(there: &'a [Name], now: &'a [Name]) -> impl Iterator<Item = &'a Name> {
    now.iter().filter(|name| !there.contains(name))
}

/// The change of state.
fn turned(before: &Node, after: &Node, at_ms: i64) -> Option<Event> {
    let event = |what| Event::of(what, after, at_ms);
    match &after.state {
        State::Claimed(claim) => taken(before, after, claim, event),
        State::Ready => freed(before, after, event),
        State::Blocked(block) => {
            let same = |there: &Block| there == block;
            let new = !matches!(&before.state, State::Blocked(there) if same(there));
            new.then(|| Event {
                by: Some(block.by.clone()),
                from: others_claim(before, Some(&block.by)),
                reason: Some(block.reason.clone()),
                until_ms: block.until.as_ref().map(|until| until.until.wall_ms),
                ..event(What::Blocked)
            })
        }
        State::Done(_) | State::Failed(_) | State::Cancelled(_) | State::Expired(_) => {
            let (ending, outcome) = after.outcome()?;
            let new = before.outcome().is_none_or(|(was, _)| was != ending);
            new.then(|| ended(before, after, (ending, outcome), event))
        }
    }
}

fn taken(before: &Node, after: &Node, claim: &Claim, event: impl Fn(What) -> Event) -> Option<Event> {
    let was = before.claim();
    if was.is_some_and(|was| was.token_hash == claim.token_hash) {
        let by = Some(claim.owner.clone());
        return (before.progress != after.progress).then(|| Event { by, ..event(What::Progress) });
    }
    let forced = after.forced.as_ref().filter(|forced| before.forced.as_ref() != Some(*forced));
    let what = match (forced, was) {
        (Some(_), _) => What::Forced,
        (None, Some(_)) => What::Reclaimed,
        (None, None) => What::Claimed,
    };
    Some(Event {
        by: Some(claim.owner.clone()),
        from: was.map(|was| was.owner.clone()),
        reason: forced.map(|forced| forced.reason.clone()),
        lease_ms: Some(claim.lease_ms),
        ..event(what)
    })
}

fn freed(before: &Node, after: &Node, event: impl Fn(What) -> Event) -> Option<Event> {
    if after.requeues > before.requeues {
        return Some(event(What::Requeued));
    }
    match &before.state {
        State::Blocked(_) => Some(event(What::Unblocked)),
        State::Claimed(claim) => {
            let owner = Some(claim.owner.clone());
            if let Some(delay) = &after.not_before {
                let (reason, not_before_ms) = (delay.reason.clone(), Some(delay.until.wall_ms));
                return Some(Event { by: owner, reason, not_before_ms, ..event(What::Retried) });
            }
            if after.attempt < before.attempt {
                return Some(Event { by: owner, ..event(What::Released) });
            }
            let reason = end_of_attempt(before, after).map(|end| end.name().to_owned());
            Some(Event { from: owner, reason, ..event(What::GivenBack) })
        }
        _ => None, // a rejected review, which is told as one, or nothing
    }
}

fn ended(
    before: &Node,
    after: &Node,
    (ending, outcome): (Ending, &Outcome),
    event: impl Fn(What) -> Event,
) -> Event {
    let what = match ending {
        Ending::Done => What::Completed,
        // Its holder's word, unless that was to try again.
        Ending::Failed
            if outcome.token_hash.is_some() && end_of_attempt(before, after) != Some(AttemptEnd::Retried) =>
        {
            What::Rejected
        }
        Ending::Failed => What::Failed,
        Ending::Cancelled => What::Cancelled,
        Ending::Expired => What::Expired,
    };
    // A deadline that passes is nobody's doing: the record names who set it.
    let by = Some(&outcome.by).filter(|_| ending != Ending::Expired).cloned();
    let from = others_claim(before, by.as_deref());
    Event { by, from, reason: outcome.reason.clone(), ..event(what) }
}

/// Whose claim the change ended, if it is another's than `by`.
fn others_claim(before: &Node, by: Option<&str>) -> Option<String> {
    before.claim().map(|claim| claim.owner.clone()).filter(|owner| Some(owner.as_str()) != by)
}

/// How the attempt ended that the change ended; a bare key keeps none.
fn end_of_attempt(before: &Node, after: &Node) -> Option<AttemptEnd> {
    let last = after.attempts.last().filter(|last| before.attempts.last() != Some(*last))?;
    Some(last.end)
}
