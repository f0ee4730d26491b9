//! A record as JSON that `cat` shows well.
//!
//! Decoding takes the fields it knows out of the object and keeps the rest, so that a program of the same
//! format that knows less loses nothing on a rewrite. A newer format is refused, not guessed.

mod brief;
mod fields;
mod gate;
mod quota;
mod read;
mod roster;
mod write;

use serde_json::Value;

use super::record::Node;
use crate::error::Error;
use crate::id::NodeId;
pub(crate) use brief::decode_brief;
pub(super) use fields::Fields;
pub(crate) use gate::{decode as decode_gate, encode as encode_gate};
pub(crate) use quota::{decode as decode_quota, encode as encode_quota};
pub(super) use read::{last_write, node};
pub(crate) use roster::{decode as decode_roster, encode as encode_roster};
pub use write::{attempt_json, for_show};
pub(super) use write::{last_write_json, to_bytes, to_json};

/// The format that this program writes, and the newest it reads.
pub const FORMAT: u64 = 1;

/// The most bytes a record may have.
pub(crate) const MAX_RECORD_BYTES: usize = 4 << 20;

/// The deepest that a user's value may be nested: reading a record stops at 128, and the value lies within it.
pub(crate) const MAX_DEPTH: usize = 100;

/// Why bytes are no record of this node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The record is of a newer format.
    #[error("it is of format {0}, and this program knows formats up to {FORMAT}")]
    TooNew(u64),
    /// The record names another node, as on a file system that folds case.
    #[error("it is the record of another node, {0:?}")]
    OtherNode(String),
    /// Anything else.
    #[error("{0}")]
    Broken(String),
}

/// Refuses a newer format.
pub(super) fn check_format(fields: &mut Fields) -> Result<(), Malformed> {
    let format: u64 = fields.take("format")?;
    if format > FORMAT { Err(Malformed::TooNew(format)) } else { Ok(()) }
}

impl Node {
    /// Reads a record's bytes, as from `.claims/<id>.claim`, which must be those of `id`. Empty bytes are a node
    /// that nobody has owned.
    ///
    /// ```
    /// use claimdir::domain::{Malformed, Node};
    /// let id = claimdir::NodeId::new("parser")?;
    /// assert_eq!(Node::from_bytes(&id, b""), Ok(Node::unowned(id.clone())));
    /// assert!(matches!(Node::from_bytes(&id, b"{}"), Err(Malformed::Broken(_))));
    /// # Ok::<(), claimdir::Error>(())
    /// ```
    pub fn from_bytes(id: &NodeId, bytes: &[u8]) -> Result<Node, Malformed> {
        decode(id, bytes)
    }

    /// The record's bytes, with the hashes of its secrets; [`for_show`] leaves those out.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }
}

/// The node that `bytes` say, which must be `id` if one is given. Empty bytes are a node nobody has owned.
pub(crate) fn decode(id: &NodeId, bytes: &[u8]) -> Result<Node, Malformed> {
    if bytes.is_empty() {
        return Ok(Node::unowned(id.clone()));
    }
    let node = read::node(Fields::parse("the record", bytes)?)?;
    if node.id != *id {
        return Err(Malformed::OtherNode(node.id.to_string()));
    }
    Ok(node)
}

/// Refuses a user's value that would make a record that nobody can read again.
pub(crate) fn admit(value: &Value) -> crate::Result<()> {
    let mut level = vec![value];
    for _ in 0..MAX_DEPTH {
        let mut below = Vec::new();
        for value in level {
            match value {
                Value::Array(values) => below.extend(values),
                Value::Object(fields) => below.extend(fields.values()),
                _ => {}
            }
        }
        if below.is_empty() {
            return Ok(());
        }
        level = below;
    }
    Err(Error::usage(format!("JSON nested more than {MAX_DEPTH} deep can't be recorded")))
}

/// The record's bytes, refused if they are more than can be read again.
pub(crate) fn encode_within_limit(node: &Node) -> crate::Result<Vec<u8>> {
    let bytes = encode(node);
    if bytes.len() > MAX_RECORD_BYTES {
        let message = format!(
            "the record of {:?} would have {} bytes, and {MAX_RECORD_BYTES} are the most; nothing was changed",
            node.id.as_str(),
            bytes.len()
        );
        return Err(Error::usage(message).hint("keep what is large in a file, and record where it is"));
    }
    Ok(bytes)
}

/// The record's bytes.
pub(crate) fn encode(node: &Node) -> Vec<u8> {
    to_bytes(&to_json(node, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Outcome, State, WriteId};
    use serde_json::{Map, json};

    fn sample() -> Node {
        let bytes = br#"{"format":1,"id":"a","version":3,"write":"ff","state":"claimed","generation":2,"attempt":1,
            "new":{"deep":[1.50]},"claim":{"owner":"x","token_hash":"0000000000000000000000000000000000000000000000000000000000000000",
            "acquired_at":"2026-11-29T00:00:00Z","expires_at":"2026-11-29T00:00:30Z","lease_ms":30000,"host":"h","pid":7,"hue":"red"}}"#;
        read::node(Fields::parse("the record", bytes).unwrap()).unwrap()
    }

    #[test]
    fn a_rewrite_keeps_what_it_does_not_know() {
        let node = sample();
        let text = String::from_utf8(encode(&node)).unwrap();
        assert!(text.contains("1.50") && text.contains("hue"), "{text}");
        assert_eq!(decode(&node.id, text.as_bytes()), Ok(node));
    }

    #[test]
    fn a_rewrite_keeps_what_it_does_not_know_in_the_objects_within() {
        let text = String::from_utf8(encode(&sample())).unwrap();
        let mut json: Value = serde_json::from_str(&text).unwrap();
        json["forced"] =
            json!({"reason": "r", "by": "b", "from": null, "at": "2026-11-29T00:00:00Z", "new": 1});
        json["claim"]["clock"]["new"] = json!([2]);
        json["claim"]["process"] = json!({
            "pid": 7, "start": 1, "group": {"id": 7, "start": 1, "new": 3}, "machine": "m", "boot": "b",
            "namespace": "n", "until_exit": false, "new": {"deep": 4},
        });
        let node = read::node(Fields::parse("the record", json.to_string().as_bytes()).unwrap()).unwrap();
        let again: Value = serde_json::from_slice(&encode(&node)).unwrap();
        assert_eq!(again["forced"]["new"], json!(1));
        assert_eq!(again["claim"]["clock"]["new"], json!([2]));
        assert_eq!(again["claim"]["process"]["group"]["new"], json!(3));
        assert_eq!(again["claim"]["process"]["new"], json!({"deep": 4}));
        assert_eq!(again["claim"]["process"]["until_exit"], json!(false));
        assert_eq!(decode(&node.id, &encode(&node)), Ok(node));
    }

    #[test]
    fn a_leftover_of_another_state_never_covers_what_is_written() {
        let claimed = sample();
        let mut ready = claimed.next(WriteId(1), State::Ready);
        ready.extra.insert("claim".to_owned(), Value::Null);
        ready.extra.insert("version".to_owned(), json!(9));
        let ready = decode(&ready.id, &encode(&ready)).unwrap();
        assert!(ready.extra.contains_key("claim"));
        let again = ready.next(WriteId(2), claimed.state.clone());
        let read = decode(&again.id, &encode(&again)).unwrap();
        assert_eq!((&read.state, read.version), (&claimed.state, 5));
    }

    #[test]
    fn refuses_to_write_what_can_not_be_read_again() {
        let nested = |depth: usize| {
            (1..depth)
                .fold(json!([]), |inner, at| if at % 2 == 0 { json!([inner]) } else { json!({"a": inner}) })
        };
        assert!(admit(&nested(MAX_DEPTH)).is_ok() && admit(&json!("text")).is_ok());
        assert!(admit(&nested(MAX_DEPTH + 1)).is_err());
        let mut node = sample();
        let outcome = Outcome {
            result: nested(MAX_DEPTH),
            blob: None,
            reason: None,
            by: "x".to_owned(),
            generation: 2,
            at_ms: 0,
            token_hash: None,
            result_hash: None,
            extra: Map::new(),
        };
        node.state = State::Done(outcome);
        assert_eq!(decode(&node.id, &encode_within_limit(&node).unwrap()), Ok(node.clone()));
        node.progress = Some(Value::String("x".repeat(MAX_RECORD_BYTES)));
        assert!(encode_within_limit(&node).is_err());
    }

    #[test]
    fn a_blob_keeps_what_is_not_known_of_it() {
        let mut node = sample();
        let blob =
            json!({"name": "blobs/a/r2-1", "bytes": 20_000, "hash": "ff", "json": true, "new": [1.50]});
        let mut json = to_json(&node, true);
        json["state"] = json!("done");
        json.insert(
            "outcome".to_owned(),
            json!({"state": "done", "result": null, "blob": blob, "by": "x", "generation": 2,
                "at": "2026-11-29T00:00:00Z"}),
        );
        node = read::node(Fields::of("the record", Value::Object(json)).unwrap()).unwrap();
        assert_eq!(node.blobs().map(|blob| blob.bytes).collect::<Vec<_>>(), [20_000]);
        let again: Value = serde_json::from_slice(&encode(&node)).unwrap();
        assert_eq!(again["outcome"]["blob"], blob);
        assert_eq!(decode(&node.id, &encode(&node)), Ok(node));
    }

    #[test]
    fn show_has_no_secrets() {
        let text = Value::Object(for_show(&sample())).to_string();
        assert!(text.contains("expires_at") && !text.contains("token_hash"), "{text}");
    }

    #[test]
    fn refuses_what_is_no_record() {
        let id = NodeId::new("a").unwrap();
        let good = String::from_utf8(encode(&sample())).unwrap();
        for (from, to) in [
            ("\"version\": 3", "\"version\": -1"),
            ("\"version\": 3", "\"version\": 18446744073709551615"),
            ("claimed", "held"),
            ("claimed", "done"),
            ("\"lease_ms\": 30000", "\"lease_ms\": 0"),
            ("2026-11-29T00:00:30.000Z", "soon"),
            ("\"pid\": 7", "\"pid\": \"7\""),
        ] {
            let bad = good.replace(from, to);
            assert_ne!(bad, good);
            assert!(matches!(decode(&id, bad.as_bytes()), Err(Malformed::Broken(_))), "{to}");
        }
        assert_eq!(
            decode(&id, good.replace("\"format\": 1", "\"format\": 2").as_bytes()),
            Err(Malformed::TooNew(2))
        );
        assert_eq!(
            decode(&id, good.replace("\"id\": \"a\"", "\"id\": \"A\"").as_bytes()),
            Err(Malformed::OtherNode("A".into()))
        );
        for bytes in [&b"\0\0\0"[..], b"{", b"[]", b"null", b"\xff\xfe", &good.as_bytes()[..good.len() / 2]] {
            assert!(matches!(decode(&id, bytes), Err(Malformed::Broken(_))), "{bytes:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(decode(&id, deep.as_bytes()), Err(Malformed::Broken(_))));
    }
}
