//! The ids of plain messages: tasks for whoever takes them, that nobody named.

use serde_json::json;

use super::record::Name;
use crate::error::{Error, Result};
use crate::id::NodeId;

/// A key of 1 to 1,024 bytes that its sender makes up once for a piece of work: within a queue, what is posted with
/// it is posted once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkKey(String);

impl WorkKey {
    /// For how long at least a key stands for what was posted with it, in milliseconds.
    pub const LASTS_MS: i64 = 7 * 24 * 3_600_000;

    /// Takes the key, refused if it is empty or too long ([`Code::Usage`](crate::Code::Usage)).
    pub fn new(key: impl Into<String>) -> Result<WorkKey> {
        let key = key.into();
        if key.is_empty() || key.len() > 1024 {
            return Err(Error::usage("a work key has 1 to 1,024 bytes"));
        }
        Ok(WorkKey(key))
    }

    pub(in crate::domain) fn into_text(self) -> String {
        self.0
    }

    /// The id of the message that the key stands for in `queue`, the `turn`-th time, counted from 0.
    pub(crate) fn message(&self, queue: &Name, turn: u64) -> Result<NodeId> {
        let what = json!([queue.as_str(), self.0, turn]).to_string();
        message_id(derived("claimdir 2026 message of a work key", what.as_bytes()))
    }
}

/// 128 bits that follow from `secret` and don't tell it.
pub(super) fn derived(context: &str, secret: &[u8]) -> u128 {
    blake3::derive_key(context, secret).iter().take(16).fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}

/// `msg-` and 128 bits in base 32.
pub(crate) fn message_id(bits: u128) -> Result<NodeId> {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digit = |at: u32| char::from(DIGITS[(bits >> (at * 5)) as usize % 32]);
    NodeId::new(format!("msg-{}", (0..26).rev().map(digit).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_all_bits_in_twenty_six_digits() {
        let text = |bits| message_id(bits).unwrap().as_str().to_owned();
        assert_eq!(text(0), format!("msg-{}", "a".repeat(26)));
        assert_eq!(text(33), format!("msg-{}bb", "a".repeat(24)));
        assert_eq!(text(u128::MAX), format!("msg-h{}", "7".repeat(25)));
    }

    #[test]
    fn a_key_stands_for_another_message_in_another_queue_and_another_turn() {
        let (key, queue) = (WorkKey::new("k").unwrap(), Name::new("q").unwrap());
        let first = key.message(&queue, 0).unwrap();
        assert_eq!(first, key.message(&queue, 0).unwrap());
        assert_ne!(first, key.message(&queue, 1).unwrap());
        assert_ne!(first, key.message(&Name::new("r").unwrap(), 0).unwrap());
        assert!(WorkKey::new("").is_err() && WorkKey::new("x".repeat(1025)).is_err());
    }
}
