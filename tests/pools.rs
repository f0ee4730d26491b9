//! Pools and quotas from the command line, by real processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};
use support::{Running, World, said, until};

fn value(world: &World, line: &str, exit: i32) -> Value {
    world.json(line).expect(exit)
}

/// Which nodes have the slots of a pool.
fn users(world: &World, pool: &str) -> Vec<String> {
    let shown = value(world, &format!("pool show {pool}"), 0);
    let holders = shown["holders"].as_array().unwrap().clone();
    assert_eq!(shown["used"], holders.len());
    holders.iter().map(|row| row["node"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_pool_has_so_many_slots_and_says_who_has_them() {
    let world = World::new();
    let made = value(&world, "pool set gpu 2", 0);
    assert_eq!((&made["pool"], &made["slots"], &made["changed"]), (&json!("gpu"), &json!(2), &json!(true)));
    assert_eq!(value(&world, "pool set gpu 2", 0)["changed"], false);
    let claimed = world.take("a --owner al --lease 30m --pool gpu");
    assert_eq!((claimed.pools, claimed.quotas), (vec!["gpu".to_owned()], json!({})));
    world.take("b --owner bo --pool gpu --pool gpu");
    let refused = world.refused("acquire c --pool gpu", 4, "POOL_FULL");
    assert_eq!((refused.pool.as_deref(), refused.slots, refused.used), (Some("gpu"), Some(2), Some(2)));
    // Whose end comes first, and when.
    let holder = refused.holder.unwrap();
    assert_eq!((refused.node.as_deref(), holder.owner.as_str()), (Some("a"), "al"));
    assert!((1..=30 * 60_000).contains(&holder.remaining_ms.unwrap()), "{holder:?}");
    assert!(
        refused
            .message
            .starts_with("the pool gpu is full: 2 of 2 slots are taken, first to end is that of al")
    );
    assert!(!world.record("c").exists());
    assert_eq!(users(&world, "gpu"), ["a", "b"]);
    // A node never clashes with itself.
    world.take("a --force test --pool gpu");
    assert_eq!(users(&world, "gpu"), ["a", "b"]);
    let lines = world.say("pool show gpu").out;
    assert!(lines.starts_with("gpu slots=2 used=2\n  a by "), "{lines}");
    assert_eq!(world.say("pool show").out, "gpu slots=2 used=2\n");
}

#[test]
fn a_slot_frees_with_its_claim_however_that_ends() {
    let world = World::new();
    world.say("pool set gpu 1");
    let released = world.take("a --pool gpu");
    world.refused("acquire b --pool gpu", 4, "POOL_FULL");
    world.json(&format!("release a --token {}", released.token)).expect::<Value>(0);
    let completed = world.take("b --pool gpu");
    world.json(&format!("complete b --token {}", completed.token)).expect::<Value>(0);
    // A lease that is over.
    world.take("c --pool gpu");
    world.edit("c", |json| {
        json["claim"]["clock"]["ends_mono_ms"] = 1.into();
        json["claim"]["expires_at"] = "2020-01-01T00:00:00Z".into();
    });
    // A process that is gone.
    let mut process = Running::idle();
    world.take(&format!("d --pool gpu --while-pid {}", process.id()));
    assert_eq!(world.stored("c")["state"], "ready", "nobody concludes from a clock");
    world.refused("acquire e --pool gpu", 4, "POOL_FULL");
    process.end();
    world.take("e --pool gpu");
    assert_eq!(users(&world, "gpu"), ["e"]);
}

#[test]
fn fewer_slots_than_are_in_use_take_nothing_away() {
    let world = World::new();
    world.say("pool set gpu 3");
    let tokens = ["a", "b", "c"].map(|node| world.take(&format!("{node} --pool gpu")).token);
    world.say("pool set gpu 1");
    assert_eq!(users(&world, "gpu"), ["a", "b", "c"]);
    for (node, token) in ["a", "b", "c"].iter().zip(&tokens) {
        let refused = world.refused("acquire d --pool gpu", 4, "POOL_FULL");
        assert_eq!(refused.slots, Some(1));
        world.json(&format!("renew {node} --token {token}")).expect::<Value>(0);
        world.json(&format!("release {node} --token {token}")).expect::<Value>(0);
    }
    world.take("d --pool gpu");
}

#[test]
fn what_was_never_set_is_not_there() {
    let world = World::new();
    let refused = world.refused("acquire a --wait --pool gpu", 1, "NOT_FOUND");
    assert_eq!(refused.message, "there is no pool gpu");
    assert!(refused.hint.unwrap().contains("`claim pool set gpu N`"));
    let refused = world.refused("acquire a --wait --quota api", 1, "NOT_FOUND");
    assert!(refused.hint.unwrap().contains("`claim quota set api 100/1h`"));
    for line in ["pool show gpu", "quota show api", "acquire a --pool gpu --dry-run"] {
        value(&world, line, 1);
    }
    assert_eq!(value(&world, "pool show", 0)["pools"], json!([]));
    assert_eq!(value(&world, "quota show", 0)["quotas"], json!([]));
    assert_eq!(world.say("pool run gpu -- true").exit, 75);
    assert!(!world.record("a").exists());
}

#[test]
fn wrong_usage_is_told_and_changes_nothing() {
    let world = World::new();
    for line in [
        "pool set gpu 0",
        "pool set gpu 10001",
        "pool set gpu x",
        "quota set api 0/1h",
        "quota set api 5",
        "quota set api 5/1ms",
        "quota set api 5/31d",
        "acquire a --quota api=0",
        "acquire a --quota api=x",
        "acquire a --quota api=1000001",
    ] {
        assert_eq!(world.say(line).exit, 2, "{line}");
    }
    assert_eq!(world.json(&format!("pool set {} 1", "x".repeat(257))).exit, 2);
    assert_eq!(world.say("pool run").exit, 125);
    assert!(!world.dir().exists());
}

#[test]
fn names_are_any_text() {
    let world = World::new();
    let long = "ä/".repeat(85);
    for (at, name) in [".", "..", "a/b", "a%2Fb", "a b=c", long.as_str()].into_iter().enumerate() {
        assert_eq!(world.run(&["pool", "set", name, "1"]).exit, 0, "{name}");
        assert_eq!(world.run(&["quota", "set", name, "5/1h"]).exit, 0, "{name}");
        let amount = format!("{name}=2");
        assert_eq!(
            world.run(&["acquire", &format!("n{at}"), "--pool", name, "--quota", &amount]).exit,
            0,
            "{name}"
        );
        assert_eq!(world.run(&["pool", "run", name, "--", "true"]).exit, 75, "{name}");
        let shown: Value = world.run(&["--json", "quota", "show", name]).expect(0);
        assert_eq!((&shown["quota"], &shown["used"]), (&json!(name), &json!(2)));
    }
    assert_eq!(value(&world, "pool show", 0)["pools"].as_array().unwrap().len(), 6);
    assert_eq!(value(&world, "quota show", 0)["quotas"].as_array().unwrap().len(), 6);
}

#[test]
fn a_quota_is_used_up_whatever_becomes_of_the_claims() {
    let world = World::new();
    assert_eq!(value(&world, "quota set api 5/1h", 0)["period_ms"], 3_600_000);
    let claimed = world.take("a --quota api=3 --quota api");
    assert_eq!(claimed.quotas, json!({"api": 3}));
    world.json(&format!("release a --token {}", claimed.token)).expect::<Value>(0);
    let refused = world.refused("acquire b --quota api=3", 4, "QUOTA_USED");
    assert_eq!((refused.quota.as_deref(), refused.limit, refused.used), (Some("api"), Some(5), Some(3)));
    assert_eq!(refused.asked, Some(3));
    assert!((3_500_000..=3_600_000).contains(&refused.remaining_ms.unwrap()));
    // It could never pass.
    let refused = world.refused("acquire b --wait --quota api=6", 4, "QUOTA_USED");
    assert!(refused.message.ends_with("6 can never be had of it"), "{}", refused.message);
    assert!(!world.record("b").exists());
    world.take("b --quota api=2");
    assert_eq!(value(&world, "quota show api", 0)["used"], 5);
    world.refused("acquire c --quota api", 4, "QUOTA_USED");
    world.say("quota set api 6/1h");
    world.take("c --quota api");
}

#[test]
fn a_task_brings_what_it_needs_and_the_request_adds_to_it() {
    let world = World::new();
    for line in ["pool set gpu 1", "pool set disk 1", "quota set api 9/1h"] {
        world.say(line);
    }
    let add = "add t --pool gpu --quota api=2 --path src/x";
    value(&world, add, 0);
    assert_eq!(value(&world, add, 0)["differing"], json!([]));
    assert_eq!(value(&world, "add t --path src", 0)["differing"], json!(["path", "pool", "quota"]));
    let task = &world.stored("t")["task"];
    assert_eq!((&task["paths"], &task["pools"]), (&json!(["src/x"]), &json!(["gpu"])));
    assert_eq!(task["quotas"], json!({"api": 2}));
    let blocker = world.take("b --pool gpu");
    for line in ["acquire t", "acquire t --dry-run"] {
        world.refused(line, 4, "POOL_FULL");
    }
    assert_eq!(value(&world, "why t", 0)["reason"], "POOL_FULL");
    assert_eq!(world.say("run t -- true").exit, 75);
    world.json(&format!("release b --token {}", blocker.token)).expect::<Value>(0);
    assert_eq!(value(&world, "why t", 0)["takeable"], true);
    let claimed = world.take("t --pool disk --quota api --path docs");
    assert_eq!(
        (claimed.paths, claimed.pools),
        (vec!["docs".into(), "src/x".into()], vec!["disk".into(), "gpu".into()])
    );
    assert_eq!(claimed.quotas, json!({"api": 2}));
    world.refused("acquire c --path src", 4, "PATH_CLASH");
    world.refused("acquire c --pool disk", 4, "POOL_FULL");
    assert_eq!(value(&world, "quota show api", 0)["used"], 2);
    assert!(world.say("show t").out.contains("\n  path src/x\n  pool disk\n  pool gpu\n  quota api=2\n"));
    let shown = value(&world, "show t", 0);
    assert_eq!(
        (&shown["claim"]["pools"], &shown["claim"]["quotas"]),
        (&json!(["disk", "gpu"]), &json!({"api": 2}))
    );
}

/// A task that lacks something is passed over, and does not keep others from what comes after it.
#[test]
fn next_takes_the_first_task_that_has_all_it_needs() {
    let world = World::new();
    for line in ["pool set gpu 1", "quota set api 1/1h"] {
        world.say(line);
    }
    for line in ["unknown --pool nope", "full --pool gpu", "much --quota api=2", "used --quota api", "free"] {
        value(&world, &format!("add {line}"), 0);
    }
    let holder = world.take("b --pool gpu --quota api");
    let taken = value(&world, "next", 0);
    assert_eq!(taken["id"], "free");
    for line in ["next", "next --dry-run"] {
        let nothing = value(&world, line, 1);
        assert_eq!(nothing["code"], "NOTHING_ELIGIBLE", "{nothing}");
    }
    value(&world, "next --pool gpu --quota api", 1);
    world.json(&format!("release b --token {}", holder.token)).expect::<Value>(0);
    let taken = value(&world, "next --path src", 0);
    assert_eq!(
        (&taken["id"], &taken["pools"], &taken["paths"]),
        (&json!("full"), &json!(["gpu"]), &json!(["src"]))
    );
    let _ = value(&world, "next", 1);
}

#[test]
fn a_receipt_gets_its_slot_and_its_amount_once() {
    let world = World::new();
    world.say("pool set gpu 1");
    world.say("quota set api 9/1h");
    let first = world.take("a --owner x --pool gpu --quota api=2 --receipt key");
    let again = world.take("a --owner x --pool gpu --quota api=2 --receipt key");
    assert_eq!((&first.token, again.replay, again.pools), (&again.token, true, vec!["gpu".to_owned()]));
    assert_eq!(value(&world, "quota show api", 0)["used"], 2);
    world.refused("acquire a --owner x --pool gpu --receipt key", 4, "RECEIPT_CONFLICT");
}

#[test]
fn looking_writes_nothing() {
    let world = World::new();
    for line in
        ["pool show", "pool show gpu", "quota show", "quota show api", "acquire a --dry-run --pool gpu"]
    {
        world.json(line);
    }
    assert!(!world.dir().exists());
    world.say("pool set gpu 1");
    world.say("quota set api 2/1h");
    world.take("a --pool gpu --quota api=2");
    world.say("add t --pool gpu --quota api");
    let before = world.snapshot();
    for line in [
        "pool show",
        "pool show gpu",
        "quota show",
        "quota show api",
        "why t",
        "acquire t --dry-run",
        "doctor",
    ] {
        world.json(line);
    }
    // Refused by the first roster that is asked: nothing is written either.
    world.refused("acquire t", 4, "POOL_FULL");
    assert_eq!(before, world.snapshot());
}

#[test]
fn the_doctor_reads_all_rosters() {
    let world = World::new();
    world.say("pool set gpu 1");
    world.say("quota set api 2/1h");
    value(&world, "doctor", 0);
    for (file, line) in [("pools/gpu", "acquire a --pool gpu"), ("quotas/api", "acquire a --quota api")] {
        let file = world.dir().join(".store/rosters").join(file);
        let good = fs::read_to_string(&file).unwrap();
        fs::write(&file, good.replace("\"gpu\"", "\"GPU\"").replace("\"api\"", "\"API\"")).unwrap();
        world.refused(line, 6, "RECORD_UNREADABLE");
        fs::write(&file, "{").unwrap();
        world.refused(line, 6, "RECORD_UNREADABLE");
        let doctor = world.json("doctor").expect::<Value>(6)["findings"].to_string();
        assert!(doctor.contains(&file.display().to_string()), "{doctor}");
        fs::write(&file, good).unwrap();
    }
    world.take("a --pool gpu --quota api");
}

/// Not the slot that would end first, but any.
#[test]
fn a_waiter_gets_the_first_slot_that_frees() {
    let world = World::new();
    world.say("pool set gpu 2");
    world.take("a --lease 1h --pool gpu");
    let later = world.take("b --lease 2h --pool gpu");
    let mut command = world.claim();
    command.args(["acquire", "c", "--wait=50m", "--pool", "gpu", "--json"]);
    let waiter = Running::spawn(&mut command);
    world.json(&format!("release b --token {}", later.token)).expect::<Value>(0);
    assert_eq!(waiter.said().exit, 0);
    assert_eq!(users(&world, "gpu"), ["a", "c"]);
    let refused = world.refused("acquire d --wait=60ms --pool gpu", 5, "WAIT_TIMEOUT");
    assert_eq!(refused.pool.as_deref(), Some("gpu"));
    // More slots will do, too.
    let mut command = world.claim();
    command.args(["acquire", "d", "--wait=50m", "--pool", "gpu", "--json"]);
    let waiter = Running::spawn(&mut command);
    world.say("pool set gpu 3");
    assert_eq!(waiter.said().exit, 0);
}

#[test]
fn pool_run_takes_the_first_free_slot_and_counts_with_the_others() {
    let world = World::new();
    world.say("pool set gpu 2");
    let told = world.run(&["pool", "run", "gpu", "--", "sh", "-c", "echo $CLAIM_ID; exit 7"]);
    assert_eq!((told.exit, told.out.as_str()), (7, "pool:gpu/slot-1\n"), "{told:?}");
    world.take("a --pool gpu");
    let report = world.root.join("report");
    let script = r#"echo held; read -r _; echo "$CLAIM_ID""#;
    let mut command = world.claim();
    command.args(["pool", "run", "gpu", "--report", report.to_str().unwrap(), "--", "sh", "-c", script]);
    let mut running =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the slot is taken", || users(&world, "gpu").len() == 2);
    assert_eq!(users(&world, "gpu"), ["a", "pool:gpu/slot-1"]);
    let refused = world.run(&["pool", "run", "gpu", "--json", "--", "true"]);
    assert_eq!(refused.exit, 75);
    assert!(refused.err.contains("POOL_FULL") && refused.err.contains(r#""ran":false"#), "{}", refused.err);
    world.refused("acquire b --pool gpu", 4, "POOL_FULL");
    drop(running.stdin.take());
    let told = support::Said::of(running.wait_with_output().unwrap());
    assert_eq!((told.exit, told.out.as_str()), (0, "held\npool:gpu/slot-1\n"), "{told:?}");
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!((&report["id"], &report["settled"]), (&json!("pool:gpu/slot-1"), &json!("released")));
    assert_eq!(users(&world, "gpu"), ["a"]);
}

#[test]
fn a_killed_pool_run_frees_its_slot_at_once() {
    let world = World::new();
    world.say("pool set gpu 1");
    let mut command = world.claim();
    command.args(["pool", "run", "gpu", "--lease", "1h", "--", "sleep", "3600"]);
    let mut holder = Running::spawn(&mut command);
    until("the slot is taken", || users(&world, "gpu").len() == 1);
    let mut command = world.claim();
    command.args(["pool", "run", "gpu", "--wait=50m", "--", "sh", "-c", "echo $CLAIM_GENERATION"]);
    let waiter = Running::spawn(&mut command);
    holder.end();
    let told = waiter.said();
    assert_eq!((told.exit, told.out.as_str()), (0, "2\n"), "{told:?}");
}

/// How many marks of a kind there are. Whoever has a slot makes one; none may be left to make beyond the slots.
fn mark(folder: &Path, kind: &str, slots: usize) -> std::path::PathBuf {
    let files = (0..slots).map(|n| folder.join(format!("{kind}{n}")));
    let made = files.into_iter().find(|file| match fs::File::create_new(file) {
        Ok(_) => true,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
        Err(e) => panic!("{e}"),
    });
    made.unwrap_or_else(|| panic!("more than {slots} have {kind}"))
}

/// Twenty claimants of three slots of one pool and two of another, which some want both of, each a process. Each
/// that is told yes makes marks of which there are only as many as slots.
#[test]
fn never_more_have_slots_than_there_are() {
    let world = World::new();
    world.say("pool set gpu 3");
    world.say("pool set disk 2");
    world.say("quota set api 60/1h");
    let held = world.root.join("held");
    fs::create_dir(&held).unwrap();
    let worker = |number: usize| {
        let pools: &[(&str, usize)] = match number % 3 {
            0 => &[("gpu", 3)],
            1 => &[("disk", 2)],
            _ => &[("disk", 2), ("gpu", 3)],
        };
        // Some share a node, which is nobody else's meanwhile.
        let node = format!("n{}", number / 2);
        for _ in 0..3 {
            let mut arguments = vec!["acquire", &node, "--json", "--wait=2m", "--quota", "api"];
            pools.iter().for_each(|(pool, _)| arguments.extend(["--pool", pool]));
            let claimed: support::Claimed = world.run(&arguments).expect(0);
            let marks: Vec<_> = pools.iter().map(|(pool, slots)| mark(&held, pool, *slots)).collect();
            thread::yield_now();
            marks.iter().for_each(|mark| fs::remove_file(mark).unwrap());
            world.json(&format!("release {node} --token {}", claimed.token)).expect::<Value>(0);
        }
    };
    thread::scope(|scope| (0..20).for_each(|number| drop(scope.spawn(move || worker(number)))));
    assert_eq!((users(&world, "gpu").len(), users(&world, "disk").len()), (0, 0));
    // Sixty were told yes, and each counted once: who lost on the way took its own out again, and no other.
    assert_eq!(value(&world, "quota show api", 0)["used"], 60);
    world.refused("acquire x --quota api", 4, "QUOTA_USED");
}

/// The same by `pool run`, whose commands make the marks.
#[test]
fn never_more_run_than_there_are_slots() {
    let world = World::new();
    world.say("pool set gpu 3");
    let script =
        r#"for n in 0 1 2; do mkdir "held$n" 2>/dev/null && { rmdir "held$n"; exit 0; }; done; exit 9"#;
    let run = |_| {
        let told = said(world.claim().args(["pool", "run", "gpu", "--wait=2m", "--", "sh", "-c", script]));
        assert_eq!(told.exit, 0, "{told:?}");
    };
    thread::scope(|scope| (0..20).for_each(|number| drop(scope.spawn(move || run(number)))));
    assert_eq!(users(&world, "gpu"), Vec::<String>::new());
    let nodes = value(&world, "list", 0)["nodes"].as_array().unwrap().len();
    assert!((1..=3).contains(&nodes), "{nodes} keys for 3 slots");
}

/// One function decides: what can't be taken, since its roster can't be read, is not ready, and a worker that meets
/// nothing else has idled all the same.
#[test]
fn a_roster_that_cannot_be_read_makes_nothing_ready() {
    let world = World::new();
    for line in ["pool set p 1", "add t --pool p"] {
        world.say(line);
    }
    fs::write(world.dir().join(".store/rosters/pools/p"), "{").unwrap();
    assert_eq!(world.say("list --state ready").out, "");
    assert!(world.say("list --state waiting").out.contains("can't be read"));
    assert_eq!(world.say("next").exit, 6);
    let worked = world.say("work --idle-exit=1ms -- true");
    assert!(worked.exit == 6 && worked.err.contains("rosters/pools/p"), "{worked:?}");
}
