//! Every engine holds the store's contract.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;

use claimdir::host::Os;
use claimdir::store::files::{FileStore, Options};
use claimdir::store::{Memory, contract};

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
