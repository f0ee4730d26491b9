//! Whatever bytes lie at a record's name.
//!
//! The first line of the input is the id, the rest is the record.

#![no_main]

use std::sync::{Arc, LazyLock};

use claimdir::domain::{Malformed, Node, State, for_show};
use claimdir::host::Os;
use claimdir::store::{Key, Memory, Store};
use claimdir::{Acquire, Directory, NodeId};
use libfuzzer_sys::fuzz_target;

static HOST: LazyLock<Arc<Os>> = LazyLock::new(|| Arc::new(Os::new()));

fuzz_target!(|input: &[u8]| {
    let line = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (id, rest) = input.split_at(line);
    let bytes = rest.get(1..).unwrap_or_default();
    let Some(id) = std::str::from_utf8(id).ok().and_then(|id| NodeId::new(id).ok()) else { return };
    match Node::from_bytes(&id, bytes) {
        Ok(node) => readable(&node, bytes),
        Err(Malformed::OtherNode(other)) => assert_ne!(other, id.as_str()),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
});

fn readable(node: &Node, bytes: &[u8]) {
    let rewritten = node.to_bytes();
    assert_eq!(Node::from_bytes(&node.id, &rewritten).as_ref(), Ok(node), "a rewrite changes nothing");
    for_show(node);
    let store = Arc::new(Memory::default());
    let key = Key::Node(node.id.clone());
    assert!(store.publish(&key, bytes).unwrap());
    let directory = Directory::over(store, HOST.clone());
    if let Ok(lease) = directory.try_acquire(&node.id, &Acquire::by("fuzz")).unwrap() {
        let (_, acquired) = lease.leave();
        assert_eq!(acquired.node.version, node.version + 1);
        assert_eq!(acquired.node.generation, node.generation + 1);
        assert_eq!(acquired.node.extra, node.extra, "what is unknown is kept");
        assert!(matches!(acquired.node.state, State::Claimed(_)));
    }
}
