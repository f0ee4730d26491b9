//! Plain messages: tasks that nobody named.

use std::io::Read;

use super::Directory;
use crate::domain::{Answer, Node, Reason, Submission, Submitted, WorkKey, message_id};
use crate::error::Result;
use crate::id::NodeId;

impl Directory {
    /// Submits a task under an id made for it, for whoever takes it. With a `key`, the same key and input in the same
    /// queue within 7 days is the task that is there, as a replay; another input is refused ([`Reason::OtherWork`]).
    pub fn post(&self, request: &Submission, key: Option<&WorkKey>) -> Result<Answer<Submitted>> {
        self.post_with(request, key, None)
    }

    /// The same with the JSON that `input` gives as the task's input, as in [`Directory::complete_from`].
    pub fn post_from(
        &self,
        request: &Submission,
        key: Option<&WorkKey>,
        input: &mut dyn Read,
    ) -> Result<Answer<Submitted>> {
        self.post_with(request, key, Some(input))
    }

    fn post_with(
        &self,
        request: &Submission,
        key: Option<&WorkKey>,
        input: Option<&mut dyn Read>,
    ) -> Result<Answer<Submitted>> {
        let Some(key) = key else {
            let id = match &self.receipt {
                Some(receipt) => receipt.message()?,
                None => message_id(self.host.random()?)?,
            };
            return self.submit_with(&request.made(id)?, request, input);
        };
        let id = self.stands_for(request, key)?;
        Ok(match self.submit_with(&id, request, input)? {
            Ok(submitted) => Ok(Submitted { replay: submitted.replay || submitted.existing, ..submitted }),
            Err(refusal) if refusal.reason == Reason::OtherInput => Err(refusal.because(Reason::OtherWork)),
            Err(refusal) => Err(refusal),
        })
    }

    /// The id of the task that `key` stands for now, there already or to be made.
    ///
    /// A key's tasks stand under ids that follow from key, queue and turn, so the tasks themselves are the record of
    /// the key, and there is nothing else to keep in step. The last turn that is there decides: it counts for 7 days
    /// from its submission, and then the next turn may be made.
    ///
    /// Whoever comes at the same moment: two that find the same turn young, or the same turn to be made, submit under
    /// the same id, and there one swap decides; the other finds the task, and its input is compared. A turn is made
    /// only by somebody who has seen the one before it to be old, so there is at most one young turn, apart from those
    /// who looked before another made the next one: their answer was true when they looked. Nobody skips a turn, and
    /// one who looked, froze and comes back after weeks finds the turn taken that it wanted to make, and is told of
    /// that. A clock set back makes the last turn younger than it is, which keeps it longer, and never brings an
    /// earlier one back.
    ///
    /// Turns are a week long or longer, so walking over all of them costs little.
    fn stands_for(&self, request: &Submission, key: &WorkKey) -> Result<NodeId> {
        let now = self.host.now().wall_ms;
        let is_young = |node: &Node| {
            let submitted = node.task.as_ref().map(|task| task.submitted_ms);
            submitted.is_some_and(|at| now.saturating_sub(at) < WorkKey::LASTS_MS)
        };
        let mut last = None;
        for turn in 0.. {
            let id = request.made(key.message(request.queue_name(), turn)?)?;
            match (self.node(&id)?, last) {
                (Some(node), _) if node.task.is_some() => last = Some(node),
                (_, Some(node)) if is_young(&node) => return Ok(node.id),
                _ => return Ok(id),
            }
        }
        request.made(key.message(request.queue_name(), 0)?)
    }
}
