//! The engine holds the store's contract, and more that only it has.

use std::sync::Arc;

use claimdir::host::Os;
use claimdir::store::etcd::{Address, EtcdStore, Options};
use claimdir::store::{Key, Measured, Prefix, Replaced, Store, contract};
use claimdir::{Code, NodeId};
use serde_json::json;

use crate::server::Cluster;

fn open(url: &str) -> EtcdStore {
    EtcdStore::open(&Address::parse(url).unwrap(), Options::default(), Arc::new(Os::new())).unwrap()
}

#[test]
fn the_contract_holds() {
    let cluster = Cluster::start(1);
    contract::check(&open(&cluster.url("contract")));
    directories_with_prefixes_alike_keep_apart(&cluster);
    a_large_record_is_replaced_and_one_too_large_refused(&cluster);
    what_looks_like_a_header_is_kept_as_it_is(&cluster);
    a_newer_format_is_refused(&cluster);
    a_list_goes_on_over_pages(&cluster);
}

fn directories_with_prefixes_alike_keep_apart(cluster: &Cluster) {
    let (short, long) = (open(&cluster.url("team")), open(&cluster.url("team/n")));
    let key = Key::Node(NodeId::new("x").unwrap());
    assert!(short.make(&key).unwrap() && long.make(&key).unwrap());
    for store in [short, long] {
        assert_eq!(store.list(&Prefix::Nodes, None, 9).unwrap(), std::slice::from_ref(&key));
    }
}

fn a_large_record_is_replaced_and_one_too_large_refused(cluster: &Cluster) {
    let store = open(&cluster.url("large"));
    let key = Key::Node(NodeId::new("x").unwrap());
    let of = |byte: u8| vec![byte; 1_300_000];
    store.make(&key).unwrap();
    assert!(matches!(store.replace(&key, b"", &of(1)).unwrap(), Replaced::Done));
    assert!(matches!(store.replace(&key, &of(1), &of(2)).unwrap(), Replaced::Done));
    let lost = store.replace(&key, &of(1), &of(3)).unwrap();
    assert!(matches!(lost, Replaced::Changed(Some(now)) if now == of(2)));
    let refused = store.replace(&key, &of(2), &vec![4; 1_600_000]).unwrap_err();
    assert_eq!(refused.code(), Code::Usage, "{refused}");
    assert_eq!(store.read(&key).unwrap(), Some(of(2)));
}

fn what_looks_like_a_header_is_kept_as_it_is(cluster: &Cluster) {
    let store = open(&cluster.url("header"));
    for (name, length) in [("a/short", 0), ("a/long", 3 << 20)] {
        let key = Key::internal(name).unwrap();
        let bytes = [&b"\0claim pieces\0count=3"[..], &vec![b'x'; length]].concat();
        assert!(store.publish(&key, &bytes).unwrap());
        assert_eq!(store.read(&key).unwrap(), Some(bytes.clone()));
        assert!(!store.publish_from(&key, &mut Measured::new(&mut &bytes[..], 9 << 20)).unwrap());
        assert!(store.remove(&key).unwrap());
    }
    // Of what was removed no piece is left.
    let range = json!({"key": "aGVhZGVyLy9w", "range_end": "aGVhZGVyLy9x", "count_only": true}); // header//p to header//q
    let left = cluster.nodes[0].ask("/v3/kv/range", &range.to_string());
    assert!(left["header"].is_object() && left["count"].is_null(), "{left}");
}

fn a_newer_format_is_refused(cluster: &Cluster) {
    let put = json!({"key": "bmV3ZXIvL2Zvcm1hdA==", "value": "eyJmb3JtYXQiOjl9"}); // newer//format {"format":9}
    cluster.nodes[0].ask("/v3/kv/put", &put.to_string());
    let refused = open(&cluster.url("newer")).read(&Key::internal("a/b").unwrap()).unwrap_err();
    assert_eq!(refused.code(), Code::FormatTooNew, "{refused}");
}

fn a_list_goes_on_over_pages(cluster: &Cluster) {
    let store = open(&cluster.url("pages"));
    let names: Vec<String> = (0..30).map(|n| format!("p/{:02}/{n}", n / 3)).collect();
    names.iter().for_each(|name| store.hint(&Key::internal(name.as_str()).unwrap()).unwrap());
    let parts: Vec<String> = (0..10).map(|n| format!("{n:02}")).collect();
    assert_eq!(store.parts("p").unwrap(), parts);
    let listed = store.list(&Prefix::Internal("p"), Some("p/04/13"), 5).unwrap();
    assert_eq!(listed.iter().map(Key::name).collect::<Vec<_>>(), &names[14..19]);
}
