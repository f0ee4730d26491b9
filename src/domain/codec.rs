//! A record as JSON that `cat` shows well.
//!
//! Decoding takes the fields it knows out of the object and keeps the rest, so that a program of the same
//! format that knows less loses nothing on a rewrite. A newer format is refused, not guessed.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::node::{Block, Bound, Claim, Forced, LeaseEnd, Node, Outcome, State, TokenHash, WriteId};
use crate::error::Error;
use crate::host::{Group, Place, Process};
use crate::id::NodeId;
use crate::time::{MAX_LEASE, parse_rfc3339, rfc3339};

/// The format that this program writes, and the newest it reads.
pub const FORMAT: u64 = 1;

/// The most bytes a record may have.
pub(crate) const MAX_RECORD_BYTES: usize = 4 << 20;

/// The deepest that a user's value may be nested: reading a record stops at 128, and the value lies within it.
const MAX_DEPTH: usize = 100;

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
    let mut unknown = Map::new();
    let clock = fields.object("clock", |mut clock| {
        let clock_end = (clock.take("ends_mono_ms")?, place(&mut clock)?);
        keep("clock", clock.0, &mut unknown);
        Ok(clock_end)
    })?;
    let (mono_ms, place) = clock.unwrap_or_default();
    let bound = fields.object("process", |process| bound(process, &mut unknown))?;
    Ok(Claim {
        owner: fields.take("owner")?,
        token_hash: fields.with("token_hash", |hex: String| TokenHash::from_hex(&hex))?,
        acquired_ms: fields.time("acquired_at")?,
        ends: LeaseEnd { wall_ms: fields.time("expires_at")?, mono_ms, place },
        lease_ms: fields.with("lease_ms", |ms: i64| (ms > 0).then_some(ms.min(longest)))?,
        host: fields.take("host")?,
        pid: fields.take("pid")?,
        bound,
        extra: {
            unknown.extend(fields.0);
            unknown
        },
    })
}

fn place(fields: &mut Fields) -> Result<Place, Malformed> {
    Ok(Place {
        machine: fields.take("machine")?,
        boot: fields.take("boot")?,
        time_namespace: fields.take("time_namespace")?,
    })
}

fn bound(mut fields: Fields, unknown: &mut Map<String, Value>) -> Result<Bound, Malformed> {
    let mut of_process = Map::new();
    let group = fields.object("group", |mut group| {
        let named = Group { id: group.take("id")?, start: group.take("start")? };
        keep("group", group.0, &mut of_process);
        Ok(named)
    })?;
    let bound = Bound {
        until_exit: fields.take("until_exit")?,
        process: Process {
            pid: fields.take("pid")?,
            start: fields.take("start")?,
            group,
            machine: fields.take("machine")?,
            boot: fields.take("boot")?,
            namespace: fields.take("namespace")?,
        },
    };
    of_process.extend(fields.0);
    keep("process", of_process, unknown);
    Ok(bound)
}

/// Notes what is unknown in the object `name` where the object around it keeps its own unknown fields.
fn keep(name: &str, unknown: Map<String, Value>, around: &mut Map<String, Value>) {
    if !unknown.is_empty() {
        around.insert(name.to_owned(), Value::Object(unknown));
    }
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
        extra: fields.0,
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
        let Forced { reason, by, from, at_ms, extra } = forced;
        let json = json!({"reason": reason, "by": by, "from": from, "at": rfc3339(*at_ms)});
        put("forced", with_extra(json, extra));
    }
    for (name, value) in &node.extra {
        map.entry(name.as_str()).or_insert_with(|| value.clone());
    }
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

/// Adds the fields that are unknown, also those of the objects within. What is known wins.
fn with_extra(mut json: Value, extra: &Map<String, Value>) -> Value {
    if let Value::Object(known) = &mut json {
        for (name, value) in extra {
            match (known.get_mut(name), value) {
                (None, _) => {
                    known.insert(name.clone(), value.clone());
                }
                (Some(inner), Value::Object(extra)) => *inner = with_extra(inner.take(), extra),
                (Some(_), _) => {}
            }
        }
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
        let node = decode_any(json.to_string().as_bytes()).unwrap();
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
            reason: None,
            by: "x".to_owned(),
            generation: 2,
            at_ms: 0,
            token_hash: None,
            extra: Map::new(),
        };
        node.state = State::Done(outcome);
        assert_eq!(decode(&node.id, &encode_within_limit(&node).unwrap()), Ok(node.clone()));
        node.progress = Some(Value::String("x".repeat(MAX_RECORD_BYTES)));
        assert!(encode_within_limit(&node).is_err());
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
