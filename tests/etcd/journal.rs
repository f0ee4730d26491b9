//! `claim log` on etcd: the same journal as in files.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Remote;
use crate::server::Cluster;
use crate::support::{Running, Said, race, words};

#[test]
fn what_happens_is_told() {
    let cluster = Cluster::start(1);
    it_tells_what_a_folder_tells(&cluster);
    of_many_at_once_each_is_told_once(&cluster);
    who_follows_is_told_what_others_do(&cluster);
    days_are_pruned(&cluster);
}

/// Events without their times.
fn told(said: &Said) -> Vec<Value> {
    let says: Value = said.expect(0);
    let mut events = says["events"].as_array().unwrap().clone();
    for event in &mut events {
        event
            .as_object_mut()
            .unwrap()
            .retain(|name, _| !["at", "not_before", "until"].contains(&name.as_str()));
    }
    events
}

const LIFE: &str = "acquire bare --owner alice; release bare; add task --input 1; next --owner bob; \
     retry task --reason again; note task a-word; cancel task --reason off; add other; next --owner eve; \
     complete other --result 7";

fn it_tells_what_a_folder_tells(cluster: &Cluster) {
    let remote = Remote::on(cluster, "journal");
    let folder = &remote.world;
    assert_eq!(told(&remote.json("log")), [json!(null); 0]);
    let live = |say: &dyn Fn(&str) -> Said| {
        let mut token = String::new();
        for line in LIFE.split("; ") {
            let needs = ["release", "retry", "complete"].iter().any(|word| line.starts_with(word));
            let line = if needs { format!("{line} --token {token}") } else { line.to_owned() };
            let says: Value = say(&line).expect(0);
            says["token"].as_str().inspect(|given| token = (*given).to_owned());
        }
    };
    live(&|line| remote.json(line));
    live(&|line| folder.json(line));
    let all = told(&folder.json("log"));
    assert_eq!(told(&remote.json("log")), all);
    for line in ["log task", "log --limit 3", "log bare --limit 1", "log --since 1h"] {
        assert_eq!(told(&remote.json(line)), told(&folder.json(line)), "{line}");
    }
    remote.refused("log nothing", 1, "NOT_FOUND");
    assert_eq!(told(&remote.json("log --since 2100-01-01T00:00:00Z")), [json!(null); 0]);
}

fn of_many_at_once_each_is_told_once(cluster: &Cluster) {
    let remote = Remote::on(cluster, "crowd");
    let line = |n| words(&format!("acquire node --owner w{n} --json --dir {}", remote.url));
    race(&remote.world, &(0..10).map(line).collect::<Vec<_>>());
    let events = told(&remote.json("log"));
    assert_eq!(events.len(), 1, "{events:?}");
    let line = |n| words(&format!("acquire node-{n} --json --dir {}", remote.url));
    race(&remote.world, &(0..20).map(line).collect::<Vec<_>>());
    let mut ids: Vec<String> =
        told(&remote.json("log")).iter().map(|event| event["id"].to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 21);
}

fn who_follows_is_told_what_others_do(cluster: &Cluster) {
    let remote = Remote::on(cluster, "follow");
    remote.take("before --owner alice");
    let mut command = remote.claim();
    command.args(["log", "--follow"]);
    let mut follower = Running::spawn(&mut command);
    let said = BufReader::new(follower.0.stdout.take().unwrap()).lines();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    let mut lines = std::iter::from_fn(move || told.recv_timeout(Duration::from_secs(60)).ok());
    assert!(lines.next().unwrap().contains("claimed before by alice"));
    for n in 0..5 {
        remote.take(&format!("after-{n} --owner bob"));
        let line = lines.next().unwrap();
        assert!(line.contains(&format!("claimed after-{n} by bob")), "{line}");
    }
}

fn days_are_pruned(cluster: &Cluster) {
    let remote = Remote::on(cluster, "days");
    let of = |id: &str| {
        format!(
            r#"{{"at":"2020-02-03T04:05:06.000Z","event":"claimed","id":"{id}","state":"claimed","generation":1,"attempt":1,"version":1}}"#
        )
    };
    for id in ["one", "two"] {
        let key = format!("days//s/journal/2020-02-03.jsonl//{id}");
        let put = json!({"key": base64(&key), "value": base64(&of(id))});
        cluster.nodes[0].ask("/v3/kv/put", &put.to_string());
    }
    remote.take("today");
    let ids = |line: &str| -> Vec<Value> {
        told(&remote.json(line)).iter().map(|event| event["id"].clone()).collect()
    };
    assert_eq!(ids("log"), ["one", "two", "today"]);
    let pruned: Value = remote.json("prune --older 7d").expect(0);
    assert_eq!(pruned["journal_days"], 1, "{pruned}");
    assert_eq!(ids("log"), ["today"]);
    let checked: Value = remote.json("doctor").expect(0);
    assert_eq!(checked["findings"], json!([]));
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
