//! Rosters: records that say which claims have what of something shared, the paths or a pool's slots.
//!
//! An entry comes before its claim and dies with it. It names the node, the write of the node's record that the
//! claim will replace, and the claim's token. It is *live* while the record holds that token, *pending* while the
//! record is still at that write, and *dead* for ever once the record has moved on without the token: the claim
//! can be written only over exactly that write. So nobody needs to write here when a claim ends.
//!
//! This holds of a record that was read after the roster: one read before may not have come to that write yet.

use serde_json::{Map, Value};

use super::over::over;
use super::record::{Name, Node, Part, RepoPath, TokenHash, WriteId};
use super::refusal::Holder;
use super::standing::{Facts, Standing, standing};
use crate::id::NodeId;

/// The roster's record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Roster {
    /// How often it was written.
    pub(crate) version: u64,
    /// What it is of, if not of paths.
    pub(crate) pool: Option<Pool>,
    pub(crate) entries: Vec<Entry>,
    /// Fields that this program doesn't know.
    pub(crate) extra: Map<String, Value>,
}

/// A pool of slots, one for each claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pool {
    pub(crate) name: Name,
    /// How many slots there are, at least 1.
    pub(crate) capacity: u64,
}

/// What one attempt at a claim reserves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Random: two attempts may have all else in common.
    pub(crate) attempt: u128,
    pub(crate) node: NodeId,
    /// The write that the claim will replace; a node that nobody has owned has none.
    pub(crate) replaces: Option<WriteId>,
    pub(crate) token_hash: TokenHash,
    /// None of a pool, of which it has a slot.
    pub(crate) paths: Vec<RepoPath>,
    /// Fields that this program doesn't know.
    pub(crate) extra: Map<String, Value>,
}

/// What an entry stands for now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EntryState {
    /// A live claim.
    Held(Holder),
    /// A claim whose end can't be believed: its node must name another before others wait for it.
    Adrift(Holder),
    /// A claim that is over: its node must say so before others conclude from it.
    Over,
    /// A claim that may still be written.
    Pending,
    /// Nothing, for ever.
    Dead,
}

impl Roster {
    /// The entries of other nodes than `node` that stand against taking `part`, and how many of those nodes may be
    /// live all the same.
    pub(crate) fn rivals(&self, part: Part<'_>, node: &NodeId) -> (Vec<&Entry>, usize) {
        let others = self.entries.iter().filter(|entry| entry.node != *node);
        match part {
            Part::Paths(paths) => (others.filter(|entry| entry.clash(paths).is_some()).collect(), 0),
            Part::Slot(_) | Part::Amount(..) => {
                let capacity = self.pool.as_ref().map_or(0, |pool| pool.capacity);
                (others.collect(), usize::try_from(capacity.saturating_sub(1)).unwrap_or(usize::MAX))
            }
        }
    }
}

/// The write that `node` is at; a node that nobody has owned is at none.
pub(crate) fn write_of(node: &Node) -> Option<WriteId> {
    (node.version > 0).then_some(node.write)
}

impl Entry {
    /// Will its claim replace exactly this record?
    fn is_for(&self, node: &Node) -> bool {
        self.replaces == write_of(node)
    }

    /// An entry for a claim on `node` as it is now.
    pub(crate) fn new(attempt: u128, node: &Node, token_hash: TokenHash, paths: &[RepoPath]) -> Entry {
        Entry {
            attempt,
            node: node.id.clone(),
            replaces: write_of(node),
            token_hash,
            paths: paths.to_vec(),
            extra: Map::new(),
        }
    }

    /// The first path that it has and that clashes with one of `paths`: that one, and its own.
    pub(crate) fn clash<'a>(&'a self, paths: &'a [RepoPath]) -> Option<(&'a RepoPath, &'a RepoPath)> {
        self.paths.iter().find_map(|reserved| {
            let path = paths.iter().find(|path| path.clashes(reserved))?;
            Some((path, reserved))
        })
    }

    /// What it stands for, by its node's record, which was read after the roster.
    pub(crate) fn fate(&self, node: &Node, facts: &Facts<'_>) -> EntryState {
        if node.claim().is_none_or(|claim| claim.token_hash != self.token_hash) {
            return if self.is_for(node) { EntryState::Pending } else { EntryState::Dead };
        }
        match standing(node, facts) {
            Standing::Held { claim, remaining_ms } => EntryState::Held(Holder::of(node, claim, remaining_ms)),
            Standing::Adrift { claim } => EntryState::Adrift(Holder::of(node, claim, Some(claim.lease_ms))),
            _ => EntryState::Over,
        }
    }

    /// The record that ends this entry's hope of a claim, or says when its claim ends or that it is over. `None`:
    /// there is nothing to say.
    pub(crate) fn moved_on(&self, node: &Node, facts: &Facts<'_>, write: WriteId) -> Option<Node> {
        match self.fate(node, facts) {
            EntryState::Held(_) | EntryState::Dead => None,
            EntryState::Adrift(_) | EntryState::Over => over(node, facts, write),
            EntryState::Pending => Some(node.next(write, node.state.clone())),
        }
    }
}
