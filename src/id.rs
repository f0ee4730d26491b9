//! Names of nodes.

use std::fmt;
use std::str::FromStr;

use crate::error::{Code, Error};

/// A node's id: 1 to 1,024 bytes of text. `/` separates folders and no part between two of them is empty.
///
/// Every other character is allowed; how an id becomes a file name is the directory engine's business, and no
/// id can name a file outside the claim directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(String);

impl NodeId {
    /// The longest id, in bytes.
    pub const MAX_BYTES: usize = 1024;

    /// Takes `text` as an id, or says why it can't be one ([`Code::InvalidId`]).
    pub fn new(text: impl Into<String>) -> Result<NodeId, Error> {
        NodeId::within(text.into(), NodeId::MAX_BYTES)
    }

    /// The same with another limit: the store's own names may have a whole id as one of their parts.
    pub(crate) fn within(text: String, most: usize) -> Result<NodeId, Error> {
        let invalid = |why: &str| Err(Error::new(Code::InvalidId, format!("not a valid id: {why}")));
        if text.is_empty() {
            return invalid("it is empty");
        }
        if text.len() > most {
            return invalid(&format!("it has {} bytes, and {most} are the most", text.len()));
        }
        if text.split('/').any(str::is_empty) {
            return invalid(
                "a '/' separates folders, so it stands neither first nor last nor twice in a row",
            );
        }
        Ok(NodeId(text))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for NodeId {
    type Err = Error;

    fn from_str(text: &str) -> Result<NodeId, Error> {
        NodeId::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_names_no_node() {
        for text in ["", "/", "a/", "/a", "a//b", &"x".repeat(1025)] {
            assert_eq!(NodeId::new(text).map_err(|e| e.code()), Err(Code::InvalidId), "{text:?}");
        }
    }

    #[test]
    fn takes_any_other_text() {
        for text in ["a", "..", "a/../b", ".hidden", "company:acme", "ä\n\u{1b}[0m", &"x".repeat(1024)] {
            assert!(NodeId::new(text).is_ok(), "{text:?}");
        }
    }
}
