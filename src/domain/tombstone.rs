//! What is left of an ended node once its time is over.

use serde_json::Value;

use super::record::{Content, Node, Outcome, State, WriteId};

/// The tombstone of a node that has ended and was last written before `before_ms`: its input, its result and what was
/// said on the way go; how it ended, who ended it, and the hashes stay, so that a repeated call is still told from one
/// that contradicts. `None`: it stays as it is. A result that a reviewer has yet to see stays, whatever its age.
pub(crate) fn entomb(node: &Node, before_ms: i64, write: WriteId) -> Option<Node> {
    let (_, outcome) = node.outcome().filter(|_| !node.tombstoned)?;
    let due = matches!(node.state, State::Done(_)) && node.asks_for_review() && node.review.is_none();
    let noted = node.notes.iter().map(|note| note.at_ms);
    let reviewed = node.review.iter().map(|review| review.at_ms);
    let last_ms = noted.chain(reviewed).fold(outcome.at_ms, i64::max);
    if due || last_ms >= before_ms {
        return None;
    }
    let bare = |outcome: &Outcome| {
        let result =
            outcome.blob.clone().map_or_else(|| Content::Value(outcome.result.clone()), Content::Blob);
        Outcome { result: Value::Null, blob: None, result_hash: Some(result.hash()), ..outcome.clone() }
    };
    let state = match &node.state {
        State::Done(outcome) => State::Done(bare(outcome)),
        other => other.clone(), // which has no result
    };
    let mut next = node.next(write, state);
    next.tombstoned = true;
    next.progress = None;
    next.not_before = None;
    next.attempts.clear();
    next.notes.clear();
    if let Some(task) = &mut next.task {
        task.input = Value::Null;
        task.input_blob = None;
    }
    Some(next)
}
