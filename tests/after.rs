//! What tasks wait for in the end, and what becomes of that when a record on the way can't be read.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::World;

/// `tip` waits for `mid`, which waits for `root`, which has failed.
fn in_vain() -> World {
    let world = World::new();
    world.say("add root");
    world.say("add mid --after root");
    world.say("add tip --after mid");
    let token = world.take("root").token;
    world.say(&format!("reject root --token {token} --reason broken"));
    world
}

#[test]
fn a_task_that_waits_in_vain_says_for_what_and_is_not_waited_for() {
    let world = in_vain();
    let before = world.snapshot();
    let told = "it waits for mid, which waits in vain for root: that is failed";
    for line in ["why tip", "show tip", "list --state waiting"] {
        let said = world.say(line);
        assert!(said.exit == 0 && said.out.contains(told), "{line}: {said:?}");
    }
    let why: Value = world.json("why tip").expect(0);
    assert_eq!(why["reason"], json!("DEPENDENCY_NOT_ACCEPTED"));
    let said = world.say("acquire tip");
    assert!(said.exit == 4 && said.err.contains("`claim requeue root`"), "{said:?}");
    assert!(world.snapshot() == before, "it is told by reading");
    let refused = world.refused("acquire tip --wait=1h", 4, "DEPENDENCY_NOT_ACCEPTED");
    assert!(refused.message.contains(told), "{refused:?}");
    world.refused("next --queue default", 1, "NOTHING_ELIGIBLE");
    // And as soon as somebody has it tried again it is one that may come.
    assert_eq!(world.say("requeue root").exit, 0);
    let said = world.say("show tip");
    assert!(said.out.contains("it waits for mid, which is ready"), "{said:?}");
    for id in ["root", "mid", "tip"] {
        let taken: Value = world.json("next").expect(0);
        assert_eq!(taken["id"], json!(id));
        let token = taken["token"].as_str().unwrap();
        assert_eq!(world.say(&format!("complete {id} --token {token}")).exit, 0);
    }
}

#[test]
fn a_cancelled_root_is_final_and_a_chain_that_is_too_long_is_not_read_to_its_end() {
    let world = World::new();
    world.say("add n0");
    for n in 1..100 {
        world.say(&format!("add n{n} --after n{}", n - 1));
    }
    world.say("cancel n0 --reason off");
    let said = world.say("why n50");
    assert!(said.out.contains("in vain for n0: that is cancelled"), "{said:?}");
    assert!(said.err.contains("can't be met any more") && !said.err.contains("requeue"), "{said:?}");
    let said = world.say("show n99");
    assert!(said.out.contains("it waits for n98, which is ready"), "{said:?}");
}

#[test]
fn a_dependency_that_can_not_be_read_is_the_store_s_error_and_names_the_file() {
    let world = World::new();
    world.say("add first");
    world.say("add second --after first");
    let whole = fs::read(world.record("first")).unwrap();
    for (damage, code) in [(&b"{"[..], "RECORD_UNREADABLE"), (b"{\"format\": 9999}", "FORMAT_TOO_NEW")] {
        fs::write(world.record("first"), damage).unwrap();
        for line in ["acquire second", "acquire second --wait=1h"] {
            let refused = world.refused(line, 6, code);
            assert!(refused.message.contains("first.claim"), "{refused:?}");
        }
        let why: Value = world.json("why second").expect(0);
        assert_eq!((&why["takeable"], &why["reason"]), (&json!(false), &json!(code)));
        assert_eq!(world.run(&["run", "second", "--", "true"]).exit, 125);
    }
    fs::write(world.record("first"), whole).unwrap();
    world.refused("acquire second", 4, "DEPENDENCY_NOT_ACCEPTED");
}

#[test]
fn next_and_reap_say_what_they_could_not_read_and_lose_no_hint_for_it() {
    let world = World::new();
    world.say("add first");
    world.say("add second --after first");
    let taken: Value = world.json("next").expect(0);
    let token = taken["token"].as_str().unwrap();
    assert_eq!(world.say(&format!("complete first --token {token}")).exit, 0);
    for id in ["first", "second"] {
        let whole = fs::read(world.record(id)).unwrap();
        fs::write(world.record(id), "{").unwrap();
        let refused: Value = world.json("next").expect(1);
        assert_eq!(
            (&refused["code"], &refused["unreadable"][0]["id"]),
            (&json!("NOTHING_ELIGIBLE"), &json!("second"))
        );
        assert!(refused["message"].as_str().unwrap().contains(&format!("{id}.claim")), "{refused}");
        let said = world.say("next");
        assert!(said.exit == 1 && said.out.contains(&format!("{id}.claim")), "{said:?}");
        let said = world.say("reap");
        assert!(said.exit == 0 && said.err.contains(&format!("{id}.claim")), "{said:?}");
        let reaped: Value = world.json("reap --apply").expect(0);
        assert_eq!(reaped["unreadable"][0]["id"], json!(id), "{reaped}");
        fs::write(world.record(id), whole).unwrap();
    }
    let taken: Value = world.json("next").expect(0);
    assert_eq!(taken["id"], json!("second"));
}
