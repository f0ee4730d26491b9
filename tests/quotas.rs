//! A quota's window, by clocks that are the test's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use claimdir::host::Place;
use claimdir::store::{Memory, Store};
use claimdir::{Acquire, Code, Directory, Name, Rate, Refusal};
use support::fake::{Fake, Rigged, START_MS, by, id, lose, take};

fn api() -> Name {
    Name::new("api").unwrap()
}

fn asking(amount: u64) -> Acquire {
    by("somebody").quota(api(), amount)
}

/// A store with a quota of 10 per 10 s, and a machine.
fn world() -> (Arc<Fake>, Arc<Rigged>, Directory) {
    let host = Fake::new("boot");
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store.clone(), host.clone());
    directory.set_quota(&api(), Rate::parse("10/10s").unwrap()).unwrap();
    (host, store, directory)
}

#[track_caller]
fn spend(directory: &Directory, amount: u64) {
    take(directory, &asking(amount)).release().unwrap().unwrap();
}

#[track_caller]
fn used_up(directory: &Directory, amount: u64) -> Refusal {
    let refusal = lose(directory, &asking(amount));
    assert_eq!(refusal.code(), Code::QuotaUsed);
    refusal
}

fn used(directory: &Directory) -> u64 {
    directory.quota(&api()).unwrap().unwrap().used
}

#[test]
fn an_amount_is_free_again_when_its_window_ends() {
    let (host, _, directory) = world();
    spend(&directory, 6);
    host.pass(4_000);
    spend(&directory, 4);
    assert_eq!(used_up(&directory, 1).passes_in_ms(), Some(6_000));
    assert_eq!(used_up(&directory, 7).passes_in_ms(), Some(10_000));
    host.pass(5_999);
    host.step(3_600_000); // the wall clock has no say on the same boot
    assert_eq!(used_up(&directory, 6).passes_in_ms(), Some(1));
    host.pass(1);
    host.step(-7_200_000);
    assert_eq!(used(&directory), 4);
    spend(&directory, 6);
    let seen = directory.quota(&api()).unwrap().unwrap();
    assert_eq!((seen.used, seen.next_free_in_ms), (10, Some(4_000)));
    host.pass(10_000);
    assert_eq!(directory.quota(&api()).unwrap().unwrap().next_free_in_ms, None);
}

#[test]
fn a_wait_ends_when_enough_is_free() {
    let (host, _, directory) = world();
    spend(&directory, 6);
    host.pass(3_000);
    spend(&directory, 4);
    let before = host.now().mono_ms;
    let lease = directory.acquire(&id("n"), &asking(6), Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!(host.now().mono_ms - before, 7_000);
    lease.release().unwrap().unwrap();
    let refusal = directory.acquire(&id("n"), &asking(7), Duration::from_secs(1)).unwrap().unwrap_err();
    assert_eq!((refusal.code(), refusal.quota_used().unwrap().asked), (Code::WaitTimeout, 7));
    // More than there can ever be is no use to wait for.
    let refusal = directory.acquire(&id("n"), &asking(11), Duration::from_secs(60)).unwrap().unwrap_err();
    assert_eq!((refusal.code(), host.now().mono_ms - before), (Code::QuotaUsed, 8_000));
}

#[test]
fn a_new_rate_leaves_the_windows_that_have_begun() {
    let (host, _, directory) = world();
    spend(&directory, 10);
    assert!(directory.set_quota(&api(), Rate::parse("12/1h").unwrap()).unwrap());
    assert!(!directory.set_quota(&api(), Rate::parse("12/1h").unwrap()).unwrap());
    spend(&directory, 2);
    host.pass(10_000);
    assert_eq!(used(&directory), 2);
    assert!(directory.set_quota(&api(), Rate::parse("1/1s").unwrap()).unwrap());
    host.pass(3_589_999);
    used_up(&directory, 1);
    host.pass(1);
    spend(&directory, 1);
}

/// After a reboot only the wall clock is left.
#[test]
fn windows_outlast_a_reboot_and_a_clock_set_back_does_not_keep_them_for_ever() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let machine = |boot: &str, mono_ms, wall_ms| {
        let place = Place { machine: "m".into(), boot: boot.into(), time_namespace: "t".into() };
        let host = Fake::at(place, mono_ms, wall_ms);
        (host.clone(), Directory::over(store.clone(), host))
    };
    let (_, first) = machine("first", 5_000_000, START_MS);
    first.set_quota(&api(), Rate::parse("10/10s").unwrap()).unwrap();
    spend(&first, 10);
    let (host, second) = machine("second", 10, START_MS + 9_999);
    assert_eq!(used_up(&second, 1).passes_in_ms(), Some(1));
    host.pass(1);
    spend(&second, 10);
    // A year back: they count once more for their own length, told by a refusal that writes it down.
    let (host, third) = machine("third", 10, START_MS - 31_536_000_000);
    assert_eq!(used_up(&third, 1).passes_in_ms(), Some(10_000));
    host.pass(9_999);
    assert_eq!(used_up(&third, 1).passes_in_ms(), Some(1));
    host.pass(1);
    spend(&third, 10);
}

/// Who is frozen between looking at the clock and taking takes once more: what it took was over before it counted.
#[test]
fn a_freeze_longer_than_the_window_is_not_free() {
    let (_, store, directory) = world();
    store.freeze_ms.store(20_000, SeqCst);
    let lease = take(&directory, &asking(10).lease(Duration::from_secs(3_600)));
    assert_eq!(used(&directory), 10);
    lease.release().unwrap().unwrap();
    used_up(&directory, 1);
}

/// A claim that could not be told yes costs what it took; one that was refused costs nothing.
#[test]
fn only_what_was_lost_is_taken_out_again() {
    let (_, store, directory) = world();
    store.broken.store(true, SeqCst);
    assert!(directory.try_acquire(&id("n"), &asking(3)).is_err());
    store.broken.store(false, SeqCst);
    assert_eq!(used(&directory), 0, "nothing could be taken");
    let holder = take(&directory, &by("holder"));
    assert_eq!(lose(&directory, &asking(3)).code(), Code::ClaimHeld);
    assert_eq!(used(&directory), 0);
    drop(holder);
    spend(&directory, 3);
    assert_eq!(used(&directory), 3);
}

/// However many claims there were, the record stays small.
#[test]
fn the_record_does_not_grow_with_the_claims_there_were() {
    let (host, store, directory) = world();
    directory.set_quota(&api(), Rate::parse("1000000/30d").unwrap()).unwrap();
    for _ in 0..1_000 {
        host.pass(60_000);
        spend(&directory, 2);
    }
    assert_eq!(used(&directory), 2_000);
    let key = claimdir::store::Key::internal("rosters/quotas/api").unwrap();
    let bytes = store.memory.read(&key).unwrap().unwrap();
    assert!(bytes.len() < 128 << 10, "{} bytes", bytes.len());
}
