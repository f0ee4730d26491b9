//! What is over and nobody has written down.

use std::time::Duration;

use super::Directory;
use super::look::Unreadable;
use crate::domain::{self, Answer, Holder, Lapse, Node, Standing, Step, idle_ms, standing};
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

/// A claim that is live and has shown no progress for long.
#[derive(Clone, Debug, PartialEq)]
pub struct Idle {
    /// The node.
    pub id: NodeId,
    /// Whose claim it is, and until when.
    pub holder: Holder,
    /// Which attempt it is.
    pub attempt: u64,
    /// Since when, on the wall clock: milliseconds since 1970. The last renewal that told of progress, else when the
    /// claim was taken.
    pub since_ms: i64,
    /// For how long, in milliseconds.
    pub idle_ms: i64,
}

/// What [`Directory::reap_and_watch`] found, each in order of the ids.
#[derive(Debug, Default)]
pub struct Reaped {
    /// The claims that are over.
    pub over: Vec<Over>,
    /// Live ones without progress. Nothing was done to them.
    pub idle: Vec<Idle>,
    /// Nodes that can't be read: whether their claims are over is not known.
    pub unreadable: Vec<Unreadable>,
}

impl Directory {
    /// All claims that are over; with `apply`, each node is given back, or has failed or expired if that is what has
    /// become of it. Owns nothing, and touches no claim that is live. Nobody has to do this: whoever wants such a node
    /// takes it as it is.
    pub fn reap(&self, apply: bool) -> Result<Vec<Over>> {
        self.reap_and_watch(apply, Duration::MAX).map(|reaped| reaped.over)
    }

    /// The same, and the claims that are live and have shown no progress for `idle` or longer, which are only told of: a
    /// renewal that brings progress ([`Renewal::progress`](crate::Renewal)) is progress, and so is the claim's beginning.
    pub fn reap_and_watch(&self, apply: bool, idle: Duration) -> Result<Reaped> {
        let least_ms = i64::try_from(idle.as_millis()).unwrap_or(i64::MAX);
        let seen = self.list()?;
        let mut found = Reaped { unreadable: seen.unreadable, ..Reaped::default() };
        for node in seen.nodes {
            if let Some(mut over) = self.claim_over(&node) {
                if apply {
                    over.became = self.end_claim(&node)?;
                }
                found.over.push(over);
            } else {
                found.idle.extend(self.claim_idle(&node).filter(|it| it.idle_ms >= least_ms));
            }
        }
        Ok(found)
    }

    fn claim_idle(&self, node: &Node) -> Option<Idle> {
        self.with_facts(node, |facts| {
            let Standing::Held { claim, remaining_ms } = standing(node, facts) else { return None };
            let since_ms = claim.progressed.as_ref().map_or(claim.acquired_ms, |at| at.wall_ms);
            Some(Idle {
                id: node.id.clone(),
                holder: Holder::of(node, claim, remaining_ms),
                attempt: node.attempt,
                since_ms,
                idle_ms: idle_ms(claim, facts),
            })
        })
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
