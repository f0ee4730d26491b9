//! Names of boxes, readers, queues, projects.

use crate::error::{Code, Error, Result};

/// The name of a box, a reader, a queue, a project: any text of 1 to 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Takes `text` as a name, or says why it can't be one ([`Code::InvalidId`]).
    pub fn new(text: impl Into<String>) -> Result<Name> {
        let text = text.into();
        match text.len() {
            1..=Name::MAX_BYTES => Ok(Name(text)),
            bytes => {
                let why = format!("a name has 1 to {} bytes, and this has {bytes}", Name::MAX_BYTES);
                Err(Error::new(Code::InvalidId, why))
            }
        }
    }

    /// A name that is known to be one.
    pub(in crate::domain) fn known(text: &'static str) -> Name {
        Name(text.to_owned())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as one part of a key. One that gets too long so is written as its hash, which begins as no other
    /// does; the records inside have the name itself.
    pub(crate) fn part(&self) -> String {
        const MAX_PART: usize = 400;
        let part = self.0.replace('%', "%25").replace('/', "%2F");
        if part.len() <= MAX_PART { part } else { format!("%h{}", blake3::hash(self.0.as_bytes()).to_hex()) }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
