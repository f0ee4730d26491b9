//! Values that are too large for a record, and where a value is.

use serde_json::{Map, Value};

use super::canonical_hash;

/// A value that is kept beside its record, in an entry of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Blob {
    /// The entry's name in the store.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their blake3 hash, in 64 hexadecimal digits. It stays when the bytes go.
    pub hash: String,
    /// Are they JSON? Else they are text.
    pub json: bool,
    /// Fields that this program doesn't know.
    pub extra: Map<String, Value>,
}

impl Blob {
    /// The most bytes that a value has in its record; what has more is a blob.
    pub const MIN_BYTES: usize = 16 << 10;
    /// The most bytes that a blob may have.
    pub const MAX_BYTES: u64 = 64 << 20;

    /// Is that the same value? Byte for byte, whichever entry has it.
    pub fn is_same(&self, other: &Blob) -> bool {
        (&self.hash, self.json) == (&other.hash, other.json)
    }
}

/// A value on its way into a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// To stand in the record.
    Value(Value),
    /// Kept beside it.
    Blob(Blob),
}

impl Content {
    /// What stands in the record, and what beside it.
    pub(crate) fn parts(&self) -> (Value, Option<Blob>) {
        match self {
            Content::Value(value) => (value.clone(), None),
            Content::Blob(blob) => (Value::Null, Some(blob.clone())),
        }
    }

    /// What tells it from others when it is gone: of JSON in its record the hash of the canonical form, of a blob that
    /// of its bytes.
    pub(crate) fn hash(&self) -> String {
        match self {
            Content::Value(value) => canonical_hash(value),
            Content::Blob(blob) => blob.hash.clone(),
        }
    }

    /// What of it makes a request the same as another.
    pub(crate) fn argument(&self) -> Value {
        match self {
            Content::Value(value) => value.clone(),
            Content::Blob(blob) => {
                serde_json::json!({"blob": blob.hash, "bytes": blob.bytes, "json": blob.json})
            }
        }
    }
}
