//! A record that need not be read once more.

use std::sync::{Arc, Mutex, PoisonError};

use super::Directory;
use crate::domain::Node;
use crate::id::NodeId;

/// A node as it was read or written, and the bytes that say so.
pub(super) type Read = (Node, Vec<u8>);

/// The record that a claim's next write begins with, as it was last read or written for that claim. What others have
/// made of it since shows at the swap; whatever is answered without one is decided by a record just read.
#[derive(Default)]
pub(super) struct Known(Mutex<Option<Read>>);

impl Directory {
    /// The same directory for one claim, of whose record this is known.
    pub(super) fn knowing(&self, read: Option<Read>) -> Directory {
        Directory { known: Some(Arc::new(Known(Mutex::new(read)))), ..self.clone() }
    }

    /// What is known of the record of `id`, once.
    pub(super) fn recall(&self, id: &NodeId) -> Option<Read> {
        let known = self.known.as_ref()?;
        let read = known.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        read.filter(|(node, _)| node.id == *id)
    }

    /// This stands there now.
    pub(super) fn remember(&self, read: Read) {
        if let Some(known) = &self.known {
            *known.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        }
    }
}
