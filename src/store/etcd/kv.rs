//! Ranges and transactions, as etcd's JSON gateway has them: bytes in base64, numbers as strings, and what is zero,
//! empty or false is left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::http::{Client, Failure, Reply, strange};
use crate::error::Result;

/// A key with its value.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pair {
    #[serde(deserialize_with = "bytes")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "bytes")]
    pub(super) value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    pub(super) mod_revision: i64,
    /// The store's revision that this was read at.
    #[serde(skip)]
    pub(super) at: i64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Header {
    #[serde(deserialize_with = "number")]
    revision: i64,
}

/// The answer to a range.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ranged {
    header: Header,
    pub(super) kvs: Vec<Pair>,
    pub(super) more: bool,
}

impl Ranged {
    pub(super) fn first(self) -> Option<Pair> {
        let at = self.header.revision;
        self.kvs.into_iter().next().map(|pair| Pair { at, ..pair })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Deleted {
    #[serde(deserialize_with = "number")]
    deleted: i64,
}

/// One operation's answer within a transaction's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response {
    response_range: Option<Ranged>,
    response_delete_range: Option<Deleted>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Decided {
    header: Header,
    succeeded: bool,
    responses: Vec<Response>,
}

/// What became of a transaction.
pub(super) struct Outcome {
    /// Did its comparison hold, and was it carried out?
    pub(super) succeeded: bool,
    /// What its range found, if it had one.
    pub(super) found: Option<Vec<u8>>,
    /// How many keys it removed.
    pub(super) deleted: i64,
    /// May an earlier try of it have been carried out too?
    pub(super) in_doubt: bool,
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(from)?).map_err(serde::de::Error::custom)
}

pub(super) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// The end of the range of all keys that begin as `prefix` does, which ends with a slash.
pub(super) fn end_of(prefix: &str) -> String {
    let mut end = prefix.to_owned();
    end.pop();
    end.push('0'); // the character after the slash
    end
}

/// Nothing is at `key`.
pub(super) fn is_absent(key: &str) -> Value {
    json!({"key": base64(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"})
}

/// The value at `key` is this one.
pub(super) fn has_value(key: &str, value: &[u8]) -> Value {
    json!({"key": base64(key), "target": "VALUE", "result": "EQUAL", "value": base64(value)})
}

/// What is at `key` was last written at this revision.
pub(super) fn is_at(key: &str, mod_revision: i64) -> Value {
    json!({"key": base64(key), "target": "MOD", "result": "EQUAL", "mod_revision": mod_revision.to_string()})
}

pub(super) fn put(key: &str, value: &[u8]) -> Value {
    json!({"request_put": {"key": base64(key), "value": base64(value)}})
}

pub(super) fn get(key: &str) -> Value {
    json!({"request_range": {"key": base64(key)}})
}

pub(super) fn delete(key: &str) -> Value {
    json!({"request_delete_range": {"key": base64(key)}})
}

pub(super) fn delete_below(prefix: &str) -> Value {
    json!({"request_delete_range": {"key": base64(prefix), "range_end": base64(end_of(prefix))}})
}

/// The key itself.
pub(super) fn one(key: &str) -> Value {
    json!({"key": base64(key)})
}

/// At most `limit` keys from `from` on and before `end`, without their values.
pub(super) fn names(from: &str, end: &str, limit: usize) -> Value {
    json!({
        "key": base64(from),
        "range_end": base64(end),
        "limit": limit.to_string(),
        "keys_only": true,
    })
}

/// Keys and values.
pub(super) struct Kv {
    pub(super) client: Arc<Client>,
    /// The newest revision seen.
    revision: AtomicI64,
}

impl Kv {
    pub(super) fn new(client: Client) -> Kv {
        Kv { client: Arc::new(client), revision: AtomicI64::new(0) }
    }

    /// The newest revision that an answer named; 0 before the first.
    pub(super) fn revision(&self) -> i64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// The value at `key` now, by a linearizable read.
    pub(super) fn read(&self, key: &str) -> Result<Option<Pair>> {
        Ok(self.range(&one(key))?.first())
    }

    /// The same as it was at `revision`.
    pub(super) fn read_at(&self, key: &str, revision: i64) -> Result<Option<Pair>> {
        let range = json!({"key": base64(key), "revision": revision.to_string()});
        Ok(self.range(&range)?.first())
    }

    /// What each of `ranges` gives, as of one moment: at most 128 of them.
    pub(super) fn ranges(&self, ranges: &[Value]) -> Result<Vec<Ranged>> {
        let then: Vec<Value> = ranges.iter().map(|range| json!({"request_range": range})).collect();
        let reply = self.send(&[], &then, &[]).map_err(|failure| failure.error)?;
        let header = reply.says.header;
        let ranged = |response: Response| Ranged { header, ..response.response_range.unwrap_or_default() };
        let all: Vec<Ranged> = reply.says.responses.into_iter().map(ranged).collect();
        match all.len() == ranges.len() {
            true => Ok(all),
            false => Err(strange("a transaction has another number of answers than it has questions")),
        }
    }

    pub(super) fn range(&self, range: &Value) -> Result<Ranged> {
        let ranged: Ranged = self.client.call("/v3/kv/range", range).map_err(|failure| failure.error)?.says;
        self.revision.fetch_max(ranged.header.revision, Ordering::Relaxed);
        Ok(ranged)
    }

    /// The same for who takes what may have been carried out for an error.
    pub(super) fn change(&self, compare: &[Value], then: &[Value], otherwise: &[Value]) -> Result<Outcome> {
        self.transact(compare, then, otherwise).map_err(Failure::told)
    }

    /// All of `then` if `compare` holds, else all of `otherwise`.
    pub(super) fn transact(
        &self,
        compare: &[Value],
        then: &[Value],
        otherwise: &[Value],
    ) -> Result<Outcome, Failure> {
        let reply = self.send(compare, then, otherwise)?;
        let (mut found, mut deleted) = (None, 0);
        for response in reply.says.responses {
            found = found.or(response.response_range.and_then(Ranged::first));
            deleted += response.response_delete_range.map_or(0, |removed| removed.deleted);
        }
        let found = found.map(|pair| pair.value);
        Ok(Outcome { succeeded: reply.says.succeeded, found, deleted, in_doubt: reply.in_doubt })
    }
    fn send(
        &self,
        compare: &[Value],
        then: &[Value],
        otherwise: &[Value],
    ) -> Result<Reply<Decided>, Failure> {
        let body = json!({"compare": compare, "success": then, "failure": otherwise});
        let reply = self.client.call::<Decided>("/v3/kv/txn", &body)?;
        self.revision.fetch_max(reply.says.header.revision, Ordering::Relaxed);
        Ok(reply)
    }
}
