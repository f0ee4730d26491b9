//! Receipts: the stored answer of a write, so that a retry gets the same answer instead of a second effect.
//!
//! A receipt is a cell named by the hash of its key. It is *pending* from before the effect and *settled* with the
//! answer after it; in between, the node's record itself carries receipt, fingerprint and answer in `last_write`:
//! change and receipt are one write. Whoever replaces such a record settles the receipt first, so at every stop a
//! retry finds either the answer, in the record or in the receipt, or no trace of an effect.

use serde_json::{Map, Value, json};

use super::claim::Acquired;
use super::codec::{self, Fields, Malformed};
use super::message::{derived, message_id};
use super::record::{Fingerprint, LastWrite, Node, Token, WriteId};
use super::settle::Written;
use super::task::Submitted;
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::time::rfc3339;

/// A receipt's key: 1 to 1,024 bytes that the caller makes up once for a request and shows again at each retry.
/// As secret as a token: who has it gets the claim's token.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceiptKey(String);

impl ReceiptKey {
    /// Takes the key, refused if it is empty or too long ([`Code::Usage`](crate::Code::Usage)).
    pub fn new(key: impl Into<String>) -> Result<ReceiptKey> {
        let key = key.into();
        if key.is_empty() || key.len() > 1024 {
            return Err(Error::usage("a receipt's key has 1 to 1,024 bytes"));
        }
        Ok(ReceiptKey(key))
    }

    /// The receipt's name: the blake3 hash of its key, in 64 hexadecimal digits.
    pub fn hash(&self) -> String {
        blake3::hash(self.0.as_bytes()).to_hex().to_string()
    }

    /// The id of the message posted with this key: a retry must find the same one.
    pub(crate) fn message(&self) -> Result<NodeId> {
        message_id(derived("claimdir 2026 message of a receipt", self.0.as_bytes()))
    }

    /// The token of a claim taken with this key. Only the nonce is stored, so neither the record nor the receipt
    /// gives the token to somebody who lacks the key.
    pub(crate) fn token(&self, nonce: &str) -> Token {
        let key = blake3::derive_key("claimdir 2026 token of a receipt", self.0.as_bytes());
        Token::of_hash(blake3::keyed_hash(&key, nonce.as_bytes()))
    }
}

impl std::fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReceiptKey(…)")
    }
}

/// A record that a request with a receipt changes, and that carries the answer until that is settled.
pub(crate) trait Carrier: Clone {
    /// The answer's field in a receipt. By another kind's field a request is known as another one.
    const FIELD: &'static str;
    fn last_write(&self) -> Option<&LastWrite>;
    /// As a receipt keeps it.
    fn without_last_write(self) -> Self;
    fn to_json(&self) -> Map<String, Value>;
    fn of(fields: Fields) -> Result<Self, Malformed>;
}

impl Carrier for Node {
    const FIELD: &'static str = "answer";

    fn last_write(&self) -> Option<&LastWrite> {
        self.last_write.as_ref()
    }

    fn without_last_write(self) -> Node {
        Node { last_write: None, ..self }
    }

    fn to_json(&self) -> Map<String, Value> {
        codec::to_json(self, true)
    }

    fn of(fields: Fields) -> Result<Node, Malformed> {
        codec::node(fields)
    }
}

/// A receipt as its cell says it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Receipt<R> {
    pub(crate) fingerprint: Fingerprint,
    /// When it was written: milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// Of a request that chooses its node itself: the one it has aimed at.
    pub(crate) target: Option<Target>,
    /// The answer once settled: the record as written, and the rest.
    pub(crate) settled: Option<(Box<R>, Value)>,
}

/// A node at one write: the only record that may be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) id: NodeId,
    pub(crate) write: WriteId,
}

/// What a retry finds.
#[derive(Debug, PartialEq)]
pub(crate) enum Found<R> {
    /// Nothing, or only that the request was begun: no effect yet.
    NoEffect { begun: bool },
    /// The effect, still in the record or already settled.
    Answer { record: Box<R>, answer: Value, settled: bool },
    /// Another request under the same key.
    Conflict(Fingerprint),
}

/// Looks for the request `mine` in the record, read first, and in the receipt, read after it. In the other
/// order a retry could see a pending receipt and then a record that had been replaced after settling.
pub(crate) fn find<R: Carrier>(
    record: &R,
    receipt: Option<&Receipt<R>>,
    name: &str,
    mine: &Fingerprint,
) -> Found<R> {
    if let Some(last) = record.last_write().filter(|last| last.receipt == name) {
        if last.fingerprint != *mine {
            return Found::Conflict(last.fingerprint.clone());
        }
        return Found::Answer {
            record: Box::new(record.clone()),
            answer: last.answer.clone(),
            settled: false,
        };
    }
    match receipt {
        None => Found::NoEffect { begun: false },
        Some(receipt) if receipt.fingerprint != *mine => Found::Conflict(receipt.fingerprint.clone()),
        Some(Receipt { settled: None, .. }) => Found::NoEffect { begun: true },
        Some(Receipt { settled: Some((record, answer)), .. }) => {
            Found::Answer { record: record.clone(), answer: answer.clone(), settled: true }
        }
    }
}

/// The receipt that `bytes` say; empty ones were made and not yet written.
pub(crate) fn decode<R: Carrier>(bytes: &[u8]) -> Result<Option<Receipt<R>>, Malformed> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut fields = Fields::parse("the receipt", bytes)?;
    codec::check_format(&mut fields)?;
    let fingerprint = Fingerprint::recorded(fields.take("fingerprint")?);
    let at_ms = fields.time("at")?;
    let target = fields.object("target", |mut target| {
        Ok(Target {
            id: target.with("id", |id: String| NodeId::new(id).ok())?,
            write: target.with("write", WriteId::recorded)?,
        })
    })?;
    let settled = fields.object(R::FIELD, |mut answer| {
        let record = R::of(Fields::of("record", answer.take("record")?)?)?;
        Ok((Box::new(record), answer.take("rest")?))
    })?;
    Ok(Some(Receipt { fingerprint, at_ms, target, settled }))
}

/// The receipt's bytes. `write` makes them differ from all others.
pub(crate) fn encode<R: Carrier>(receipt: &Receipt<R>, write: WriteId) -> Vec<u8> {
    let mut map = Map::new();
    map.insert("format".to_owned(), json!(codec::FORMAT));
    map.insert("write".to_owned(), json!(write.to_string()));
    map.insert("at".to_owned(), json!(rfc3339(receipt.at_ms)));
    map.insert("fingerprint".to_owned(), json!(receipt.fingerprint.hex()));
    if let Some(Target { id, write }) = &receipt.target {
        map.insert("target".to_owned(), json!({"id": id.as_str(), "write": write.to_string()}));
    }
    if let Some((record, rest)) = &receipt.settled {
        map.insert(R::FIELD.to_owned(), json!({"record": record.to_json(), "rest": rest}));
    }
    codec::to_bytes(&map)
}

/// An answer that a receipt keeps: the record as written, and the rest.
pub(crate) trait Recorded: Sized {
    /// What the record itself doesn't say.
    fn rest(&self) -> Value;
    /// The answer again, marked as a replay. What is missing in `rest` reads as nothing.
    fn restore(node: Node, rest: &Value) -> Self;
}

impl Recorded for Written {
    fn rest(&self) -> Value {
        Value::Null
    }

    fn restore(node: Node, _rest: &Value) -> Written {
        Written { node, replay: true }
    }
}

impl Recorded for Acquired {
    fn rest(&self) -> Value {
        json!({"reclaimed_from": self.reclaimed_from, "forced": self.forced, "nonce": self.nonce})
    }

    fn restore(node: Node, rest: &Value) -> Acquired {
        let text = |name: &str| rest[name].as_str().map(str::to_owned);
        Acquired {
            node,
            reclaimed_from: text("reclaimed_from"),
            forced: rest["forced"].as_bool().unwrap_or_default(),
            replay: true,
            nonce: text("nonce"),
        }
    }
}

impl Recorded for Submitted {
    fn rest(&self) -> Value {
        json!({"existing": self.existing, "differing": self.differing})
    }

    fn restore(node: Node, rest: &Value) -> Submitted {
        let existing = rest["existing"].as_bool().unwrap_or_default();
        let names = rest["differing"].as_array().into_iter().flatten();
        let differing = names.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        Submitted { node, existing, differing, replay: true }
    }
}
