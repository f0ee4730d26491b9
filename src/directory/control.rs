//! What anybody may do to a node without holding it.

use serde_json::json;

use super::Directory;
use crate::domain::{self, Answer, Blocking, Cancel, Name, Text, Written};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::Key;

impl Directory {
    /// Calls a node off, whoever holds it; that claim is lost. The same reason again is answered as a replay.
    pub fn cancel(&self, id: &NodeId, request: &Cancel) -> Result<Answer<Written>> {
        let answer = self.update_once(
            id,
            "cancel",
            Some(&request.by),
            || request.arguments(),
            |node, facts, write| domain::cancel(node, facts, request, write),
        )?;
        self.confirmed(id, answer)
    }

    /// Keeps a node that nobody holds from being taken, until it is unblocked or the block ends.
    pub fn block(&self, id: &NodeId, request: &Blocking) -> Result<Answer<Written>> {
        let answer = self.update_once(
            id,
            "block",
            Some(&request.by),
            || request.arguments(),
            |node, facts, write| domain::block(node, facts, request, write),
        )?;
        self.confirmed(id, answer)
    }

    /// Ends a node's block before its time.
    pub fn unblock(&self, id: &NodeId, by: &str) -> Result<Answer<Written>> {
        self.in_the_name_of(by).update_once(id, "unblock", Some(by), || json!([]), domain::unblock)
    }

    /// Lets a node that has failed run again. It gets as many attempts more as it got at first; those it has had
    /// stay counted. At most 10 times.
    pub fn requeue(&self, id: &NodeId, by: &str) -> Result<Answer<Written>> {
        self.in_the_name_of(by).update_once(id, "requeue", Some(by), || json!([]), domain::requeue)
    }

    /// Notes something with a node, in whatever state. The record keeps the newest 100 notes.
    pub fn note(&self, id: &NodeId, by: &str, text: &Text) -> Result<Answer<Written>> {
        self.update_once(
            id,
            "note",
            Some(by),
            || json!([text.as_str()]),
            |node, facts, write| domain::note(node, facts, by, text, write),
        )
    }

    /// Makes `subscriber` one of those who are interested in a task.
    pub fn subscribe(&self, id: &NodeId, subscriber: &Name) -> Result<Answer<Written>> {
        let answer = self.update_once(
            id,
            "join",
            None,
            || json!([subscriber.as_str()]),
            |node, facts, write| domain::join(node, facts, subscriber, write),
        )?;
        self.confirmed(id, answer)
    }

    /// The opposite. A task that nobody is interested in any more goes on; [`Directory::cancel`] calls it off.
    pub fn unsubscribe(&self, id: &NodeId, subscriber: &Name) -> Result<Answer<Written>> {
        let answer = self.update_once(
            id,
            "detach",
            None,
            || json!([subscriber.as_str()]),
            |node, facts, write| domain::detach(node, facts, subscriber, write),
        )?;
        self.confirmed(id, answer)
    }

    /// A replay is answered from what another call wrote, which must be on disk first.
    pub(super) fn confirmed(&self, id: &NodeId, answer: Answer<Written>) -> Result<Answer<Written>> {
        if answer.as_ref().is_ok_and(|written| written.replay) {
            self.store.confirm(&Key::Node(id.clone()))?;
        }
        Ok(answer)
    }
}
