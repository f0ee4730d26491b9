//! What became of a node.

use std::time::Duration;

use super::Directory;
use super::wait::{Exits, timed_out};
use crate::domain::{self, Answer, Node, Reason, Refusal, State, Step, WriteId, hint};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Key, Watch};

impl Directory {
    /// The node `id` once it has ended, however it did; [`Node::outcome`] has the end.
    ///
    /// Without a `wait` nothing is written: a node that has not ended is a [`Reason::NotEnded`], and an end that time
    /// has brought is told although nobody has written it down yet. With one, that is written down; a wait in vain is
    /// a [`Reason::TimedOut`], and the node goes on. Whoever knows the id may ask, at any time and again.
    pub fn result(&self, id: &NodeId, wait: Option<Duration>) -> Result<Answer<Node>> {
        let Some(wait) = wait else {
            return Ok(match self.node(id)? {
                None => Err(Refusal::not_found(id)),
                Some(node) => self.ended(self.as_of_now(node)),
            });
        };
        let end = self.end_of(wait);
        let mut watch: Option<Box<dyn Watch + '_>> = None;
        let mut exits = Exits::new();
        loop {
            let Some(node) = self.node(id)? else { return Ok(Err(Refusal::not_found(id))) };
            let refusal = match self.ended(self.written_down(node)?) {
                Ok(ended) => return Ok(Ok(ended)),
                Err(refusal) => refusal,
            };
            let left = end.saturating_sub(self.host.mono_ns());
            if left == 0 {
                return Ok(Err(timed_out(refusal)));
            }
            let Some(watch) = &mut watch else {
                // Look out first and read once more: what changes from here on wakes.
                watch = Some(self.store.watch(&Key::Node(id.clone())));
                continue;
            };
            self.nap(watch.as_mut(), &mut exits, std::slice::from_ref(id), true, Duration::from_nanos(left))?;
        }
    }

    fn ended(&self, node: Node) -> Answer<Node> {
        if node.outcome().is_some() {
            return Ok(node);
        }
        let state = self.standing(&node, |standing| standing.name());
        Err(Refusal::new(&node, Reason::NotEnded(state)))
    }

    /// The node in the state that time or the end of its scope has brought it to, written down or not.
    pub(super) fn as_of_now(&self, node: Node) -> Node {
        let ended = self.with_facts_alone(&node, |facts| domain::ended_by_time(&node, facts, node.write));
        match ended {
            Some(ended) => Node { version: node.version, ..ended },
            None => node,
        }
    }

    /// The same, and it is written down.
    pub(super) fn written_down(&self, node: Node) -> Result<Node> {
        let ended = |node: &Node, facts: &domain::Facts<'_>, write: WriteId| {
            domain::ended_by_time(node, facts, write)
        };
        if self.with_facts_alone(&node, |facts| ended(&node, facts, node.write)).is_none() {
            return Ok(node);
        }
        let now: Answer<Node> = self.update(&node.id, |node, facts, write| {
            let next = ended(node, facts, write);
            Step { answer: Ok(next.clone().unwrap_or_else(|| node.clone())), write: next }
        })?;
        Ok(now.unwrap_or(node))
    }

    /// Writes down how time has ended the node `id`, if it has.
    pub(super) fn write_down(&self, id: &NodeId) -> Result<()> {
        match self.node(id)? {
            Some(node) => self.written_down(node).map(drop),
            None => Ok(()),
        }
    }
}

/// Has it ended so that nothing can come of it any more?
pub(super) fn is_final(node: &Node) -> bool {
    hint::is_met(node) || matches!(node.state, State::Cancelled(_) | State::Expired(_))
}
