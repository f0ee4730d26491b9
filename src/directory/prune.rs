//! Letting go of what ended long ago.

use super::Directory;
use crate::domain::{Answer, Step, WriteId, entomb};
use crate::error::Result;
use crate::store::{Key, Prefix};

impl Directory {
    /// Makes tombstones of nodes that ended and were last written before `before_ms`; how many. Never of one that can
    /// still run. What can't be read is kept, and `doctor` tells of it.
    pub(super) fn prune_results(&self, before_ms: i64, dry_run: bool) -> Result<usize> {
        let mut pruned = 0;
        for key in self.store.list(&Prefix::Nodes, None, usize::MAX)? {
            let Key::Node(id) = key else { continue };
            let Ok(Some(node)) = self.node(&id) else { continue };
            if entomb(&node, before_ms, WriteId::of(0)).is_none() {
                continue;
            }
            let entombed: Answer<bool> = match dry_run {
                true => Ok(true),
                false => self.update(&id, |node, _, write| {
                    let next = entomb(node, before_ms, write);
                    Step { answer: Ok(next.is_some()), write: next }
                })?,
            };
            pruned += usize::from(entombed == Ok(true));
        }
        Ok(pruned)
    }
}
