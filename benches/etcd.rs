//! Taking a node and the next task on etcd, in units of one etcd transaction, and 20 processes at one node. One server
//! that syncs, in one run.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]

#[path = "../tests/etcd/server.rs"]
mod server;
mod table;

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use claimdir::domain::Submission;
use claimdir::{Acquire, Directory, Next, NodeId};
use serde_json::{Value, json};

use server::Cluster;

/// How often each is done, in turns with the others.
const TIMES: usize = 300;
/// Tasks there are beside those that are taken.
const WAITING: usize = 200;
/// Processes at one node, and how many nodes one after the other.
const CROWD: usize = 20;
const ROUNDS: usize = 15;

fn main() {
    let cluster = Cluster::start_synced();
    in_transactions(&cluster);
    contended(&cluster);
}

fn in_transactions(cluster: &Cluster) {
    let directory = cluster.directory("bench");
    let by = Acquire::by("bench");
    for n in 0..TIMES + WAITING {
        add(&directory, &format!("task/{n}"));
    }
    let agent = ureq::Agent::new_with_defaults();
    let url = format!("http://127.0.0.1:{}/v3/kv/txn", cluster.nodes[0].port);
    let (mut unit, mut take, mut next) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..TIMES {
        unit.push(timed(|| transact(&agent, &url, n)));
        let id = NodeId::new(format!("node/{n}")).unwrap();
        take.push(timed(|| drop(directory.try_acquire(&id, &by).unwrap().unwrap().leave())));
        next.push(timed(|| drop(directory.try_next(&Next::of(by.clone())).unwrap().unwrap().leave())));
    }
    let [unit, take, next] = [unit, take, next].map(table::median);
    for (what, took, most) in [("acquire", take, 2.0), ("next", next, 3.0)] {
        let measured = format!("{took:.2} ms, one transaction {unit:.2}");
        table::row(&format!("etcd: {what}"), &measured, took / unit, most);
    }
}

fn add(directory: &Directory, id: &str) {
    let id = NodeId::new(id).unwrap();
    let _ = directory.submit(&id, &Submission::by("bench")).unwrap().unwrap();
}

/// What a swap is, by hand: a record's worth of bytes where there were none.
fn transact(agent: &ureq::Agent, url: &str, n: usize) {
    let key = base64(&format!("by-hand/{n}"));
    let body = json!({
        "compare": [{"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}],
        "success": [{"request_put": {"key": key, "value": base64(&"x".repeat(600))}}],
        "failure": [{"request_range": {"key": key}}],
    });
    let mut answer = agent.post(url).send(body.to_string().as_bytes()).unwrap();
    let says: Value = serde_json::from_slice(&answer.body_mut().read_to_vec().unwrap()).unwrap();
    assert_eq!(says["succeeded"], true);
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// From the moment that all are let go: until the first has the node, and until all have their answer.
fn contended(cluster: &Cluster) {
    let url = cluster.url("crowd");
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (barrier, mut open) = std::io::pipe().unwrap();
        let mut children: Vec<Child> = Vec::new();
        for n in 0..CROWD {
            let mut command = Command::new("sh");
            command.args(["-c", r#"echo; read -r _ <&0; exec "$@""#, "sh", env!("CARGO_BIN_EXE_claim")]);
            command.args(["acquire", &format!("node/{round}"), "--owner", &format!("w{n}"), "--dir", &url]);
            command.stdin(barrier.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::null());
            children.push(command.spawn().unwrap());
        }
        children.iter_mut().for_each(|child| child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap());
        let started = Instant::now();
        open.write_all(&[b'\n'; CROWD]).unwrap();
        drop(open);
        let threads: Vec<_> = children
            .into_iter()
            .map(|mut child| {
                std::thread::spawn(move || {
                    (child.wait().unwrap().success(), started.elapsed().as_secs_f64() * 1e3)
                })
            })
            .collect();
        let ends: Vec<(bool, f64)> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ends.iter().filter(|(won, _)| *won).count(), 1, "one wins");
        first.extend(ends.iter().filter(|(won, _)| *won).map(|(_, ms)| *ms));
        last.push(ends.iter().map(|(_, ms)| *ms).fold(0.0, f64::max));
    }
    let [first, last] = [first, last].map(table::median);
    let measured = format!("the winner after {first:.0} ms, all told after {last:.0} ms");
    table::figure(&format!("etcd: {CROWD} processes at one node"), &measured);
}

fn timed(act: impl FnOnce()) -> f64 {
    let started = Instant::now();
    act();
    started.elapsed().as_secs_f64() * 1e3
}
