//! Users and passwords, HTTPS and CA files.

use std::fs;

use serde_json::{Value, json};

use crate::Remote;
use crate::server::Cluster;
use crate::support::said;

#[test]
fn a_user_and_a_password() {
    let cluster = Cluster::start(1);
    let node = &cluster.nodes[0];
    node.ask("/v3/auth/user/add", &json!({"name": "root", "password": "sesame"}).to_string());
    node.ask("/v3/auth/role/add", &json!({"name": "root"}).to_string());
    node.ask("/v3/auth/user/grant", &json!({"user": "root", "role": "root"}).to_string());
    node.ask("/v3/auth/enable", "{}");
    let with = |user: &str| Remote::at(format!("etcd://{user}127.0.0.1:{}/claims", node.port));
    let user = with("root:sesame@");
    let taken = user.json("acquire x --owner alice");
    assert_eq!(taken.exit, 0, "{taken:?}");
    for line in ["list", "where", "doctor", "show x", "acquire x", "acquire y --export", "mail send b 1"] {
        for said in [user.say(line), user.say(&format!("{line} --dir {}", user.url))] {
            assert!(!format!("{said:?}").contains("sesame"), "{line}: {said:?}");
        }
    }
    let mut command = user.claim();
    command.args(["run", "z", "--", env!("CARGO_BIN_EXE_claim"), "check"]);
    assert_eq!(said(&mut command).exit, 0, "a command under `run` finds the directory too");
    let without = with("root@");
    let mut command = without.claim();
    command.env("CLAIM_ETCD_PASSWORD", "sesame").args(["list", "--json"]);
    let listed: Value = said(&mut command).expect(0);
    assert_eq!(listed["dir"], format!("etcd://127.0.0.1:{}/claims", node.port));
    for other in ["", "root:wrong@", "nobody:sesame@"] {
        with(other).refused("list", 6, "PERMISSION_DENIED");
        with(other).refused("acquire x", 6, "PERMISSION_DENIED");
    }
}

#[test]
fn https_with_a_ca_file() {
    let cluster = Cluster::start_secure();
    let port = cluster.nodes[0].port;
    let named = |ca: &str| Remote::at(format!("etcds://127.0.0.1:{port}/claims{ca}"));
    let remote = named(&format!("?ca={}", Cluster::ca().display()));
    assert_eq!(remote.take("x --owner alice").dir, format!("etcds://127.0.0.1:{port}/claims"));
    assert_eq!(remote.say("doctor").exit, 0);
    let unknown = named("").refused("list", 6, "STORE_UNAVAILABLE");
    assert!(unknown.hint.is_some_and(|hint| hint.contains("?ca=FILE")));
    let empty = remote.world.root.join("empty");
    fs::write(&empty, "no certificate").unwrap();
    named(&format!("?ca={}", empty.display())).refused("list", 2, "USAGE");
}
