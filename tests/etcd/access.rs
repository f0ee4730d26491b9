//! Users and passwords, HTTPS and CA files.

use std::fs;

use serde_json::{Value, json};

use crate::Remote;
use crate::server::{Cluster, tls};
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

#[test]
fn a_client_certificate() {
    let cluster = Cluster::start_asking();
    let named = |files: &str| {
        let (port, ca) = (cluster.nodes[0].port, Cluster::ca());
        Remote::at(format!("etcds://127.0.0.1:{port}/claims?ca={}{files}", ca.display()))
    };
    let [cert, key, other, other_key] =
        ["client.pem", "client.key", "other.pem", "other.key"].map(|name| tls(name).display().to_string());
    let remote = named(&format!("&cert={cert}&key={key}"));
    remote.take("x --owner alice");
    assert_eq!(remote.say("doctor").exit, 0);
    // Both in one file.
    let both = remote.world.root.join("both.pem");
    fs::write(&both, [fs::read(&cert).unwrap(), fs::read(&key).unwrap()].concat()).unwrap();
    named(&format!("&cert={}", both.display())).take("y");
    // None, or one that the server doesn't trust.
    for files in [String::new(), format!("&cert={other}&key={other_key}")] {
        let refused = named(&files).refused("list", 6, "STORE_UNAVAILABLE");
        assert!(refused.hint.is_some_and(|hint| hint.contains("cert=FILE")), "{files}: {}", refused.message);
    }
    // Files that are none.
    let text = remote.world.root.join("text");
    fs::write(&text, "no PEM").unwrap();
    for (files, why) in [
        (format!("&cert=/not/there&key={key}"), "can't be read"),
        (format!("&cert={cert}&key=/not/there"), "can't be read"),
        (format!("&cert={}&key={key}", text.display()), "holds no certificate"),
        (format!("&cert={cert}&key={}", text.display()), "holds no private key"),
        (format!("&cert={cert}"), "holds no private key"),
        (format!("&cert={cert}&key={other_key}"), "don't go together"),
    ] {
        let refused = named(&files).refused("list", 2, "USAGE");
        assert!(refused.message.contains(why), "{files}: {}", refused.message);
    }
}
