//! Waiting: woken by another process, by the holder's end, by the clock; in vain; and with nothing to wake it.
//! What a wait must not miss lies an hour away, so a test that hangs has found a wait that was not woken.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use claimdir::domain::Bound;
use claimdir::host::{Life, Os};
use claimdir::{Code, Directory};
use support::fake::{Fake, Rigged, by, id, take};
use support::{Claimed, Refused, Running, World, said, until};

/// A command that waits for `n` for an hour; when this returns it does wait.
fn waiter(world: &World, more: &[&str]) -> Running {
    let mut command = world.claim();
    command.args(["acquire", "n", "--owner", "waiter", "--wait=1h", "--json"]).args(more);
    let waiting = Running::spawn(&mut command);
    until_it_waits(&waiting);
    waiting
}

/// Waiting is sleeping in poll(2) or ppoll(2).
fn until_it_waits(waiting: &Running) {
    let [comm, call] = ["comm", "syscall"].map(|file| format!("/proc/{}/{file}", waiting.id()));
    until("it waits", || {
        let call = fs::read_to_string(&call).unwrap_or_default();
        fs::read_to_string(&comm).is_ok_and(|name| name == "claim\n")
            && (call.is_empty() || ["7 ", "271 ", "73 "].iter().any(|number| call.starts_with(number)))
    });
}

fn exit_of(world: &World, line: &str) -> i32 {
    world.say(line).exit
}

#[test]
fn a_release_by_another_process_ends_the_wait() {
    let world = World::new();
    let held = world.take("n --lease 1h").token;
    let waiting = waiter(&world, &[]);
    assert_eq!(exit_of(&world, &format!("release n --token {held}")), 0);
    assert_eq!(waiting.said().expect::<Claimed>(0).generation, 2);
}

#[test]
fn of_many_who_wait_each_gets_its_turn() {
    let world = World::new();
    let held = world.take("n --lease 1h").token;
    let script = r#"eval "$("$CLAIM" acquire n --wait=1h --export)" && echo $CLAIM_GENERATION >> turns && "$CLAIM" release -q"#;
    let waiting: Vec<_> = (0..8).map(|_| Running::spawn(&mut world.shell(script))).collect();
    assert_eq!(exit_of(&world, &format!("release n --token {held}")), 0);
    for waiting in waiting {
        let said = waiting.said();
        assert_eq!(said.exit, 0, "{said:?}");
    }
    let turns = fs::read_to_string(world.root.join("turns")).unwrap();
    assert_eq!(turns, "2\n3\n4\n5\n6\n7\n8\n9\n");
}

#[test]
fn a_completion_ends_the_wait_with_what_it_found() {
    let world = World::new();
    let held = world.take("n --owner alice --lease 1h").token;
    let waiting = waiter(&world, &[]);
    assert_eq!(exit_of(&world, &format!("complete n --token {held}")), 0);
    let lost: Refused = waiting.said().expect(1);
    assert_eq!(
        (lost.code.as_str(), lost.message.as_str()),
        ("ALREADY_DONE", "already done by alice (generation 1)")
    );
}

#[test]
fn a_holders_process_that_ends_ends_the_wait() {
    let world = World::new();
    let mut worker = Running::idle();
    world.take(&format!("n --owner alice --lease 30d --while-pid {}", worker.id()));
    let waiting = waiter(&world, &[]);
    worker.end();
    assert_eq!(waiting.said().expect::<Claimed>(0).reclaimed_from.as_deref(), Some("alice"));
}

#[test]
fn a_process_that_is_killed_and_not_reaped_ends_it_too() {
    let world = World::new();
    let mut worker = Running::idle();
    world.take(&format!("n --lease 30d --until-exit {}", worker.id()));
    let waiting = waiter(&world, &[]);
    worker.0.kill().unwrap();
    assert_eq!(waiting.said().expect::<Claimed>(0).generation, 2);
    worker.end();
}

#[test]
fn a_wait_reaches_the_recorded_end() {
    let world = World::new();
    world.take("n --owner alice --lease 1s");
    let claimed: Claimed = waiter(&world, &[]).said().expect(0);
    assert_eq!((claimed.generation, claimed.reclaimed_from.as_deref()), (2, Some("alice")));
}

#[test]
fn a_wait_that_is_too_short_says_when_the_end_is() {
    let world = World::new();
    world.take("n --owner alice --lease 1h");
    for wait in ["0s", "60ms"] {
        let waited: Refused = world.refused(&format!("acquire n --wait={wait}"), 5, "WAIT_TIMEOUT");
        let holder = waited.holder.unwrap();
        assert_eq!((holder.owner.as_str(), holder.generation), ("alice", 1));
        assert!(holder.remaining_ms.unwrap() > 3_000_000);
        let line = world.say(&format!("acquire n --wait={wait}")).line().to_owned();
        assert!(
            line.starts_with("waited n — waited in vain: already held by alice (generation 1, ends in 59m")
        );
    }
}

#[test]
fn a_blocked_node_is_waited_for_too() {
    let world = World::new();
    let token = world.take("n --owner alice").token;
    assert_eq!(world.run(&["release", "n", "--token", &token, "--block", "not yet"]).exit, 0);
    let waited = world.refused("acquire n --wait=60ms", 5, "WAIT_TIMEOUT");
    assert!(waited.message.ends_with("blocked by alice: not yet"), "{}", waited.message);
    world.refused("acquire n", 4, "BLOCKED");
    let waiting = waiter(&world, &[]);
    let forced = world.take("n --force now").token;
    assert_eq!(exit_of(&world, &format!("release n --token {forced}")), 0);
    assert_eq!(waiting.said().expect::<Claimed>(0).generation, 3);
}

#[test]
fn what_no_waiting_helps_is_not_waited_for() {
    let world = World::new();
    let token = world.take("n").token;
    assert_eq!(exit_of(&world, &format!("complete n --token {token}")), 0);
    world.refused("acquire n --wait=1h", 1, "ALREADY_DONE");
    world.refused("acquire n --wait=1h --seen 7", 3, "STALE_VERSION");
    world.take("m");
    world.refused("acquire m --wait=1h --seen 7", 3, "STALE_VERSION");
    assert_eq!(world.take("free --wait=1h").generation, 1);
}

#[test]
fn who_waits_for_one_that_comes_to_wait_in_vain_is_told_then() {
    let world = World::new();
    world.say("add root");
    world.say("add mid --after root");
    world.say("add n --after mid");
    let token = world.take("root --lease 1h").token;
    let waiting = waiter(&world, &[]);
    world.say(&format!("reject root --token {token} --reason broken"));
    let refused: Refused = waiting.said().expect(4);
    assert!(refused.message.contains("in vain for root: that is failed"), "{refused:?}");
}

#[test]
fn nothing_waits_unless_told_to() {
    let world = World::new();
    let token = world.take("n --lease 30d").token;
    for line in ["acquire n", "acquire n --dry-run", "show n", "why n", "list", "doctor", "where", "init"] {
        assert!(exit_of(&world, line) <= 1, "{line}");
    }
    assert_eq!(exit_of(&world, &format!("check n --token {token}")), 0);
    assert_eq!(exit_of(&world, &format!("renew n --token {token}")), 0);
}

#[test]
fn a_wait_alone_says_how_long() {
    let world = World::new();
    world.take("n --owner alice --lease 1s");
    assert_eq!(world.take("n --wait").generation, 2);
}

#[test]
fn where_inotify_is_used_up_waiting_still_ends() {
    let world = World::new();
    let held = world.take("n --lease 1h").token;
    // In a user namespace of its own, no watch is left for anybody in it.
    let used_up =
        r#"echo 0 > /proc/sys/user/max_inotify_instances && exec "$CLAIM" acquire n --wait=1h --json"#;
    let allowed = world
        .clean("unshare")
        .args(["-r", "sh", "-c", "echo 0 > /proc/sys/user/max_inotify_instances"])
        .status();
    if !allowed.is_ok_and(|status| status.success()) {
        println!("skipped: no user namespace is to be had here");
        return;
    }
    let mut command = world.clean("unshare");
    command.args(["-r", "sh", "-c", used_up]).env("CLAIM", env!("CARGO_BIN_EXE_claim"));
    let waiting = Running::spawn(&mut command);
    until_it_waits(&waiting);
    assert_eq!(exit_of(&world, &format!("release n --token {held}")), 0);
    assert_eq!(waiting.said().expect::<Claimed>(0).generation, 2);
}

#[test]
fn a_watch_that_never_wakes_delays_and_loses_nothing() {
    let host = Fake::new("boot");
    let directory = Directory::over(Rigged::new(host.clone()), host.clone());
    let _ = take(&directory, &by("alice")).leave();
    let start = host.now().mono_ms;
    let bob = directory.acquire(&id("n"), &by("bob"), Duration::from_secs(3600)).unwrap().unwrap();
    assert_eq!((bob.generation(), host.now().mono_ms - start), (2, 10_000), "not at the lease's end");
}

#[test]
fn a_process_that_ends_wakes_by_itself() {
    let store = Rigged::new(Fake::new("boot"));
    store.only_others.store(true, SeqCst); // neither a change nor the clock wakes
    let directory = Directory::over(store, Arc::new(Os::new()));
    let mut worker = Running::idle();
    let process = directory.host().process(worker.id(), None).unwrap();
    let lease = Duration::from_secs(3600);
    let _ = take(&directory, &by("alice").lease(lease).bound(Bound { process, until_exit: false })).leave();
    let waiting = std::thread::spawn({
        let directory = directory.clone();
        move || directory.acquire(&id("n"), &by("bob"), lease).unwrap().unwrap().generation()
    });
    worker.end();
    assert_eq!(waiting.join().unwrap(), 2);
}

#[test]
fn a_wait_ends_at_its_own_end() {
    let host = Fake::new("boot");
    let directory = Directory::over(Rigged::new(host.clone()), host.clone());
    let _ = take(&directory, &by("alice")).leave();
    let start = host.now().mono_ms;
    let waited = directory.acquire(&id("n"), &by("bob"), Duration::from_secs(4)).unwrap().unwrap_err();
    assert_eq!((waited.code(), host.now().mono_ms - start), (Code::WaitTimeout, 4_000));
    assert_eq!(waited.holder().unwrap().remaining_ms, Some(6_000));
}

#[test]
fn a_renewed_lease_is_waited_for_to_its_new_end() {
    let host = Fake::new("boot");
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store.clone(), host.clone());
    let (token, _) = take(&directory, &by("alice")).leave();
    host.pass(5_000);
    assert!(directory.renew(&id("n"), &token, &Default::default()).unwrap().is_ok());
    let start = host.now().mono_ms;
    let bob = directory.acquire(&id("n"), &by("bob"), Duration::from_secs(3600)).unwrap().unwrap();
    assert_eq!((bob.generation(), host.now().mono_ms - start), (2, 10_000));
    assert_eq!(store.writes.load(SeqCst), 3, "waiting wrote to the node");
}

#[test]
fn a_process_that_can_not_be_watched_is_looked_at_again_and_again() {
    let host = Fake::new("boot");
    *host.life.lock().unwrap() = Life::Alive;
    let store = Rigged::new(host.clone());
    let directory = Directory::over(store, host.clone());
    let process = host_process(&directory);
    let _ = take(&directory, &by("alice").bound(Bound { process, until_exit: true })).leave();
    let waiting = std::thread::spawn({
        let directory = directory.clone();
        move || {
            directory.acquire(&id("n"), &by("bob"), Duration::from_secs(3600)).unwrap().unwrap().generation()
        }
    });
    until("it has looked and waits", || host.looks.load(SeqCst) > 3);
    *host.life.lock().unwrap() = Life::Gone;
    assert_eq!(waiting.join().unwrap(), 2);
}

/// A process whose number nobody has.
fn host_process(directory: &Directory) -> claimdir::host::Process {
    directory.host().process(i32::MAX as u32, None).unwrap()
}

#[test]
fn a_wait_for_a_node_in_a_folder_and_a_directory_that_are_not_there_takes_it() {
    let world = World::new();
    assert_eq!(world.take("deep/er/n --wait=1h").generation, 1);
    let mut command = world.claim();
    command.args(["acquire", "x", "--wait=1h", "--json", "--dir"]).arg(world.root.join("other"));
    assert_eq!(said(&mut command).expect::<Claimed>(0).generation, 1);
}

#[test]
fn a_wait_outlives_the_removal_of_what_it_waits_for() {
    let world = World::new();
    world.take("n --lease 30d");
    let waiting = waiter(&world, &[]);
    fs::remove_file(world.record("n")).unwrap();
    assert_eq!(waiting.said().expect::<Claimed>(0).generation, 1);
}
