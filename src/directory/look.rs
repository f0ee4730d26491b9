//! Looking. Nothing here writes.

use super::Directory;
use super::known::Read;
use super::reserve::paths_key;
use super::survey::Detail;
use crate::domain::{Node, Standing, standing};
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::store::{Finding, Gravity, Key};

/// What [`Directory::list`] found.
#[derive(Debug, Default)]
pub struct Seen {
    /// The nodes that somebody has owned, in order of their ids.
    pub nodes: Vec<Node>,
    /// Those that can't be read; the others go on.
    pub unreadable: Vec<Unreadable>,
}

/// A node whose record can't be read, or a folder of nodes that can't be.
#[derive(Debug)]
pub struct Unreadable {
    /// The node, or the folder as it stands in its nodes' ids.
    pub id: NodeId,
    /// What is wrong.
    pub error: Error,
}

/// What [`Directory::doctor`] found.
#[derive(Debug)]
pub struct Checkup {
    /// How many records were read.
    pub records: usize,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Directory {
    /// The node `id`; `None` if nobody has owned it yet.
    pub fn node(&self, id: &NodeId) -> Result<Option<Node>> {
        self.node_in(id, Detail::Whole)
    }

    /// The same with its bytes.
    pub(super) fn read(&self, id: &NodeId) -> Result<Option<Read>> {
        let key = Key::Node(id.clone());
        match self.store.read(&key)? {
            Some(bytes) if !bytes.is_empty() => Ok(Some((self.decode(&key, id, &bytes)?, bytes))),
            _ => Ok(None),
        }
    }

    /// What state `node` is in now, told to `tell`.
    pub fn standing<T>(&self, node: &Node, tell: impl FnOnce(&Standing<'_>) -> T) -> T {
        self.with_facts(node, |facts| tell(&standing(node, facts)))
    }

    /// Checks every record and what lies beside them. Mends nothing and owns nothing.
    pub fn doctor(&self) -> Result<Checkup> {
        let seen = self.list()?;
        let mut findings = self.store.inspect()?;
        findings.extend(seen.unreadable.into_iter().map(|unreadable| Finding {
            gravity: Gravity::Fault,
            place: self.place(Some(&unreadable.id)),
            what: unreadable.error.to_string(),
        }));
        for (place, what) in self.missing_blobs(&seen.nodes) {
            findings.push(Finding { gravity: Gravity::Fault, place, what });
        }
        for key in self.left_over_blobs()? {
            let what = "left over by a process that died; no record names it, and `claim prune` removes it";
            let (place, what) = (self.store.place(Some(&key)), what.to_owned());
            findings.push(Finding { gravity: Gravity::Leftover, place, what });
        }
        for key in self.receipts()? {
            if let Err(error) = self.receipt_at(&key) {
                let (place, what) = (self.store.place(Some(&key)), error.to_string());
                findings.push(Finding { gravity: Gravity::Fault, place, what });
            }
        }
        let rosters = std::iter::once(paths_key()?).chain(self.pool_keys()?);
        let rosters = rosters.map(|key| (self.read_roster(&key).err(), key));
        let quotas = self.quota_keys()?.into_iter().map(|key| (self.read_quota(&key).err(), key));
        for (error, key) in rosters.chain(quotas) {
            let Some(error) = error else { continue };
            let (place, what) = (self.store.place(Some(&key)), error.to_string());
            findings.push(Finding { gravity: Gravity::Fault, place, what });
        }
        findings.extend(self.unreadable_gates()?.into_iter().map(|(key, error)| Finding {
            gravity: Gravity::Fault,
            place: self.store.place(Some(&key)),
            what: error.to_string(),
        }));
        findings.extend(self.examine_mail()?);
        findings.extend(self.examine_journal());
        Ok(Checkup { records: seen.nodes.len(), findings })
    }

    /// Where the directory, or a node's record, is; for people.
    pub fn place(&self, id: Option<&NodeId>) -> String {
        self.store.place(id.map(|id| Key::Node(id.clone())).as_ref())
    }
}
