//! `next` under every order of calls, and with a stop before each: whoever comes up is found, by one only, and no
//! hint is left behind.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimdir::domain::{Node, Rate, Retry, Submission, Verdict};
use claimdir::store::files::{FileStore, Options};
use claimdir::store::{Memory, Prefix, Store};
use claimdir::{Acquire, Directory, Name, Next, NodeId, ReceiptKey, Renewal, RepoPath, Resources, Token};
use serde_json::json;
use support::fake::Fake;
use support::stops::Stops;
use support::turns::{Actor, Scenario, explore, explore_and_stop};

/// Who was given what, as (id, generation).
type Told = Arc<Mutex<Vec<(String, u64)>>>;

fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn over(store: Arc<dyn Store>) -> Directory {
    Directory::over(store, Fake::new("boot"))
}

/// The same an hour later.
fn later(store: Arc<dyn Store>) -> Directory {
    let host = Fake::new("boot");
    host.pass(3_600_000);
    Directory::over(store, host)
}

fn any() -> Next {
    Next::of(Acquire::by("w"))
}

/// A store in which all that was there at the boot has its hints: what is lost from here on stays lost.
fn world() -> Arc<Memory> {
    let memory = Arc::new(Memory::default());
    let directory = over(memory.clone());
    let other = Submission::by("s").queue(Name::new("other").unwrap());
    directory.submit(&id("elsewhere"), &other).unwrap().unwrap();
    assert!(directory.try_next(&any()).unwrap().is_err());
    memory
}

fn add(memory: &Arc<Memory>, name: &str, after: &[&str]) {
    let request = after.iter().fold(Submission::by("s"), |request, on| request.after(id(on)));
    over(memory.clone()).submit(&id(name), &request).unwrap().unwrap();
}

fn take(memory: &Arc<Memory>, name: &str) -> Token {
    over(memory.clone()).try_acquire(&id(name), &Acquire::by("a")).unwrap().unwrap().leave().0
}

fn adder(name: &'static str, after: &'static [&'static str]) -> Actor {
    Box::new(move |store| {
        let request = after.iter().fold(Submission::by("s"), |request, on| request.after(id(on)));
        let _ = over(store).submit(&id(name), &request);
    })
}

fn taker(to: &Told) -> Actor {
    let told = to.clone();
    Box::new(move |store| {
        if let Ok(Ok(lease)) = over(store).try_next(&any()) {
            told.lock().unwrap().push((lease.id().to_string(), lease.generation()));
            lease.leave();
        }
    })
}

fn acquirer(name: &'static str, to: &Told) -> Actor {
    let told = to.clone();
    Box::new(move |store| {
        if let Ok(Ok(lease)) = over(store).try_acquire(&id(name), &Acquire::by("b")) {
            told.lock().unwrap().push((lease.id().to_string(), lease.generation()));
            lease.leave();
        }
    })
}

fn holder(name: &'static str, token: &Token, act: &'static str) -> Actor {
    let token = token.clone();
    Box::new(move |store| {
        let directory = over(store);
        let _ = match act {
            "release" => directory.release(&id(name), &token, None),
            "complete" => directory.complete(&id(name), &token, &json!(1)),
            "retry" => directory.retry(&id(name), &token, &Retry::default()),
            _ => directory.renew(&id(name), &token, &Renewal::default()),
        };
    })
}

fn reviewer(name: &'static str) -> Actor {
    Box::new(move |store| {
        let by = "r".to_owned();
        let verdict = Verdict { accept: true, by, note: None, allow_self: false, seen: None };
        let _ = over(store).review(&id(name), &verdict);
    })
}

fn repairer() -> Actor {
    Box::new(move |store| drop(over(store).repair()))
}

/// All that can be taken an hour later, one after the other.
fn unfinished(memory: &Arc<Memory>) -> BTreeSet<String> {
    let nodes = over(memory.clone()).list().unwrap().nodes;
    let met = |node: &Node| node.state.name() == "done" && (!node.asks_for_review() || node.is_accepted());
    let ids = |nodes: &[&Node]| nodes.iter().map(|node| node.id.clone()).collect::<Vec<_>>();
    let mut good = ids(&nodes.iter().filter(|node| met(node)).collect::<Vec<_>>());
    let mut found = BTreeSet::new();
    loop {
        let mut open = nodes.iter().filter(|node| ["ready", "claimed"].contains(&node.state.name()));
        let next = open.find(|node| {
            let task = node.task.as_ref().filter(|task| task.queue.as_str() == "default");
            let can = task.is_some_and(|task| task.after.iter().all(|on| good.contains(on)));
            can && !found.contains(node.id.as_str())
        });
        let Some(next) = next else { return found };
        found.insert(next.id.to_string());
        if !next.asks_for_review() {
            good.push(next.id.clone());
        }
    }
}

/// Takes and ends all there is, an hour later.
fn drained(memory: &Arc<Memory>) -> BTreeSet<String> {
    let directory = later(memory.clone());
    let mut found = BTreeSet::new();
    while let Ok(lease) = directory.try_next(&any()).unwrap() {
        assert!(found.insert(lease.id().to_string()), "given twice: {:?}", lease.id());
        lease.complete(&json!(null)).unwrap().unwrap();
    }
    found
}

fn hints(memory: &Arc<Memory>) -> Vec<String> {
    let keys = memory.list(&Prefix::Internal("due/queues/default"), None, usize::MAX).unwrap();
    keys.iter().map(|key| key.name().to_owned()).collect()
}

fn check(memory: Arc<Memory>, told: Told, stopped: bool) -> Box<dyn FnOnce()> {
    Box::new(move || {
        let told = told.lock().unwrap();
        assert_eq!(
            told.len(),
            told.iter().collect::<BTreeSet<_>>().len(),
            "one claim, two winners: {told:?}"
        );
        let expected = unfinished(&memory);
        assert_eq!(drained(&memory), expected, "what comes up is found");
        if !stopped {
            assert_eq!(hints(&memory), [""; 0], "no hint is left");
        }
    })
}

/// Tries all orders of what they do, and each stopped on its way.
fn tried(changes: usize, scenario: impl Fn(&Arc<Memory>, &Told) -> Vec<Actor>) {
    explore_and_stop(changes, |stopped| {
        let (memory, told) = (world(), Told::default());
        let actors = scenario(&memory, &told);
        Scenario { check: check(memory.clone(), told, stopped), memory, actors }
    });
}

#[test]
fn a_release_beside_two_who_ask() {
    tried(2, |memory, told| {
        add(memory, "x", &[]);
        let token = take(memory, "x");
        vec![holder("x", &token, "release"), taker(told), taker(told)]
    });
}

#[test]
fn two_who_ask_and_one_who_takes_it_by_name() {
    tried(2, |memory, told| {
        add(memory, "x", &[]);
        vec![taker(told), acquirer("x", told), taker(told)]
    });
}

#[test]
fn a_retry_and_a_takeover_beside_who_asks() {
    tried(2, |memory, told| {
        add(memory, "x", &[]);
        add(memory, "y", &[]);
        let token = take(memory, "x");
        vec![holder("x", &token, "retry"), taker(told), acquirer("x", told)]
    });
}

#[test]
fn a_completion_and_an_addition_beside_who_asks() {
    tried(2, |memory, told| {
        add(memory, "x", &[]);
        let token = take(memory, "x");
        vec![holder("x", &token, "complete"), adder("y", &[]), taker(told)]
    });
}

/// A task that needs a slot of the pool `p`.
fn add_with_slot(memory: &Arc<Memory>, name: &str) {
    let mut resources = Resources::default();
    resources.add_pool(Name::new("p").unwrap());
    let request = Submission::by("s").with(&resources);
    over(memory.clone()).submit(&id(name), &request).unwrap().unwrap();
}

/// The only slot of the pool `p` is taken, and `asides` were refused for that.
fn with_a_slot_taken(memory: &Arc<Memory>, asides: &[&str]) -> Token {
    let directory = over(memory.clone());
    directory.set_pool(&Name::new("p").unwrap(), 1).unwrap();
    add_with_slot(memory, "holder");
    let token = take(memory, "holder");
    asides.iter().for_each(|name| add_with_slot(memory, name));
    assert!(directory.try_next(&any()).unwrap().is_err());
    let aside = hints(memory).iter().filter(|hint| hint.contains("/parked/pool=p/")).count();
    assert_eq!(aside, asides.len(), "{:?}", hints(memory));
    token
}

#[test]
fn a_slot_frees_beside_two_who_ask() {
    tried(2, |memory, told| {
        let token = with_a_slot_taken(memory, &["x", "y"]);
        vec![holder("holder", &token, "complete"), taker(told), taker(told)]
    });
}

#[test]
fn two_put_the_same_task_aside_while_its_slot_frees() {
    tried(2, |memory, told| {
        let token = with_a_slot_taken(memory, &[]);
        add_with_slot(memory, "x");
        vec![taker(told), holder("holder", &token, "release"), taker(told)]
    });
}

#[test]
fn what_was_put_aside_is_taken_by_name_and_given_back_beside_who_asks() {
    tried(2, |memory, told| {
        let token = with_a_slot_taken(memory, &["x"]);
        over(memory.clone()).complete(&id("holder"), &token, &json!(1)).unwrap().unwrap();
        let token = take(memory, "x");
        vec![taker(told), holder("x", &token, "retry"), taker(told)]
    });
}

/// Two who ask may move it in opposite directions at the same time.
#[test]
fn what_is_in_the_way_changes_to_and_fro_beside_two_who_ask() {
    tried(2, |memory, told| {
        let token = with_a_slot_taken(memory, &[]);
        let mut resources = Resources::default();
        resources.add_path(RepoPath::new("src").unwrap());
        resources.add_pool(Name::new("p").unwrap());
        let directory = over(memory.clone());
        directory.submit(&id("x"), &Submission::by("s").with(&resources)).unwrap().unwrap();
        assert!(directory.try_next(&any()).unwrap().is_err());
        directory.complete(&id("holder"), &token, &json!(1)).unwrap().unwrap();
        let acquire = Acquire::by("a").path(RepoPath::new("src").unwrap());
        let path = directory.try_acquire(&id("path"), &acquire).unwrap().unwrap().leave().0;
        let other: Actor = Box::new(move |store| {
            let directory = over(store);
            let _ = directory.release(&id("path"), &path, None);
            let pool = Acquire::by("a").pool(Name::new("p").unwrap());
            if let Ok(Ok(lease)) = directory.try_acquire(&id("pool"), &pool) {
                lease.leave();
            }
        });
        vec![taker(told), other, taker(told)]
    });
}

/// One obstacle after the other: it is found at each moment at which it can be taken, and at no other.
#[test]
fn what_is_put_aside_moves_from_one_obstacle_to_the_next() {
    let memory = world();
    let host = Fake::new("boot");
    let directory = Directory::over(memory.clone(), host.clone());
    let name = |text: &str| Name::new(text).unwrap();
    directory.set_quota(&name("q"), Rate::parse("1/1h").unwrap()).unwrap();
    directory.set_pool(&name("p"), 1).unwrap();
    let mut resources = Resources::default();
    resources.add_path(RepoPath::new("src/a").unwrap());
    resources.add_pool(name("p"));
    resources.add_quota(name("q"), 1);
    let long = Duration::from_secs(600);
    let hold = |text: &str, acquire: Acquire| {
        directory.try_acquire(&id(text), &acquire.lease(long)).unwrap().unwrap().leave().0
    };
    let path = hold("path", Acquire::by("a").path(RepoPath::new("src").unwrap()));
    let pool = hold("pool", Acquire::by("a").pool(name("p")));
    hold("quota", Acquire::by("a").quota(name("q"), 1));
    directory.submit(&id("x"), &Submission::by("s").with(&resources)).unwrap().unwrap();
    directory.submit(&id("free"), &Submission::by("s").priority(9).unwrap()).unwrap().unwrap();
    let stands = |obstacle: &str| {
        let found = hints(&memory);
        assert!(
            found.iter().any(|hint| hint.contains(&format!("/parked/{obstacle}"))),
            "{obstacle}: {found:?}"
        );
        assert_eq!(found.iter().filter(|hint| hint.contains(".x+-~")).count(), 1, "{found:?}");
    };
    let next = || directory.try_next(&any()).unwrap().map(|lease| lease.leave());
    assert!(next().is_ok(), "the one behind it is taken");
    stands("path=");
    assert!(next().is_err());
    directory.release(&id("path"), &path, None).unwrap().unwrap();
    assert!(next().is_err());
    stands("pool=p");
    directory.release(&id("pool"), &pool, None).unwrap().unwrap();
    let nothing = next().unwrap_err();
    stands("quota.1=q");
    let due = nothing.due_in_ms.unwrap();
    host.pass(due - 1);
    let nothing = next().unwrap_err();
    assert_eq!((nothing.due_in_ms, nothing.refused.unwrap().id), (Some(1), id("x")));
    host.pass(2);
    assert!(next().is_ok());
}

#[test]
fn what_another_is_just_taking_is_left_to_it_as_long_as_there_is_something_else() {
    let scratch = tempfile::tempdir().unwrap();
    let host = Fake::new("boot");
    let options = Options { sync: false, ..Options::default() };
    let store = FileStore::open(scratch.path(), options, host.clone()).unwrap();
    let directory = Directory::over(Arc::new(store), host.clone());
    for (task, priority) in [("a", 5), ("b", 5), ("c", 5), ("d", 5), ("e", 9)] {
        directory.submit(&id(task), &Submission::by("s").priority(priority).unwrap()).unwrap().unwrap();
    }
    // As a process has it that is writing what is to become a's record.
    let hash = |text: &str, length| blake3::hash(text.as_bytes()).to_hex()[..length].to_owned();
    let begun = |task: &str, random: u64| {
        let (clock, now) = (hash("boot t", 8), host.now().mono_ms * 1_000_000);
        let name = format!("tmp.{}.{clock}{now:016x}{random:016x}", hash(&format!("{task}.claim"), 32));
        fs::write(scratch.path().join(".store/intents").join(name), "{").unwrap();
    };
    let next = || {
        let lease = directory.try_next(&any()).unwrap().unwrap();
        let taken = lease.id().clone();
        lease.leave();
        taken
    };
    let (taking, noting) = (7, 8);
    begun("a", taking);
    assert_eq!(next(), id("b"));
    host.pass(11);
    assert_eq!(next(), id("a"), "it has had its moment");
    begun("d", taking);
    begun("c", taking);
    assert_eq!(next(), id("c"), "nobody waits for it, and no other priority comes before it");
    assert_eq!(next(), id("d"));
    for task in ["f", "g"] {
        directory.submit(&id(task), &Submission::by("s")).unwrap().unwrap();
    }
    begun("f", noting);
    assert_eq!(next(), id("f"), "who only notes something does not take it");
}

#[test]
fn however_many_stand_aside_they_are_passed_by_at_once() {
    let memory = world();
    let many: Vec<String> = (0..300).map(|n| format!("x{n}")).collect();
    let token = with_a_slot_taken(&memory, &many.iter().map(String::as_str).collect::<Vec<_>>());
    let frugal = || over(Arc::new(Stops::after(40, memory.clone() as Arc<dyn Store>)));
    let nothing = frugal().try_next(&any()).unwrap().unwrap_err();
    assert_eq!(nothing.refused.unwrap().id, id("x0"));
    assert!(frugal().would_next(&any()).unwrap().is_err());
    over(memory.clone()).complete(&id("holder"), &token, &json!(1)).unwrap().unwrap();
    let taken = frugal().try_next(&any()).unwrap().unwrap();
    assert_eq!(taken.id(), &id("x0"));
    taken.leave();
    assert!(frugal().try_next(&any()).unwrap().is_err(), "the slot is taken again");
}

#[test]
fn two_that_one_waits_for_are_done_at_once() {
    tried(2, |memory, told| {
        add(memory, "d1", &[]);
        add(memory, "d2", &[]);
        let (one, two) = (take(memory, "d1"), take(memory, "d2"));
        add(memory, "n", &["d1", "d2"]);
        vec![holder("d1", &one, "complete"), holder("d2", &two, "complete"), taker(told)]
    });
}

#[test]
fn one_is_added_while_what_it_waits_for_is_done() {
    tried(2, |memory, told| {
        add(memory, "d", &[]);
        let token = take(memory, "d");
        vec![adder("n", &["d"]), holder("d", &token, "complete"), taker(told)]
    });
}

#[test]
fn what_one_waits_for_is_accepted_beside_who_asks() {
    tried(2, |memory, told| {
        let directory = over(memory.clone());
        directory.submit(&id("d"), &Submission::by("s").review()).unwrap().unwrap();
        let token = take(memory, "d");
        directory.complete(&id("d"), &token, &json!(1)).unwrap().unwrap();
        add(memory, "n", &["d"]);
        vec![reviewer("d"), adder("m", &["d"]), taker(told)]
    });
}

#[test]
fn a_repair_beside_an_addition_and_beside_another_repair() {
    tried(2, |_, _| vec![adder("x", &[]), repairer()]);
    tried(2, |memory, _| {
        add(memory, "x", &[]);
        add(memory, "n", &["x"]);
        for folder in ["due/queues", "dependents"] {
            for key in memory.list(&Prefix::Internal(folder), None, usize::MAX).unwrap() {
                memory.remove(&key).unwrap();
            }
        }
        vec![repairer(), repairer()]
    });
}

#[test]
fn a_repair_beside_who_gives_back_and_who_asks() {
    tried(2, |memory, told| {
        add(memory, "x", &[]);
        let token = take(memory, "x");
        vec![holder("x", &token, "release"), repairer(), taker(told)]
    });
}

/// What one waits for is done, while others ask and repair.
fn done_beside_a_repair(memory: &Arc<Memory>, told: &Told, repair: Actor) -> Vec<Actor> {
    add(memory, "d", &[]);
    let token = take(memory, "d");
    add(memory, "n", &["d"]);
    vec![taker(told), holder("d", &token, "complete"), repair]
}

#[test]
fn a_repair_while_what_one_waits_for_is_done() {
    tried(2, |memory, told| done_beside_a_repair(memory, told, repairer()));
}

#[cfg(feature = "testing")]
#[test]
fn a_repair_that_takes_too_much_is_caught() {
    let faults = [
        "repair removes a hint ahead of its record",
        "repair removes any hint that its record does not name",
    ];
    for fault in faults {
        let broken = || -> Actor {
            Box::new(move |store| {
                claimdir::testing::choose(Some(fault));
                let _ = over(store).repair();
            })
        };
        let adding = |memory: &Arc<Memory>, told: &Told| match fault == faults[0] {
            true => {
                let token = take(memory, "y");
                vec![holder("y", &token, "release"), broken()]
            }
            false => done_beside_a_repair(memory, told, broken()),
        };
        let caught = std::panic::catch_unwind(|| {
            explore(1, || {
                let (memory, told) = (world(), Told::default());
                add(&memory, "y", &[]);
                let actors = adding(&memory, &told);
                Scenario { check: check(memory.clone(), told, true), memory, actors }
            })
        });
        assert!(caught.is_err(), "not caught: {fault}");
    }
}

/// Asks with the receipt.
fn once(store: Arc<dyn Store>, to: &Told) {
    let directory = over(store).with_receipt(ReceiptKey::new("k").unwrap());
    if let Ok(Ok(lease)) = directory.try_next(&any()) {
        let (token, acquired) = lease.leave();
        to.lock()
            .unwrap()
            .push((format!("{} {}", acquired.node.id, token.reveal()), acquired.node.generation));
    }
}

fn retrier(to: &Told) -> Actor {
    let told = to.clone();
    Box::new(move |store| once(store, &told))
}

/// All calls with the receipt were told of one claim, and took no other.
fn check_once(memory: Arc<Memory>, told: Told) -> Box<dyn FnOnce()> {
    Box::new(move || {
        let earlier = told.lock().unwrap().clone();
        once(memory.clone(), &told);
        let told = told.lock().unwrap();
        let different: BTreeSet<_> = told.iter().collect();
        assert!(different.len() <= 1, "one request, two claims: {told:?}");
        let nodes = over(memory.clone()).list().unwrap().nodes;
        let by_us = |node: &&Node| node.claim().is_some_and(|claim| claim.owner == "w");
        let held = nodes.iter().filter(by_us).count();
        assert!(held <= 1, "one request holds {held}");
        assert!(earlier.is_empty() || told.len() > earlier.len(), "the answer is there to stay");
    })
}

#[test]
fn a_receipt_takes_one_task_however_often_it_is_sent() {
    let scenario = |memory: &Arc<Memory>, told: &Told, with: usize| -> Vec<Actor> {
        add(memory, "x", &[]);
        add(memory, "y", &[]);
        let others: Told = Arc::default();
        let third = match with {
            0 => retrier(told),
            _ => acquirer("x", &others),
        };
        vec![retrier(told), retrier(told), third]
    };
    for with in 0..2 {
        explore(2, || {
            let (memory, told) = (world(), Told::default());
            let actors = scenario(&memory, &told, with);
            Scenario { check: check_once(memory.clone(), told), memory, actors }
        });
        for stopped in 0..2 {
            for calls in 0..80 {
                let (memory, told) = (world(), Told::default());
                for (me, actor) in scenario(&memory, &told, with).into_iter().enumerate() {
                    let all: Arc<dyn Store> = memory.clone();
                    actor(if me == stopped { Arc::new(Stops::after(calls, all)) } else { all });
                }
                check_once(memory, told)();
            }
        }
    }
}

/// A store in which a call with the receipt has aimed at x and stood still, and `b` has taken x since; its token.
fn aimed_at_x() -> (Arc<Memory>, Token) {
    for calls in 0.. {
        let memory = world();
        add(&memory, "x", &[]);
        add(&memory, "y", &[]);
        once(Arc::new(Stops::after(calls, memory.clone())), &Told::default());
        if !memory.list(&Prefix::Internal("receipts"), None, 1).unwrap().is_empty() {
            let token = take(&memory, "x");
            return (memory, token);
        }
    }
    unreachable!()
}

#[test]
fn a_receipt_moves_to_another_task_only_once_the_first_has_passed_the_write_aimed_at() {
    explore(2, || {
        let ((memory, token), told) = (aimed_at_x(), Told::default());
        let actors = vec![retrier(&told), retrier(&told), holder("x", &token, "release")];
        Scenario { check: check_once(memory.clone(), told), memory, actors }
    });
}

#[test]
fn nobody_is_told_nothing_while_at_every_moment_there_is_something() {
    explore(3, || {
        let (memory, told, found) = (world(), Told::default(), Told::default());
        add(&memory, "x", &[]);
        add(&memory, "y", &[]);
        let (token, taken) = (take(&memory, "x"), told.clone());
        let busy: Actor = Box::new(move |store| {
            holder("x", &token, "release")(store.clone());
            acquirer("y", &taken)(store);
        });
        let actors = vec![busy, taker(&found)];
        let check = Box::new(move || assert_eq!(found.lock().unwrap().len(), 1));
        Scenario { memory, actors, check }
    });
}

#[test]
fn a_renewal_moves_a_hint_whose_moment_has_passed() {
    let memory = world();
    let host = Fake::new("boot");
    let directory = Directory::over(memory.clone(), host.clone());
    add(&memory, "x", &[]);
    let lease =
        directory.try_next(&Next::of(Acquire::by("w").lease(Duration::from_secs(10)))).unwrap().unwrap();
    let first = hints(&memory);
    host.pass(4_000);
    lease.renew(&Renewal::default()).unwrap().unwrap();
    assert_eq!(hints(&memory), first, "its moment is still to come");
    host.pass(9_000);
    lease.renew(&Renewal::default()).unwrap().unwrap();
    let moved = hints(&memory);
    assert!(moved.len() == 1 && moved != first, "{moved:?}");
    let nothing = directory.try_next(&any()).unwrap().unwrap_err();
    assert!(nothing.due_in_ms.is_some_and(|ms| ms <= 10_000), "{nothing:?}");
    host.pass(10_001);
    assert_eq!(directory.try_next(&any()).unwrap().unwrap().generation(), 2);
    lease.leave();
}

#[test]
fn a_queue_that_lost_its_hints_finds_all_after_a_reboot() {
    let memory = world();
    for name in ["a", "b", "d", "n", "gone"] {
        add(&memory, name, if name == "n" { &["d"] } else { &[] });
    }
    take(&memory, "b");
    let token = take(&memory, "gone");
    over(memory.clone()).complete(&id("gone"), &token, &json!(1)).unwrap().unwrap();
    for key in memory.list(&Prefix::Internal("due"), None, usize::MAX).unwrap() {
        memory.remove(&key).unwrap();
    }
    for key in memory.list(&Prefix::Internal("dependents"), None, usize::MAX).unwrap() {
        memory.remove(&key).unwrap();
    }
    let found = drained(&memory);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "b", "d", "n"]);
}

#[test]
fn hints_of_another_boot_are_looked_at_by_the_record() {
    let memory = world();
    add(&memory, "x", &[]);
    take(&memory, "x");
    let rebooted = Fake::new("another boot");
    let directory = Directory::over(memory.clone(), rebooted.clone());
    assert!(directory.try_next(&any()).unwrap().is_err(), "its lease goes on");
    rebooted.pass(30_001);
    assert_eq!(directory.try_next(&any()).unwrap().unwrap().generation(), 2);
}

#[test]
fn a_dead_workers_task_keeps_its_place_and_one_that_rested_is_as_old_as_its_rest() {
    let memory = world();
    let host = Fake::new("boot");
    let directory = Directory::over(memory.clone(), host.clone());
    let submit = |task: &str| {
        directory.submit(&id(task), &Submission::by("s")).unwrap().unwrap();
        host.pass(10);
    };
    ["rested", "old", "older lease"].into_iter().for_each(submit);
    let short = Acquire::by("w").lease(Duration::from_secs(10));
    let rested = directory.try_acquire(&id("rested"), &short).unwrap().unwrap();
    rested.retry(&Retry { after: Duration::from_secs(20), ..Retry::default() }).unwrap().unwrap();
    directory.try_acquire(&id("older lease"), &short).unwrap().unwrap().leave();
    host.pass(10);
    directory.try_acquire(&id("old"), &short).unwrap().unwrap().leave();
    submit("ready");
    host.pass(15_000);
    submit("later");
    host.pass(20_000);
    submit("last");
    let mut order = Vec::new();
    while let Ok(lease) = directory.try_next(&any()).unwrap() {
        order.push(lease.id().to_string());
        lease.leave();
    }
    assert_eq!(order, ["old", "older lease", "ready", "later", "rested", "last"]);
}

#[test]
fn it_is_by_priority_and_then_by_age_and_number_and_only_of_what_was_asked_for() {
    let memory = world();
    let directory = over(memory.clone());
    let name = |text: &str| Name::new(text).unwrap();
    for (task, priority, project) in
        [("TK-10", 5, None), ("TK-9", 5, None), ("z", 0, None), ("p1", 5, Some("p")), ("q1", 1, Some("q"))]
    {
        let mut request = Submission::by("s").priority(priority).unwrap();
        if let Some(project) = project {
            request = request.project(name(project));
        }
        directory.submit(&id(task), &request).unwrap().unwrap();
    }
    let of_p = any().project(name("p"));
    let foreseen = directory.would_next(&of_p).unwrap().unwrap().node.id.to_string();
    assert_eq!(foreseen, "p1");
    let mut order = Vec::new();
    while let Ok(lease) = directory.try_next(&any()).unwrap() {
        order.push(lease.id().to_string());
        lease.leave();
    }
    assert_eq!(order, ["z", "q1", "TK-9", "TK-10", "p1"]);
    assert!(directory.try_next(&of_p).unwrap().is_err());
    assert!(directory.try_next(&any().queue(name("other"))).unwrap().is_ok());
}

#[test]
fn two_calls_with_one_receipt_are_both_told_of_the_only_task() {
    explore(3, || {
        let (memory, told) = (world(), Told::default());
        add(&memory, "x", &[]);
        let all = told.clone();
        let actors = vec![retrier(&told), retrier(&told)];
        let check = Box::new(move || assert_eq!(all.lock().unwrap().len(), 2));
        Scenario { memory, actors, check }
    });
}
