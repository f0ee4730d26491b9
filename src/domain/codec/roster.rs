//! A roster as JSON, an entry a line.
//!
//! Read and written without a tree of values in between: a roster of a thousand entries is read at every claim
//! that has paths.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::{FORMAT, Fields, MAX_RECORD_BYTES, Malformed, check_format};
use crate::domain::record::{Name as PoolName, RepoPath, TokenHash, WriteId};
use crate::domain::roster::{Entry, Pool, Roster};
use crate::error::{Code, Error};
use crate::id::NodeId;

/// The roster that `bytes` say; empty ones say that nothing is reserved.
pub(crate) fn decode(bytes: &[u8]) -> Result<Roster, Malformed> {
    if bytes.is_empty() {
        return Ok(Roster::default());
    }
    serde_json::from_slice(bytes).map_err(|why| {
        // A newer format may have another shape altogether.
        let format = Fields::parse("the roster", bytes).and_then(|mut fields| check_format(&mut fields));
        format.err().unwrap_or_else(|| Malformed::Broken(format!("the roster can't be read: {why}")))
    })
}

/// The roster's bytes, made by the write `write`; refused if they are more than can be read again.
pub(crate) fn encode(roster: &Roster, write: WriteId) -> crate::Result<Vec<u8>> {
    let mut text = format!(
        "{{\n  \"format\": {FORMAT},\n  \"version\": {},\n  \"write\": \"{write}\",\n",
        roster.version
    );
    if let Some(Pool { name, capacity }) = &roster.pool {
        text.push_str(&format!("  \"name\": {},\n  \"capacity\": {capacity},\n", Value::from(name.as_str())));
    }
    for (name, value) in &roster.extra {
        text.push_str(&format!("  {}: {value},\n", Value::from(name.as_str())));
    }
    text.push_str("  \"entries\": [");
    for (at, entry) in roster.entries.iter().enumerate() {
        text.push_str(if at == 0 { "\n    " } else { ",\n    " });
        text.push_str(&serde_json::to_string(entry).unwrap_or_default()); // text keys: no error is possible
    }
    text.push_str("\n  ]\n}\n");
    if text.len() > MAX_RECORD_BYTES {
        let message = format!(
            "the roster would have {} bytes, and {MAX_RECORD_BYTES} are the most; nothing was changed",
            text.len()
        );
        return Err(Error::new(Code::Usage, message).hint("reserve folders rather than many files"));
    }
    Ok(text.into_bytes())
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("node", self.node.as_str())?;
        if !self.paths.is_empty() {
            map.serialize_entry("paths", &self.paths.iter().map(RepoPath::as_str).collect::<Vec<_>>())?;
        }
        map.serialize_entry("replaces", &self.replaces.map(|write| write.to_string()))?;
        map.serialize_entry("token_hash", &self.token_hash.hex())?;
        map.serialize_entry("attempt", &format!("{:032x}", self.attempt))?;
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A field's name, without a copy where it is known.
enum Name {
    Known(&'static str),
    Other(String),
}

const NAMES: [&str; 11] = [
    "node",
    "paths",
    "replaces",
    "token_hash",
    "attempt",
    "format",
    "version",
    "write",
    "entries",
    "name",
    "capacity",
];

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        struct Names;
        impl Visitor<'_> for Names {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }
            fn visit_str<E>(self, text: &str) -> Result<Name, E> {
                let known = NAMES.iter().find(|name| **name == text);
                Ok(known.map_or_else(|| Name::Other(text.to_owned()), |name| Name::Known(name)))
            }
        }
        deserializer.deserialize_identifier(Names)
    }
}

fn hex<E: serde::de::Error>(text: &str) -> Result<u128, E> {
    u128::from_str_radix(text, 16).map_err(E::custom)
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Entry;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an entry")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
                let (mut node, mut paths, mut replaces, mut token_hash, mut attempt) =
                    (None, None, None, None, None);
                let mut extra = Map::new();
                while let Some(name) = map.next_key::<Name>()? {
                    match name {
                        Name::Known("node") => {
                            node = Some(NodeId::new(map.next_value::<String>()?).map_err(A::Error::custom)?);
                        }
                        Name::Known("paths") => paths = Some(map.next_value::<Vec<RepoPath>>()?),
                        Name::Known("replaces") => {
                            let write = map.next_value::<Option<String>>()?;
                            replaces = Some(write.map(|write| hex(&write).map(WriteId::of)).transpose()?);
                        }
                        Name::Known("token_hash") => {
                            token_hash = TokenHash::from_hex(&map.next_value::<String>()?);
                        }
                        Name::Known("attempt") => attempt = Some(hex(&map.next_value::<String>()?)?),
                        Name::Known(other) => drop(extra.insert(other.to_owned(), map.next_value()?)),
                        Name::Other(other) => drop(extra.insert(other, map.next_value()?)),
                    }
                }
                let missing = |name| A::Error::custom(format!("{name:?} is missing or wrong"));
                Ok(Entry {
                    attempt: attempt.ok_or_else(|| missing("attempt"))?,
                    node: node.ok_or_else(|| missing("node"))?,
                    replaces: replaces.ok_or_else(|| missing("replaces"))?,
                    token_hash: token_hash.ok_or_else(|| missing("token_hash"))?,
                    paths: paths.unwrap_or_default(),
                    extra,
                })
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RepoPath, D::Error> {
        let text = String::deserialize(deserializer)?;
        RepoPath::recorded(text).ok_or_else(|| D::Error::custom("a path is not in normal form"))
    }
}

impl<'de> Deserialize<'de> for Roster {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Roster, D::Error> {
        struct Rosters;
        impl<'de> Visitor<'de> for Rosters {
            type Value = Roster;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a roster")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Roster, A::Error> {
                let (mut format, mut entries, mut roster) = (None, None, Roster::default());
                let (mut pool, mut capacity) = (None, None);
                while let Some(name) = map.next_key::<Name>()? {
                    match name {
                        Name::Known("format") => format = Some(map.next_value::<u64>()?),
                        Name::Known("version") => roster.version = map.next_value()?,
                        Name::Known("write") => drop(map.next_value::<String>()?),
                        Name::Known("name") => {
                            let name = PoolName::new(map.next_value::<String>()?);
                            pool = Some(name.map_err(A::Error::custom)?);
                        }
                        Name::Known("capacity") => capacity = Some(map.next_value::<u64>()?),
                        Name::Known("entries") => entries = Some(map.next_value()?),
                        Name::Known(other) => drop(roster.extra.insert(other.to_owned(), map.next_value()?)),
                        Name::Other(other) => drop(roster.extra.insert(other, map.next_value()?)),
                    }
                }
                if format.is_none_or(|format| format > FORMAT) {
                    return Err(A::Error::custom("its format is missing or newer"));
                }
                if roster.version > u64::MAX / 2 {
                    return Err(A::Error::custom("its version is wrong"));
                }
                roster.pool = match (pool, capacity) {
                    (Some(name), Some(capacity @ 1..)) => Some(Pool { name, capacity }),
                    (None, None) => None,
                    _ => return Err(A::Error::custom("its name or its capacity is missing or wrong")),
                };
                roster.entries = entries.ok_or_else(|| A::Error::missing_field("entries"))?;
                Ok(roster)
            }
        }
        deserializer.deserialize_map(Rosters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Token;
    use serde_json::json;

    fn sample() -> Roster {
        let entry = |node: &str, replaces, paths: &[&str]| Entry {
            attempt: 7,
            node: NodeId::new(node).unwrap(),
            replaces,
            token_hash: Token::of(5).hash(),
            paths: paths.iter().map(|path| RepoPath::new(path).unwrap()).collect(),
            extra: Map::from_iter([("hue".to_owned(), json!(1.50))]),
        };
        Roster {
            version: 3,
            pool: None,
            entries: vec![entry("a", None, &["."]), entry("b\"\n", Some(WriteId::of(9)), &["x/ä", "y"])],
            extra: Map::from_iter([("new".to_owned(), json!({"deep": [1]}))]),
        }
    }

    #[test]
    fn a_rewrite_keeps_everything() {
        let pool =
            Roster { pool: Some(Pool { name: PoolName::new("a/\"").unwrap(), capacity: 2 }), ..sample() };
        for roster in [sample(), pool, Roster::default()] {
            let bytes = encode(&roster, WriteId::of(1)).unwrap();
            assert_eq!(decode(&bytes), Ok(roster), "{}", String::from_utf8_lossy(&bytes));
        }
        assert_eq!(decode(b""), Ok(Roster::default()));
    }

    #[test]
    fn refuses_a_newer_format_whatever_its_shape() {
        for bytes in [&br#"{"format":2,"entries":{}}"#[..], br#"{"entries":[],"format":2}"#] {
            assert_eq!(decode(bytes), Err(Malformed::TooNew(2)));
        }
    }

    #[test]
    fn refuses_what_is_no_roster() {
        let good = String::from_utf8(encode(&sample(), WriteId::of(1)).unwrap()).unwrap();
        for (from, to) in [
            ("\"format\"", "\"form\""),
            ("\"entries\"", "\"entry\""),
            ("\"y\"", "\"/y\""),
            ("\"attempt\"", "\"at\""),
            ("\"replaces\"", "\"replace\""),
            ("\"node\":\"a\"", "\"node\":\"\""),
            ("\"version\": 3", "\"version\": 18446744073709551615"),
        ] {
            let bad = good.replace(from, to);
            assert_ne!(bad, good);
            assert!(matches!(decode(bad.as_bytes()), Err(Malformed::Broken(_))), "{to}");
        }
        for bytes in [&b"\0\0"[..], b"{", b"[]", b"\xff", &good.as_bytes()[..good.len() / 2]] {
            assert!(matches!(decode(bytes), Err(Malformed::Broken(_))), "{bytes:?}");
        }
    }
}
