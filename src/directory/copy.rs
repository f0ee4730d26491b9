//! One directory's nodes and all that goes with them, copied to another directory, as on another engine.
//!
//! Every cell and entry goes over as it is, so generations, tokens, receipts and positions stay what they are. Hints are
//! put anew. Nothing that the other directory has is ever overwritten, so a copy that was stopped can be begun again.

use super::Directory;
use crate::domain::Standing;
use crate::error::{Code, Error, Result};
use crate::id::NodeId;
use crate::store::{Key, Measured, Prefix};

/// The folders of all that is no node and no hint.
const FOLDERS: [&str; 6] = ["blobs", "receipts", "mail", "rosters", "scopes", "queues"];

/// What [`Directory::copy_to`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// How many nodes are there now that were here.
    pub nodes: usize,
    /// How much else: receipts, messages, rosters, inputs and results.
    pub others: usize,
    /// The nodes whose claims were live and went over with them.
    pub live: Vec<NodeId>,
}

impl Directory {
    /// Copies all there is to `to`, which has nothing or a part of the same. `Ok(Err(…))`: these nodes' claims are
    /// live, and `with_live` does not say to copy them too; then nothing was written. Nobody may write here meanwhile.
    ///
    /// # Errors
    ///
    /// [`IdempotencyConflict`](Code::IdempotencyConflict) if `to` has something else, or something changed here
    /// meanwhile; whatever the stores say.
    pub fn copy_to(&self, to: &Directory, with_live: bool) -> Result<Result<Copied, Vec<NodeId>>> {
        let live = self.live_claims()?;
        if !live.is_empty() && !with_live {
            return Ok(Err(live));
        }
        let (nodes, others) = (self.nodes_to_copy()?, self.others_to_copy()?);
        to.holds_nothing_but(&nodes)?;
        for key in others.iter().chain(&nodes) {
            self.copy_one(key, to)?;
        }
        for key in others.iter().chain(&nodes).filter(|key| !is_blob(key)) {
            if self.store.read(key)? != to.store.read(key)? {
                return Err(differs(&self.store.place(Some(key)), "was changed while it was copied").hint(
                    "end whoever writes there, then copy to another place: what is copied now is no whole",
                ));
            }
        }
        to.hint_all()?;
        Ok(Ok(Copied { nodes: nodes.len(), others: others.len(), live }))
    }

    fn live_claims(&self) -> Result<Vec<NodeId>> {
        let seen = self.list()?;
        if let Some(unreadable) = seen.unreadable.into_iter().next() {
            return Err(unreadable.error);
        }
        let is_live = |now: &Standing<'_>| matches!(now, Standing::Held { .. } | Standing::Adrift { .. });
        let live = seen.nodes.into_iter().filter(|node| self.standing(node, is_live));
        Ok(live.map(|node| node.id).collect())
    }

    /// The nodes that somebody has owned.
    fn nodes_to_copy(&self) -> Result<Vec<Key>> {
        let mut keys = self.store.list(&Prefix::Nodes, None, usize::MAX)?;
        let mut failed = Ok(());
        keys.retain(|key| match self.store.read(key) {
            Ok(bytes) => bytes.is_some_and(|bytes| !bytes.is_empty()),
            Err(error) => {
                failed = Err(error);
                false
            }
        });
        failed.map(|()| keys)
    }

    fn others_to_copy(&self) -> Result<Vec<Key>> {
        let mut keys = Vec::new();
        for folder in FOLDERS {
            keys.extend(self.store.list(&Prefix::Internal(folder), None, usize::MAX)?);
        }
        Ok(keys)
    }

    fn holds_nothing_but(&self, nodes: &[Key]) -> Result<()> {
        let found = self.store.list(&Prefix::Nodes, None, usize::MAX)?;
        match found.iter().find(|key| nodes.binary_search(key).is_err()) {
            Some(other) => {
                Err(differs(&self.store.place(Some(other)), "is not of the directory that is copied")
                    .hint("copy to a place that has nothing yet"))
            }
            None => Ok(()),
        }
    }

    fn copy_one(&self, key: &Key, to: &Directory) -> Result<()> {
        if is_blob(key) {
            if let Some(mut from) = self.store.open(key)? {
                to.store.publish_from(key, &mut Measured::new(&mut from, u64::MAX))?;
            }
            return Ok(());
        }
        let Some(bytes) = self.store.read(key)? else { return Ok(()) };
        // Names that are there already have the same contents, or the last look tells it.
        let made = to.store.publish(key, &bytes)?;
        if !made && to.store.read(key)?.as_ref() != Some(&bytes) {
            return Err(differs(&to.store.place(Some(key)), "is there already and is another one")
                .hint("copy to a place that has nothing yet"));
        }
        Ok(())
    }
}

/// Written once, under a name of its own.
fn is_blob(key: &Key) -> bool {
    matches!(key, Key::Internal(_)) && key.name().starts_with("blobs/")
}

fn differs(place: &str, what: &str) -> Error {
    Error::new(Code::IdempotencyConflict, format!("{place} {what}; nothing was overwritten"))
}
