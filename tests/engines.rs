//! Every engine holds the store's contract.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;

use claimdir::NodeId;
use claimdir::host::Os;
use claimdir::store::files::{FileStore, Options};
use claimdir::store::{Key, Memory, Replaced, Store, contract};

#[test]
fn memory() {
    contract::check(&Memory::default());
}

fn directory(sync: bool) {
    let scratch = tempfile::tempdir().unwrap();
    let options = Options { sync, ..Options::default() };
    let store = FileStore::open(&scratch.path().join(".claims"), options, Arc::new(Os::new())).unwrap();
    contract::check(&store);
}

#[test]
fn directory_synced() {
    directory(true);
}

#[test]
fn directory_not_synced() {
    directory(false);
}

#[test]
fn the_next_writer_makes_what_a_maker_that_died_left_out() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join(".claims");
    std::fs::create_dir_all(path.join(".store/intents")).unwrap();
    let store = FileStore::open(&path, Options::default(), Arc::new(Os::new())).unwrap();
    let key = Key::Node(NodeId::new("parser").unwrap());
    assert!(store.make(&key).unwrap());
    assert!(matches!(store.replace(&key, b"", b"{}").unwrap(), Replaced::Done));
    assert!(path.join(".gitignore").exists() && path.join(".store/format").exists());
}
