//! Reading the board, by what anybody may ask of a directory. Nothing is written.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use claimdir::domain::{Event, Node, Reason, Standing};
use claimdir::{Acquire, Detail, Directory, Name, Refusal, RepoPath, Resources, Result, Roots, Scope};
use serde_json::Value;

use super::model::{Board, queues};
use super::row::Row;
use crate::cli::args::Filter;

/// Which nodes are on the board.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) filter: Filter,
    pub(crate) scope: Option<Scope>,
    /// Only what this one holds.
    pub(crate) owner: Option<String>,
}

/// What a claim takes along, to look up by.
type With = (Vec<RepoPath>, Vec<Name>, BTreeMap<Name, u64>);

/// Reads the board, without what happened: see [`Past`](super::past::Past).
pub(crate) fn gather(directory: &Directory, asked: &Asked) -> Result<Board> {
    let (held_up, roots) = (HeldUp::default(), Roots::default());
    let at = directory.host().now();
    let seen = directory.survey(asked.scope.as_ref(), Detail::Brief, |node| {
        if !asked.has(&node) {
            return None;
        }
        let refusal = held_up.by(directory, &node);
        let row = directory.standing(&node, |standing| {
            // What is waited for in vain is told as that.
            let root = match standing {
                Standing::Waiting(need) => Some(directory.to_the_root(need, &roots)),
                _ => None,
            };
            let standing = root.as_ref().map_or(*standing, Standing::Waiting);
            Row::of(&node, &standing, at.wall_ms, refusal.as_ref())
        });
        asked.filter.wants_state(row.state).then(|| Row { progress: progress(directory, &node), ..row })
    })?;
    let rows = seen.found;
    let mut unreadable: Vec<String> = seen.unreadable.iter().map(|bad| bad.error.to_string()).collect();
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
        self.filter.wants(node) && self.owner.as_deref().is_none_or(|of| owner() == Some(of))
    }
}

impl Asked {
    /// Is what happened about a node on the board, as far as is known of it?
    pub(crate) fn has_event(&self, event: &Event) -> bool {
        let Filter { queues, projects, .. } = &self.filter;
        let is_of = |asked: &[String], name: Option<&String>| {
            asked.is_empty() || name.is_some_and(|name| asked.contains(name))
        };
        is_of(queues, event.queue.as_ref())
            && is_of(projects, event.project.as_ref())
            && self.scope.as_ref().is_none_or(|scope| Scope::of(&event.id).as_ref() == Some(scope))
            && self.owner.as_ref().is_none_or(|owner| event.by.as_ref() == Some(owner))
    }
}

/// What holds up tasks that could be taken, asked once for all that take the same along: thousands may wait for one slot.
#[derive(Default)]
struct HeldUp(Mutex<BTreeMap<With, Option<Refusal>>>);

impl HeldUp {
    fn by(&self, directory: &Directory, node: &Node) -> Option<Refusal> {
        let Resources { paths, pools, quotas } = &node.task.as_ref()?.resources;
        if paths.is_empty() && pools.is_empty() && quotas.is_empty() {
            return None;
        }
        if !directory.standing(node, |standing| standing.takeable()) {
            return None;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refusal = known.entry((paths.clone(), pools.clone(), quotas.clone())).or_insert_with(|| {
            let answer = directory.would_take(node, &Acquire::by(""));
            answer.ok().and_then(|answer| answer.err()).filter(is_of_resources)
        });
        refusal.clone()
    }
}

/// How far its holder is, which a brief look leaves out.
fn progress(directory: &Directory, node: &Node) -> Option<Value> {
    node.claim()?;
    directory.node(&node.id).ok().flatten()?.progress
}

/// Is it about what goes with the claim, and not about the node, which another may have taken meanwhile?
fn is_of_resources(refusal: &Refusal) -> bool {
    let missing = matches!(refusal.reason, Reason::NoPool(_) | Reason::NoQuota(_));
    missing
        || refusal.path_clash().is_some()
        || refusal.pool_full().is_some()
        || refusal.quota_used().is_some()
}
