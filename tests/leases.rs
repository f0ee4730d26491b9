//! When a lease is over and what that means: clocks that step and sleep, reboots, records from the future,
//! freezes, processes that end, force, attempts. The clocks are the test's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use claimdir::domain::{Bound, Ending, Lapse, Node, Reason, Stale, Standing};
use claimdir::host::{Life, Place};
use claimdir::store::files::{FileStore, Options};
use claimdir::store::{Key, Memory, Replaced, Store};
use claimdir::{Acquire, Answer, Code, Directory, Force, Renewal, Token};
use serde_json::{Value, json};
use support::fake::{Fake, Rigged, START_MS, by, id, lose, take};

const DAY: i64 = 24 * 3600 * 1000;

/// One machine over a store in memory.
fn alone() -> (Arc<Fake>, Directory) {
    let host = Fake::new("boot");
    (host.clone(), Directory::over(Arc::new(Memory::default()), host))
}

/// The machine as it was, and as it is after a reboot, `mono_ms` after its start, the wall clock as given.
fn rebooted(wall_ms: i64) -> (Arc<Fake>, Directory, Arc<Fake>, Directory) {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let (before, after) = (Fake::new("boot"), Fake::at(place("next boot"), 5_000, wall_ms));
    let directories = [&before, &after].map(|host| Directory::over(store.clone(), host.clone()));
    let [first, second] = directories;
    (before, first, after, second)
}

fn place(boot: &str) -> Place {
    Place { machine: "m".into(), boot: boot.into(), time_namespace: "t".into() }
}

fn node(directory: &Directory) -> Node {
    directory.node(&id("n")).unwrap().unwrap()
}

fn code<T: std::fmt::Debug>(answer: claimdir::Result<Answer<T>>) -> Code {
    answer.unwrap().unwrap_err().code()
}

fn remaining(directory: &Directory) -> Option<i64> {
    directory.standing(&node(directory), |standing| match standing {
        Standing::Held { remaining_ms, .. } => *remaining_ms,
        other => panic!("{other:?}"),
    })
}

/// Changes the record as somebody else would write it.
fn edit(store: &Memory, edit: impl FnOnce(&mut Value)) {
    let key = Key::Node(id("n"));
    let bytes = store.read(&key).unwrap().unwrap();
    let mut json: Value = serde_json::from_slice(&bytes).unwrap();
    edit(&mut json);
    assert!(matches!(store.replace(&key, &bytes, json.to_string().as_bytes()).unwrap(), Replaced::Done));
}

#[test]
fn the_end_is_exact() {
    let (host, directory) = alone();
    let (token, _) = take(&directory, &by("alice")).leave();
    host.pass(9_999);
    assert_eq!(remaining(&directory), Some(1));
    assert_eq!(directory.check(&id("n"), &token).unwrap().unwrap().remaining_ms, Some(1));
    assert_eq!(lose(&directory, &by("bob")).holder().unwrap().remaining_ms, Some(1));
    host.pass(1);
    directory.standing(&node(&directory), |standing| {
        assert!(matches!(standing, Standing::Lapsed { why: Lapse::LeaseOver(0), .. }), "{standing:?}");
    });
    let bob = take(&directory, &by("bob"));
    assert_eq!(bob.acquired().reclaimed_from.as_deref(), Some("alice"));
    assert_eq!((bob.generation(), bob.attempt()), (2, 2));
}

#[test]
fn after_the_end_the_token_is_worth_nothing_although_nobody_has_taken_over() {
    let (host, directory) = alone();
    let (token, _) = take(&directory, &by("alice")).leave();
    host.pass(10_000);
    let before = node(&directory);
    assert_eq!(code(directory.check(&id("n"), &token)), Code::StaleClaim);
    assert_eq!(code(directory.renew(&id("n"), &token, &Renewal::default())), Code::StaleClaim);
    assert_eq!(code(directory.release(&id("n"), &token, None)), Code::StaleClaim);
    assert_eq!(code(directory.complete(&id("n"), &token, &json!(1))), Code::StaleClaim);
    assert_eq!(node(&directory), before, "a token that is over wrote");
}

#[test]
fn a_sleeping_machine_takes_nothing_from_anybody() {
    let (host, directory) = alone();
    let (token, _) = take(&directory, &by("alice")).leave();
    host.step(13 * 3600 * 1000); // the wall clock went on, the monotonic one stood still
    assert_eq!(remaining(&directory), Some(10_000));
    lose(&directory, &by("bob"));
    assert!(directory.renew(&id("n"), &token, &Renewal::default()).unwrap().is_ok());
}

#[test]
fn a_stepped_clock_neither_ends_nor_prolongs_a_lease() {
    for step in [-400 * DAY, -1, 1, 400 * DAY] {
        let (host, directory) = alone();
        let _ = take(&directory, &by("alice")).leave();
        host.step(step);
        host.pass(9_999);
        lose(&directory, &by("bob"));
        host.step(-step / 2);
        host.pass(1);
        assert_eq!(take(&directory, &by("bob")).generation(), 2, "step {step}");
    }
}

#[test]
fn after_a_reboot_the_wall_clock_decides() {
    let (_, first, after, second) = rebooted(START_MS + 4_000);
    let (token, _) = take(&first, &by("alice")).leave();
    assert_eq!(remaining(&second), Some(6_000));
    lose(&second, &by("bob"));
    assert!(second.check(&id("n"), &token).unwrap().is_ok());
    after.pass(5_999);
    lose(&second, &by("bob"));
    after.pass(1);
    assert_eq!(take(&second, &by("bob")).generation(), 2);
}

#[test]
fn another_machine_or_time_namespace_goes_by_the_wall_clock_too() {
    let elsewhere = [
        Place { machine: "other".into(), ..place("boot") },
        Place { time_namespace: "other".into(), ..place("boot") },
        place(""),
    ];
    for there in elsewhere {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let here = Directory::over(store.clone(), Fake::new("boot"));
        let _ = take(&here, &by("alice")).leave();
        // Its monotonic clock says a day more, which would have ended the lease long ago.
        let there = Directory::over(store, Fake::at(there, DAY, START_MS + 1_000));
        assert_eq!(remaining(&there), Some(9_000));
        lose(&there, &by("bob"));
    }
}

#[test]
fn an_unknown_boot_equals_no_other_not_even_itself() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let first = Directory::over(store.clone(), Fake::at(place(""), 1_000, START_MS));
    let _ = take(&first, &by("alice")).leave();
    let second = Directory::over(store, Fake::at(place(""), 900_000, START_MS + 1));
    assert_eq!(remaining(&second), Some(9_999));
}

#[test]
fn a_record_from_the_future_is_waited_out_for_one_lease_and_then_taken() {
    let (_, first, after, second) = rebooted(START_MS - 365 * DAY); // the clock's battery is dead
    let (token, _) = take(&first, &by("alice")).leave();
    let version = node(&second).version;
    let refusal = lose(&second, &by("bob"));
    assert_eq!(refusal.holder().unwrap().remaining_ms, Some(10_000));
    assert_eq!((refusal.code(), refusal.version), (Code::ClaimHeld, version + 1));
    after.pass(4_000);
    assert_eq!(lose(&second, &by("carol")).holder().unwrap().remaining_ms, Some(6_000), "rebased once only");
    assert_eq!(node(&second).version, version + 1);
    // The holder, if it lives, lost nothing: its token is good and its full lease was given once.
    assert!(second.check(&id("n"), &token).unwrap().is_ok());
    after.pass(6_000);
    let bob = take(&second, &by("bob"));
    assert_eq!((bob.generation(), bob.acquired().reclaimed_from.as_deref()), (2, Some("alice")));
}

#[test]
fn looking_at_a_record_from_the_future_writes_nothing() {
    let (_, first, _, second) = rebooted(START_MS - 365 * DAY);
    let (token, _) = take(&first, &by("alice")).leave();
    let before = node(&second);
    assert!(second.would_acquire(&id("n"), &by("bob")).unwrap().is_err());
    assert!(second.check(&id("n"), &token).unwrap().is_ok());
    second.list().unwrap();
    second.doctor().unwrap();
    assert_eq!(node(&second), before);
}

#[test]
fn the_holder_of_a_record_from_the_future_renews_it_into_the_present() {
    let (_, first, after, second) = rebooted(START_MS - 365 * DAY);
    let (token, _) = take(&first, &by("alice")).leave();
    assert!(second.renew(&id("n"), &token, &Renewal::default()).unwrap().is_ok());
    assert_eq!(remaining(&second), Some(10_000));
    after.pass(10_000);
    assert_eq!(take(&second, &by("bob")).generation(), 2);
}

#[test]
fn a_wait_outlasts_a_record_from_the_future() {
    let (_, first, after, _) = rebooted(START_MS - 365 * DAY);
    let store = Rigged::new(after.clone());
    let (before, second) = (first, Directory::over(store.clone(), after.clone()));
    let _ = take(&before, &by("alice")).leave();
    let bytes = serde_json::to_vec(&claimdir::domain::for_show(&node(&before))).unwrap();
    let mut json: Value = serde_json::from_slice(&bytes).unwrap();
    json["claim"]["token_hash"] = json!("0".repeat(64));
    store.make(&Key::Node(id("n"))).unwrap();
    store.memory.replace(&Key::Node(id("n")), b"", json.to_string().as_bytes()).unwrap();
    let start = after.now().mono_ms;
    let bob = second.acquire(&id("n"), &by("bob"), Duration::from_secs(3600)).unwrap().unwrap();
    assert_eq!((bob.generation(), after.now().mono_ms - start), (2, 10_000));
}

#[test]
fn huge_durations_in_a_record_end_some_day_and_steal_nothing_today() {
    let store = Arc::new(Memory::default());
    let host = Fake::new("boot");
    let directory = Directory::over(store.clone(), host.clone());
    let (token, _) = take(&directory, &by("alice")).leave();
    edit(&store, |json| {
        json["claim"]["lease_ms"] = json!(i64::MAX);
        json["claim"]["expires_at"] = json!("9999-12-30T00:00:00Z");
        json["claim"]["clock"]["ends_mono_ms"] = json!(i64::MAX);
    });
    let refusal = lose(&directory, &by("bob"));
    assert_eq!(refusal.holder().unwrap().remaining_ms, Some(30 * DAY));
    assert!(directory.check(&id("n"), &token).unwrap().is_ok());
    host.pass(30 * DAY);
    assert_eq!(take(&directory, &by("bob")).generation(), 2);
}

#[test]
fn a_lease_is_clamped_and_clocks_near_their_end_do_no_harm() {
    for (mono_ms, wall_ms) in [(0, 0), (i64::MAX / 1_000_000, i64::MAX - 10), (3_600_000, i64::MIN / 2)] {
        let host = Fake::at(place("boot"), mono_ms, wall_ms);
        let directory = Directory::over(Arc::new(Memory::default()), host.clone());
        let lease = take(&directory, &Acquire::by("alice").lease(Duration::MAX));
        assert_eq!(lease.acquired().node.claim().unwrap().lease_ms, 30 * DAY);
        lose(&directory, &by("bob"));
        drop(lease);
        let lease = take(&directory, &Acquire::by("alice").lease(Duration::ZERO));
        assert_eq!(lease.acquired().node.claim().unwrap().lease_ms, 50);
    }
}

#[test]
fn a_freeze_that_outlasts_the_lease_before_it_is_published_is_no_win() {
    let host = Fake::new("boot");
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store.clone(), host.clone());
    store.freeze_ms.store(10_000, SeqCst);
    let refusal = lose(&directory, &by("alice"));
    assert_eq!((refusal.code(), &refusal.reason), (Code::StaleClaim, &Reason::Stale(Stale::TooLate)));
    let now = node(&directory);
    assert_eq!((now.state.name(), now.generation, now.attempt), ("ready", 1, 0), "not given back");
    store.freeze_ms.store(9_999, SeqCst);
    assert_eq!(take(&directory, &by("alice")).generation(), 2, "a shorter freeze loses nothing");
}

#[test]
fn what_a_successor_took_meanwhile_is_not_given_back_by_who_froze() {
    let host = Fake::new("boot");
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store.clone(), host.clone());
    let (old, _) = take(&directory, &by("alice")).leave();
    host.pass(10_000);
    let bob = take(&directory, &by("bob"));
    let before = node(&directory);
    assert_eq!(code(directory.release(&id("n"), &old, None)), Code::StaleClaim);
    let replaced = directory.renew(&id("n"), &old, &Renewal::default()).unwrap().unwrap_err();
    assert!(matches!(replaced.reason, Reason::Stale(Stale::Replaced(_))), "{replaced:?}");
    assert_eq!(replaced.holder().unwrap().owner, "bob");
    assert_eq!(node(&directory), before, "a former holder touched its successor's claim");
    assert!(bob.check().unwrap().is_ok());
}

#[test]
fn a_renewal_that_is_published_too_late_is_lost() {
    let host = Fake::new("boot");
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store.clone(), host.clone());
    let (token, _) = take(&directory, &by("alice")).leave();
    store.freeze_ms.store(10_000, SeqCst);
    assert_eq!(code(directory.renew(&id("n"), &token, &Renewal::default())), Code::StaleClaim);
    assert_eq!(take(&directory, &by("bob")).generation(), 2);
}

#[test]
fn a_renewal_in_flight_revives_no_released_claim() {
    let host = Fake::new("boot");
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store.clone(), host.clone());
    let (token, _) = take(&directory, &by("alice")).leave();
    assert!(directory.release(&id("n"), &token, None).unwrap().is_ok());
    let before = node(&directory);
    let stale = directory.renew(&id("n"), &token, &Renewal::default()).unwrap().unwrap_err();
    assert_eq!((stale.code(), &stale.reason), (Code::StaleClaim, &Reason::Stale(Stale::NotHeld("ready"))));
    assert_eq!(node(&directory), before);
}

#[test]
fn a_renewal_counts_from_now_and_may_change_the_length() {
    let (host, directory) = alone();
    let (token, _) = take(&directory, &by("alice")).leave();
    host.pass(4_000);
    let renew = |lease| directory.renew(&id("n"), &token, &Renewal { lease, progress: None });
    assert!(renew(None).unwrap().is_ok());
    assert_eq!(remaining(&directory), Some(10_000));
    assert!(renew(Some(Duration::from_secs(60))).unwrap().is_ok());
    assert_eq!(remaining(&directory), Some(60_000));
    assert!(renew(None).unwrap().is_ok());
    assert_eq!(remaining(&directory), Some(60_000), "the new length stays");
    assert!(renew(Some(Duration::from_millis(50))).unwrap().is_ok());
    host.pass(50);
    let now = node(&directory);
    assert_eq!((now.generation, now.attempt, now.version), (1, 1, 5), "renewing changes no owner");
    assert_eq!(take(&directory, &by("bob")).generation(), 2);
}

#[test]
fn progress_is_kept_for_the_next_owner() {
    let (host, directory) = alone();
    let (token, _) = take(&directory, &by("alice")).leave();
    let renewal = Renewal { lease: None, progress: Some(json!({"page": 7})) };
    assert!(directory.renew(&id("n"), &token, &renewal).unwrap().is_ok());
    assert!(directory.renew(&id("n"), &token, &Renewal::default()).unwrap().is_ok());
    host.pass(10_000);
    assert_eq!(take(&directory, &by("bob")).acquired().node.progress, Some(json!({"page": 7})));
    assert_eq!(node(&directory).progress, Some(json!({"page": 7})), "a release keeps it too");
}

fn bound(directory: &Directory, until_exit: bool) -> Acquire {
    by("alice").bound(Bound { process: directory.host().process(77, None).unwrap(), until_exit })
}

#[test]
fn a_claim_is_over_at_once_when_its_process_is_gone() {
    for until_exit in [false, true] {
        let (host, directory) = alone();
        let (token, _) = take(&directory, &bound(&directory, until_exit)).leave();
        *host.life.lock().unwrap() = Life::Alive;
        lose(&directory, &by("bob"));
        *host.life.lock().unwrap() = Life::Gone;
        assert_eq!(code(directory.check(&id("n"), &token)), Code::StaleClaim);
        assert_eq!(code(directory.renew(&id("n"), &token, &Renewal::default())), Code::StaleClaim);
        assert_eq!(take(&directory, &by("bob")).acquired().reclaimed_from.as_deref(), Some("alice"));
    }
}

#[test]
fn a_living_process_that_hangs_keeps_nothing_beyond_its_lease() {
    let (host, directory) = alone();
    let _ = take(&directory, &bound(&directory, false)).leave();
    *host.life.lock().unwrap() = Life::Alive;
    host.pass(10_000);
    assert_eq!(take(&directory, &by("bob")).generation(), 2);
}

#[test]
fn a_process_that_can_not_be_seen_is_neither_dead_nor_alive() {
    for until_exit in [false, true] {
        let (host, directory) = alone();
        let _ = take(&directory, &bound(&directory, until_exit)).leave();
        *host.life.lock().unwrap() = Life::Unknown;
        host.pass(9_999);
        lose(&directory, &by("bob"));
        host.pass(1);
        assert_eq!(take(&directory, &by("bob")).generation(), 2);
    }
}

#[test]
fn until_exit_outlives_the_lease_with_its_process() {
    let (host, directory) = alone();
    let lease = take(&directory, &bound(&directory, true));
    assert_eq!(lease.remaining(), None);
    *host.life.lock().unwrap() = Life::Alive;
    host.pass(400 * DAY);
    assert!(!lease.is_lost());
    assert_eq!(lose(&directory, &by("bob")).holder().unwrap().remaining_ms, None);
    assert!(lease.check().unwrap().is_ok());
    assert!(lease.complete(&json!(null)).unwrap().is_ok());
}

#[test]
fn seen_takes_only_the_version_that_was_seen() {
    let (host, directory) = alone();
    let refusal = lose(&directory, &by("alice").seen(1));
    assert_eq!((refusal.code(), refusal.version), (Code::StaleVersion, 0));
    assert!(directory.node(&id("n")).unwrap().is_none(), "a refused request makes no node");
    let (token, _) = take(&directory, &by("alice").seen(0)).leave();
    assert_eq!(lose(&directory, &by("bob").seen(0)).code(), Code::StaleVersion);
    assert_eq!(lose(&directory, &by("bob").seen(1)).code(), Code::ClaimHeld);
    assert!(directory.renew(&id("n"), &token, &Renewal::default()).unwrap().is_ok());
    host.pass(10_000);
    assert_eq!(lose(&directory, &by("bob").seen(1)).code(), Code::StaleVersion);
    assert_eq!(take(&directory, &by("bob").seen(2)).generation(), 2);
    // With force too.
    let force = || Force::because("now").unwrap();
    let _ = take(&directory, &by("bob").seen(4)).leave();
    assert_eq!(lose(&directory, &by("carol").seen(4).force(force())).code(), Code::StaleVersion);
    assert_eq!(take(&directory, &by("carol").seen(5).force(force())).generation(), 4);
}

#[test]
fn attempts_and_generations_count_what_they_should() {
    let (host, directory) = alone();
    let mut counts = Vec::new();
    let mut note = |token: &Token, what: &str| {
        let now = node(&directory);
        assert!(directory.check(&id("n"), token).unwrap().is_ok(), "{what}");
        counts.push((what.to_owned(), now.generation, now.attempt));
    };
    let forced = |owner: &str| by(owner).force(Force::because("it hangs").unwrap());
    let (token, _) = take(&directory, &by("a")).leave();
    note(&token, "first");
    assert!(directory.release(&id("n"), &token, None).unwrap().is_ok());
    let (token, _) = take(&directory, &by("b")).leave();
    note(&token, "after a release, which gives the attempt back");
    host.pass(10_000);
    let (token, _) = take(&directory, &by("c")).leave();
    note(&token, "after an ended lease, which does not");
    let (token, acquired) = take(&directory, &forced("d")).leave();
    assert_eq!((acquired.forced, acquired.reclaimed_from.as_deref()), (true, Some("c")));
    note(&token, "by force, which uses none up");
    assert!(directory.release(&id("n"), &token, Some("wait for it")).unwrap().is_ok());
    assert_eq!(node(&directory).attempt, 1);
    let (token, acquired) = take(&directory, &forced("e")).leave();
    assert_eq!((acquired.forced, acquired.reclaimed_from), (true, None));
    note(&token, "from blocked");
    host.pass(10_000);
    let (token, acquired) = take(&directory, &forced("f")).leave();
    assert!(!acquired.forced, "an ended lease needs no force");
    note(&token, "after an ended lease again");
    let counts: Vec<_> = counts.iter().map(|(_, generation, attempt)| (*generation, *attempt)).collect();
    assert_eq!(counts, [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (6, 3)]);
}

#[test]
fn force_records_its_reason_and_fences_the_one_before() {
    let (_, directory) = alone();
    let (old, _) = take(&directory, &by("alice")).leave();
    let _ = take(&directory, &by("bob").force(Force::because("alice hangs").unwrap())).leave();
    let forced = node(&directory).forced.unwrap();
    assert_eq!((forced.reason.as_str(), forced.by.as_str()), ("alice hangs", "bob"));
    assert_eq!((forced.from.as_deref(), forced.at_ms), (Some("alice"), START_MS));
    assert_eq!(code(directory.check(&id("n"), &old)), Code::StaleClaim);
}

#[test]
fn a_blocked_node_is_taken_by_force_only() {
    let (host, directory) = alone();
    let (token, _) = take(&directory, &by("alice")).leave();
    assert!(directory.release(&id("n"), &token, Some("needs a person")).unwrap().is_ok());
    host.pass(400 * DAY);
    let refusal = lose(&directory, &by("bob"));
    assert_eq!(refusal.code(), Code::Blocked);
    assert_eq!(refusal.message(), "blocked by alice: needs a person");
    assert_eq!(code(directory.check(&id("n"), &token)), Code::StaleClaim);
    let _ = take(&directory, &by("bob").force(Force::because("a person says so").unwrap())).leave();
    assert_eq!(node(&directory).forced.unwrap().from, None);
}

#[test]
fn nothing_takes_a_node_that_has_ended() {
    for (state, expected, ending) in [
        ("done", Code::AlreadyDone, Ending::Done),
        ("failed", Code::Failed, Ending::Failed),
        ("cancelled", Code::Cancelled, Ending::Cancelled),
        ("expired", Code::Expired, Ending::Expired),
    ] {
        let store = Arc::new(Memory::default());
        let host = Fake::new("boot");
        let directory = Directory::over(store.clone(), host.clone());
        let lease = take(&directory, &by("alice"));
        let token = lease.token().clone();
        assert!(lease.complete(&json!({"n": 1})).unwrap().is_ok());
        edit(&store, |json| json["state"] = json!(state));
        host.pass(400 * DAY);
        let before = node(&directory);
        for request in [by("bob"), by("bob").force(Force::because("anyway").unwrap())] {
            let refusal = lose(&directory, &request);
            assert_eq!(refusal.code(), expected);
            assert!(matches!(refusal.reason, Reason::Ended { ending: e, .. } if e == ending));
            // Nobody lets a deadline pass.
            let whose = if ending == Ending::Expired { "" } else { " by alice" };
            let told = refusal.message();
            assert!(told.contains(&format!("{state}{whose} (generation 1)")), "{told}");
            // Waiting does not help, so it is not waited.
            let waited = directory.acquire(&id("n"), &request, Duration::from_secs(3600));
            assert_eq!(code(waited), expected);
        }
        assert_eq!(code(directory.check(&id("n"), &token)), Code::StaleClaim);
        assert_eq!(code(directory.renew(&id("n"), &token, &Renewal::default())), Code::StaleClaim);
        assert_eq!(node(&directory), before);
    }
}

#[test]
fn the_first_result_stands() {
    let (host, directory) = alone();
    let complete = |token: &Token, result: Value| directory.complete(&id("n"), token, &result);
    let (alice, _) = take(&directory, &by("alice")).leave();
    host.pass(10_000);
    let (bob, _) = take(&directory, &by("bob")).leave();
    assert!(!complete(&bob, json!({"n": 1})).unwrap().unwrap().replay);
    let before = node(&directory);
    host.pass(400 * DAY);
    assert!(complete(&bob, json!({"n": 1})).unwrap().unwrap().replay);
    assert_eq!(code(complete(&bob, json!({"n": 2}))), Code::IdempotencyConflict);
    assert_eq!(code(complete(&bob, Value::Null)), Code::IdempotencyConflict);
    assert_eq!(code(complete(&alice, json!({"n": 1}))), Code::StaleClaim);
    assert_eq!(node(&directory), before);
}

#[test]
fn the_same_holds_over_files() {
    let scratch = tempfile::tempdir().unwrap();
    let open = |host: &Arc<Fake>| {
        let options = Options { sync: false, ..Options::default() };
        let store = FileStore::open(&scratch.path().join(".claims"), options, host.clone()).unwrap();
        Directory::over(Arc::new(store), host.clone())
    };
    let (before, after) = (Fake::new("boot"), Fake::at(place("next boot"), 5_000, START_MS - DAY));
    let (first, second) = (open(&before), open(&after));
    let (token, _) = take(&first, &by("alice")).leave();
    before.step(DAY);
    before.pass(9_999);
    assert!(first.check(&id("n"), &token).unwrap().is_ok());
    assert_eq!(lose(&second, &by("bob")).holder().unwrap().remaining_ms, Some(10_000));
    after.pass(10_000);
    assert_eq!(take(&second, &by("bob")).generation(), 2);
    assert_eq!(code(first.check(&id("n"), &token)), Code::StaleClaim);
}
