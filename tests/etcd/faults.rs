//! Three servers: the leader killed, one frozen, most of them gone.

use std::thread;

use serde_json::Value;

use crate::Remote;
use crate::server::Cluster;

#[test]
fn a_majority_is_enough_and_without_one_nothing_is_lost() {
    let mut cluster = Cluster::start(3);
    let remote = Remote::on(&cluster, "faults");
    let held = remote.take("held --owner alice");
    the_leader_is_killed(&mut cluster, &remote);
    one_is_frozen(&cluster, &remote);
    most_are_gone(&mut cluster, &remote);
    // What was there before all that is there still.
    assert_eq!(remote.say(&format!("complete held --token {} --result 1", held.token)).exit, 0);
    let checked: Value = remote.json("doctor").expect(0);
    assert_eq!(checked["faults"], 0);
}

/// Takes nodes one after the other, each by two at once, while `act` goes on: each is taken once.
fn while_claiming(remote: &Remote, name: &str, act: impl FnOnce()) {
    thread::scope(|scope| {
        let claimants: Vec<_> = (0..3)
            .map(|who| {
                let line = move |n| format!("acquire {name}-{n} --owner w{who}");
                scope.spawn(move || (0..15).map(|n| remote.say(&line(n))).collect::<Vec<_>>())
            })
            .collect();
        act();
        let said: Vec<_> = claimants.into_iter().map(|claimant| claimant.join().unwrap()).collect();
        for n in 0..15 {
            let exits: Vec<i32> = said.iter().map(|of| of[n].exit).collect();
            assert_eq!(exits.iter().filter(|exit| **exit == 0).count(), 1, "{name}-{n}: {said:?}");
            assert_eq!(exits.iter().filter(|exit| **exit == 1).count(), 2, "{name}-{n}: {said:?}");
        }
    });
}

fn the_leader_is_killed(cluster: &mut Cluster, remote: &Remote) {
    while_claiming(remote, "led", || {
        let leader = cluster.leader();
        cluster.nodes[leader].kill();
    });
    let down = (0..3).find(|at| !cluster.nodes[*at].is_running()).unwrap();
    let checked: Value = remote.json("doctor").expect(6);
    let place = checked["findings"][0]["place"].as_str().unwrap();
    assert!(place.ends_with(&cluster.nodes[down].port.to_string()), "{checked}");
    cluster.begin(down);
    cluster.wait();
}

fn one_is_frozen(cluster: &Cluster, remote: &Remote) {
    let other = (cluster.leader() + 1) % 3;
    cluster.nodes[other].signal("-STOP");
    while_claiming(remote, "frozen", || {});
    cluster.nodes[other].signal("-CONT");
    let leader = cluster.leader();
    while_claiming(remote, "frozen-leader", || cluster.nodes[leader].signal("-STOP"));
    cluster.nodes[leader].signal("-CONT");
    cluster.wait();
}

fn most_are_gone(cluster: &mut Cluster, remote: &Remote) {
    cluster.nodes[0].kill();
    cluster.nodes[1].kill();
    for line in ["acquire lonely", "list", "mail send box 1"] {
        let refused = remote.refused(line, 6, "STORE_UNAVAILABLE");
        assert!(refused.message.contains("does not answer"), "{refused:?}");
        assert!(refused.hint.is_some(), "{refused:?}");
    }
    cluster.begin(0);
    cluster.begin(1);
    cluster.wait();
    // What was asked for in vain may have been done or not: somebody holds the node, or anybody can take it.
    assert!([0, 1].contains(&remote.say("acquire lonely").exit));
}
