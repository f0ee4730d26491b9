//! A record as JSON that `cat` shows well.
//!
//! Decoding takes the fields it knows out of the object and keeps the rest, so that a program of the same
//! format that knows less loses nothing on a rewrite. A newer format is refused, not guessed.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::node::{Block, Bound, Claim, Forced, LeaseEnd, Node, Outcome, State, TokenHash, WriteId};
use crate::host::{Group, Place, Process};
use crate::id::NodeId;
use crate::time::{MAX_LEASE, parse_rfc3339, rfc3339};

/// The format that this program writes, and the newest it reads.
pub const FORMAT: u64 = 1;

/// The most bytes a record may have.
pub(crate) const MAX_RECORD_BYTES: usize = 4 << 20;

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

/// The node that `bytes` say, which must be `id` if one is given. Empty bytes are a node nobody has owned.
pub(crate) fn decode(id: &NodeId, bytes: &[u8]) -> Result<Node, Malformed> {
    if bytes.is_empty() {
        return Ok(Node::unowned(id.clone()));
    }
    let node = decode_any(bytes)?;
    if node.id != *id {
        return Err(Malformed::OtherNode(node.id.to_string()));
    }
    Ok(node)
}

fn decode_any(bytes: &[u8]) -> Result<Node, Malformed> {
    if bytes.iter().all(|b| *b == 0) {
        return Err(Malformed::Broken(format!("it holds {} zero bytes", bytes.len())));
    }
    let value: Value =
        serde_json::from_slice(bytes).map_err(|e| Malformed::Broken(format!("it is not JSON: {e}")))?;
    let mut fields = Fields::of("the record", value)?;
    let format: u64 = fields.take("format")?;
    if format > FORMAT {
        return Err(Malformed::TooNew(format));
    }
    let id: String = fields.take("id")?;
    let id = NodeId::new(id).map_err(|e| Malformed::Broken(e.to_string()))?;
    Ok(Node {
        id,
        version: fields.count("version")?,
        write: fields.with("write", |hex: String| u128::from_str_radix(&hex, 16).ok().map(WriteId))?,
        generation: fields.count("generation")?,
        attempt: fields.count("attempt")?,
        state: state(&mut fields)?,
        progress: fields.0.shift_remove("progress"),
        forced: fields.object("forced", forced)?,
        extra: fields.0,
    })
}

fn state(fields: &mut Fields) -> Result<State, Malformed> {
    let name: String = fields.take("state")?;
    let missing = |what: &str| Malformed::Broken(format!("it is {name} and has no {what:?}"));
    match name.as_str() {
        "ready" => Ok(State::Ready),
        "claimed" => fields.object("claim", claim)?.map(State::Claimed).ok_or_else(|| missing("claim")),
        "blocked" => fields.object("block", block)?.map(State::Blocked).ok_or_else(|| missing("block")),
        "done" | "failed" | "cancelled" | "expired" => {
            let outcome = fields.object("outcome", outcome)?.ok_or_else(|| missing("outcome"))?;
            Ok(match name.as_str() {
                "done" => State::Done(outcome),
                "failed" => State::Failed(outcome),
                "cancelled" => State::Cancelled(outcome),
                _ => State::Expired(outcome),
            })
        }
        _ => Err(Malformed::Broken(format!("its state {name:?} is unknown"))),
    }
}

fn claim(mut fields: Fields) -> Result<Claim, Malformed> {
    let longest = i64::try_from(MAX_LEASE.as_millis()).unwrap_or(i64::MAX);
    let clock = fields.object("clock", |mut clock| Ok((clock.take("ends_mono_ms")?, place(&mut clock)?)))?;
    let (mono_ms, place) = clock.unwrap_or_default();
    Ok(Claim {
        owner: fields.take("owner")?,
        token_hash: fields.with("token_hash", |hex: String| TokenHash::from_hex(&hex))?,
        acquired_ms: fields.time("acquired_at")?,
        ends: LeaseEnd { wall_ms: fields.time("expires_at")?, mono_ms, place },
        lease_ms: fields.with("lease_ms", |ms: i64| (ms > 0).then_some(ms.min(longest)))?,
        host: fields.take("host")?,
        pid: fields.take("pid")?,
        bound: fields.object("process", bound)?,
        extra: fields.0,
    })
}

fn place(fields: &mut Fields) -> Result<Place, Malformed> {
    Ok(Place {
        machine: fields.take("machine")?,
        boot: fields.take("boot")?,
        time_namespace: fields.take("time_namespace")?,
    })
}

fn bound(mut fields: Fields) -> Result<Bound, Malformed> {
    let group = fields
        .object("group", |mut group| Ok(Group { id: group.take("id")?, start: group.take("start")? }))?;
    Ok(Bound {
        until_exit: fields.take("until_exit")?,
        process: Process {
            pid: fields.take("pid")?,
            start: fields.take("start")?,
            group,
            machine: fields.take("machine")?,
            boot: fields.take("boot")?,
            namespace: fields.take("namespace")?,
        },
    })
}

fn block(mut fields: Fields) -> Result<Block, Malformed> {
    Ok(Block {
        reason: fields.take("reason")?,
        by: fields.take("by")?,
        at_ms: fields.time("at")?,
        extra: fields.0,
    })
}

fn forced(mut fields: Fields) -> Result<Forced, Malformed> {
    Ok(Forced {
        reason: fields.take("reason")?,
        by: fields.take("by")?,
        from: fields.take("from")?,
        at_ms: fields.time("at")?,
    })
}

fn outcome(mut fields: Fields) -> Result<Outcome, Malformed> {
    fields.0.shift_remove("state"); // said again for people; the record's own state decides
    Ok(Outcome {
        result: fields.take("result")?,
        reason: fields.take("reason")?,
        by: fields.take("by")?,
        generation: fields.count("generation")?,
        at_ms: fields.time("at")?,
        token_hash: fields.with("token_hash", |hex: Option<String>| match hex {
            None => Some(None),
            Some(hex) => TokenHash::from_hex(&hex).map(Some),
        })?,
        extra: fields.0,
    })
}

/// An object's fields, taken out one by one; what is left is unknown and kept.
struct Fields(Map<String, Value>);

impl Fields {
    fn of(what: &str, value: Value) -> Result<Fields, Malformed> {
        match value {
            Value::Object(map) => Ok(Fields(map)),
            _ => Err(Malformed::Broken(format!("{what} is not a JSON object"))),
        }
    }

    /// A field of type `T`; one that is not there reads as `null`.
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Malformed> {
        self.with(name, Some)
    }

    fn with<T: DeserializeOwned, U>(
        &mut self,
        name: &str,
        accept: impl FnOnce(T) -> Option<U>,
    ) -> Result<U, Malformed> {
        let value = self.0.shift_remove(name).unwrap_or(Value::Null);
        serde_json::from_value(value)
            .ok()
            .and_then(accept)
            .ok_or_else(|| Malformed::Broken(format!("its field {name:?} is missing or wrong")))
    }

    /// A counter. One so high that it can't be counted on from is wrong.
    fn count(&mut self, name: &str) -> Result<u64, Malformed> {
        self.with(name, |n: u64| (n < u64::MAX / 2).then_some(n))
    }

    fn time(&mut self, name: &str) -> Result<i64, Malformed> {
        self.with(name, |text: String| parse_rfc3339(&text))
    }

    fn object<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Fields) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        match self.0.shift_remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(Fields::of(name, value)?).map(Some),
        }
    }
}

/// The record's bytes.
pub(crate) fn encode(node: &Node) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(&to_json(node, true)).unwrap_or_default(); // maps with text keys: no error is possible
    bytes.push(b'\n');
    bytes
}

/// The record for people and scripts: its fields by their names, without the secrets' hashes.
pub fn for_show(node: &Node) -> Map<String, Value> {
    to_json(node, false)
}

fn to_json(node: &Node, secrets: bool) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    put("format", json!(FORMAT));
    put("id", json!(node.id.as_str()));
    put("version", json!(node.version));
    put("write", json!(node.write.to_string()));
    put("state", json!(node.state.name()));
    put("generation", json!(node.generation));
    put("attempt", json!(node.attempt));
    match &node.state {
        State::Ready => {}
        State::Claimed(claim) => {
            put("claim", claim_json(claim, secrets));
        }
        State::Blocked(block) => {
            put(
                "block",
                with_extra(
                    json!({"reason": block.reason, "by": block.by, "at": rfc3339(block.at_ms)}),
                    &block.extra,
                ),
            );
        }
        State::Done(outcome)
        | State::Failed(outcome)
        | State::Cancelled(outcome)
        | State::Expired(outcome) => {
            put("outcome", outcome_json(node.state.name(), outcome, secrets));
        }
    }
    if let Some(progress) = &node.progress {
        put("progress", progress.clone());
    }
    if let Some(forced) = &node.forced {
        let Forced { reason, by, from, at_ms } = forced;
        put("forced", json!({"reason": reason, "by": by, "from": from, "at": rfc3339(*at_ms)}));
    }
    map.extend(node.extra.clone());
    map
}

fn claim_json(claim: &Claim, secrets: bool) -> Value {
    let LeaseEnd { wall_ms, mono_ms, place } = &claim.ends;
    let mut json = json!({
        "owner": claim.owner,
        "acquired_at": rfc3339(claim.acquired_ms),
        "expires_at": rfc3339(*wall_ms),
        "lease_ms": claim.lease_ms,
        "host": claim.host,
        "pid": claim.pid,
        "clock": {
            "ends_mono_ms": mono_ms,
            "machine": place.machine,
            "boot": place.boot,
            "time_namespace": place.time_namespace,
        },
    });
    if secrets {
        json["token_hash"] = json!(claim.token_hash.hex());
    }
    if let Some(Bound { process, until_exit }) = &claim.bound {
        let group = process.group.map(|Group { id, start }| json!({"id": id, "start": start}));
        json["process"] = json!({
            "pid": process.pid,
            "start": process.start,
            "group": group,
            "machine": process.machine,
            "boot": process.boot,
            "namespace": process.namespace,
            "until_exit": until_exit,
        });
    }
    with_extra(json, &claim.extra)
}

fn outcome_json(state: &str, outcome: &Outcome, secrets: bool) -> Value {
    let mut json = json!({
        "state": state,
        "result": outcome.result,
        "reason": outcome.reason,
        "by": outcome.by,
        "generation": outcome.generation,
        "at": rfc3339(outcome.at_ms),
    });
    if secrets {
        json["token_hash"] = json!(outcome.token_hash.map(|hash| hash.hex()));
    }
    with_extra(json, &outcome.extra)
}

fn with_extra(mut json: Value, extra: &Map<String, Value>) -> Value {
    if let Value::Object(map) = &mut json {
        map.extend(extra.clone());
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Node {
        let bytes = br#"{"format":1,"id":"a","version":3,"write":"ff","state":"claimed","generation":2,"attempt":1,
            "new":{"deep":[1.50]},"claim":{"owner":"x","token_hash":"0000000000000000000000000000000000000000000000000000000000000000",
            "acquired_at":"2026-11-29T00:00:00Z","expires_at":"2026-11-29T00:00:30Z","lease_ms":30000,"host":"h","pid":7,"hue":"red"}}"#;
        decode_any(bytes).unwrap()
    }

    #[test]
    fn a_rewrite_keeps_what_it_does_not_know() {
        let node = sample();
        let text = String::from_utf8(encode(&node)).unwrap();
        assert!(text.contains("1.50") && text.contains("hue"), "{text}");
        assert_eq!(decode(&node.id, text.as_bytes()), Ok(node));
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
