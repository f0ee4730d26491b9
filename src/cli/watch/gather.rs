//! Reading the board, by what anybody may ask of a directory. Nothing is written.

use std::collections::BTreeMap;

use claimdir::domain::{Event, Node, Reason};
use claimdir::{Acquire, Directory, Name, Refusal, RepoPath, Resources, Result, Scope};

use super::model::{Board, queues};
use super::row::Row;
use crate::cli::args::Which;

/// Which nodes are on the board.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) which: Which,
    pub(crate) scope: Option<Scope>,
    /// Only what this one holds.
    pub(crate) owner: Option<String>,
}

/// What a claim takes along, to look up by.
type With = (Vec<RepoPath>, Vec<Name>, BTreeMap<Name, u64>);

/// Reads the board, without what happened: see [`Past`](super::past::Past).
pub(crate) fn gather(directory: &Directory, asked: &Asked) -> Result<Board> {
    let seen = match &asked.scope {
        Some(scope) => directory.list_scope(scope)?,
        None => directory.list()?,
    };
    let at = directory.host().now();
    let mut unreadable: Vec<String> = seen.unreadable.iter().map(|bad| bad.error.to_string()).collect();
    let mut held_up = HeldUp::default();
    let rows: Vec<Row> = seen
        .nodes
        .into_iter()
        .filter(|node| asked.has(node))
        .map(|node| {
            let refusal = held_up.by(directory, &node);
            directory.standing(&node, |standing| Row::of(&node, standing, at.wall_ms, refusal))
        })
        .collect();
    let mut queues = queues(&rows);
    for queue in &mut queues {
        let Some(name) = queue.name.clone().and_then(|name| Name::new(name).ok()) else { continue };
        match directory.paused(&name, queue.scope.as_ref().map(|(_, scope)| scope)) {
            Ok(paused) => queue.paused = paused,
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    let mut or_told = |error: claimdir::Error| unreadable.push(error.to_string());
    let pools = directory.pools().map_err(&mut or_told).unwrap_or_default();
    let quotas = directory.quotas().map_err(&mut or_told).unwrap_or_default();
    Ok(Board {
        place: directory.place(None),
        at,
        rows,
        queues,
        pools,
        quotas,
        unreadable,
        events: Vec::new(),
    })
}

impl Asked {
    fn has(&self, node: &Node) -> bool {
        let owner = || node.claim().map(|claim| claim.owner.as_str());
        self.which.is_asked_for(node) && self.owner.as_deref().is_none_or(|of| owner() == Some(of))
    }
}

impl Asked {
    /// Is what happened about a node on the board, as far as is known of it?
    pub(crate) fn has_event(&self, event: &Event) -> bool {
        let Which { queue, projects } = &self.which;
        let project = || event.project.as_ref();
        (queue.is_none() || event.queue == *queue)
            && (projects.is_empty() || project().is_some_and(|of| projects.contains(of)))
            && self.scope.as_ref().is_none_or(|scope| Scope::of(&event.id).as_ref() == Some(scope))
            && self.owner.as_ref().is_none_or(|owner| event.by.as_ref() == Some(owner))
    }
}

/// What holds up tasks that could be taken, asked once for all that take the same along: thousands may wait for one slot.
#[derive(Default)]
struct HeldUp(BTreeMap<With, Option<Refusal>>);

impl HeldUp {
    fn by(&mut self, directory: &Directory, node: &Node) -> Option<&Refusal> {
        let Resources { paths, pools, quotas } = &node.task.as_ref()?.resources;
        if paths.is_empty() && pools.is_empty() && quotas.is_empty() {
            return None;
        }
        if !directory.standing(node, |standing| standing.takeable()) {
            return None;
        }
        let refusal = self.0.entry((paths.clone(), pools.clone(), quotas.clone())).or_insert_with(|| {
            let answer = directory.would_acquire(&node.id, &Acquire::by(""));
            answer.ok().and_then(|answer| answer.err()).filter(is_of_resources)
        });
        refusal.as_ref()
    }
}

/// Is it about what goes with the claim, and not about the node, which another may have taken meanwhile?
fn is_of_resources(refusal: &Refusal) -> bool {
    let missing = matches!(refusal.reason, Reason::NoPool(_) | Reason::NoQuota(_));
    missing
        || refusal.path_clash().is_some()
        || refusal.pool_full().is_some()
        || refusal.quota_used().is_some()
}
