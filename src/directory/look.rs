//! Looking. Nothing here writes.

use super::Directory;
use super::known::Read;
use super::survey::Detail;
use crate::domain::{Node, Standing, standing};
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::store::Key;

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

impl Directory {
    /// The node `id`; `None` if nobody has owned it yet.
    pub fn node(&self, id: &NodeId) -> Result<Option<Node>> {
        self.node_in(id, Detail::Whole)
    }

    /// The same with its bytes.
    pub(super) fn read(&self, id: &NodeId) -> Result<Option<Read>> {
        let key = Key::Node(id.clone());
        self.decode_read(&key, id, self.store.read(&key)?)
    }

    /// The same of what was read.
    pub(super) fn decode_read(&self, key: &Key, id: &NodeId, bytes: Option<Vec<u8>>) -> Result<Option<Read>> {
        match bytes {
            Some(bytes) if !bytes.is_empty() => Ok(Some((self.decode(key, id, &bytes)?, bytes))),
            _ => Ok(None),
        }
    }

    /// What state `node` is in now, told to `tell`.
    pub fn standing<T>(&self, node: &Node, tell: impl FnOnce(&Standing<'_>) -> T) -> T {
        self.with_facts(node, |facts| tell(&standing(node, facts)))
    }

    /// Where the directory, or a node's record, is; for people.
    pub fn place(&self, id: Option<&NodeId>) -> String {
        self.store.place(id.map(|id| Key::Node(id.clone())).as_ref())
    }
}
