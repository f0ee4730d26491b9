//! The commands, by real processes.

use std::fs;

use serde_json::{Value, json};

use crate::Remote;
use crate::server::Cluster;
use crate::support::{Running, Said, race, said, words};

#[test]
fn the_same_commands() {
    let cluster = Cluster::start(1);
    of_twenty_at_once_one_wins(&cluster);
    a_claim_lives_its_life(&cluster);
    a_lease_that_is_over_is_taken_over(&cluster);
    waiters_are_woken(&cluster);
    a_receipt_answers_the_same(&cluster);
    tasks_wait_and_workers_do_each_once(&cluster);
    mail_is_handed_out_until_it_is_acknowledged(&cluster);
    a_large_result_comes_back_whole(&cluster);
    what_goes_with_a_claim(&cluster);
    a_command_finds_its_directory(&cluster);
    doctor_finds_nothing(&cluster);
}

fn of_twenty_at_once_one_wins(cluster: &Cluster) {
    let remote = Remote::on(cluster, "race");
    for round in 0..3 {
        let url = &remote.url;
        let line = |n| words(&format!("acquire node-{round} --owner w{n} --json --dir {url}"));
        let all = race(&remote.world, &(0..20).map(line).collect::<Vec<_>>());
        let won: Vec<&Said> = all.iter().filter(|said| said.exit == 0).collect();
        assert_eq!(won.len(), 1, "round {round}: {all:?}");
        let lost = all.iter().filter(|said| said.exit == 1 && said.out.contains("CLAIM_HELD"));
        assert_eq!(lost.count(), 19, "round {round}: {all:?}");
    }
}

fn a_claim_lives_its_life(cluster: &Cluster) {
    let remote = Remote::on(cluster, "life");
    let claimed = remote.take("parser --owner alice");
    assert_eq!((claimed.dir.as_str(), claimed.generation), (remote.url.as_str(), 1));
    let token = &claimed.token;
    let held = remote.refused("acquire parser --owner bob", 1, "CLAIM_HELD");
    assert_eq!(held.holder.unwrap().owner, "alice");
    remote.refused("renew parser --token 00000000000000000000000000000000", 3, "STALE_CLAIM");
    assert_eq!(remote.say(&format!("check parser --token {token}")).exit, 0);
    assert_eq!(remote.say(&format!("renew parser --token {token} --lease 2h --progress 7")).exit, 0);
    assert_eq!(remote.say(&format!("release parser --token {token}")).exit, 0);
    let again = remote.take("parser --owner bob");
    assert_eq!((again.generation, again.progress), (2, json!(7)));
    remote.refused(&format!("complete parser --token {token} --result 1"), 3, "STALE_CLAIM");
    let complete = format!("complete parser --token {} --result 1", again.token);
    assert_eq!(remote.say(&complete).exit, 0);
    let replay: Value = remote.json(&complete).expect(0);
    assert_eq!(replay["replay"], true);
    remote.refused(&format!("complete parser --token {} --result 2", again.token), 4, "IDEMPOTENCY_CONFLICT");
    remote.refused("acquire parser", 1, "ALREADY_DONE");
    assert_eq!(remote.say("list").line(), "parser generation=2 done by bob");
}

fn a_lease_that_is_over_is_taken_over(cluster: &Cluster) {
    let remote = Remote::on(cluster, "over");
    let first = remote.take("x --owner alice --lease 300ms --max-skew 50ms");
    let second = remote.take("x --owner bob --wait=60s --max-skew 50ms");
    assert_eq!((second.reclaimed_from.as_deref(), second.generation), (Some("alice"), 2));
    remote.refused(&format!("complete x --token {} --result 1", first.token), 3, "STALE_CLAIM");
    let short = remote.refused("acquire y --lease 2s", 2, "USAGE");
    assert!(short.message.contains("can't be trusted"), "{short:?}");
}

fn waiters_are_woken(cluster: &Cluster) {
    let remote = Remote::on(cluster, "wait");
    let held = remote.take("x --owner alice");
    let waiter =
        Running::spawn(remote.claim().args(["acquire", "x", "--owner", "bob", "--wait=5m", "--json"]));
    let reader = Running::spawn(remote.claim().args(["result", "x", "--wait=5m", "--json"]));
    assert_eq!(remote.say(&format!("release x --token {}", held.token)).exit, 0);
    let taken: Value = waiter.said().expect(0);
    let complete = format!("complete x --token {} --result 5", taken["token"].as_str().unwrap());
    assert_eq!(remote.say(&complete).exit, 0);
    let result: Value = reader.said().expect(0);
    assert_eq!(result["result"], 5);
    remote.take("y");
    remote.refused("result y --wait=100ms", 5, "WAIT_TIMEOUT");
}

fn a_receipt_answers_the_same(cluster: &Cluster) {
    let remote = Remote::on(cluster, "receipt");
    let first = remote.take("x --owner erin --receipt a-key");
    let again = remote.take("x --owner erin --receipt a-key");
    assert_eq!((first.token, true), (again.token, again.replay));
    remote.refused("acquire x --owner frank --receipt a-key", 4, "RECEIPT_CONFLICT");
}

fn tasks_wait_and_workers_do_each_once(cluster: &Cluster) {
    let remote = Remote::on(cluster, "tasks");
    for n in 0..12 {
        assert_eq!(remote.say(&format!("add t-{n} --input {n}")).exit, 0);
    }
    assert_eq!(remote.say("add last --after t-1").exit, 0);
    let work = || {
        let mut command = remote.claim();
        command.args([
            "work",
            "--idle-exit=2s",
            "--concurrency",
            "2",
            "--",
            "sh",
            "-c",
            "echo $CLAIM_ID >> done; cat",
        ]);
        Running::spawn(&mut command)
    };
    let workers = [work(), work()];
    workers.into_iter().for_each(|worker| assert_eq!(worker.said().exit, 0));
    let done = fs::read_to_string(remote.world.root.join("done")).unwrap();
    let mut done: Vec<&str> = done.lines().collect();
    done.sort_unstable();
    let mut all: Vec<String> = (0..12).map(|n| format!("t-{n}")).chain(["last".to_owned()]).collect();
    all.sort_unstable();
    assert_eq!(done, all);
    let result: Value = remote.json("result t-7").expect(0);
    assert_eq!(result["result"], 7);
    remote.refused("next", 1, "NOTHING_ELIGIBLE");
}

fn mail_is_handed_out_until_it_is_acknowledged(cluster: &Cluster) {
    let remote = Remote::on(cluster, "mail");
    let url = &remote.url;
    let line = |n| words(&format!("mail send box {n} --as w{n} --json --dir {url}"));
    let sent = race(&remote.world, &(0..10).map(line).collect::<Vec<_>>());
    let mut numbers: Vec<u64> =
        sent.iter().map(|said| said.expect::<Value>(0)["number"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=10).collect::<Vec<u64>>());
    for _ in 0..2 {
        let read: Value = remote.json("mail read box --as r").expect(0);
        assert_eq!(read["messages"].as_array().unwrap().len(), 10);
    }
    assert_eq!(remote.say("mail ack box 10 --as r").exit, 0);
    let read: Value = remote.json("mail read box --as r").expect(1);
    assert_eq!(read["code"], "NOTHING_ELIGIBLE");
}

fn a_large_result_comes_back_whole(cluster: &Cluster) {
    let remote = Remote::on(cluster, "large");
    let text = format!("{:?}\n", "x".repeat(5 << 20));
    fs::write(remote.world.root.join("result"), &text).unwrap();
    let token = remote.take("x").token;
    let complete = format!("complete x --token {token} --result @result");
    assert_eq!(remote.say(&complete).exit, 0);
    assert!(remote.say(&complete).out.contains("(replay)"));
    let result: Value = remote.json("result x").expect(0);
    assert_eq!(result["result"].as_str().map(str::len), Some(5 << 20));
}

fn what_goes_with_a_claim(cluster: &Cluster) {
    let remote = Remote::on(cluster, "with");
    assert_eq!(remote.say("pool set gpu 1").exit, 0);
    assert_eq!(remote.say("quota set api 5/1h").exit, 0);
    remote.take("a --pool gpu --quota api=3 --path src");
    remote.refused("acquire b --pool gpu", 4, "POOL_FULL");
    remote.refused("acquire b --quota api=3", 4, "QUOTA_USED");
    remote.refused("acquire b --path src/x", 4, "PATH_CLASH");
    // Elsewhere, too: outside git, paths are the same from whatever folder.
    let mut other = remote.claim();
    other.args(["check", "--path", "src/x", "--json"]);
    assert_eq!(said(&mut other).exit, 4);
}

fn a_command_finds_its_directory(cluster: &Cluster) {
    let remote = Remote::on(cluster, "run");
    let mut command = remote.claim();
    let script = "\"$1\" check && echo inner && echo \"$CLAIMS_DIR\"";
    command.args(["run", "x", "--", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_claim")]);
    let ran = said(&mut command);
    assert!(ran.exit == 0 && ran.out.ends_with(&format!("inner\n{}\n", remote.url)), "{ran:?}");
    assert_eq!(remote.say("list").line(), "x generation=1 ready");
}

fn doctor_finds_nothing(cluster: &Cluster) {
    for prefix in ["race", "life", "tasks", "mail", "large", "with", "run"] {
        let checked: Value = Remote::on(cluster, prefix).json("doctor").expect(0);
        assert_eq!(checked["findings"], json!([]), "{prefix}");
    }
}
