//! `claim doctor` and `claim doctor --repair`: each fault is put there from outside, told, mended, and gone.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Running, World, until};

/// A world in which all that was there at the boot has its hints: what is lost from here on stays lost.
fn world() -> World {
    let world = World::new();
    world.say("add elsewhere --queue other");
    world.refused("next", 1, "NOTHING_ELIGIBLE");
    world
}

/// The files below a folder of the store.
fn files(world: &World, below: &str) -> Vec<PathBuf> {
    let mut folders = vec![world.dir().join(".store").join(below)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => files.push(path),
            }
        }
    }
    files.sort();
    files
}

/// The hints of a task.
fn hints(world: &World, id: &str) -> Vec<PathBuf> {
    let of = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().contains(&format!("{id}+-%7E"));
    files(world, "due").into_iter().filter(of).collect()
}

fn remove_all(files: Vec<PathBuf>) {
    assert!(!files.is_empty());
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
}

/// What `doctor` found: how bad, what, and whether it is mended.
fn found(answer: &Value) -> Vec<(String, String, bool)> {
    let text = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let findings = answer["findings"].as_array().unwrap();
    let told = findings.iter().inspect(|it| {
        assert!(it["mended"] == json!(true) || !text(it, "next").is_empty(), "{it}");
        assert!(!text(it, "place").is_empty(), "{it}");
    });
    told.map(|it| (text(it, "gravity"), text(it, "what"), it["mended"].as_bool().unwrap())).collect()
}

/// `doctor` finds it, of this gravity and so many times, and `--repair` mends it.
#[track_caller]
fn mends(world: &World, gravity: &str, what: &str, times: usize) {
    let exit = if gravity == "fault" { 6 } else { 0 };
    let before = world.snapshot();
    let alike = |answer: &Value, mended: bool| {
        let found = found(answer);
        assert_eq!(found.len(), times, "{answer}");
        assert!(found.iter().all(|it| it.0 == gravity && it.1.contains(what) && it.2 == mended), "{answer}");
    };
    alike(&world.json("doctor").expect(exit), false);
    assert!(world.snapshot() == before, "looking changes nothing");
    alike(&world.json("doctor --repair").expect(0), true);
    clean(world);
}

#[track_caller]
fn clean(world: &World) {
    for line in ["doctor", "doctor --repair"] {
        let answer: Value = world.json(line).expect(0);
        assert_eq!((&answer["findings"], &answer["hints_whole"]), (&json!([]), &json!(true)), "{line}");
    }
}

/// Nothing of it is mended.
#[track_caller]
fn keeps(world: &World, what: &str) {
    let before = world.snapshot();
    for line in ["doctor", "doctor --repair"] {
        let answer: Value = world.json(line).expect(6);
        assert!(found(&answer).iter().any(|it| it.0 == "fault" && it.1.contains(what) && !it.2), "{answer}");
    }
    assert!(world.snapshot() == before, "it is left as it is");
}

#[track_caller]
fn next(world: &World) -> String {
    let taken: Value = world.json("next").expect(0);
    taken["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_lost_hint_is_put_again() {
    let world = world();
    ["a", "b", "c"].iter().for_each(|id| drop(world.say(&format!("add {id}"))));
    world.say("add rests --not-before 1h");
    world.say("add held");
    world.take(&format!("held --while-pid {}", std::process::id()));
    clean(&world);
    assert_eq!(hints(&world, "held").len(), 2);
    for id in ["a", "b", "rests", "held"] {
        remove_all(hints(&world, id));
    }
    let answer: Value = world.json("doctor").expect(6);
    assert_eq!(answer["hints_whole"], json!(false));
    let records = ["a", "b", "held"].map(|id| fs::read(world.record(id)).unwrap());
    mends(&world, "fault", "no hint leads to this task", 5);
    assert_eq!(
        ["a", "b", "held"].map(|id| fs::read(world.record(id)).unwrap()),
        records,
        "nobody's record changed"
    );
    assert_eq!(hints(&world, "held").len(), 2);
    assert_eq!([next(&world), next(&world), next(&world)], ["a", "b", "c"]);
    world.refused("next", 1, "NOTHING_ELIGIBLE");
}

#[test]
fn a_task_that_stands_aside_is_led_to_and_one_that_lost_that_hint_is_led_to_again() {
    let world = world();
    world.say("pool set gpu 1");
    let token = world.take("holder --pool gpu").token;
    world.say("add n --pool gpu");
    world.refused("next", 1, "NOTHING_ELIGIBLE");
    let aside = hints(&world, "n");
    assert!(aside.len() == 1 && aside[0].to_string_lossy().contains("/parked/"), "{aside:?}");
    clean(&world);
    remove_all(aside);
    mends(&world, "fault", "no hint leads to this task", 1);
    world.say(&format!("release holder --token {token}"));
    assert_eq!(next(&world), "n");
}

#[test]
fn a_record_that_names_no_hint_comes_to_name_one_and_its_claim_goes_on() {
    let world = world();
    world.say("add n");
    world.say("add held");
    let token = world.take("held").token;
    for id in ["n", "held"] {
        remove_all(hints(&world, id));
        world.edit(id, |json| drop(json.as_object_mut().unwrap().remove("hint")));
    }
    mends(&world, "fault", "no hint leads to this task", 2);
    assert_eq!(next(&world), "n");
    assert_eq!(world.say(&format!("complete held --token {token}")).exit, 0);
}

#[test]
fn a_hint_that_leads_nowhere_is_removed() {
    let world = world();
    world.say("add n");
    world.say("add ended");
    let token = world.take("ended").token;
    let old = hints(&world, "ended").remove(0);
    world.say(&format!("complete ended --token {token}"));
    let own = hints(&world, "n").remove(0);
    let (head, tail) = own.to_str().unwrap().rsplit_once("%7E1-").unwrap();
    // The same version under another mark, an earlier one, the next one, one far ahead, and one of a task that is over.
    let flipped = if tail.starts_with('0') { "1" } else { "0" };
    for version in ["1", "0", "2", "9"] {
        fs::write(format!("{head}%7E{version}-{flipped}{}", &tail[1..]), "").unwrap();
    }
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    fs::write(&old, "").unwrap();
    fs::write(world.dir().join(".store/due/queues/x"), "").unwrap();
    let answer: Value = world.json("doctor").expect(0);
    let mut found: Vec<String> = found(&answer).into_iter().map(|it| it.1).collect();
    found.sort();
    let expected = [
        "its record has another",
        "its record has another",
        "its record was set back from outside",
        "its task does not come up any more",
        "not a hint's name; it stands in nobody's way",
        "put for a write that was never made",
    ];
    assert_eq!(found, expected);
    mends(&world, "leftover", "", 6);
    assert_eq!(hints(&world, "n").len(), 1);
    assert_eq!(next(&world), "n");
}

#[test]
fn what_may_still_be_added_and_what_somebody_wrote_is_left() {
    let world = world();
    world.say("add n");
    let own = hints(&world, "n").remove(0);
    let other = own.to_str().unwrap().replace(".n+-%7E1", ".m+-%7E1");
    fs::write(&other, "").unwrap();
    let strange = world.dir().join(".store/due/queues/notes");
    fs::write(&strange, "mine").unwrap();
    let hidden = world.dir().join(".store/due/.hidden");
    fs::write(&hidden, "mine").unwrap();
    for line in ["doctor", "doctor --repair"] {
        let answer: Value = world.json(line).expect(0);
        assert_eq!(found(&answer).iter().filter(|it| it.0 == "leftover" && !it.2).count(), 3, "{answer}");
        assert_eq!(fs::read(&other).unwrap(), b"");
        assert_eq!(
            (fs::read(&strange).unwrap(), fs::read(&hidden).unwrap()),
            (b"mine".to_vec(), b"mine".to_vec())
        );
    }
    assert!(!world.record("m").exists());
    world.say("add m");
    let mut taken = [next(&world), next(&world)];
    taken.sort();
    assert_eq!(taken, ["m", "n"]);
}

#[test]
fn who_waits_is_registered_again() {
    let world = world();
    world.say("add first");
    world.say("add second --after first");
    remove_all(files(&world, "dependents"));
    mends(&world, "fault", "it waits for \"first\" and is not registered", 1);
    let token = world.take("first").token;
    world.refused("next", 1, "NOTHING_ELIGIBLE"); // who meets the hint of `second` now removes it
    assert!(hints(&world, "second").is_empty());
    clean(&world);
    world.say(&format!("complete first --token {token}"));
    assert_eq!(next(&world), "second");
}

#[test]
fn who_waited_for_what_ended_meanwhile_gets_its_hint() {
    let world = world();
    world.say("add first");
    world.say("add second --after first");
    let token = world.take("first").token;
    world.refused("next", 1, "NOTHING_ELIGIBLE");
    remove_all(files(&world, "dependents"));
    world.say(&format!("complete first --token {token}"));
    world.refused("next", 1, "NOTHING_ELIGIBLE");
    mends(&world, "fault", "no hint leads to this task", 1);
    assert_eq!(next(&world), "second");
}

#[test]
fn who_was_not_told_is_told() {
    let world = world();
    world.say("add first");
    world.say("add second --after first");
    world.say("add third");
    let registration = files(&world, "dependents").remove(0);
    let token = world.take("first").token;
    world.refused("acquire second", 4, "DEPENDENCY_NOT_ACCEPTED");
    assert_eq!(next(&world), "third"); // and the hint of `second` is gone
    assert!(hints(&world, "second").is_empty());
    world.say(&format!("complete first --token {token}"));
    remove_all(hints(&world, "second"));
    fs::create_dir_all(registration.parent().unwrap()).unwrap();
    fs::write(&registration, "").unwrap();
    mends(&world, "fault", "of those who wait for it 1 were not told", 1);
    assert_eq!(next(&world), "second");
    // And one that never waited for it.
    fs::create_dir_all(registration.parent().unwrap()).unwrap();
    fs::write(registration.with_file_name("third+-"), "").unwrap();
    let answer: Value = world.json("doctor").expect(0);
    assert!(
        found(&answer).iter().any(|it| it.1.contains("\"third\" does not wait for \"first\"")),
        "{answer}"
    );
    world.json("doctor --repair").expect::<Value>(0);
    clean(&world);
}

#[test]
fn an_unreadable_task_keeps_nobody_else_from_being_told() {
    let world = world();
    world.say("add first");
    ["a", "b", "c"].iter().for_each(|id| drop(world.say(&format!("add {id} --after first"))));
    let token = world.take("first").token;
    world.refused("next", 1, "NOTHING_ELIGIBLE"); // whoever meets their hints now removes them
    let whole = fs::read(world.record("a")).unwrap();
    fs::write(world.record("a"), "{").unwrap();
    assert_eq!(world.say(&format!("complete first --token {token}")).exit, 0);
    assert_eq!([next(&world), next(&world)], ["b", "c"]);
    world.refused("next", 1, "NOTHING_ELIGIBLE");
    fs::write(world.record("a"), whole).unwrap();
    world.json("doctor --repair").expect::<Value>(0);
    clean(&world);
    assert_eq!(next(&world), "a");
}

#[test]
fn entries_of_claims_that_are_gone_are_taken_out() {
    let world = world();
    world.say("pool set gpu 2");
    let token = world.take("gone --path src/a --pool gpu").token;
    let live = world.take("live --path src/b --pool gpu").token;
    world.say(&format!("release gone --token {token}"));
    mends(&world, "leftover", "entries of claims that are gone: 1", 2);
    world.refused("acquire other --path src/b", 4, "PATH_CLASH");
    world.take("other --path src/a --pool gpu");
    assert_eq!(world.say(&format!("check live --token {live}")).exit, 0);
}

#[test]
fn a_claim_that_was_announced_and_never_came_is_taken_out() {
    let world = world();
    world.take("live --path src/b");
    let roster = world.dir().join(".store/rosters/paths.roster");
    let mut json: Value = serde_json::from_slice(&fs::read(&roster).unwrap()).unwrap();
    let mut entry = json["entries"][0].clone();
    entry["node"] = json!("never");
    entry["replaces"] = Value::Null;
    entry["attempt"] = json!("0123456789abcdef0123456789abcdef");
    json["entries"].as_array_mut().unwrap().push(entry);
    fs::write(&roster, json.to_string()).unwrap();
    mends(&world, "leftover", "entries of claims that are gone: 1", 1);
    assert_eq!(world.stored("never")["generation"], json!(0), "it owns nothing");
}

#[test]
fn a_claim_without_its_entry_is_entered_again() {
    let world = world();
    world.say("pool set gpu 1");
    world.take("live --path src/b --pool gpu");
    for name in ["paths.roster", "pools/gpu"] {
        let roster = world.dir().join(".store/rosters").join(name);
        let mut json: Value = serde_json::from_slice(&fs::read(&roster).unwrap()).unwrap();
        json["entries"] = json!([]);
        fs::write(&roster, json.to_string()).unwrap();
    }
    mends(&world, "fault", "its claim is not entered in", 2);
    world.refused("acquire other --path src", 4, "PATH_CLASH");
    world.refused("acquire other --pool gpu", 4, "POOL_FULL");
}

#[test]
fn a_roster_that_can_not_be_read_is_left_and_made_again_once_it_is_moved_away() {
    let world = world();
    world.say("pool set gpu 1");
    world.say("quota set api 5/1h");
    world.take("live --path src/b --pool gpu --quota api=2");
    let rosters = world.dir().join(".store/rosters");
    for name in ["paths.roster", "pools/gpu", "quotas/api"] {
        let whole = fs::read(rosters.join(name)).unwrap();
        fs::write(rosters.join(name), &whole[..whole.len() / 2]).unwrap();
        keeps(&world, "cannot read");
        if name.starts_with("quotas") {
            fs::write(rosters.join(name), whole).unwrap();
            continue;
        }
        fs::rename(rosters.join(name), world.root.join("aside")).unwrap();
        if name.starts_with("pools") {
            world.say("pool set gpu 1");
        }
        mends(&world, "fault", "its claim is not entered in", 1);
    }
    world.refused("acquire other --path src", 4, "PATH_CLASH");
    world.say("pool set gpu 1");
    world.refused("acquire other --pool gpu", 4, "POOL_FULL");
}

#[test]
fn live_claims_whose_paths_clash_are_named_and_both_left() {
    let world = world();
    let one = world.take("one --path src --lease 1h").token;
    fs::rename(world.dir().join(".store/rosters/paths.roster"), world.root.join("aside")).unwrap();
    let other = world.take("other --path src/x --lease 1h").token;
    world.take("apart --path doc --lease 1h");
    let answer: Value = world.json("doctor").expect(6);
    let clash = "has the path src/x, and that of \"one\" has src at the same time";
    let named = |answer: &Value, what: &str, mended: bool| {
        found(answer).iter().filter(|it| it.0 == "fault" && it.1.contains(what) && it.2 == mended).count()
    };
    assert_eq!(
        (named(&answer, clash, false), named(&answer, "is not entered in", false)),
        (1, 1),
        "{answer}"
    );
    let answer: Value = world.json("doctor --repair").expect(6);
    assert_eq!((named(&answer, clash, false), named(&answer, "is not entered in", true)), (1, 1), "{answer}");
    for (id, token) in [("one", &one), ("other", &other)] {
        assert_eq!(world.say(&format!("check {id} --token {token}")).exit, 0, "neither is ended");
    }
    world.refused("acquire third --path src/y", 4, "PATH_CLASH");
    world.say(&format!("release other --token {other}"));
    world.json("doctor --repair").expect::<Value>(0); // and the entry of `other`
    clean(&world);
}

#[test]
fn a_pool_and_a_quota_that_are_gone_while_claims_have_some_of_them_are_named() {
    let world = world();
    world.say("pool set gpu 1");
    world.say("quota set api 5/1h");
    world.take("live --path src/b --pool gpu --quota api=2 --lease 1h");
    fs::rename(world.dir().join(".store/rosters"), world.root.join("aside")).unwrap();
    let answer: Value = world.json("doctor --repair").expect(6);
    let faults: Vec<_> = found(&answer).into_iter().filter(|it| !it.2).map(|it| it.1).collect();
    let gone = |what: &str| format!("the claim of \"live\" has something of the {what}, which is not there");
    assert_eq!(faults, [gone("pool gpu"), gone("quota api")], "{answer}");
    world.say("pool set gpu 1");
    world.say("quota set api 5/1h");
    clean(&world);
    world.refused("acquire other --pool gpu", 4, "POOL_FULL");
    world.say("pool set gpu 2");
    world.take("other --pool gpu");
    world.say("pool set gpu 1");
    clean(&world); // fewer slots than are in use
}

#[test]
fn intents_and_blobs_of_writers_that_died_are_removed() {
    let world = world();
    let intents = world.dir().join(".store/intents");
    let stamp = "aaaaaaaa00000000000000010000000000000001";
    for name in [format!("tmp.{stamp}"), format!("0123456789abcdef0123456789abcdef.{stamp}")] {
        fs::write(intents.join(name), "{").unwrap();
    }
    mends(&world, "leftover", "left over by a process that died", 2);
    let token = world.take("n").token;
    world.say(&format!("release n --token {token}"));
    let blobs = world.dir().join(".store/blobs/n+-");
    fs::create_dir_all(&blobs).unwrap();
    fs::write(blobs.join("result-1-0123456789abcdef0123456789abcdef"), "{").unwrap();
    mends(&world, "leftover", "no record names it", 1);
    assert!(!blobs.exists());
    fs::write(intents.join("x"), "mine").unwrap();
    world.json("doctor --repair").expect::<Value>(0);
    assert_eq!(fs::read(intents.join("x")).unwrap(), b"mine");
}

#[test]
fn empty_folders_of_hints_go() {
    let world = world();
    let empty = world.dir().join(".store/due/queues/=q/-/5/-/ready/a/b");
    fs::create_dir_all(&empty).unwrap();
    world.json("doctor --repair").expect::<Value>(0);
    assert!(!world.dir().join(".store/due/queues/=q").exists());
    clean(&world);
}

#[test]
fn a_pending_receipt_whose_answer_is_in_the_record_is_settled() {
    let world = world();
    let first = world.take("n --receipt key").token;
    world.say("mail send box 1");
    world.say("mail read box --as bob --receipt page");
    for receipt in files(&world, "receipts") {
        let mut json: Value = serde_json::from_slice(&fs::read(&receipt).unwrap()).unwrap();
        let fields = json.as_object_mut().unwrap();
        assert!(fields.remove("answer").or(fields.remove("cursor")).is_some());
        fs::write(&receipt, json.to_string()).unwrap();
    }
    mends(&world, "leftover", "it is pending, and its answer is in", 2);
    assert_eq!(world.take("n --receipt key").token, first);
}

#[test]
fn a_box_gets_its_head_back() {
    let world = world();
    (1..=60).for_each(|n| assert_eq!(world.say(&format!("mail send box {n}")).exit, 0));
    let head = world.dir().join(".store/mail/heads/box");
    let set_back = fs::read_to_string(&head).unwrap();
    let last = serde_json::from_str::<Value>(&set_back).unwrap()["last"].clone();
    fs::write(&head, set_back.replace(&format!("\"last\": {last}"), "\"last\": 1")).unwrap();
    mends(&world, "leftover", "it counts 1 messages, and 60 is the last", 1);
    fs::remove_file(&head).unwrap();
    mends(&world, "fault", "the head of the box is gone, and messages 1 to 60 are there", 1);
    let sent: Value = world.json("mail send box 61").expect(0);
    assert_eq!(sent["number"], 61);
    // What stands below the floor goes.
    let two = world.dir().join(".store/mail/messages/box/102");
    let whole = fs::read(&two).unwrap();
    world.say("mail read box --as bob");
    world.say("mail ack box 10 --as bob");
    world.say("prune --older 0s");
    fs::write(&two, whole).unwrap();
    mends(&world, "leftover", "below the box's floor", 1);
    assert!(!two.exists());
    // What would lose a fact is left.
    fs::remove_file(world.dir().join(".store/mail/messages/box/160")).unwrap();
    keeps(&world, "message 60 is missing");
}

#[test]
fn records_that_can_not_be_read_are_left_as_they_are() {
    let world = world();
    ["half", "newer", "other", "good"].iter().for_each(|id| drop(world.say(&format!("add {id}"))));
    fs::write(world.record("half"), "{\"format\": 1,").unwrap();
    world.edit("newer", |json| json["format"] = json!(2));
    fs::copy(world.record("good"), world.record("other")).unwrap();
    symlink(world.record("good"), world.record("link")).unwrap();
    fs::create_dir(world.record("folder")).unwrap();
    keeps(&world, "cannot read");
    let answer: Value = world.json("doctor --repair").expect(6);
    assert_eq!((answer["faults"].as_u64(), answer["mended"].as_u64()), (Some(5), Some(0)), "{answer}");
    assert_eq!(next(&world), "good");
}

#[test]
fn a_stray_file_among_the_records_is_a_fault_and_one_in_the_store_s_own_folder_is_none() {
    let world = world();
    world.say("add n");
    fs::write(world.dir().join(".store/due/.notes"), "mine").unwrap();
    let answer: Value = world.json("doctor").expect(0);
    assert_eq!(found(&answer).len(), 1, "{answer}");
    for (name, what) in [
        ("notes.txt", "it stands in the way of all ids below \"notes.txt/\""),
        ("a b.claim", "no id has that name: nobody reads it"),
    ] {
        let stray = world.dir().join(name);
        fs::copy(world.record("n"), &stray).unwrap();
        keeps(&world, what);
        assert_eq!(world.say("acquire notes.txt/n --dry-run").exit, if name == "notes.txt" { 6 } else { 0 });
        fs::remove_file(&stray).unwrap();
    }
}

#[test]
fn a_repair_owns_nothing_and_ends_no_claim() {
    let world = world();
    world.say("add n");
    world.expired("over");
    let before = world.snapshot();
    clean(&world);
    assert!(world.snapshot() == before);
    assert_eq!(world.stored("over")["state"], json!("claimed"));
}

#[test]
fn a_directory_that_is_not_there_is_not_made() {
    let world = World::new();
    for line in ["doctor", "doctor --repair"] {
        assert_eq!(world.json(line).expect::<Value>(0)["records"], 0);
        assert!(!world.dir().exists());
    }
}

#[test]
fn a_repair_that_may_not_write_says_so() {
    let world = world();
    world.say("add n");
    remove_all(hints(&world, "n"));
    let binary = world.root.join("claim");
    fs::copy(env!("CARGO_BIN_EXE_claim"), &binary).unwrap();
    for (path, mode) in [(&binary, 0o755), (&world.root, 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let nobody = |line: &str| {
        let mut command = world.clean("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        support::said(command.args(line.split(' ')))
    };
    if nobody("--version").exit != 0 {
        return; // only root can be somebody else
    }
    let before = world.snapshot();
    assert_eq!(nobody("doctor --json").expect::<Value>(6)["faults"], 1);
    let answer: Value = nobody("doctor --repair --json").expect(6);
    assert!(answer["findings"][0]["next"].as_str().unwrap().contains("could not be mended"), "{answer}");
    assert!(world.snapshot() == before);
}

#[test]
fn of_many_alike_a_person_sees_the_first_ones() {
    let world = world();
    (0..25).for_each(|n| drop(world.say(&format!("add t{n}"))));
    fs::remove_dir_all(world.dir().join(".store/due/queues")).unwrap();
    let said = world.say("doctor");
    assert_eq!(said.exit, 6);
    assert!(said.out.contains("16 more: no hint leads to this task"), "{said:?}");
    assert_eq!(said.out.lines().count(), 12, "{said:?}");
    assert_eq!(found(&world.json("doctor").expect(6)).len(), 26);
    assert_eq!(world.say("doctor --repair").exit, 0);
    clean(&world);
    assert_eq!(next(&world), "t0");
}

#[test]
fn a_directory_without_its_hints_still_works() {
    let world = world();
    let sh = |words: &str, script: &str| {
        let mut command = world.claim();
        command.args(["work", "--lease", "1h"]).args(words.split(' ')).args(["--", "sh", "-c", script]);
        command
    };
    world.say("add first");
    world.say("add second --after first");
    world.say("add third --after second");
    world.say("add dead");
    let token = world.take("first").token;
    let mut owner = Running::idle();
    world.take(&format!("dead --while-pid {}", owner.id()));
    owner.end();
    let lose = |both: bool| {
        let _ = fs::remove_dir_all(world.dir().join(".store/due"));
        if both {
            let _ = fs::remove_dir_all(world.dir().join(".store/dependents"));
        }
    };
    lose(true);
    assert_eq!(
        world.json("doctor").expect::<Value>(0)["hints_whole"],
        json!(false),
        "the next `next` puts them"
    );
    let dead: Value = world.json("next").expect(0);
    assert_eq!((&dead["id"], &dead["reclaimed_from"].is_null()), (&json!("dead"), &false), "{dead}");
    lose(true);
    assert_eq!(world.say(&format!("complete first --token {token}")).exit, 0);
    lose(false);
    assert_eq!(next(&world), "second");
    let token = world.json("acquire second --force late").expect::<Value>(0)["token"].clone();
    lose(true);
    // A worker that is there already finds what comes.
    let mut idle = Running::spawn(&mut sh("--max 2", "exit 0"));
    assert_eq!(world.say(&format!("complete second --token {}", token.as_str().unwrap())).exit, 0);
    until("third is done", || world.stored("third")["state"] == "done");
    lose(false);
    world.say("add fourth");
    until("fourth is done", || world.stored("fourth")["state"] == "done");
    assert_eq!(idle.0.wait().unwrap().code(), Some(0));
    world.json("doctor --repair").expect::<Value>(0);
    clean(&world);
}

#[test]
fn workers_drain_their_queue_while_two_repair() {
    const TASKS: usize = 300;
    let world = world();
    let mut repairs: Vec<Running> = (0..2)
        .map(|_| {
            let script = r#"while [ ! -e stop ]; do
                "$CLAIM" doctor --repair --json >> told || { cat told >&2; exit 1; }
                "$CLAIM" doctor > /dev/null || exit 2
            done"#;
            Running::spawn(&mut world.shell(script))
        })
        .collect();
    let add = r#"i=0; while [ $i -lt 300 ]; do
        if [ $((i % 3)) = 2 ]; then after="--after t$((i - 1)) --path src/$((i % 7))"; else after=; fi
        "$CLAIM" add t$i $after > /dev/null || exit 1; i=$((i + 1)); done"#;
    let mut adds = Running::spawn(&mut world.shell(add));
    let mut workers: Vec<Running> = (0..8)
        .map(|_| {
            let mut command = world.claim();
            command.args([
                "work",
                "--idle-exit",
                "--quiet",
                "--",
                "sh",
                "-c",
                "echo $CLAIM_ID >> done.$PPID",
            ]);
            Running::spawn(command.stdout(Stdio::null()))
        })
        .collect();
    assert_eq!(adds.0.wait().unwrap().code(), Some(0));
    for worker in &mut workers {
        assert_eq!(worker.0.wait().unwrap().code(), Some(0));
    }
    // Those that found nothing for a moment have gone; what is left is for one more.
    assert_eq!(
        world.run(&["work", "--idle-exit", "--quiet", "--", "sh", "-c", "echo $CLAIM_ID >> done.$PPID"]).exit,
        0
    );
    fs::write(world.root.join("stop"), "").unwrap();
    for repair in &mut repairs {
        assert_eq!(repair.0.wait().unwrap().code(), Some(0));
    }
    let mut done: BTreeMap<String, usize> = BTreeMap::new();
    for entry in fs::read_dir(&world.root).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("done.") {
            let text = fs::read_to_string(entry.path()).unwrap();
            text.lines().for_each(|id| *done.entry(id.to_owned()).or_default() += 1);
        }
    }
    assert_eq!(done.len(), TASKS);
    assert!(done.values().all(|times| *times == 1), "{done:?}");
    told_no_fault(&world.root.join("told"));
    world.json("doctor --repair").expect::<Value>(0);
    clean(&world);
}

/// Nothing was lost, so nothing that is a fault was to be mended either.
fn told_no_fault(told: &Path) {
    for line in fs::read_to_string(told).unwrap().lines() {
        assert!(!line.contains("\"fault\""), "{line}");
    }
}

/// The mark in its name is the one that its record names, but nobody looks for it there.
#[test]
fn a_hint_that_was_moved_leads_nowhere() {
    for to in ["sibling", "bound", "timed", "priority"] {
        let world = world();
        world.say("add t");
        let hint = hints(&world, "t").pop().unwrap();
        let (folder, name) = (hint.parent().unwrap(), hint.file_name().unwrap().to_str().unwrap().to_owned());
        let text = hint.to_str().unwrap();
        let moved = match to {
            "sibling" => folder.join(format!("old-{name}")),
            "bound" => PathBuf::from(text.split("/5/").next().unwrap()).join("bound").join(&name),
            "timed" => PathBuf::from(text.replace("/ready/", "/timed/")),
            _ => PathBuf::from(text.replace("/5/", "/4/")),
        };
        fs::create_dir_all(moved.parent().unwrap()).unwrap();
        fs::rename(&hint, &moved).unwrap();
        let doctor: Value = world.json("doctor").expect(6);
        assert!(found(&doctor).iter().any(|(_, what, _)| what.contains("no hint leads")), "{to}: {doctor}");
        world.json("doctor --repair").expect::<Value>(0);
        assert_eq!(found(&world.json("doctor").expect(0)), [], "{to}");
        assert_eq!(world.json("next").expect::<Value>(0)["id"], "t", "{to}");
    }
}
