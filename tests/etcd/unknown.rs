//! Answers that are lost: what was asked for was done, and the one who asked does not know.

use std::sync::atomic::Ordering;

use serde_json::Value;

use crate::Remote;
use crate::proxy::Proxy;
use crate::server::Cluster;

#[test]
fn who_asked_is_told_what_was_done() {
    let cluster = Cluster::start(1);
    let proxy = Proxy::before(cluster.nodes[0].port);
    let direct = Remote::on(&cluster, "unknown");
    let remote = Remote::at(format!("etcd://127.0.0.1:{}/unknown", proxy.port));
    let losing = |line: &str, meanwhile: &str| {
        let (before, mut other) = (proxy.lost.load(Ordering::SeqCst), direct.claim());
        other.args(meanwhile.split_whitespace());
        let act = meanwhile.to_owned();
        proxy.lose_one(move || assert!(act.is_empty() || other.output().unwrap().status.success()));
        let said = remote.json(line);
        assert_eq!(proxy.lost.load(Ordering::SeqCst), before + 1, "{line}: no answer was lost");
        said
    };
    // A record that was not there, and one that was.
    let mut token = String::new();
    for generation in 1..=2 {
        let taken: Value = losing("acquire x --owner alice", "").expect(0);
        assert_eq!((&taken["generation"], &taken["owner"]), (&generation.into(), &"alice".into()));
        token = taken["token"].as_str().unwrap().to_owned();
        let renewed: Value = losing(&format!("renew x --token {token}"), "").expect(0);
        assert_eq!(renewed["version"], 3 * generation - 1);
        if generation == 1 {
            let freed: Value = losing(&format!("release x --token {token}"), "").expect(0);
            assert_eq!(freed["replay"], false);
        }
    }
    // Somebody has written since: what there is now comes from this claim.
    let noted: Value = losing("acquire y --owner alice", "note y seen").expect(0);
    let free = format!("release y --token {}", noted["token"].as_str().unwrap());
    assert_eq!(direct.say(&free).exit, 0);
    let again: Value = losing("acquire y --owner alice", "note y seen-again").expect(0);
    assert_eq!(again["generation"], 2);
    // And where it does not tell, that is said.
    let done = format!("complete x --token {token} --result 1");
    let unclear = losing(&format!("renew x --token {token}"), &done);
    let refused: crate::Refused = unclear.expect(6);
    assert!(refused.hint.is_some_and(|hint| hint.contains("it may stand")), "{:?}", refused.message);
    // Each change that stands is told once.
    let told: Value = direct.json("log").expect(0);
    let told: Vec<String> = told["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| format!("{} {}", event["event"], event["id"]))
        .collect();
    let claims = told.iter().filter(|event| event.starts_with("\"claimed\"")).count();
    assert_eq!(claims, 4, "{told:?}");
    let sent: Value = remote.json("mail send box 1").expect(0);
    assert_eq!(sent["number"], 1);
}
