//! Mail: messages by number, and readers who have two positions.
//!
//! ```text
//!   acknowledged        handed out          last
//!   1 2 3 4 5 | 6 7 8 9 10 11 | 12 13 14 15 |
//!    dealt with    shown again     not shown yet
//! ```
//!
//! Reading moves the first position, and only the reader's own word moves the second. So a reader that dies with a
//! page in its hands gets the same page again, and nothing is ever taken for read that nobody dealt with.

mod record;
mod refusal;

use serde_json::{Value, json};

use super::record::Fingerprint;
pub use super::record::Name as MailName;
use super::{MailAnswer, Token, WorkKey};
use crate::error::Result;
use crate::id::NodeId;
pub use record::{Cursor, Message};
pub(crate) use record::{Head, Sending, SendingState, decode_sending};
pub(crate) use refusal::KeyKind;
pub use refusal::{MailReason, MailRefusal};

/// A request to send a message.
#[derive(Clone, Debug)]
pub struct Letter {
    from: String,
    payload: Value,
    work_key: Option<String>,
    claim: Option<(NodeId, Token)>,
}

impl Letter {
    /// A message by `from`.
    pub fn new(from: impl Into<String>, payload: Value) -> Letter {
        Letter { from: from.into(), payload, work_key: None, claim: None }
    }

    /// Once a box: the same key and payload again, by whomever, is answered with the message that is there;
    /// another payload is refused. Remembered as long as receipts are.
    pub fn work_key(mut self, key: impl Into<String>) -> Result<Letter> {
        self.work_key = Some(WorkKey::new(key)?.into_text());
        Ok(self)
    }

    /// Only while this token is the live holder's. The message says which claim it was.
    pub fn under(mut self, id: NodeId, token: Token) -> Letter {
        self.claim = Some((id, token));
        self
    }

    pub(crate) fn claim(&self) -> Option<&(NodeId, Token)> {
        self.claim.as_ref()
    }

    pub(crate) fn payload(&self) -> &Value {
        &self.payload
    }

    /// The name of its work key's record, and what must be the same for a message to be the same.
    pub(crate) fn work(&self, to: &MailName) -> Option<(String, Fingerprint)> {
        let key = self.work_key.as_ref()?;
        let mut hasher = blake3::Hasher::new_derive_key("claimdir 2026 work key of a mailbox");
        hasher
            .update(&(to.as_str().len() as u64).to_le_bytes())
            .update(to.as_str().as_bytes())
            .update(key.as_bytes());
        let name = hasher.finalize().to_hex().to_string();
        Some((name, Fingerprint::of("mail work", None, to.as_str(), self.payload.clone())))
    }

    /// What must be the same for a request to be the same.
    pub(crate) fn fingerprint(&self, to: &MailName) -> Fingerprint {
        let claim = self.claim.as_ref().map(|(id, token)| json!([id.as_str(), token.hash().hex()]));
        let arguments = json!([self.payload, self.work_key, claim]);
        Fingerprint::of("mail send", Some(&self.from), to.as_str(), arguments)
    }

    /// The message, under this number.
    pub(crate) fn message(
        &self,
        to: &MailName,
        number: u64,
        sent_ms: i64,
        claim: Option<ByClaim>,
        request: Option<&str>,
    ) -> Message {
        Message {
            to: to.clone(),
            number,
            from: self.from.clone(),
            sent_ms,
            claim,
            request: request.map(str::to_owned),
            payload: self.payload.clone(),
        }
    }
}

/// The claim under which a message was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ByClaim {
    /// The node.
    pub id: NodeId,
    /// The claim's generation: a reader refuses lower ones than it has seen.
    pub generation: u64,
}

/// A message that stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Its number.
    pub number: u64,
    /// Who sent it: with a work key maybe somebody else.
    pub from: String,
    /// When: milliseconds since 1970.
    pub sent_ms: i64,
    /// Did it stand already?
    pub replay: bool,
}

impl Sent {
    pub(crate) fn of(message: &Message, replay: bool) -> Sent {
        let Message { number, from, sent_ms, .. } = message;
        Sent { number: *number, from: from.clone(), sent_ms: *sent_ms, replay }
    }
}

/// What a reader gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The messages after what the reader acknowledged, in order.
    pub messages: Vec<Message>,
    /// The highest number that this reader was ever handed.
    pub handed_out: u64,
    /// Up to where it has dealt with them.
    pub acknowledged: u64,
    /// Was it handed out by an earlier call of the same request?
    pub replay: bool,
}

/// A box and its readers.
#[derive(Clone, Debug, PartialEq)]
pub struct Mailbox {
    /// Its name.
    pub name: MailName,
    /// The number of its last message.
    pub last: u64,
    /// Messages up to this number were pruned.
    pub floor: u64,
    /// Its readers.
    pub readers: Vec<Cursor>,
}

/// The reader has dealt with everything up to `number`: never backwards, never past what it was handed. `None`:
/// it has said so already.
pub(crate) fn acknowledge(cursor: &Cursor, number: u64) -> MailAnswer<Option<Cursor>> {
    let refuse = |reason| Err(MailRefusal { on: cursor.of.clone(), reason });
    let Cursor { handed_out, acknowledged, .. } = *cursor;
    if number == acknowledged {
        Ok(None)
    } else if number < acknowledged {
        refuse(MailReason::Backwards { number, handed_out, acknowledged })
    } else if number > handed_out {
        refuse(MailReason::NotHandedOut { number, handed_out, acknowledged })
    } else {
        Ok(Some(Cursor { acknowledged: number, ..cursor.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_names_have_distinct_parts_without_a_slash() {
        let long = ["/".repeat(256), "%".repeat(256), format!("{}x", "/".repeat(255))];
        let hashed = MailName::new(&long[0]).unwrap().part();
        let names = ["a", "a/b", "a%2Fb", "a%25b", "..", ".", "%", "/", "//", "%h", "x%h", &hashed];
        let parts: std::collections::HashSet<String> = names
            .iter()
            .copied()
            .chain(long.iter().map(String::as_str))
            .map(|name| MailName::new(name).unwrap().part())
            .inspect(|part| assert!(!part.contains('/') && part.len() <= 400, "{part}"))
            .collect();
        assert_eq!(parts.len(), names.len() + long.len());
        assert!(MailName::new("").is_err() && MailName::new("x".repeat(257)).is_err());
    }
}
