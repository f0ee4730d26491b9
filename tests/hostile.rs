//! Whatever lies at a record's name, nothing panics, nothing outside the directory changes, and what can't be read
//! is left as it is. Whatever an id says, its file is its own and inside the directory.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claimdir::host::Os;
use claimdir::store::files::{FileStore, Options};
use claimdir::store::{Key, Prefix, Store};
use claimdir::{Acquire, Directory, NodeId, Renewal, Token};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

const UNSYNCED: Options = Options { sync: false, allow_shared: false };

/// A claim directory inside a folder whose other contents must never change.
struct Scratch {
    _folder: tempfile::TempDir,
    path: PathBuf,
    directory: Directory,
    id: NodeId,
}

impl Scratch {
    fn new() -> Scratch {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".claims");
        let directory = Directory::open_with(&path, UNSYNCED).unwrap();
        let id = NodeId::new("node").unwrap();
        directory.try_acquire(&id, &Acquire::by("owner")).unwrap().unwrap().leave();
        let scratch = Scratch { _folder: folder, path, directory, id };
        // A claim that is over, so that taking the node counts on from all that the record says.
        let mut record = scratch.record();
        record["claim"]["expires_at"] = json!("2000-01-01T00:00:00Z");
        record["claim"]["clock"]["boot"] = json!("an earlier one");
        fs::write(scratch.file(), record.to_string()).unwrap();
        scratch
    }

    fn file(&self) -> PathBuf {
        self.path.join("node.claim")
    }

    fn record(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap()
    }

    /// Puts `bytes` at the record's name and does all that can be done with it. None of it may panic, and if the
    /// record can't be read, none of it may change it.
    fn survive(&self, bytes: &[u8]) {
        fs::write(self.file(), bytes).unwrap();
        let token = Token::shown("no token");
        let readable = self.directory.node(&self.id).is_ok();
        let seen = self.directory.list().unwrap();
        assert_eq!(seen.unreadable.is_empty(), readable);
        assert_eq!(self.directory.doctor().unwrap().findings.is_empty(), readable);
        assert_eq!(self.directory.check(&self.id, &token).is_ok(), readable);
        let renewed = self.directory.renew(&self.id, &token, &Renewal::default());
        assert!(
            renewed.is_err() != readable && !matches!(renewed, Ok(Ok(_))),
            "a token nobody was given renews nothing"
        );
        assert_eq!(fs::read(self.file()).unwrap(), bytes, "a refused write changes nothing");
        let taken = self.directory.try_acquire(&self.id, &Acquire::by("other"));
        if let Err(error) = &taken {
            assert_eq!(error.code().exit(), 6, "{error}");
            assert!(error.to_string().contains("node.claim"), "{error}");
            assert_eq!(fs::read(self.file()).unwrap(), bytes, "what can't be read is left as it is");
        }
        assert_eq!(taken.is_ok(), readable);
        if let Ok(Ok(lease)) = taken {
            lease.leave();
        }
    }
}

/// JSON of any shape, some of it hostile.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|n| json!(n)),
        any::<String>().prop_map(Value::from),
        Just(json!("9999-12-31T23:59:59.999999999Z")),
        Just(json!("-009999-01-01T00:00:00Z")),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Every path to a value in `value`.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    if let Value::Object(fields) = value {
        for (name, value) in fields {
            pointers(value, &format!("{at}/{name}"), found);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_for_a_record(bytes in vec(any::<u8>(), 1..400)) {
        Scratch::new().survive(&bytes);
    }

    #[test]
    fn a_record_with_bytes_torn_zeroed_or_changed(at in any::<prop::sample::Index>(), length in 1usize..64, how in 0u8..4, byte in any::<u8>()) {
        let scratch = Scratch::new();
        let mut bytes = fs::read(scratch.file()).unwrap();
        let at = at.index(bytes.len());
        let end = (at + length).min(bytes.len());
        match how {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at..end].fill(0),
            2 => bytes[at..end].fill(byte),
            _ => drop(bytes.drain(at..end)),
        }
        scratch.survive(&bytes);
    }

    #[test]
    fn a_record_with_any_value_anywhere(value in any_json(), which in any::<prop::sample::Index>()) {
        let scratch = Scratch::new();
        let mut record = scratch.record();
        let mut places = Vec::new();
        pointers(&record, "", &mut places);
        *record.pointer_mut(which.get::<String>(&places)).unwrap() = value;
        scratch.survive(record.to_string().as_bytes());
    }

    #[test]
    fn any_two_ids_differ_on_disk(one in id(), other in id()) {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join(".claims");
        let store = FileStore::open(&path, UNSYNCED, Arc::new(Os::new())).unwrap();
        let (one, other) = (Key::Node(one), Key::Node(other));
        if one != other {
            prop_assert_ne!(store.place(Some(&one)), store.place(Some(&other)));
        }
        // The name is made, found again, and nothing else is there.
        prop_assert!(store.make(&one).unwrap());
        let file = PathBuf::from(store.place(Some(&one)));
        prop_assert!(file.starts_with(&path) && file.is_file());
        prop_assert!(file.components().all(|part| part.as_os_str() != ".."));
        prop_assert_eq!(store.list(&Prefix::Nodes, None, 9).unwrap(), [one]);
        prop_assert_eq!(names(scratch.path()), [".claims"]);
    }

    #[test]
    fn any_ids_are_listed_in_order(
        ids in btree_set(id(), 1..24),
        other in id(),
        which in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        limit in 0usize..9,
    ) {
        let scratch = tempfile::tempdir().unwrap();
        let store = FileStore::open(&scratch.path().join(".claims"), UNSYNCED, Arc::new(Os::new())).unwrap();
        for id in &ids {
            prop_assert!(store.make(&Key::Node(id.clone())).unwrap());
        }
        let nodes: BTreeSet<&str> = ids.iter().map(NodeId::as_str).collect();
        let one = *which.get(&nodes.iter().copied().collect::<Vec<_>>());
        let part = one.char_indices().map(|(at, _)| &one[..at]).nth(cut.index(one.chars().count())).unwrap();
        let folder = one.rsplit_once('/').map_or(one, |(folder, _)| folder);
        let below: BTreeSet<&str> = nodes.iter().copied().filter(|id| is_below(folder, id)).collect();
        for after in [None, Some(one), Some(part), Some(folder), Some(other.as_str())] {
            for limit in [limit, usize::MAX] {
                prop_assert_eq!(listed(&store, &Prefix::Nodes, after, limit), page(&nodes, after, limit));
                prop_assert_eq!(listed(&store, &Prefix::Below(folder), after, limit), page(&below, after, limit));
            }
        }
    }

    #[test]
    fn any_hints_are_listed_in_order(
        ids in btree_set(id(), 1..24),
        which in any::<prop::sample::Index>(),
        limit in 0usize..9,
    ) {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join(".claims");
        let store = FileStore::open(&path, UNSYNCED, Arc::new(Os::new())).unwrap();
        store.prepare().unwrap();
        // A name of the store's own is an entry or a folder.
        let is_entry = |id: &&NodeId| !ids.iter().any(|other| is_below(id.as_str(), other.as_str()));
        let hints: Vec<String> = ids.iter().filter(is_entry).map(|id| format!("due/{id}")).collect();
        for hint in &hints {
            store.hint(&Key::internal(hint.clone()).unwrap()).unwrap();
        }
        let all: BTreeSet<&str> = hints.iter().map(String::as_str).collect();
        for (after, limit) in [(None, usize::MAX), (Some(which.get(&hints).as_str()), limit)] {
            prop_assert_eq!(listed(&store, &Prefix::Internal("due"), after, limit), page(&all, after, limit));
        }
        for hint in &hints {
            store.unhint(&Key::internal(hint.clone()).unwrap()).unwrap();
        }
        store.tidy();
        prop_assert!(names(&path.join(".store/due")).is_empty());
    }
}

fn is_below(folder: &str, id: &str) -> bool {
    id.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// What a listing has to say of these keys.
fn page(keys: &BTreeSet<&str>, after: Option<&str>, limit: usize) -> Vec<String> {
    let rest = keys.iter().filter(|key| after.is_none_or(|after| **key > after));
    rest.take(limit).map(|key| (*key).to_owned()).collect()
}

fn listed(store: &dyn Store, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Vec<String> {
    let keys = store.list(prefix, after, limit).unwrap();
    keys.iter().map(|key| key.name().to_owned()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Ids made of what is likely to go wrong in a file name.
fn id() -> impl Strategy<Value = NodeId> {
    let part = prop_oneof![
        Just("..".to_owned()),
        Just(".claim".to_owned()),
        Just("a.claim".to_owned()),
        Just("%2E".to_owned()),
        Just("%".to_owned()),
        Just("a".repeat(300)),
        (238usize..242, "[ !0/b]{0,3}").prop_map(|(length, tail)| "a".repeat(length) + &tail),
        (78usize..82, "[a-c]{0,2}").prop_map(|(length, head)| head + &"ä".repeat(length)),
        (238usize..242, "\\.{1,2}[a-b]?").prop_map(|(length, tail)| "a".repeat(length) + &tail),
        "[a-c%./ \\\\_-]{1,3}",
        any::<String>(),
    ];
    vec(part, 1..4).prop_filter_map("not an id", |parts| NodeId::new(parts.join("/")).ok())
}

#[test]
fn records_of_hostile_sizes_and_depths() {
    let scratch = Scratch::new();
    for bytes in [b"[".repeat(1 << 20), b"{\"a\":".repeat(1 << 18), vec![0; 1 << 20], vec![b' '; 5 << 20]] {
        scratch.survive(&bytes);
    }
    let mut record = Scratch::new().record();
    for counter in ["version", "generation", "attempt"] {
        record[counter] = json!(u64::MAX);
        scratch.survive(record.to_string().as_bytes());
        record[counter] = json!(1);
    }
}
