//! Blobs that are left over, and records whose blobs are missing.

use super::{FOLDER, Opened, Part};
use crate::directory::Directory;
use crate::domain::Node;
use crate::error::{Code, Result};
use crate::id::NodeId;
use crate::store::{Key, Prefix};

/// How old an input's blob must be to be left over, while its node is no task, in milliseconds.
const INPUT_MS: i64 = 3_600_000;

impl Directory {
    /// The blobs that no record names, nor will.
    pub(in crate::directory) fn left_over_blobs(&self) -> Result<Vec<Key>> {
        let now = self.host.now().wall_ms;
        let mut found = Vec::new();
        let mut last: Option<(NodeId, Result<Option<Node>>)> = None;
        for key in self.store.list(&Prefix::Internal(FOLDER), None, usize::MAX)? {
            let Some((id, part)) = Part::of(&key) else { continue };
            // Read after the listing, and then it says for good what is left over of that.
            let node = match last.take() {
                Some((of, node)) if of == id => node,
                _ => self.node(&id),
            };
            if let Ok(node) = &node
                && !may_be_named(node.as_ref(), &key, part, now)
            {
                found.push(key);
            }
            last = Some((id, node));
        }
        Ok(found)
    }

    /// Removes what is left over; how many. With `dry_run` it only counts them.
    pub(in crate::directory) fn prune_blobs(&self, dry_run: bool) -> Result<usize> {
        let mut pruned = 0;
        for key in self.left_over_blobs()? {
            if !dry_run {
                self.store.unhint(&key)?;
            }
            pruned += 1;
        }
        Ok(pruned)
    }

    /// What is wrong with the blobs that the record `node` names.
    pub(in crate::directory) fn wrong_blobs(&self, node: &Node) -> Vec<String> {
        let mut wrong = Vec::new();
        for blob in node.blobs() {
            match self.open_blob(node, blob).and_then(Opened::prove) {
                Err(error) if error.code() != Code::NotFound => wrong.push(error.to_string()),
                _ => {}
            }
        }
        wrong.dedup();
        wrong
    }
}

/// Does the record name the blob, or may a writer that is under way still make it do so?
fn may_be_named(node: Option<&Node>, key: &Key, part: Part, now_ms: i64) -> bool {
    let named = node.is_some_and(|node| node.blobs().any(|blob| blob.name == key.name()));
    named
        || match part {
            Part::Result(generation) => {
                node.is_some_and(|node| node.claim().is_some() && node.generation == generation)
            }
            Part::Input(at_ms) => {
                node.is_none_or(|node| node.task.is_none()) && now_ms.saturating_sub(at_ms) < INPUT_MS
            }
        }
}
