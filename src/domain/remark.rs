//! What is noted of a node, and who is interested in a task. None of it changes what may be done.

use serde_json::Map;

use super::Step;
use super::over::ended_by_time;
use super::record::{Name, Node, Note, Task, WriteId, keep_newest};
use super::refusal::Reason;
use super::settle::Written;
use super::standing::Facts;
use super::text::Text;

/// Notes `text` with the node, in whatever state.
pub(crate) fn note(node: &Node, facts: &Facts<'_>, by: &str, text: &Text, write: WriteId) -> Step<Written> {
    if node.version == 0 {
        return Step::refuse(node, Reason::NotFound);
    }
    let mut next = as_of_now(node, facts, write);
    next.notes.push(Note {
        text: text.as_str().to_owned(),
        by: by.to_owned(),
        at_ms: facts.now.wall_ms,
        extra: Map::new(),
    });
    keep_newest(&mut next.notes, Note::KEPT);
    Written::step(next)
}

/// Makes `subscriber` one of the task's. Already one: a replay.
pub(crate) fn join(node: &Node, facts: &Facts<'_>, subscriber: &Name, write: WriteId) -> Step<Written> {
    subscribe(node, facts, write, |subscribers| match subscribers.contains(subscriber) {
        true => Ok(false),
        false if subscribers.len() >= Task::MAX_SUBSCRIBERS => Err(Reason::too_many_subscribers()),
        false => {
            subscribers.push(subscriber.clone());
            Ok(true)
        }
    })
}

/// The opposite. A task that nobody is interested in any more goes on.
pub(crate) fn detach(node: &Node, facts: &Facts<'_>, subscriber: &Name, write: WriteId) -> Step<Written> {
    subscribe(node, facts, write, |subscribers| {
        let before = subscribers.len();
        subscribers.retain(|there| there != subscriber);
        Ok(subscribers.len() < before)
    })
}

/// Changes the task's subscribers by `change`, which says whether it did.
fn subscribe(
    node: &Node,
    facts: &Facts<'_>,
    write: WriteId,
    change: impl FnOnce(&mut Vec<Name>) -> Result<bool, Reason>,
) -> Step<Written> {
    if node.version == 0 {
        return Step::refuse(node, Reason::NotFound);
    }
    let mut next = as_of_now(node, facts, write);
    let Some(task) = &mut next.task else { return Step::refuse(node, Reason::NoTask) };
    match change(&mut task.subscribers) {
        Ok(true) => Written::step(next),
        Ok(false) => Step::answer(Written { node: node.clone(), replay: true }),
        Err(reason) => Step::refuse(node, reason),
    }
}

/// The record's successor in the same state, or in the one that time has brought it to.
fn as_of_now(node: &Node, facts: &Facts<'_>, write: WriteId) -> Node {
    ended_by_time(node, facts, write).unwrap_or_else(|| node.next(write, node.state.clone()))
}
