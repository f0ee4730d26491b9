//! Taking a node and the next task on etcd, 20 processes at one node, and 20 that drain a queue, in units of one etcd
//! transaction. One server that syncs, in one run.

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
/// Tasks that the processes drain, each taking one after the other.
const DRAINED: usize = 200;

fn main() {
    let cluster = Cluster::start_synced();
    let unit = in_transactions(&cluster);
    contended(&cluster, unit);
    drained(&cluster, unit);
}

/// How long one transaction takes, in milliseconds.
fn in_transactions(cluster: &Cluster) -> f64 {
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
    unit
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
fn contended(cluster: &Cluster, unit: f64) {
    let url = cluster.url("crowd");
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let node = format!("node/{round}");
        let ends = crowd(&url, r#"exec "$@""#, &["acquire", &node, "--lease", "1h"]);
        assert_eq!(ends.iter().filter(|end| end.exit == 0).count(), 1, "one wins");
        assert_eq!(ends.iter().filter(|end| end.exit == 1).count(), CROWD - 1, "the others are told so");
        first.extend(ends.iter().filter(|end| end.exit == 0).map(|end| end.after_ms));
        last.push(ends.iter().map(|end| end.after_ms).fold(0.0, f64::max));
    }
    let [first, last] = [first, last].map(table::median);
    let measured = format!(
        "the winner after {first:.0} ms, {:.0} transactions; all told after {last:.0} ms, {:.0}",
        first / unit,
        last / unit
    );
    table::figure(&format!("etcd: {CROWD} processes at one node"), &measured);
}

/// Each takes one task after the other, a process a take, until there is none.
fn drained(cluster: &Cluster, unit: f64) {
    let (url, directory) = (cluster.url("drain"), cluster.directory("drain"));
    (0..DRAINED).for_each(|n| add(&directory, &format!("task/{n}")));
    let script = r#"while "$@"; do :; done"#;
    let ends = crowd(&url, script, &["next", "--lease", "1h"]);
    let took = ends.iter().map(|end| end.after_ms).fold(0.0, f64::max);
    let mut taken: Vec<&str> = ends.iter().flat_map(|end| end.out.lines()).collect();
    taken.retain(|line| line.starts_with("CLAIMED "));
    taken.iter_mut().for_each(|line| *line = line.split(' ').nth(1).unwrap());
    taken.sort_unstable();
    assert_eq!(taken.len(), DRAINED, "each task is taken");
    taken.dedup();
    assert_eq!(taken.len(), DRAINED, "and once");
    let each = took / DRAINED as f64;
    let measured =
        format!("{took:.0} ms for {DRAINED} tasks, {each:.1} ms and {:.0} transactions a task", each / unit);
    table::figure(&format!("etcd: {CROWD} processes drain a queue"), &measured);
}

/// What became of one of many.
struct End {
    exit: i32,
    after_ms: f64,
    out: String,
}

/// So many shells that are let go at once, each with the command `claim` and what follows it as its arguments.
fn crowd(url: &str, script: &str, arguments: &[&str]) -> Vec<End> {
    let (barrier, mut open) = std::io::pipe().unwrap();
    let mut children: Vec<Child> = Vec::new();
    for n in 0..CROWD {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo; read -r _ <&0; {script}"), "sh", env!("CARGO_BIN_EXE_claim")]);
        command.args(arguments).args(["--owner", &format!("w{n}"), "--dir", url]);
        command.stdin(barrier.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::null());
        children.push(command.spawn().unwrap());
    }
    children.iter_mut().for_each(|child| child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap());
    let started = Instant::now();
    open.write_all(&[b'\n'; CROWD]).unwrap();
    drop(open);
    let end = move |mut child: Child| {
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let exit = child.wait().unwrap().code().unwrap();
        End { exit, after_ms: started.elapsed().as_secs_f64() * 1e3, out }
    };
    let threads: Vec<_> = children.into_iter().map(|child| std::thread::spawn(move || end(child))).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn timed(act: impl FnOnce()) -> f64 {
    let started = Instant::now();
    act();
    started.elapsed().as_secs_f64() * 1e3
}
