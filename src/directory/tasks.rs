//! Tasks: submitting, reviewing, giving back for another attempt, giving up.

use serde_json::json;

use super::Directory;
use crate::domain::{self, Answer, Refusal, Retry, Submission, Submitted, Text, Token, Verdict, Written};
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::store::Key;

impl Directory {
    /// Submits the task `id`, or finds it there already, in whatever state, if its input is the same.
    ///
    /// What it waits for must have been submitted before, and it itself not yet: so no circle can close.
    pub fn submit(&self, id: &NodeId, request: &Submission) -> Result<Answer<Submitted>> {
        domain::admit(request.input_value())?;
        for on in request.dependencies() {
            if on == id {
                return Err(Error::usage(format!("a task can't wait for itself: {id}")));
            }
            if self.node(on)?.is_none_or(|node| node.task.is_none()) {
                return Ok(Err(Refusal::not_submitted(on)));
            }
        }
        self.register(id, request.dependencies())?;
        let answer = self.update_once(
            id,
            "add",
            Some(request.submitter()),
            || request.arguments(),
            |node, facts, write| domain::submit(node, facts, request, write),
        )?;
        let Ok(submitted) = &answer else { return Ok(answer) };
        if submitted.existing {
            self.store.confirm(&Key::Node(id.clone()))?;
        } else if let Some(scope) = self.scope_halt(id)? {
            // Whoever cancelled it may have looked before this task was there.
            self.write_down(id)?;
            return Ok(Err(Refusal::new(&submitted.node, scope.refusal())));
        }
        Ok(answer)
    }

    /// Accepts the outcome of a done task, or sends it back. Once for each outcome.
    pub fn review(&self, id: &NodeId, verdict: &Verdict) -> Result<Answer<Written>> {
        let answer = self.update_once(
            id,
            "review",
            Some(&verdict.by),
            || verdict.arguments(),
            |node, facts, write| domain::review(node, facts, verdict, write),
        )?;
        self.confirmed(id, answer)
    }

    /// Gives the node back with its attempt counted: to be taken after a backoff, or failed if that was the last.
    pub fn retry(&self, id: &NodeId, token: &Token, how: &Retry) -> Result<Answer<Written>> {
        self.update_once(
            id,
            "retry",
            None,
            || json!([token.hash().hex(), how.reason, how.after.as_millis() as u64]),
            |node, facts, write| domain::retry(node, facts, token, how, write),
        )
    }

    /// Ends the node as failed: no attempt will help. The same token and reason again is answered as a replay.
    pub fn reject(&self, id: &NodeId, token: &Token, reason: Option<&Text>) -> Result<Answer<Written>> {
        let reason = reason.map(Text::as_str);
        let answer = self.update_once(
            id,
            "reject",
            None,
            || json!([token.hash().hex(), reason]),
            |node, facts, write| domain::reject(node, facts, token, reason, write),
        )?;
        self.confirmed(id, answer)
    }
}
