//! `claim mail` with real processes: numbers without gaps, two positions, keys, and workers that come too late.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Running, Said, World, race, said, until, words};

fn send(world: &World, payload: &str) -> u64 {
    let sent: Value = world.run(&["mail", "send", "box", payload, "--as", "alice", "--json"]).expect(0);
    sent["number"].as_u64().unwrap()
}

/// What `mail read` hands out: numbers and payloads, and both positions.
fn read(world: &World, line: &str) -> (Vec<u64>, Vec<Value>, u64, u64) {
    let page: Value = world.json(&format!("mail read box {line}")).expect(0);
    let messages = page["messages"].as_array().unwrap();
    let numbers = messages.iter().map(|message| message["number"].as_u64().unwrap()).collect();
    let payloads = messages.iter().map(|message| message["payload"].clone()).collect();
    (numbers, payloads, page["handed_out"].as_u64().unwrap(), page["acknowledged"].as_u64().unwrap())
}

#[track_caller]
fn refused(said: Said, exit: i32, code: &str) -> Value {
    let refused: Value = said.expect(exit);
    assert_eq!(refused["code"], code, "{refused}");
    refused
}

#[test]
fn reading_moves_one_position_and_acknowledging_the_other() {
    let world = World::new();
    for n in 1..=5 {
        assert_eq!(send(&world, &n.to_string()), n);
    }
    assert_eq!(read(&world, "--as bob --limit 2"), (vec![1, 2], vec![json!(1), json!(2)], 2, 0));
    assert_eq!(read(&world, "--as bob --limit 2").0, [1, 2], "the same page until it is acknowledged");
    assert_eq!(read(&world, "--as bob --limit 1"), (vec![1], vec![json!(1)], 2, 0));
    let past = refused(world.json("mail ack box 3 --as bob"), 4, "IDEMPOTENCY_CONFLICT");
    assert_eq!((&past["handed_out"], &past["acknowledged"]), (&json!(2), &json!(0)));
    let acked: Value = world.json("mail ack box 2 --as bob").expect(0);
    assert_eq!((&acked["acknowledged"], &acked["replay"]), (&json!(2), &json!(false)));
    let again: Value = world.json("mail ack box 2 --as bob").expect(0);
    assert_eq!(again["replay"], true);
    let back = refused(world.json("mail ack box 1 --as bob"), 4, "IDEMPOTENCY_CONFLICT");
    assert_eq!((&back["handed_out"], &back["acknowledged"]), (&json!(2), &json!(2)));
    assert_eq!(read(&world, "--as bob").0, [3, 4, 5]);
    assert_eq!(read(&world, "--as carol").0, [1, 2, 3, 4, 5], "each reader has its own positions");
    world.say("mail ack box 5 --as bob");
    let nothing = refused(world.json("mail read box --as bob"), 1, "NOTHING_ELIGIBLE");
    assert_eq!((&nothing["handed_out"], &nothing["acknowledged"]), (&json!(5), &json!(5)));
    let listed: Value = world.json("mail list box").expect(0);
    assert_eq!(listed["last"], 5);
    assert_eq!(listed["readers"][0], json!({"reader": "bob", "handed_out": 5, "acknowledged": 5}));
    assert_eq!(listed["readers"][1], json!({"reader": "carol", "handed_out": 5, "acknowledged": 0}));
    refused(world.json("mail ack nobody 1 --as bob"), 4, "IDEMPOTENCY_CONFLICT");
    refused(world.json("mail read box --limit 0"), 2, "USAGE");
}

#[test]
fn looking_writes_nothing_and_makes_nothing() {
    let world = World::new();
    refused(world.json("mail list box"), 1, "NOT_FOUND");
    refused(world.json("mail read box --as bob"), 1, "NOTHING_ELIGIBLE");
    assert_eq!(world.say("mail list").exit, 0);
    assert!(!world.dir().exists());
    send(&world, "1");
    read(&world, "--as bob");
    let before = world.snapshot();
    world.say("mail list");
    world.say("mail list box");
    read(&world, "--as bob"); // a page that was handed out before
    world.say("prune --older 0s --dry-run");
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_reader_killed_before_it_acknowledges_gets_the_same_page() {
    let world = World::new();
    (1..=3).for_each(|n| assert_eq!(send(&world, &n.to_string()), n));
    let script = r#""$CLAIM" mail read box --as bob > page; mv page got; exec sleep 3600"#;
    let mut reader = Running::spawn(&mut world.shell(script));
    until("the reader has its page", || world.root.join("got").exists());
    reader.end();
    assert_eq!(fs::read_to_string(world.root.join("got")).unwrap().lines().count(), 3);
    assert_eq!(read(&world, "--as bob"), (vec![1, 2, 3], vec![json!(1), json!(2), json!(3)], 3, 0));
}

#[test]
fn a_wait_ends_with_the_message_or_in_vain() {
    let world = World::new();
    let mut waiting = Vec::new();
    for reader in ["bob", "carol"] {
        let arguments = ["mail", "read", "box", "--wait=60s", "--as", reader, "--json"];
        waiting.push(Running::spawn(world.claim().args(arguments)));
    }
    assert_eq!(send(&world, "1"), 1);
    for reader in waiting {
        let page: Value = reader.said().expect(0);
        assert_eq!(page["messages"][0]["number"], 1);
    }
    world.say("mail ack box 1 --as bob");
    let next =
        Running::spawn(world.claim().args(["mail", "read", "box", "--wait=60s", "--as", "bob", "--json"]));
    assert_eq!(send(&world, "2"), 2);
    let page: Value = next.said().expect(0);
    assert_eq!(page["messages"][0]["number"], 2);
    let late = refused(world.json("mail read other --as bob --wait=1ms"), 5, "WAIT_TIMEOUT");
    assert_eq!(late["handed_out"], 0);
}

#[test]
fn many_senders_at_once_leave_no_gap_and_lose_nothing() {
    const SENDERS: usize = 20;
    let world = World::new();
    for round in 0..5 {
        let line = |n| words(&format!("mail send box {n} --as s{n} --json"));
        let all: Vec<_> = (round * SENDERS..(round + 1) * SENDERS).map(line).collect();
        for said in race(&world, &all) {
            let _: Value = said.expect(0);
        }
    }
    let (numbers, payloads, ..) = read(&world, "--as bob --limit 1000");
    assert_eq!(numbers, (1..=100).collect::<Vec<u64>>());
    let payloads: BTreeSet<u64> = payloads.iter().map(|payload| payload.as_u64().unwrap()).collect();
    assert_eq!(payloads, (0..100).collect());
    assert_eq!(world.say("doctor").exit, 0);
}

#[test]
fn many_senders_with_one_work_key_send_one_message() {
    let world = World::new();
    for key in ["a", "b", "c"] {
        let line = |n| words(&format!("mail send box 7 --as s{n} --work-key {key} --json"));
        let answers: Vec<Value> =
            race(&world, &(0..20).map(line).collect::<Vec<_>>()).iter().map(|said| said.expect(0)).collect();
        let numbers: BTreeSet<u64> = answers.iter().map(|sent| sent["number"].as_u64().unwrap()).collect();
        assert_eq!(numbers.len(), 1, "{answers:?}");
        let first: Vec<_> = answers.iter().filter(|sent| sent["replay"] == false).collect();
        assert_eq!(first.len(), 1, "{answers:?}");
        assert!(answers.iter().all(|sent| sent["from"] == first[0]["from"]), "{answers:?}");
    }
    assert_eq!(read(&world, "--as bob").0, [1, 2, 3]);
}

#[test]
fn a_work_key_stands_for_one_payload_in_one_box() {
    let world = World::new();
    let first: Value = world.json("mail send box {\"a\":1,\"b\":2} --work-key k --as alice").expect(0);
    let again: Value = world.json("mail send box {\"b\":2,\"a\":1} --work-key k --as bob").expect(0);
    assert_eq!(
        (&again["number"], &again["replay"], &again["from"]),
        (&json!(1), &json!(true), &json!("alice"))
    );
    assert_eq!(again["sent_at"], first["sent_at"]);
    let other = refused(world.json("mail send box 2 --work-key k"), 4, "IDEMPOTENCY_CONFLICT");
    let message = other["message"].as_str().unwrap();
    assert_eq!(
        message.split_whitespace().filter(|word| word.trim_end_matches([',', ')']).len() == 64).count(),
        2
    );
    let elsewhere: Value = world.json("mail send other 2 --work-key k").expect(0);
    assert_eq!((&elsewhere["number"], &elsewhere["replay"]), (&json!(1), &json!(false)));
    assert_eq!(read(&world, "--as bob").0, [1]);
    refused(world.run(&["mail", "send", "box", "1", "--work-key", "", "--json"]), 2, "USAGE");
}

#[test]
fn a_receipt_is_answered_as_before() {
    let world = World::new();
    let line = "mail send box 1 --as alice --receipt r";
    let first: Value = world.json(line).expect(0);
    let again: Value = world.json(line).expect(0);
    assert_eq!((&first["replay"], &again["replay"]), (&json!(false), &json!(true)));
    assert_eq!((&first["number"], &first["sent_at"]), (&again["number"], &again["sent_at"]));
    for other in ["mail send box 2 --as alice", "mail send other 1 --as alice", "mail send box 1 --as bob"] {
        refused(world.json(&format!("{other} --receipt r")), 4, "RECEIPT_CONFLICT");
    }
    refused(world.json("acquire node --receipt r"), 4, "RECEIPT_CONFLICT");
    world.take("node --receipt taken");
    refused(world.json("mail send box 1 --receipt taken"), 4, "RECEIPT_CONFLICT");
    // With both, the work key decides about the message, and the receipt keeps the answer.
    let both = "mail send box 3 --as alice --receipt r2 --work-key k";
    let sent: Value = world.json(both).expect(0);
    let again: Value = world.json(both).expect(0);
    let by_key: Value = world.json("mail send box 3 --as bob --work-key k").expect(0);
    assert_eq!((&sent["number"], &again["number"], &by_key["number"]), (&json!(2), &json!(2), &json!(2)));
    refused(world.json("mail send box 4 --as alice --receipt r2"), 4, "RECEIPT_CONFLICT");
    assert_eq!(read(&world, "--as bob").0, [1, 2]);
    assert_eq!(world.say("doctor").exit, 0);
}

#[test]
fn a_replaced_worker_sends_nothing() {
    let world = World::new();
    let held = world.take("job --owner alice");
    let send = |token: &str, more: &[&str]| {
        let line = ["mail", "send", "box", "1", "--as", "alice", "--claim", "job", "--json"];
        said(world.claim().args(line).args(more).env("CLAIM_TOKEN", token))
    };
    let sent: Value = send(&held.token, &["--receipt", "r"]).expect(0);
    assert_eq!(sent["number"], 1);
    let page: Value = world.json("mail read box --as bob").expect(0);
    assert_eq!(page["messages"][0]["claim"], json!({"id": "job", "generation": 1}));
    let stalled = world.expired("stalled");
    let late = ["mail", "send", "box", "2", "--claim", "stalled", "--token", &stalled, "--json"];
    refused(world.run(&late), 3, "STALE_CLAIM");
    world.say("acquire job --owner bob --force stalled");
    let before = world.snapshot();
    for more in [&[][..], &["--work-key", "k"], &["--receipt", "r3"]] {
        let stale = refused(send(&held.token, more), 3, "STALE_CLAIM");
        assert_eq!(stale["holder"]["owner"], "bob");
    }
    assert_eq!(world.snapshot(), before, "a refusal writes nothing");
    let again: Value = send(&held.token, &["--receipt", "r"]).expect(0);
    assert_eq!((&again["number"], &again["replay"]), (&json!(1), &json!(true)), "it was sent in time");
    refused(world.json("mail send box 1 --claim job"), 2, "USAGE");
    refused(world.json("mail send box 1 --token t"), 2, "USAGE");
}

#[test]
fn names_and_payloads_are_kept_exactly_and_lead_nowhere() {
    let world = World::new();
    let long = ["/".repeat(256), "%".repeat(256), "ä".repeat(128)];
    let odd =
        ["..", ".", "../../x", "a/b", "a%2Fb", "a//b", "-x", "x.claim", "\u{1b}[2J\n", "A", "a", "head"];
    let names: Vec<&str> = odd.iter().copied().chain(long.iter().map(String::as_str)).collect();
    let payload = json!({"text": "\u{1b}[2J\n\u{202e}'\"", "number": 1, "deep": [[null]]});
    for name in &names {
        let (text, sender) = (payload.to_string(), format!("--as={name}"));
        let sent = ["mail", "send", "--json", &sender, "--", name, &text];
        assert_eq!(world.run(&sent).expect::<Value>(0)["number"], 1, "{name:?}");
        for reader in [*name, "bob"] {
            let as_reader = format!("--as={reader}");
            let page: Value = world.run(&["mail", "read", "--json", &as_reader, "--", name]).expect(0);
            assert_eq!(page["messages"][0]["payload"], payload, "{name:?}");
            assert_eq!(page["messages"][0]["from"], *name);
            world.run(&["mail", "read", &as_reader, "--", name]); // harmless for a terminal, which is checked
        }
        let found: Value = world.run(&["mail", "list", "--json", "--", name]).expect(0);
        assert_eq!(found["readers"].as_array().unwrap().len(), 2 - usize::from(*name == "bob"), "{found}");
    }
    let all: Value = world.json("mail list").expect(0);
    let listed: BTreeSet<&str> =
        all["boxes"].as_array().unwrap().iter().map(|found| found["box"].as_str().unwrap()).collect();
    assert_eq!(listed, names.iter().copied().collect());
    assert_eq!(fs::read_dir(&world.root).unwrap().count(), 1, "nothing outside the claim directory");
    assert_eq!(fs::read_dir(world.dir()).unwrap().count(), 2, "nothing outside its store");
    assert_eq!(world.say("doctor").exit, 0);
    for bad in ["", &"x".repeat(257)] {
        refused(world.run(&["mail", "send", bad, "1", "--json"]), 2, "INVALID_ID");
        refused(world.run(&["mail", "read", "box", "--as", bad, "--json"]), 2, "INVALID_ID");
    }
    refused(world.json("mail send box {"), 2, "USAGE");
    fs::write(world.root.join("payload"), "[1.50]").unwrap();
    let sent = world.say("mail send files @payload");
    assert_eq!(sent.exit, 0);
    let page = world.json("mail read files --as bob");
    assert!(page.out.contains("[1.50]"), "{page:?}");
}

/// A sender is stopped at some moment, a retry sends the same beside it, and it goes on.
#[test]
fn a_frozen_sender_and_its_retry_send_one_message() {
    let world = World::new();
    for round in 0..60_u32 {
        let line = format!("mail send box {round} --as alice --work-key k{round} --json");
        let mut command = world.claim();
        let child = command.args(words(&line)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let frozen = Running::spawn(child);
        let pid = Pid::from_raw(frozen.id() as i32).unwrap();
        thread::sleep(std::time::Duration::from_micros(u64::from(round) * 100)); // some moment
        kill_process(pid, Signal::STOP).unwrap();
        let retried: Value = world.say(&line).expect(0);
        world.say(&format!("mail send box \"beside\" --as bob --work-key b{round}"));
        kill_process(pid, Signal::CONT).unwrap();
        let thawed: Value = frozen.said().expect(0);
        assert_eq!(retried["number"], thawed["number"], "round {round}");
        assert!(retried["replay"] != thawed["replay"], "one of both sent it: {retried} {thawed}");
    }
    let (numbers, payloads, ..) = read(&world, "--as reader --limit 1000");
    assert_eq!(numbers, (1..=120).collect::<Vec<u64>>());
    let distinct: BTreeSet<u64> = payloads.iter().filter_map(Value::as_u64).collect();
    assert_eq!((distinct.len(), payloads.iter().filter(|payload| payload.is_u64()).count()), (60, 60));
}

#[test]
fn pruning_keeps_what_a_reader_has_not_dealt_with() {
    let world = World::new();
    (1..=5).for_each(|n| assert_eq!(send(&world, &n.to_string()), n));
    let pruned = |line: &str| -> u64 {
        let pruned: Value = world.json(&format!("prune {line}")).expect(0);
        pruned["messages"].as_u64().unwrap()
    };
    assert_eq!(pruned("--older 0s"), 0, "nobody has read them");
    for (reader, number) in [("bob", 4), ("carol", 2)] {
        read(&world, &format!("--as {reader}"));
        world.say(&format!("mail ack box {number} --as {reader}"));
    }
    assert_eq!(pruned("--older 1h"), 0, "they are not old");
    assert_eq!(pruned("--older 0s --dry-run"), 2);
    assert_eq!(pruned("--older 0s"), 2);
    assert_eq!(pruned("--older 0s"), 0);
    assert_eq!(read(&world, "--as carol").0, [3, 4, 5]);
    assert_eq!(read(&world, "--as newcomer").0, [3, 4, 5]);
    let listed: Value = world.json("mail list box").expect(0);
    assert_eq!((&listed["last"], &listed["pruned_to"]), (&json!(5), &json!(2)));
    assert_eq!(send(&world, "6"), 6);
    for reader in ["bob", "carol", "newcomer"] {
        read(&world, &format!("--as {reader}"));
        world.say(&format!("mail ack box 6 --as {reader}"));
    }
    assert_eq!(pruned("--older 0s"), 4);
    assert_eq!(send(&world, "7"), 7, "numbers go on");
    assert_eq!(world.say("doctor").exit, 0);
}

#[test]
fn doctor_sees_what_is_wrong_with_mail() {
    let world = World::new();
    (1..=3).for_each(|n| assert_eq!(send(&world, &n.to_string()), n));
    read(&world, "--as bob");
    let mail = world.dir().join(".store/mail");
    let file = |path: &str| mail.join(path);
    let sees = |path: &str, damage: &dyn Fn(), what: &str| {
        let whole = fs::read(file(path)).unwrap();
        damage();
        let found: Value = world.json("doctor").expect(6);
        assert!(found["findings"].to_string().contains(what), "{path}: {found}");
        fs::write(file(path), whole).unwrap();
        assert_eq!(world.say("doctor").exit, 0);
    };
    let (two, head, bob) = ("messages/box/102", "heads/box", "readers/box/bob");
    sees(two, &|| fs::remove_file(file(two)).unwrap(), "message 2 is missing");
    sees(two, &|| fs::write(file(two), "{").unwrap(), "not JSON");
    sees(
        two,
        &|| fs::write(file(two), fs::read(file("messages/box/101")).unwrap()).unwrap(),
        "message 1 of the box",
    );
    sees(head, &|| fs::write(file(head), "[]").unwrap(), "not a JSON object");
    sees(bob, &|| edit(&file(bob), "\"handed_out\": 3", "\"handed_out\": 9"), "9 was handed out");
    sees(bob, &|| edit(&file(bob), "\"acknowledged\": 0", "\"acknowledged\": 4"), "acknowledges more");
    sees(head, &|| edit(&file(head), "\"last\": 0", "\"last\": 9"), "3 is the last");
    fs::write(file(two), "{").unwrap();
    let stuck = refused(world.json("mail read box --as carol --limit 3"), 6, "RECORD_UNREADABLE");
    assert!(stuck["message"].as_str().unwrap().contains(two), "{stuck}");
}

fn edit(path: &std::path::Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_page_and_an_acknowledgement_with_a_receipt_happen_once() {
    let world = World::new();
    for n in 1..=4 {
        send(&world, &n.to_string());
    }
    let twice = |line: &str| -> Value {
        let mut first: Value = world.json(line).expect(0);
        let before = world.snapshot();
        let mut again: Value = world.json(line).expect(0);
        assert_eq!(world.snapshot(), before, "{line}: a replay writes nothing");
        assert_eq!((&first["replay"], &again["replay"]), (&json!(false), &json!(true)), "{line}");
        for answer in [&mut first, &mut again] {
            answer.as_object_mut().unwrap().retain(|name, _| name != "replay");
        }
        assert_eq!(first, again, "{line}");
        first
    };
    let page = twice("mail read box --as bob --limit 2 --receipt r1");
    let acked = twice("mail ack box 1 --as bob --receipt a1");
    assert_eq!((&acked["acknowledged"], &acked["handed_out"]), (&json!(1), &json!(2)));
    assert_eq!(read(&world, "--as bob").0, [2, 3, 4]);
    twice("mail read box --as bob --receipt r2"); // which moves nothing
    let last: Value = world.json("mail ack box 4 --as bob --receipt a2").expect(0);
    assert_eq!(last["acknowledged"], 4);
    // Later requests have moved on, and the first answers are as they were.
    let again: Value = world.json("mail read box --as bob --limit 2 --receipt r1").expect(0);
    assert_eq!((&again["messages"], &again["handed_out"]), (&page["messages"], &json!(2)));
    let again: Value = world.json("mail ack box 1 --as bob --receipt a1").expect(0);
    assert_eq!((&again["acknowledged"], &again["replay"]), (&json!(1), &json!(true)));
    for other in
        ["read box --as bob --limit 3", "read box --as eve --limit 2", "ack box 1 --as bob", "send box 1"]
    {
        refused(world.json(&format!("mail {other} --receipt r1")), 4, "RECEIPT_CONFLICT");
    }
    refused(world.json("acquire n --receipt a1"), 4, "RECEIPT_CONFLICT");
    refused(world.json("mail ack box 4 --as bob --receipt a1"), 4, "RECEIPT_CONFLICT");
    assert_eq!(world.json("doctor").exit, 0);
}

#[test]
fn a_refused_read_or_acknowledgement_writes_no_receipt() {
    let world = World::new();
    send(&world, "1");
    let before = world.snapshot();
    refused(world.json("mail ack box 1 --as bob --receipt k"), 4, "IDEMPOTENCY_CONFLICT");
    refused(world.json("mail read void --as bob --receipt k"), 1, "NOTHING_ELIGIBLE");
    let zero: Value = world.json("mail ack box 0 --as bob --receipt k").expect(0);
    assert_eq!(zero["replay"], true);
    assert_eq!(world.snapshot(), before);
    assert_eq!(read(&world, "--as bob --receipt k").0, [1]);
}

#[test]
fn the_number_of_a_message_deleted_from_outside_is_not_given_out_again() {
    let world = World::new();
    (1..=5).for_each(|n| assert_eq!(send(&world, &n.to_string()), n));
    read(&world, "--as bob");
    world.say("mail ack box 4 --as bob");
    let file = |number: u64| world.dir().join(format!(".store/mail/messages/box/1{number:02}"));
    let third = fs::read(file(3)).unwrap();
    fs::remove_file(file(3)).unwrap();
    assert_eq!(send(&world, "6"), 6, "above every message that is there");
    for once in ["--receipt k", "--work-key w"] {
        let sent: Value = world.json(&format!("mail send box 7 --as alice {once}")).expect(0);
        assert!(sent["number"].as_u64().unwrap() > 6, "{sent}");
    }
    assert_eq!(read(&world, "--as bob").0, [5, 6, 7, 8]);
    let listed: Value = world.json("mail list box").expect(0);
    assert_eq!(listed["last"], 8);
    let found: Value = world.json("doctor").expect(6);
    assert!(found["findings"].to_string().contains("message 3 is missing"), "{found}");
    // Also far beyond what the head says.
    (9..=60).for_each(|n| assert_eq!(send(&world, &n.to_string()), n));
    let head = world.dir().join(".store/mail/heads/box");
    let said: Value = serde_json::from_slice(&fs::read(&head).unwrap()).unwrap();
    edit(&head, &format!("\"last\": {}", said["last"]), "\"last\": 0");
    assert_eq!(send(&world, "61"), 61);
    fs::write(file(3), third).unwrap();
    assert_eq!(world.say("doctor").exit, 0);
    assert_eq!(read(&world, "--as carol --limit 100").0, (1..=61).collect::<Vec<_>>());
}
