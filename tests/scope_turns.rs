//! Cancelling a scope under every order of calls, and with a stop before each: what is cancelled is never done, nobody is
//! told of a claim after the cancellation was answered, and what one leaves undone others finish.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use claimdir::domain::{Ending, Reason, Submission};
use claimdir::store::{Memory, Prefix, Store};
use claimdir::{Acquire, Cancel, Code, Directory, Name, Next, NodeId, Scope, Token};
use serde_json::json;
use support::fake::Fake;
use support::turns::{Actor, Scenario, explore_and_stop};

/// What was answered, in order: a word and the node.
type Told = Arc<Mutex<Vec<(&'static str, String)>>>;

fn scope() -> Scope {
    Scope::new("s").unwrap()
}

fn id(text: &str) -> NodeId {
    scope().id(text).unwrap()
}

fn over(store: Arc<dyn Store>) -> Directory {
    Directory::over(store, Fake::new("boot"))
}

fn any() -> Next {
    Next::of(Acquire::by("w")).scope(scope())
}

/// A store in which all that was there at the boot has its hints.
fn world() -> Arc<Memory> {
    let memory = Arc::new(Memory::default());
    let directory = over(memory.clone());
    directory.submit(&NodeId::new("elsewhere").unwrap(), &Submission::by("s")).unwrap().unwrap();
    assert!(directory.try_next(&any()).unwrap().is_err());
    memory
}

fn add(memory: &Arc<Memory>, name: &str) {
    over(memory.clone()).submit(&id(name), &Submission::by("s")).unwrap().unwrap();
}

fn take(memory: &Arc<Memory>, name: &str) -> Token {
    over(memory.clone()).try_acquire(&id(name), &Acquire::by("a")).unwrap().unwrap().leave().0
}

fn tell(told: &Told, word: &'static str, node: &str) {
    told.lock().unwrap().push((word, node.to_owned()));
}

fn cancel(directory: &Directory, by: &str) -> claimdir::Result<claimdir::ScopeCancelled> {
    directory.cancel_scope(&Name::new("s").unwrap(), &Cancel { by: by.to_owned(), reason: None })
}

fn canceller(by: &'static str, told: &Told) -> Actor {
    let told = told.clone();
    Box::new(move |store| {
        if let Ok(cancelled) = cancel(&over(store), by)
            && cancelled.left.is_empty()
        {
            tell(&told, "cancelled", &cancelled.halt.by);
        }
    })
}

fn taker(told: &Told) -> Actor {
    let told = told.clone();
    Box::new(move |store| {
        if let Ok(Ok(lease)) = over(store).try_next(&any()) {
            tell(&told, "claimed", lease.id().as_str());
            lease.leave();
        }
    })
}

fn acquirer(name: &'static str, told: &Told) -> Actor {
    let told = told.clone();
    Box::new(move |store| match over(store).try_acquire(&id(name), &Acquire::by("b")) {
        Ok(Ok(lease)) => {
            tell(&told, "claimed", lease.id().as_str());
            lease.leave();
        }
        Ok(Err(refusal)) if refusal.code() == Code::Cancelled => {
            tell(&told, "refused", refusal.id.as_str());
        }
        _ => {}
    })
}

fn adder(name: &'static str, told: &Told) -> Actor {
    let told = told.clone();
    Box::new(move |store| {
        if let Ok(Ok(_)) = over(store).submit(&id(name), &Submission::by("s")) {
            tell(&told, "added", id(name).as_str());
        }
    })
}

fn completer(name: &'static str, token: &Token, told: &Told) -> Actor {
    let (token, told) = (token.clone(), told.clone());
    Box::new(move |store| match over(store).complete(&id(name), &token, &json!(1)) {
        Ok(Ok(_)) => tell(&told, "done", id(name).as_str()),
        Ok(Err(refusal)) => {
            assert_eq!(refusal.code(), Code::StaleClaim);
            assert!(refusal.message().contains("its scope s was cancelled"), "{}", refusal.message());
            tell(&told, "refused", id(name).as_str());
        }
        Err(_) => {}
    })
}

/// The state of each node of the scope: now, and as it is written.
fn states(memory: &Arc<Memory>) -> BTreeMap<String, (&'static str, &'static str)> {
    let directory = over(memory.clone());
    let nodes = directory.list_scope(&scope()).unwrap().nodes;
    let states = |node: &claimdir::domain::Node| {
        (directory.standing(node, |standing| standing.name()), node.state.name())
    };
    nodes.iter().map(|node| (node.id.to_string(), states(node))).collect()
}

fn hints(memory: &Arc<Memory>) -> usize {
    memory.list(&Prefix::Internal("due/queues/default/=s"), None, usize::MAX).unwrap().len()
}

/// What must hold once all have come to their ends. Was one of them stopped on the way?
fn check(memory: &Arc<Memory>, told: &Told, stopped: bool) {
    let told = told.lock().unwrap().clone();
    let directory = over(memory.clone());
    let is_cancelled = directory.scope(&Name::new("s").unwrap()).unwrap().cancelled.is_some();
    assert!(is_cancelled || stopped);
    let after = told.iter().skip_while(|(word, _)| *word != "cancelled");
    let mut after = after.filter(|(word, _)| ["claimed", "added"].contains(word));
    assert_eq!(after.next(), None, "told after the cancellation was answered: {told:?}");
    for (node, (now, written)) in states(memory) {
        let said = |word| told.contains(&(word, node.clone()));
        assert!(!is_cancelled || ["done", "cancelled"].contains(&now), "{node} is {now}: {told:?}");
        assert!(!said("done") || now == "done", "{node} was done and is {now}");
        assert!(!said("refused") || now == "cancelled", "{node} was cancelled and is {now}");
        assert!(stopped || now == written, "{node} is {now}, and {written} is written: {told:?}");
    }
    if stopped && !is_cancelled {
        return;
    }
    assert!(stopped || hints(memory) == 0);
    let before = states(memory);
    // Whoever comes later is told, and whoever cancels again finishes what was left.
    let refusal = directory.try_acquire(&id("later"), &Acquire::by("c")).unwrap().unwrap_err();
    assert!(matches!(refusal.reason, Reason::Ended { ending: Ending::Cancelled, .. }));
    assert!(directory.try_next(&any()).unwrap().unwrap_err().cancelled.is_some());
    let again = cancel(&directory, "again").unwrap();
    assert!(again.replay && again.left.is_empty() && again.halt.by != "again");
    assert!(stopped || again.nodes == 0, "{again:?}");
    for (node, (now, written)) in states(memory) {
        assert_eq!((now, written), (before[&node].0, now), "{node}");
    }
}

/// Tries all orders of what they do, and each stopped on its way.
fn tried(changes: usize, scenario: impl Fn(&Arc<Memory>, &Told) -> Vec<Actor>) {
    explore_and_stop(changes, |stopped| {
        let (memory, told) = (world(), Told::default());
        let actors = scenario(&memory, &told);
        let all = memory.clone();
        Scenario { check: Box::new(move || check(&all, &told, stopped)), memory, actors }
    });
}

#[test]
fn a_cancellation_beside_a_completion_and_a_taking() {
    tried(2, |memory, told| {
        add(memory, "x");
        add(memory, "y");
        let token = take(memory, "x");
        vec![canceller("c", told), completer("x", &token, told), taker(told)]
    });
}

#[test]
fn a_cancellation_beside_who_takes_and_adds_what_is_not_there_yet() {
    tried(2, |_, told| vec![canceller("c", told), acquirer("x", told), adder("y", told)]);
}

#[test]
fn a_cancellation_beside_two_who_take_a_task_and_one_who_was_told() {
    tried(2, |memory, told| {
        add(memory, "x");
        let token = take(memory, "x");
        vec![completer("x", &token, told), acquirer("x", told), canceller("c", told)]
    });
}

#[test]
fn two_cancellations_at_once() {
    tried(2, |memory, told| {
        add(memory, "x");
        vec![canceller("c", told), canceller("d", told), taker(told)]
    });
}
