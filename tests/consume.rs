//! The library's worker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

use claimdir::domain::{Cancel, Retry, Submission, Text};
use claimdir::store::files::Options;
use claimdir::{
    Acquire, Code, Delivery, Directory, Handled, Next, NodeId, Settled, Stop, Trouble, Worked, Worker,
};
use serde_json::json;
use support::{World, until};

fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn directory(world: &World) -> Directory {
    Directory::open_with(world.dir(), Options { sync: false, ..Options::default() }).unwrap()
}

fn add(directory: &Directory, names: &[&str]) {
    for name in names {
        let task = Submission::by("s").input(json!({"name": name})).max_attempts(2).unwrap();
        directory.submit(&id(name), &task).unwrap().unwrap();
    }
}

fn worker() -> Worker {
    Worker::on(Next::of(Acquire::by("w"))).idle_exit(Duration::ZERO)
}

fn quiet(_: &Trouble<'_>, _: Option<&Delivery>) {}

fn state(directory: &Directory, name: &str) -> &'static str {
    directory.node(&id(name)).unwrap().unwrap().state.name()
}

#[test]
fn what_a_handler_returns_is_recorded_and_an_error_is_another_attempt() {
    let world = World::new();
    let directory = directory(&world);
    add(&directory, &["good", "bad", "panics", "poison", "own"]);
    let troubles = Arc::new(Mutex::new(Vec::new()));
    let told = troubles.clone();
    let handler = |delivery: &Delivery| -> Handled {
        match delivery.id().as_str() {
            "good" => Ok(json!({"was": delivery.input()["name"], "attempt": delivery.attempt()})),
            "bad" => Err("not today".into()),
            "panics" => panic!("the test wants this"),
            "poison" => {
                let reason = Text::new("a reason", "never").unwrap();
                assert_eq!(delivery.reject(Some(&reason)).unwrap(), Settled::Failed);
                assert_eq!(delivery.complete(&json!(1)).unwrap(), Settled::Failed, "it is settled once");
                Ok(json!("nobody reads this"))
            }
            _ => {
                delivery.complete(&json!("by hand")).unwrap();
                Err("too late to fail".into())
            }
        }
    };
    let worked =
        directory.consume(&worker().concurrency(3), &Stop::new(), handler, move |trouble, delivery| {
            told.lock().unwrap().push(format!("{}: {trouble}", delivery.unwrap().id()));
        });
    let expected = Worked { done: 2, retried: 2, failed: 1, ..Worked::default() };
    assert_eq!(worked.unwrap(), expected);
    let result =
        |name: &str| directory.result(&id(name), None).unwrap().unwrap().outcome().unwrap().1.clone();
    assert_eq!(result("good").result, json!({"was": "good", "attempt": 1}));
    assert_eq!(result("own").result, json!("by hand"));
    assert_eq!((state(&directory, "poison"), result("poison").reason.as_deref()), ("failed", Some("never")));
    let mut told = troubles.lock().unwrap().clone();
    told.sort();
    assert_eq!(
        told,
        [
            "bad: the handler failed: not today",
            "own: the handler failed: too late to fail",
            "panics: the handler panicked"
        ]
    );
    let attempts = directory.node(&id("bad")).unwrap().unwrap().attempts;
    assert_eq!(attempts[0].error.as_deref(), Some("not today"));
}

#[test]
fn many_workers_do_each_task_once() {
    let world = World::new();
    let main = directory(&world);
    let names: Vec<String> = (0..200).map(|n| format!("t{n}")).collect();
    add(&main, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let done: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (own, done) = (directory(&world), done.clone());
            scope.spawn(move || {
                let handler = move |delivery: &Delivery| {
                    *done.lock().unwrap().entry(delivery.id().to_string()).or_default() += 1;
                    Ok(json!(null))
                };
                own.consume(&worker().concurrency(4), &Stop::new(), handler, quiet).unwrap();
            });
        }
    });
    let done = done.lock().unwrap();
    assert_eq!((done.len(), done.values().max()), (200, Some(&1)));
}

#[test]
fn a_lease_is_renewed_while_its_handler_runs_and_concurrency_is_what_it_says() {
    let world = World::new();
    let main = directory(&world);
    add(&main, &["a", "b", "c"]);
    let barrier = Arc::new(Barrier::new(3));
    let lease = Duration::from_millis(300);
    let worker = Worker::on(Next::of(Acquire::by("w").lease(lease))).concurrency(3).max(3);
    let own = main.clone();
    let handler = move |delivery: &Delivery| {
        barrier.wait();
        // Two leases' time, seen by the versions that renewals write.
        until("renewed", || own.node(delivery.id()).unwrap().unwrap().version >= delivery.node().version + 6);
        assert!(delivery.check().unwrap().is_ok());
        Ok(json!(1))
    };
    let worked = main.consume(&worker, &Stop::new(), handler, quiet).unwrap();
    assert_eq!(worked, Worked { done: 3, ..Worked::default() });
}

#[test]
fn a_cancelled_task_tells_its_handler_and_its_late_result_counts_for_nothing() {
    let world = World::new();
    let main = directory(&world);
    add(&main, &["t"]);
    let own = main.clone();
    let (tell, told) = mpsc::channel();
    let handler = move |delivery: &Delivery| {
        let tell = tell.clone();
        let (lost, heard) = mpsc::channel();
        delivery.on_lost(move |_| lost.send(()).unwrap());
        let reason = Text::new("a reason", "enough").unwrap();
        own.cancel(delivery.id(), &Cancel { by: "boss".to_owned(), reason: Some(reason) }).unwrap().unwrap();
        heard.recv().unwrap();
        tell.send(delivery.check().unwrap().unwrap_err().code()).unwrap();
        Ok(json!("late"))
    };
    let worked = main.consume(&worker().max(1), &Stop::new(), handler, quiet).unwrap();
    assert_eq!(worked, Worked { lost: 1, ..Worked::default() });
    assert_eq!((told.recv().unwrap(), state(&main, "t")), (Code::StaleClaim, "cancelled"));
}

#[test]
fn told_to_stop_it_waits_for_what_runs_takes_nothing_more_and_gives_the_rest_back() {
    let world = World::new();
    let main = directory(&world);
    add(&main, &["quick", "slow", "untouched"]);
    let stop = Stop::new();
    let (stopping, begun) = (stop.clone(), Arc::new(AtomicUsize::new(0)));
    let handler = move |delivery: &Delivery| -> Handled {
        if begun.fetch_add(1, SeqCst) == 1 {
            stopping.stop();
        }
        match delivery.id().as_str() {
            "quick" => {
                until("stopping", || delivery.is_stopping());
                Ok(json!("still recorded"))
            }
            // Goes on when it should not: its task is given back all the same.
            _ => loop {
                std::thread::park();
            },
        }
    };
    let worker = Worker::on(Next::of(Acquire::by("w").lease(Duration::from_secs(60))))
        .concurrency(2)
        .shutdown_timeout(Duration::from_secs(2));
    let worked = main.consume(&worker, &stop, handler, quiet).unwrap();
    assert_eq!(worked, Worked { done: 1, released: 1, ..Worked::default() });
    let slow = main.node(&id("slow")).unwrap().unwrap();
    assert_eq!((slow.state.name(), slow.attempt), ("ready", 0), "the attempt is given back too");
    assert_eq!(main.node(&id("untouched")).unwrap().unwrap().generation, 0);
}

#[test]
fn an_error_of_the_store_is_told_and_it_goes_on() {
    let world = World::new();
    let main = directory(&world);
    add(&main, &["t"]);
    std::fs::write(world.dir().join(".store/rosters"), "not a folder").unwrap();
    let path = claimdir::RepoPath::new("src").unwrap();
    let stop = Stop::new();
    let (stopping, seen) = (stop.clone(), Arc::new(AtomicUsize::new(0)));
    let worker = Worker::on(Next::of(Acquire::by("w").path(path)));
    let worked = main.consume(
        &worker,
        &stop,
        |_| Ok(json!(1)),
        move |trouble, _| {
            assert!(matches!(trouble, Trouble::Store(_)), "{trouble}");
            if seen.fetch_add(1, SeqCst) == 2 {
                stopping.stop();
            }
        },
    );
    assert_eq!(worked.unwrap(), Worked::default());
}

#[test]
fn a_poison_task_ends_after_its_attempts_whoever_tries() {
    let world = World::new();
    let main = directory(&world);
    add(&main, &["poison"]);
    for attempt in 1..=2 {
        let lease = main.acquire(&id("poison"), &Acquire::by("w"), Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(lease.attempt(), attempt);
        lease.retry(&Retry { reason: Some("again".to_owned()), ..Retry::default() }).unwrap().unwrap();
    }
    let worked = main.consume(&worker(), &Stop::new(), |_| Ok(json!(1)), quiet).unwrap();
    assert_eq!((worked, state(&main, "poison")), (Worked::default(), "failed"));
}
