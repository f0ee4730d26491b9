//! `claim next` with real processes.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};
use support::{Claimed, Running, World, race, until, words};

#[test]
fn twenty_callers_on_twenty_tasks_get_twenty_different_ones() {
    let world = World::new();
    for task in 0..20 {
        assert_eq!(world.say(&format!("add t{task} --input {task}")).exit, 0);
    }
    let said = race(&world, &vec![words("next --owner w --json"); 20]);
    let ids: BTreeSet<String> =
        said.iter().map(|said| said.expect::<Value>(0)["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 20, "{said:?}");
    world.refused("next", 1, "NOTHING_ELIGIBLE");
}

#[test]
fn it_finds_takes_and_leases_in_one_step() {
    let world = World::new();
    world.say("add late --priority 9");
    world.say("add first --priority 0 --input {\"a\":1} --title One");
    let seen: Value = world.json("next --dry-run").expect(0);
    assert_eq!((&seen["id"], &seen["dry_run"]), (&json!("first"), &json!(true)));
    assert_eq!(world.stored("first")["version"], 1, "looking writes nothing");
    let taken: Value = world.json("next --owner alice --lease 10m").expect(0);
    assert_eq!(
        (&taken["id"], &taken["owner"], &taken["attempt"]),
        (&json!("first"), &json!("alice"), &json!(1))
    );
    assert_eq!((&taken["input"], &taken["title"]), (&json!({"a": 1}), &json!("One")));
    let token = taken["token"].as_str().unwrap();
    assert_eq!(world.say(&format!("check first --token {token}")).exit, 0);
    assert_eq!(world.json("next").expect::<Value>(0)["id"], "late");
    let nothing = world.refused("next", 1, "NOTHING_ELIGIBLE");
    assert!(nothing.message.contains("may come up in"), "{nothing:?}");
}

#[test]
fn it_serves_no_bare_key_and_nothing_blocked_ended_waiting_or_of_another_queue() {
    let world = World::new();
    let token = world.take("bare").token;
    assert_eq!(world.say(&format!("release bare --token {token}")).exit, 0);
    world.say("add elsewhere --queue q");
    world.say("add d --queue q2");
    world.say("add n --after d");
    world.say("add stuck");
    let token = world.json("next").expect::<Value>(0)["token"].as_str().unwrap().to_owned();
    assert_eq!(world.say(&format!("release stuck --token {token} --block why")).exit, 0);
    world.say("add over");
    let token = world.json("next").expect::<Value>(0)["token"].as_str().unwrap().to_owned();
    assert_eq!(world.say(&format!("complete over --token {token}")).exit, 0);
    world.refused("next", 1, "NOTHING_ELIGIBLE");
    let d: Value = world.json("next --queue q2").expect(0);
    let token = d["token"].as_str().unwrap();
    assert_eq!(world.say(&format!("complete d --token {token}")).exit, 0);
    assert_eq!(
        world.json("next").expect::<Value>(0)["id"],
        "n",
        "it comes up when it has got what it waits for"
    );
    assert_eq!(world.json("next --queue q").expect::<Value>(0)["id"], "elsewhere");
}

#[test]
fn a_dead_workers_task_is_found_at_its_leases_end_without_anybodys_help() {
    let world = World::new();
    world.say("add t");
    world.json("next --owner ghost --lease 300ms").expect::<Value>(0);
    let said = world.say("next --owner w --wait=60s");
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(said.line().starts_with("CLAIMED t by w generation=2 attempt=2 "), "{said:?}");
    assert!(said.err.contains("reclaiming expired lease on t (was ghost)"), "{said:?}");
}

#[test]
fn a_worker_whose_process_died_is_replaced_long_before_its_leases_end() {
    let world = World::new();
    world.say("add t");
    let mut worker = Running::spawn(std::process::Command::new("sleep").arg("600"));
    let taken = world.say(&format!("next --owner ghost --lease 1h --while-pid {}", worker.id()));
    assert_eq!(taken.exit, 0, "{taken:?}");
    world.refused("next", 1, "NOTHING_ELIGIBLE");
    worker.end();
    let said = world.say("next --owner w --wait=60s");
    assert!(said.line().starts_with("CLAIMED t by w generation=2 "), "{said:?}");
}

#[test]
fn a_waiter_gets_what_is_added_and_a_wait_in_vain_says_so() {
    let world = World::new();
    world.say("add other --queue q");
    world.refused("next --wait=50ms", 5, "WAIT_TIMEOUT");
    let waiter = Running::spawn(world.claim().args(words("next --wait=60s --json")));
    world.say("add t");
    assert_eq!(waiter.said().expect::<Value>(0)["id"], "t");
}

/// All hints are names of one file, of which there can be 65,000 on ext4.
#[test]
fn a_hint_that_can_be_no_name_of_the_one_file_is_a_file() {
    let world = World::new();
    world.say("add first");
    let (one, many) = (world.dir().join(".store/hint"), world.root.join("many"));
    let names = || fs::metadata(&one).unwrap().nlink();
    world.say("add second");
    assert_eq!(names(), 2);
    fs::create_dir(&many).unwrap();
    let mut links = 0..70_000;
    while links.next().is_some_and(|link| fs::hard_link(&one, many.join(link.to_string())).is_ok()) {}
    let full = names();
    world.say("add third");
    assert!(names() == full || links.is_empty(), "it has no limit here");
    fs::remove_file(&one).unwrap();
    world.say("add fourth");
    world.say("add fifth");
    assert_eq!(names(), 2, "it is made again, for the next one");
    for task in ["first", "second", "third", "fourth", "fifth"] {
        assert_eq!(world.json("next").expect::<Value>(0)["id"], task);
    }
    world.refused("next", 1, "NOTHING_ELIGIBLE");
}

#[test]
fn a_directory_that_lost_all_its_hints_still_works() {
    let world = World::new();
    for task in ["a", "b", "c"] {
        world.say(&format!("add {task}"));
    }
    world.json("next").expect::<Value>(0);
    fs::remove_dir_all(world.dir().join(".store/due")).unwrap();
    let mut found = BTreeSet::new();
    for _ in 0..2 {
        found.insert(world.json("next").expect::<Value>(0)["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["b", "c"]);
    world.refused("next", 1, "NOTHING_ELIGIBLE");
}

#[test]
fn paths_that_others_have_pass_the_turn_on() {
    let world = World::new();
    world.say("add a");
    world.take("holder --path src");
    let refused = world.refused("next --path src/a", 1, "NOTHING_ELIGIBLE");
    assert!(refused.message.contains("src"), "{refused:?}");
    assert_eq!(world.json("next --path doc").expect::<Value>(0)["id"], "a");
}

#[test]
fn wrong_usage_is_told_apart() {
    let world = World::new();
    world.refused("next --seen 1", 2, "USAGE");
    assert_eq!(world.run(&["next", "--queue", ""]).exit, 2);
    world.refused("add t --priority 10", 2, "USAGE");
    world.refused("next t", 2, "USAGE");
    assert!(!world.dir().exists());
}

#[test]
fn with_a_receipt_a_retry_gets_the_same_task_and_token() {
    let world = World::new();
    for task in ["a", "b"] {
        world.say(&format!("add {task}"));
    }
    let first: Value = world.json("next --owner w --receipt k").expect(0);
    let again: Value = world.json("next --owner w --receipt k").expect(0);
    assert_eq!(
        (&first["id"], &first["replay"], &again["replay"]),
        (&json!("a"), &json!(false), &json!(true))
    );
    assert_eq!((&again["id"], &again["token"]), (&first["id"], &first["token"]));
    let conflict = world.refused("next --owner w --project p --receipt k", 4, "RECEIPT_CONFLICT");
    assert!(conflict.message.contains("fingerprint"), "{conflict:?}");
    world.refused("acquire b --owner w --receipt k", 4, "RECEIPT_CONFLICT");
    let token = first["token"].as_str().unwrap();
    assert_eq!(world.say(&format!("complete a --token {token}")).exit, 0);
    let ended: Value = world.json("next --owner w --receipt k").expect(0);
    assert_eq!((&ended["id"], &ended["lost"]), (&json!("a"), &json!(true)));
    assert_eq!(world.stored("b")["generation"], 0, "nothing else was taken");
    let said = race(&world, &vec![words("next --owner w --receipt r --json"); 8]);
    let ids: BTreeSet<String> = said.iter().map(|said| said.expect::<Value>(0)["id"].to_string()).collect();
    assert_eq!(ids.len(), 1, "{said:?}");
}

#[test]
fn a_list_is_of_the_queue_and_the_projects_that_were_asked_for() {
    let world = World::new();
    world.say("add a --queue q --project p");
    world.say("add b --queue q");
    world.say("add c --project r");
    world.take("bare");
    let ids = |line: &str| -> Vec<String> {
        let listed: Value = world.json(line).expect(0);
        let nodes = listed["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("list --queue q"), ["a", "b"]);
    assert_eq!(ids("list --project p --project r"), ["a", "c"]);
    assert_eq!(ids("list --queue q --project r"), [""; 0]);
    assert_eq!(ids("list"), ["a", "b", "bare", "c"]);
    world.refused("list --paths --queue q", 2, "USAGE");
}

/// A renewal may bring the end of a lease nearer, and then that is when it is found.
#[test]
fn a_lease_that_was_made_shorter_is_over_sooner() {
    let world = World::new();
    world.say("add t");
    let lease: Claimed = world.json("next --lease 1h").expect(0);
    world.say(&format!("renew t --token {} --lease 50ms", lease.token));
    until("the end of the lease", || world.say("list --state ready").out.contains("t generation=1"));
    assert_eq!(world.json("next").expect::<Claimed>(0).generation, 2);
}

#[test]
fn what_was_blocked_or_delayed_for_a_while_keeps_its_place() {
    let world = World::new();
    for line in ["add a", "add b --not-before 1ms", "add c", "block a --reason x --until 1ms"] {
        assert_eq!(world.say(line).exit, 0, "{line}");
    }
    until("all are ready", || world.say("list --state ready").out.lines().count() == 3);
    for id in ["a", "b", "c"] {
        assert_eq!(world.json("next").expect::<Value>(0)["id"], id);
    }
}
