//! Mail under every order of calls: whoever is frozen between any two of them loses nothing, sends nothing twice,
//! and stops nobody.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimdir::domain::{MailReason, Page};
use claimdir::store::{Memory, Store};
use claimdir::{Directory, Letter, MailName, ReceiptKey};
use serde_json::{Value, json};
use support::fake::Fake;
use support::stops::Stops;
use support::turns::{Actor, Scenario, explore};

type Numbers = Arc<Mutex<Vec<u64>>>;
type Pages = Arc<Mutex<Vec<(u64, Value)>>>;

fn name(text: &str) -> MailName {
    MailName::new(text).unwrap()
}

fn over(store: Arc<dyn Store>) -> Directory {
    Directory::over(store, Fake::new("boot"))
}

/// A directory an hour later, so that all mail so far is old.
fn later(store: Arc<dyn Store>) -> Directory {
    let host = Fake::new("boot");
    host.pass(3_600_000);
    Directory::over(store, host)
}

fn prune(directory: &Directory) {
    directory.prune(Duration::from_secs(60), false).unwrap();
}

/// A box whose `count` messages the reader `old` has acknowledged.
fn filled(count: u64) -> Arc<Memory> {
    let memory = Arc::new(Memory::default());
    let directory = over(memory.clone());
    for n in 0..count {
        directory.send(&name("box"), &Letter::new("setup", json!(n))).unwrap().unwrap();
    }
    read(&directory, "old");
    directory.acknowledge(&name("box"), &name("old"), count).unwrap().unwrap();
    memory
}

fn read(directory: &Directory, reader: &str) -> Option<Page> {
    match directory.read_mail(&name("box"), &name(reader), 100).unwrap() {
        Ok(page) => Some(page),
        Err(refusal) => {
            assert!(matches!(refusal.reason, MailReason::Nothing { .. }), "{refusal:?}");
            None
        }
    }
}

/// Sends `payload` with these keys; the number it has is noted.
fn sender(
    payload: &'static str,
    work: Option<&'static str>,
    receipt: Option<&'static str>,
    to: &Numbers,
) -> Actor {
    let numbers = to.clone();
    Box::new(move |store| {
        let mut directory = over(store);
        if let Some(key) = receipt {
            directory = directory.with_receipt(ReceiptKey::new(key).unwrap());
        }
        let mut letter = Letter::new("sender", json!(payload));
        if let Some(key) = work {
            letter = letter.work_key(key).unwrap();
        }
        let sent = directory.send(&name("box"), &letter).unwrap().unwrap();
        numbers.lock().unwrap().push(sent.number);
    })
}

/// Reads whatever there is, and acknowledges it.
fn reader(to: &Pages) -> Actor {
    let pages = to.clone();
    Box::new(move |store| {
        let directory = over(store);
        if let Some(page) = read(&directory, "old") {
            note(&pages, &page);
            let last = page.messages.last().unwrap().number;
            directory.acknowledge(&name("box"), &name("old"), last).unwrap().unwrap();
        }
    })
}

fn note(pages: &Pages, page: &Page) {
    let shown = page.messages.iter().map(|message| (message.number, message.payload.clone()));
    pages.lock().unwrap().extend(shown);
}

fn pruner() -> Actor {
    Box::new(|store| prune(&later(store)))
}

fn one(numbers: &Numbers) -> u64 {
    let numbers: BTreeSet<u64> = numbers.lock().unwrap().iter().copied().collect();
    assert_eq!(numbers.len(), 1, "one message under one key: {numbers:?}");
    numbers.into_iter().next().unwrap()
}

/// After all, `old` reads to the end: all that it was ever shown.
fn read_out(memory: &Arc<Memory>, pages: &Pages) -> Vec<(u64, Value)> {
    let directory = over(memory.clone());
    assert_eq!(directory.doctor().unwrap().findings, [], "doctor finds nothing");
    if let Some(page) = read(&directory, "old") {
        note(pages, &page);
    }
    pages.lock().unwrap().clone()
}

fn numbers_of(shown: &[(u64, Value)], payload: &str) -> BTreeSet<u64> {
    shown.iter().filter(|(_, shown)| shown == payload).map(|(number, _)| *number).collect()
}

/// Two tries of one message and another message beside them.
fn retry_beside(work: Option<&'static str>, receipt: Option<&'static str>) -> Scenario {
    let memory = Arc::new(Memory::default());
    let (keyed, other) = (Numbers::default(), Numbers::default());
    let actors = vec![
        sender("keyed", work, receipt, &keyed),
        sender("keyed", work, receipt, &keyed),
        sender("other", None, None, &other),
    ];
    let seen = memory.clone();
    let check = Box::new(move || {
        let shown = read_out(&seen, &Pages::default());
        assert_eq!(numbers_of(&shown, "keyed"), [one(&keyed)].into());
        assert_eq!(numbers_of(&shown, "other"), [one(&other)].into());
        assert_eq!(shown.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2], "{shown:?}");
    });
    Scenario { memory, actors, check }
}

#[test]
fn one_work_key_is_one_message() {
    let runs = explore(2, || retry_beside(Some("key"), None));
    assert!(runs > 1_000, "{runs}");
}

#[test]
fn one_receipt_is_one_message() {
    explore(2, || retry_beside(None, Some("receipt")));
}

#[test]
fn both_keys_are_one_message() {
    explore(1, || retry_beside(Some("key"), Some("receipt")));
}

#[test]
fn senders_without_a_key_leave_no_gap_and_lose_nothing() {
    let runs = explore(2, || {
        let memory = filled(7); // so that the head moves on meanwhile
        let all = Numbers::default();
        let actors =
            vec![sender("a", None, None, &all), sender("b", None, None, &all), sender("c", None, None, &all)];
        let seen = memory.clone();
        let check = Box::new(move || {
            let shown = read_out(&seen, &Pages::default());
            assert_eq!(shown.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [8, 9, 10], "{shown:?}");
            let payloads: BTreeSet<String> = shown.iter().map(|(_, payload)| payload.to_string()).collect();
            assert_eq!(payloads.len(), 3, "{shown:?}");
            assert_eq!(all.lock().unwrap().iter().collect::<BTreeSet<_>>().len(), 3);
        });
        Scenario { memory, actors, check }
    });
    assert!(runs > 1_000, "{runs}");
}

#[test]
fn a_pruner_between_two_tries_neither_loses_nor_doubles_a_message() {
    explore(2, || {
        let memory = filled(2);
        let (keyed, pages) = (Numbers::default(), Pages::default());
        let read_and_prune: Actor = {
            let read = reader(&pages);
            Box::new(move |store| {
                read(store.clone());
                prune(&later(store));
            })
        };
        let actors = vec![
            sender("keyed", Some("key"), None, &keyed),
            read_and_prune,
            sender("keyed", Some("key"), None, &keyed),
        ];
        let seen = memory.clone();
        let check = Box::new(move || {
            let number = one(&keyed);
            let shown = read_out(&seen, &pages);
            assert_eq!(numbers_of(&shown, "keyed"), [number].into(), "{shown:?}");
        });
        Scenario { memory, actors, check }
    });
}

/// A sender that saw the box as it was before all of it was read and pruned, twice over.
#[test]
fn a_sender_that_comes_late_to_a_pruned_number_sends_anew() {
    explore(2, || {
        let memory = Arc::new(Memory::default());
        over(memory.clone()).send(&name("box"), &Letter::new("setup", json!("first"))).unwrap().unwrap();
        let (keyed, other, pages) = (Numbers::default(), Numbers::default(), Pages::default());
        let read_and_prune: Actor = {
            let pages = pages.clone();
            Box::new(move |store| {
                let sent = over(store.clone()).send(&name("box"), &Letter::new("x", json!("other"))).unwrap();
                other.lock().unwrap().push(sent.unwrap().number);
                reader(&pages)(store.clone());
                prune(&later(store));
            })
        };
        let actors = vec![sender("keyed", Some("key"), None, &keyed), read_and_prune, pruner()];
        let seen = memory.clone();
        let check = Box::new(move || {
            let number = one(&keyed);
            let shown = read_out(&seen, &pages);
            assert_eq!(numbers_of(&shown, "keyed"), [number].into(), "{shown:?}");
            assert_eq!(numbers_of(&shown, "other").len(), 1, "{shown:?}");
        });
        Scenario { memory, actors, check }
    });
}

#[test]
fn what_a_new_reader_was_handed_stays_until_it_acknowledges() {
    explore(2, || {
        let memory = filled(3);
        let first = Pages::default();
        let newcomer: Actor = {
            let first = first.clone();
            Box::new(move |store| {
                if let Some(page) = read(&over(store), "new") {
                    note(&first, &page);
                }
            })
        };
        let same: Actor = Box::new(|store| drop(read(&over(store), "new")));
        let seen = memory.clone();
        let check = Box::new(move || {
            prune(&later(seen.clone()));
            let again = Pages::default();
            if let Some(page) = read(&over(seen), "new") {
                note(&again, &page);
            }
            assert_eq!(*first.lock().unwrap(), *again.lock().unwrap(), "the same page again");
        });
        Scenario { memory, actors: vec![newcomer, pruner(), same], check }
    });
}

#[test]
fn two_who_read_as_one_move_its_positions_only_forward() {
    explore(3, || {
        let memory = filled(2);
        for payload in ["a", "b"] {
            over(memory.clone()).send(&name("box"), &Letter::new("x", json!(payload))).unwrap().unwrap();
        }
        let pages = Pages::default();
        let actors = vec![reader(&pages), reader(&pages)];
        let seen = memory.clone();
        let check = Box::new(move || {
            let found = over(seen).mailbox(&name("box")).unwrap().unwrap();
            let cursor = &found.readers[0];
            assert_eq!((cursor.handed_out, cursor.acknowledged), (4, 4));
        });
        Scenario { memory, actors, check }
    });
}

fn once(store: Arc<dyn Store>) -> Directory {
    over(store).with_receipt(ReceiptKey::new("k").unwrap())
}

#[test]
fn a_page_handed_out_again_leaves_out_what_was_pruned_since() {
    let memory = filled(3);
    let directory = later(memory.clone());
    let once = directory.with_receipt(ReceiptKey::new("k").unwrap());
    assert_eq!(read(&once, "new").map(|page| (page.messages.len(), page.replay)), Some((3, false)));
    directory.acknowledge(&name("box"), &name("new"), 2).unwrap().unwrap();
    prune(&directory);
    let again = read(&once, "new").map(|page| (page.messages[0].number, page.messages.len(), page.replay));
    assert_eq!(again, Some((3, 1, true)));
}

/// Acknowledges `number` with the receipt; tells the position that it is told.
fn acknowledger(number: u64, told: &Numbers) -> Actor {
    let told = told.clone();
    Box::new(move |store| {
        let answer = once(store).acknowledge(&name("box"), &name("old"), number).unwrap();
        told.lock().unwrap().extend(answer.ok().map(|(cursor, _)| cursor.acknowledged));
    })
}

#[test]
fn retried_acknowledgements_beside_a_later_one_are_answered_alike() {
    explore(3, || {
        let memory = filled(1);
        for n in 0..3 {
            over(memory.clone()).send(&name("box"), &Letter::new("a", json!(n))).unwrap().unwrap();
        }
        read(&over(memory.clone()), "old");
        let told = Numbers::default();
        let on: Actor = Box::new(|store| {
            let directory = over(store);
            let _ = directory.acknowledge(&name("box"), &name("old"), 2).unwrap();
            directory.acknowledge(&name("box"), &name("old"), 4).unwrap().unwrap();
        });
        let actors = vec![acknowledger(3, &told), acknowledger(3, &told), on];
        let check = Box::new(move || {
            let told = told.lock().unwrap();
            assert!([0, 2].contains(&told.len()) && told.iter().all(|at| *at == 3), "{told:?}");
        });
        Scenario { memory, actors, check }
    });
}

#[test]
fn retried_reads_beside_a_sender_and_an_acknowledgement_get_one_page() {
    explore(3, || {
        let memory = filled(1);
        over(memory.clone()).send(&name("box"), &Letter::new("a", json!(1))).unwrap().unwrap();
        read(&over(memory.clone()), "old");
        let pages: Arc<Mutex<Vec<Vec<u64>>>> = Arc::default();
        let reader = || -> Actor {
            let pages = pages.clone();
            Box::new(move |store| {
                let page = read(&once(store), "old")
                    .map_or(Vec::new(), |page| page.messages.iter().map(|message| message.number).collect());
                pages.lock().unwrap().push(page);
            })
        };
        let on: Actor = Box::new(|store| {
            let directory = over(store);
            directory.send(&name("box"), &Letter::new("a", json!(2))).unwrap().unwrap();
            directory.acknowledge(&name("box"), &name("old"), 2).unwrap().unwrap();
        });
        let actors = vec![reader(), reader(), on];
        let check = Box::new({
            let pages = pages.clone();
            move || {
                let pages = pages.lock().unwrap();
                assert_eq!(pages[0], pages[1]);
            }
        });
        Scenario { memory, actors, check }
    });
}

#[test]
fn a_reader_stopped_anywhere_gets_one_answer() {
    for stop in 0.. {
        assert!(stop < 100, "it never ends");
        let memory = filled(2);
        for n in 0..2 {
            over(memory.clone()).send(&name("box"), &Letter::new("a", json!(n))).unwrap().unwrap();
        }
        read(&over(memory.clone()), "old");
        let stops = Arc::new(Stops::after(stop, memory.clone()));
        let first = once(stops).acknowledge(&name("box"), &name("old"), 3);
        let again = once(memory.clone()).acknowledge(&name("box"), &name("old"), 3).unwrap().unwrap().0;
        over(memory.clone()).acknowledge(&name("box"), &name("old"), 4).unwrap().unwrap();
        let at_last = once(memory.clone()).acknowledge(&name("box"), &name("old"), 3).unwrap().unwrap();
        assert_eq!(
            (at_last.0.acknowledged, at_last.1),
            (again.acknowledged, true),
            "stopped after {stop} calls"
        );
        if first.is_ok() {
            return;
        }
    }
}
