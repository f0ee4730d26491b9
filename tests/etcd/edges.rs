//! What goes wrong with a server that is there: it is full, forgets a token, forgets old revisions.

use serde_json::{Value, json};

use crate::Remote;
use crate::server::Cluster;
use crate::support::{Running, World, said, until};

#[test]
fn a_full_server_loses_nothing() {
    let cluster = Cluster::start_with(&["--quota-backend-bytes", "2000000"]);
    let node = &cluster.nodes[0];
    let remote = Remote::on(&cluster, "full");
    let held = remote.take("held --owner alice");
    let more = json!({"key": "eA==", "value": "eHh4".repeat(100_000)}).to_string();
    until("it is full", || node.ask("/v3/kv/put", &more)["header"].is_null());
    for line in
        ["acquire other", "add task", "mail send box 1", &format!("renew held --token {}", held.token)]
    {
        let refused = remote.refused(line, 6, "NO_SPACE");
        assert!(refused.hint.is_some_and(|hint| hint.contains("NOSPACE")), "{line}: {}", refused.message);
    }
    // What is there can be read, and what was refused is not there.
    assert_eq!(remote.say(&format!("check held --token {}", held.token)).exit, 0);
    assert_eq!(remote.say("list").out.lines().count(), 1);
    let told: Value = remote.json("doctor").expect(6);
    assert!(told["findings"][0]["what"].as_str().unwrap().contains("NOSPACE"), "{told}");
    // There is room again.
    let revision =
        node.ask("/v3/kv/range", r#"{"key":"eA=="}"#)["header"]["revision"].as_str().unwrap().to_owned();
    node.ask("/v3/kv/deleterange", r#"{"key":"eA=="}"#);
    node.ask("/v3/kv/compaction", &json!({"revision": revision, "physical": true}).to_string());
    node.ask("/v3/maintenance/defragment", "{}");
    let alarms = node.ask("/v3/maintenance/alarm", "{}");
    let alarm =
        json!({"action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": alarms["alarms"][0]["memberID"]});
    node.ask("/v3/maintenance/alarm", &alarm.to_string());
    assert_eq!(remote.say(&format!("complete held --token {} --result 1", held.token)).exit, 0);
}

#[test]
fn a_user_whose_token_is_forgotten_goes_on() {
    let cluster = Cluster::start_with(&["--auth-token-ttl", "1"]);
    let node = &cluster.nodes[0];
    node.ask("/v3/auth/user/add", &json!({"name": "root", "password": "sesame"}).to_string());
    node.ask("/v3/auth/role/add", &json!({"name": "root"}).to_string());
    node.ask("/v3/auth/user/grant", &json!({"user": "root", "role": "root"}).to_string());
    node.ask("/v3/auth/enable", "{}");
    let remote = Remote::at(format!("etcd://root:sesame@127.0.0.1:{}/claims", node.port));
    let held = remote.take("x --owner alice");
    // Both outlast many tokens: one that renews, and one that waits.
    let runner = Running::spawn(remote.claim().args(["run", "y", "--lease", "6s", "--", "sleep", "5"]));
    let waiter =
        Running::spawn(remote.claim().args(["acquire", "x", "--owner", "bob", "--wait=5m", "--json"]));
    let ran = runner.said();
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(remote.say(&format!("release x --token {}", held.token)).exit, 0);
    let taken: Value = waiter.said().expect(0);
    assert_eq!(taken["owner"], "bob");
}

#[test]
fn who_waits_outlasts_a_compaction() {
    let cluster = Cluster::start(1);
    let node = &cluster.nodes[0];
    let remote = Remote::on(&cluster, "compacted");
    let held = remote.take("x --owner alice");
    let mut waiter =
        Running::spawn(remote.claim().args(["acquire", "x", "--owner", "bob", "--wait=5m", "--json"]));
    for _ in 0..20 {
        let revision =
            node.ask("/v3/kv/put", r#"{"key":"eA=="}"#)["header"]["revision"].as_str().unwrap().to_owned();
        node.ask("/v3/kv/compaction", &json!({"revision": revision}).to_string());
    }
    assert!(waiter.0.try_wait().unwrap().is_none());
    assert_eq!(remote.say(&format!("release x --token {}", held.token)).exit, 0);
    let taken: Value = waiter.said().expect(0);
    assert_eq!(taken["owner"], "bob");
}

#[test]
fn an_address_in_other_words() {
    let cluster = Cluster::start(1);
    let port = cluster.nodes[0].port;
    let plain = Remote::at(format!("etcd://127.0.0.1:{port}/team/x"));
    plain.take("node --owner alice");
    // A slash at the end names the same directory.
    Remote::at(format!("etcd://localhost:{port}/team/x/")).refused("acquire node", 1, "CLAIM_HELD");
    Remote::at(format!("etcd://127.0.0.1:{port}/team")).take("node");
    let six = Remote::at("etcd://[::1]:1/team/x".to_owned()).refused("list", 6, "STORE_UNAVAILABLE");
    assert!(six.message.contains("[::1]:1 does not answer"), "{}", six.message);
    // Nothing named is as if nothing were said.
    let world = World::new();
    let unset = said(world.claim().env_remove("CLAIMS_DIR").args(["where", "--json"]));
    let empty = said(world.claim().env("CLAIMS_DIR", "").args(["where", "--json"]));
    assert_eq!((unset.exit, unset.out), (empty.exit, empty.out));
}
