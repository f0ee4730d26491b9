//! Looking at the paths that go with claims. Nothing here writes.

use super::Directory;
use super::reserve::paths_key;
use crate::domain::{Answer, Holder, PathClash, Reason, Refusal, RepoPath, Token};
use crate::error::Result;
use crate::id::NodeId;

/// A path that a claim has.
#[derive(Clone, Debug, PartialEq)]
pub struct Reserved {
    /// The path.
    pub path: RepoPath,
    /// The node whose claim has it.
    pub node: NodeId,
    /// Who holds the node; `None`: its record can't be read.
    pub holder: Option<Holder>,
}

/// A path that no other claim has.
#[derive(Clone, Debug, PartialEq)]
pub struct Available {
    /// The path.
    pub path: RepoPath,
    /// The node whose claim, shown by its token, has it; `None`: it is free.
    pub by: Option<NodeId>,
}

impl Directory {
    /// Are these paths free, or reserved by the claim that `token` holds? The first that another claim is in the
    /// way of refuses all. Writes nothing.
    pub fn check_paths(&self, paths: &[RepoPath], token: Option<&Token>) -> Result<Answer<Vec<Available>>> {
        let key = paths_key()?;
        let (roster, since) = self.read_roster(&key)?;
        let hash = token.map(Token::hash);
        let mut mine = Vec::new();
        for entry in &roster.entries {
            let Some((path, reserved)) = entry.clash(paths) else { continue };
            let Some(holder) = self.outcome(&key, entry, since).holder() else { continue };
            if holder.is_none() || hash != Some(entry.token_hash) {
                let generation = holder.as_ref().map_or(0, |holder| holder.generation);
                let (path, reserved) = (path.clone(), reserved.clone());
                let clash = PathClash { path, reserved, node: entry.node.clone(), holder };
                let reason = Reason::PathClash(Box::new(clash));
                return Ok(Err(Refusal { id: entry.node.clone(), version: 0, generation, reason }));
            }
            mine.push(entry);
        }
        let held_by = |path: &RepoPath| {
            let entry = mine.iter().find(|entry| entry.paths.iter().any(|reserved| reserved.covers(path)))?;
            Some(entry.node.clone())
        };
        Ok(Ok(paths.iter().map(|path| Available { path: path.clone(), by: held_by(path) }).collect()))
    }

    /// All paths that are reserved now, in order. Writes nothing.
    pub fn reserved(&self) -> Result<Vec<Reserved>> {
        let key = paths_key()?;
        let (roster, since) = self.read_roster(&key)?;
        let mut reserved = Vec::new();
        for live in self.live(&key, &roster.entries, since) {
            let row = |path: &RepoPath| Reserved {
                path: path.clone(),
                node: live.entry.node.clone(),
                holder: live.holder.clone(),
            };
            reserved.extend(live.entry.paths.iter().map(row));
        }
        reserved.sort_by(|a, b| (&a.path, &a.node).cmp(&(&b.path, &b.node)));
        reserved.dedup();
        Ok(reserved)
    }
}
