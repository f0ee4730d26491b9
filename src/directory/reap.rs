//! What is over and nobody has written down.

use super::Directory;
use crate::domain::{self, Answer, Lapse, Node, Standing, Step};
use crate::error::Result;
use crate::id::NodeId;

/// A claim that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// The node.
    pub id: NodeId,
    /// Whose claim it was.
    pub owner: String,
    /// Its generation.
    pub generation: u64,
    /// Which attempt it was.
    pub attempt: u64,
    /// How long ago its lease ended, in milliseconds; `None`: it ended with its process.
    pub ended_ms_ago: Option<i64>,
    /// What the node's state has become, if it was written down and nobody was faster.
    pub became: Option<&'static str>,
}

impl Directory {
    /// All claims that are over; with `apply`, each node is given back, or has failed or expired if that is what has
    /// become of it. Owns nothing, and touches no claim that is live. Nobody has to do this: whoever wants such a node
    /// takes it as it is.
    pub fn reap(&self, apply: bool) -> Result<Vec<Over>> {
        let mut found = Vec::new();
        for node in self.list()?.nodes {
            let Some(mut over) = self.claim_over(&node) else { continue };
            if apply {
                over.became = self.end_claim(&node)?;
            }
            found.push(over);
        }
        Ok(found)
    }

    fn claim_over(&self, node: &Node) -> Option<Over> {
        let (claim, ended_ms_ago) = self.standing(node, |standing| match standing {
            Standing::Lapsed { claim, why } | Standing::Spent { claim, why } => match why {
                Lapse::LeaseOver(ago) => Some(((*claim).clone(), Some(*ago))),
                Lapse::ProcessGone => Some(((*claim).clone(), None)),
            },
            Standing::Overdue { claim: Some(claim), .. } => Some(((*claim).clone(), Some(0))),
            _ => None,
        })?;
        let (generation, attempt) = (node.generation, node.attempt);
        Some(Over {
            id: node.id.clone(),
            owner: claim.owner,
            generation,
            attempt,
            ended_ms_ago,
            became: None,
        })
    }

    /// Writes down that the claim of `seen` is over, if it is the same and still so.
    fn end_claim(&self, seen: &Node) -> Result<Option<&'static str>> {
        let answer: Answer<Option<&'static str>> = self.update(&seen.id, |node, facts, write| {
            let same = node.generation == seen.generation;
            // An end that can't be believed is for who wants the node.
            let next = domain::over(node, facts, write).filter(|next| same && next.claim().is_none());
            Step { answer: Ok(next.as_ref().map(|next| next.state.name())), write: next }
        })?;
        Ok(answer.unwrap_or_default())
    }
}
