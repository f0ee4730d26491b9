//! Tasks: submitting, reviewing, giving back for another attempt, giving up.

use std::io::Read;

use serde_json::json;

use super::Directory;
use super::blobs::Form;
use crate::domain::{
    self, Answer, Content, Refusal, Retry, Submission, Submitted, Text, Token, Verdict, Written,
};
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::store::Key;

impl Directory {
    /// Submits the task `id`, or finds it there already, in whatever state, if its input is the same.
    ///
    /// What it waits for must have been submitted before, and it itself not yet: so no circle can close.
    pub fn submit(&self, id: &NodeId, request: &Submission) -> Result<Answer<Submitted>> {
        self.submit_with(id, request, None)
    }

    /// The same with the JSON that `input` gives as the task's input, as in [`Directory::complete_from`].
    pub fn submit_from(
        &self,
        id: &NodeId,
        request: &Submission,
        input: &mut dyn Read,
    ) -> Result<Answer<Submitted>> {
        self.submit_with(id, request, Some(input))
    }

    /// Submits with another input, if one is given.
    pub(super) fn submit_with(
        &self,
        id: &NodeId,
        request: &Submission,
        input: Option<&mut dyn Read>,
    ) -> Result<Answer<Submitted>> {
        for on in request.dependencies() {
            if on == id {
                return Err(Error::usage(format!("a task can't wait for itself: {id}")));
            }
            if self.node(on)?.is_none_or(|node| node.task.is_none()) {
                return Ok(Err(Refusal::not_submitted(on)));
            }
        }
        let part = || self.input_part();
        let content = match (input, request.input_content()) {
            (Some(from), _) => self.content_from(id, from, Form::Json, part)?,
            (None, Content::Value(value)) => self.content(id, value, part)?,
            (None, blob) => Ok(blob.clone()),
        };
        let content = match content {
            Ok(content) => content,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let request = &request.clone().content(content.clone());
        let answer = self.submit_content(id, request, &content);
        let answer = self.unless_named(&content, answer, |submitted| &submitted.node)?;
        let Ok(submitted) = &answer else { return Ok(answer) };
        if submitted.existing || submitted.replay {
            self.store.confirm(&Key::Node(id.clone()))?;
        } else if let Some(scope) = self.scope_halt(id)? {
            // Whoever cancelled it may have looked before this task was there.
            self.write_down(id)?;
            return Ok(Err(Refusal::new(&submitted.node, scope.refusal())));
        }
        Ok(answer)
    }

    fn submit_content(
        &self,
        id: &NodeId,
        request: &Submission,
        input: &Content,
    ) -> Result<Answer<Submitted>> {
        self.register(id, request.dependencies())?;
        let operation = match input {
            Content::Value(_) => "add",
            Content::Blob(_) => "add with a blob",
        };
        let owner = Some(request.submitter());
        self.rounds_once(
            id,
            operation,
            owner,
            || request.arguments(),
            |node, facts, write| self.naming(input, domain::submit(node, facts, request, write)),
        )
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
