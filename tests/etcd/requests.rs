//! How many requests it takes: each is a journey to a majority of the servers and back.

use std::time::Duration;

use claimdir::domain::{Renewal, Submission};
use claimdir::store::etcd::{Address, Options};
use claimdir::{Acquire, Directory, Next, NodeId};
use serde_json::Value;

use crate::Remote;
use crate::proxy::Proxy;
use crate::server::Cluster;

/// More tasks than are seen at once, those that wait and those that are held.
const TASKS: usize = 150;
const HELD: usize = 25;

#[test]
fn a_claim_takes_two_requests_and_a_turn_three() {
    let cluster = Cluster::start(1);
    let proxy = Proxy::before(cluster.nodes[0].port);
    let url = format!("etcd://127.0.0.1:{}/requests", proxy.port);
    let directory = Directory::open_etcd(&Address::parse(&url).unwrap(), Options::default()).unwrap();
    let direct = cluster.directory("requests");
    for n in 0..TASKS {
        let _ = direct.submit(&id(&format!("task/{n}")), &Submission::by("x")).unwrap().unwrap();
    }
    // Others are at work on some.
    for _ in 0..HELD {
        direct.try_next(&Next::of(held_long())).unwrap().unwrap().leave();
    }
    by_the_library(&proxy, &directory);
    by_commands(&proxy, &Remote::at(url));
}

fn held_long() -> Acquire {
    Acquire::by("alice").lease(Duration::from_secs(600))
}

fn id(id: &str) -> NodeId {
    NodeId::new(id).unwrap()
}

impl Proxy {
    fn counted<T>(&self, most: usize, what: &str, act: impl FnOnce() -> T) -> T {
        self.asked();
        let done = act();
        let asked = self.asked();
        assert!(asked.len() <= most, "{what}: {asked:?}");
        done
    }
}

fn by_the_library(proxy: &Proxy, directory: &Directory) {
    let by = held_long();
    for n in 0..3 {
        let node = id(&format!("node/{n}"));
        proxy.counted(2, "acquire", || directory.try_acquire(&node, &by).unwrap().unwrap().leave());
        let next = Next::of(by.clone());
        let taken = proxy.counted(3, "next", || directory.try_next(&next).unwrap().unwrap());
        assert_eq!(taken.id(), &id(&format!("task/{}", HELD + n)), "the oldest first");
        proxy.counted(2, "renew", || taken.renew(&Renewal::default()).unwrap().unwrap());
        proxy.counted(2, "release", || taken.release().unwrap().unwrap());
        let again = proxy.counted(3, "next", || directory.try_next(&next).unwrap().unwrap());
        assert_eq!(again.id(), &id(&format!("task/{}", HELD + n)));
        again.leave();
    }
}

/// A command knows nothing yet: neither the format nor what was listed.
fn by_commands(proxy: &Proxy, remote: &Remote) {
    let bound = format!("next --while-pid {}", std::process::id());
    for (n, line) in ["next", &bound, &bound, "next", "next --lease 2h"].into_iter().enumerate() {
        proxy.counted(2, "acquire", || remote.take(&format!("other/{n}")));
        let taken: Value = proxy.counted(3, line, || remote.json(line)).expect(0);
        assert_eq!(taken["id"], format!("task/{}", HELD + n + 3));
        let done = format!(
            "complete {} --token {} --result 1",
            taken["id"].as_str().unwrap(),
            taken["token"].as_str().unwrap()
        );
        // To tell the tasks that wait for it that it is done takes two more.
        if n > 3 {
            proxy.counted(4, "complete", || assert_eq!(remote.say(&done).exit, 0));
        }
    }
    proxy.counted(2, "add", || assert_eq!(remote.say("add another").exit, 0));
    proxy.counted(1, "show", || assert_eq!(remote.say("show another").exit, 0));
}
