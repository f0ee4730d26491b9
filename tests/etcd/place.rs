//! Which directory it is, what is wrong with an address, and a server that is not there.

use serde_json::Value;

use crate::Remote;
use crate::support::{Said, World, said};

/// Nothing listens on the first port.
const NOBODY: &str = "etcd://alice:sesame@127.0.0.1:1/claims";

fn shows_no_password(said: &Said) {
    assert!(!said.out.contains("sesame") && !said.err.contains("sesame"), "{said:?}");
}

#[test]
fn where_shows_hosts_and_prefix_alone() {
    let remote = Remote::at(NOBODY.to_owned());
    for (line, why) in [("where".to_owned(), "CLAIMS_DIR"), (format!("where --dir {NOBODY}"), "--dir")] {
        let shown = remote.say(&line);
        assert!(
            shown.exit == 0 && shown.out.starts_with("etcd://127.0.0.1:1/claims (named by "),
            "{shown:?}"
        );
        assert!(shown.out.contains(why), "{shown:?}");
        let json = remote.json(&line);
        let value: Value = json.expect(0);
        assert_eq!(value["dir"], "etcd://127.0.0.1:1/claims");
        [shown, json].iter().for_each(shows_no_password);
    }
}

#[test]
fn a_server_that_is_not_there_is_exit_6_and_says_what_to_do() {
    let remote = Remote::at(NOBODY.to_owned());
    for line in ["acquire x", "list", "next", "mail send box 1", "doctor", "acquire x --wait=1h", "init"] {
        let refused = remote.refused(line, 6, "STORE_UNAVAILABLE");
        assert!(refused.message.contains("127.0.0.1:1 does not answer"), "{line}: {refused:?}");
        assert!(refused.hint.is_some_and(|hint| hint.contains("try again")), "{line}");
        shows_no_password(&remote.say(line));
    }
    let ran = remote.say("run x -- true");
    assert_eq!(ran.exit, 125, "{ran:?}");
}

#[test]
fn a_wrong_address_is_exit_2_and_one_line() {
    let world = World::new();
    for url in [
        "etcd://alice:sesame@h",
        "etcd://alice:sesame@h:x/p",
        "etcd://alice:sesame@/p",
        "etcd://alice:sesame@h/",
        "etcds://alice:sesame@h/p?sesame=1",
        "etcd://alice:sesame@h/p?ca=/sesame",
        "etcds://alice:sesame@h/p?ca=/not/there",
        "http://alice:sesame@h/p",
    ] {
        let said = said(world.claim().env("CLAIMS_DIR", url).args(["list"]));
        shows_no_password(&said);
        assert_eq!((said.exit, said.out.as_str()), (2, ""), "{url}: {said:?}");
        assert!(said.err.starts_with("claim: ") && said.err.lines().count() <= 2, "{url}: {said:?}");
        let refused: crate::Refused =
            Said::of(world.claim().args(["acquire", "x", "--json", "--dir", url]).output().unwrap())
                .expect(2);
        assert_eq!(refused.code, "USAGE");
    }
    let unnamed = Remote::at("etcd://alice@127.0.0.1:1/p".to_owned()).refused("list", 2, "USAGE");
    assert!(unnamed.hint.is_some_and(|hint| hint.contains("CLAIM_ETCD_PASSWORD")));
}

#[test]
fn a_folder_has_no_skew() {
    World::new().refused("list --max-skew 1s", 2, "USAGE");
}
