//! Large values that were damaged from outside, and what else a queue must get over.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use support::{Refused, World};

/// The one blob there is.
fn blob(world: &World) -> PathBuf {
    let mut folders = vec![world.dir().join(".store/blobs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => return path,
            }
        }
    }
    unreachable!()
}

fn large(world: &World) {
    fs::write(world.root.join("large"), "1".repeat(100_000)).unwrap();
}

#[test]
fn a_task_whose_input_can_not_be_read_uses_up_its_attempts_and_holds_up_nobody() {
    let world = World::new();
    large(&world);
    world.say("add poison --input @large --max-attempts 1");
    world.say("add good");
    fs::remove_file(blob(&world)).unwrap();
    let said = world.run(&["work", "--idle-exit", "--", "true"]);
    assert_eq!(said.exit, 0, "{said:?}");
    assert_eq!(
        (world.stored("poison")["state"].as_str(), world.stored("good")["state"].as_str()),
        (Some("failed"), Some("done"))
    );
    assert!(said.out.contains("FAILED poison") && said.out.contains("its input can't be read"), "{said:?}");
}

#[test]
fn a_damaged_result_is_a_refusal_and_no_part_of_it() {
    let world = World::new();
    large(&world);
    let token = world.take("n").token;
    assert_eq!(world.say(&format!("complete n --token {token} --result @large")).exit, 0);
    for damage in ["", "{\"x", &"2".repeat(100_000)] {
        fs::write(blob(&world), damage).unwrap();
        let refused: Refused = world.json("result n").expect(6);
        assert_eq!(refused.code, "RECORD_UNREADABLE");
        let said = world.say("result n");
        assert_eq!((said.exit, said.out.as_str()), (6, ""), "{said:?}");
        let told: Value = world.json("doctor").expect(6);
        assert_eq!(told["faults"], 1, "{told}");
    }
}

#[test]
fn what_needs_what_it_can_not_have_is_not_ready_and_nobody_spins_for_it() {
    let world = World::new();
    world.say("quota set q 2/1h");
    world.say("pool set p 1");
    world.say("add greedy --quota q=5");
    world.say("add pooled --pool p");
    world.take("holder --pool p");
    let listed = world.say("list --state ready");
    assert!(!listed.out.contains("greedy") && !listed.out.contains("pooled"), "{listed:?}");
    let waiting = world.say("list --state waiting").out;
    assert!(waiting.contains("greedy") && waiting.contains("pooled"), "{waiting}");
    world.refused("acquire greedy", 4, "QUOTA_USED");
    let nothing = world.refused("next --queue default", 1, "NOTHING_ELIGIBLE");
    assert!(nothing.due_in_ms.is_none_or(|ms| ms > 0), "{nothing:?}");
}

#[test]
fn an_empty_receipt_is_no_receipt_and_refused() {
    let world = World::new();
    let refused: Refused = world.run(&["add", "t", "--receipt", "", "--json"]).expect(2);
    assert_eq!(refused.code, "USAGE");
}

#[test]
fn a_swap_that_fails_leaves_no_hint() {
    let world = World::new();
    world.say("add t");
    let hints = || count(&world.dir().join(".store/due"));
    let before = hints();
    // Nothing can be staged where a file is in the folder's place.
    let intents = world.dir().join(".store/intents");
    fs::remove_dir_all(&intents).unwrap();
    fs::write(&intents, "").unwrap();
    for _ in 0..3 {
        assert_eq!(world.say("acquire t").exit, 6);
    }
    assert_eq!(hints(), before);
    assert_eq!(world.stored("t")["generation"], json!(0));
}

fn count(folder: &std::path::Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}
