//! The journal and `claim log`: every change is told, once and whole, and nothing depends on it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use claimdir::store::Memory;
use claimdir::{Acquire, Directory, NodeId};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use support::{Claimed, Running, Said, World, race, said, until, words};

/// An event. A field that is not listed here is a change of contract.
#[derive(Clone, Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Event {
    at: String,
    event: String,
    id: String,
    state: String,
    generation: u64,
    attempt: u64,
    version: u64,
    by: Option<String>,
    from: Option<String>,
    reason: Option<String>,
    accepted: Option<bool>,
    lease_ms: Option<u64>,
    not_before: Option<String>,
    until: Option<String>,
    queue: Option<String>,
    project: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    #[serde(rename = "ok")]
    _ok: bool,
    #[serde(rename = "schema")]
    _schema: u64,
    #[serde(rename = "dir")]
    _dir: String,
    events: Vec<Event>,
}

/// What `claim log` says with these arguments.
#[track_caller]
fn log(world: &World, line: &str) -> Vec<Event> {
    world.json(&format!("log {line}")).expect::<Log>(0).events
}

/// Each event's name.
fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.event.as_str()).collect()
}

/// The journal's files.
fn days(world: &World) -> Vec<PathBuf> {
    let mut days: Vec<PathBuf> = match fs::read_dir(world.dir().join(".store/journal")) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    };
    days.sort();
    days
}

/// The journal as it is on disk.
fn text(world: &World) -> String {
    days(world).iter().map(|day| fs::read_to_string(day).unwrap()).collect()
}

#[track_caller]
fn yes(world: &World, line: &str) -> Said {
    let said = world.say(line);
    assert_eq!(said.exit, 0, "{line}: {said:?}");
    said
}

#[test]
fn every_change_of_a_bare_key_is_told() {
    let world = World::new();
    let token = world.take("n --owner alice --lease 2h").token;
    yes(&world, &format!("renew n --token {token}"));
    yes(&world, &format!("renew n --token {token} --progress 7"));
    yes(&world, &format!("release n --token {token}"));
    let token = world.take("n --owner bob").token;
    yes(&world, &format!("release n --token {token} --block because"));
    yes(&world, "block n --reason because --until 2h --owner carol");
    yes(&world, "unblock n --owner una");
    yes(&world, "block n --reason why --owner carol");
    world.run(&["acquire", "n", "--owner", "dave", "--force", "it is urgent", "--quiet"]);
    world.run(&["acquire", "n", "--owner", "erin", "--force", "more so", "--quiet"]);
    let token = world.take("m --owner erin").token;
    yes(&world, &format!("retry m --token {token} --reason flaky"));
    world.expired("o");
    world.take("o --owner frank");
    world.edit("o", |json| json["claim"]["clock"]["ends_mono_ms"] = 1.into());
    yes(&world, "reap --apply");
    let token = world.take("o --owner gil").token;
    yes(&world, &format!("complete o --token {token} --result 7"));
    let token = world.take("p --owner gil").token;
    yes(&world, &format!("reject p --token {token} --reason broken"));
    yes(&world, "requeue p --owner ray");
    yes(&world, "note p hello --owner hal");
    yes(&world, "cancel p --reason enough --owner ida");

    let n = log(&world, "n");
    assert_eq!(
        names(&n),
        [
            "claimed",
            "progress",
            "released",
            "claimed",
            "blocked",
            "blocked",
            "unblocked",
            "blocked",
            "forced",
            "forced"
        ]
    );
    assert_eq!((n[0].by.as_deref(), n[0].lease_ms, n[0].generation), (Some("alice"), Some(7_200_000), 1));
    assert_eq!((n[0].state.as_str(), n[0].version, n[1].version), ("claimed", 1, 3));
    assert_eq!((n[1].by.as_deref(), n[2].by.as_deref()), (Some("alice"), Some("alice")));
    assert_eq!((n[2].attempt, n[2].state.as_str(), n[2].from.as_deref()), (0, "ready", None));
    assert_eq!((n[4].by.as_deref(), n[4].reason.as_deref()), (Some("bob"), Some("because")));
    assert_eq!((n[5].by.as_deref(), n[5].until.is_some()), (Some("carol"), true));
    assert_eq!((n[6].by.as_deref(), n[6].from.as_deref()), (Some("una"), None));
    assert_eq!((n[8].by.as_deref(), n[8].from.as_deref()), (Some("dave"), None));
    assert_eq!(n[8].reason.as_deref(), Some("it is urgent"));
    assert_eq!((n[9].by.as_deref(), n[9].from.as_deref()), (Some("erin"), Some("dave")));

    let m = log(&world, "m");
    assert_eq!(names(&m), ["claimed", "retried"]);
    assert_eq!((m[1].by.as_deref(), m[1].reason.as_deref()), (Some("erin"), Some("flaky")));
    assert!(m[1].not_before > Some(m[1].at.clone()), "{m:?}");

    let o = log(&world, "o");
    assert_eq!(names(&o), ["claimed", "reclaimed", "given_back", "claimed", "completed"]);
    assert_eq!((o[1].by.as_deref(), o[1].from.as_deref()), (Some("frank"), Some("old")));
    assert_eq!((o[2].by.as_deref(), o[2].from.as_deref()), (None, Some("frank")));
    assert_eq!((o[4].by.as_deref(), o[4].state.as_str()), (Some("gil"), "done"));

    let p = log(&world, "p");
    assert_eq!(names(&p), ["claimed", "rejected", "requeued", "noted", "cancelled"]);
    assert_eq!((p[1].by.as_deref(), p[1].reason.as_deref()), (Some("gil"), Some("broken")));
    assert_eq!((p[2].by.as_deref(), p[2].reason.as_deref()), (Some("ray"), None));
    assert_eq!((p[3].by.as_deref(), p[3].reason.as_deref()), (Some("hal"), Some("hello")));
    assert_eq!((p[4].by.as_deref(), p[4].reason.as_deref()), (Some("ida"), Some("enough")));

    let all = log(&world, "");
    assert_eq!(all.len(), n.len() + m.len() + o.len() + p.len());
    assert!(all.is_sorted_by_key(|event| event.at.clone()), "{all:?}");
}

#[test]
fn every_change_of_a_task_is_told() {
    let world = World::new();
    yes(&world, "add t --owner lead --queue q --project p --review --max-attempts 2 --subscriber one");
    yes(&world, "add t --owner lead --queue q --project p --review --max-attempts 2 --subscriber two");
    yes(&world, "join t three");
    yes(&world, "join t three");
    yes(&world, "detach t one");
    let done = |owner: &str| {
        let token = world.take(&format!("t --owner {owner}")).token;
        yes(&world, &format!("complete t --token {token}"));
    };
    done("alice");
    world.run(&["review", "t", "--reject", "--by", "bob", "--note", "not yet"]);
    done("alice");
    world.run(&["review", "t", "--reject", "--by", "bob", "--note", "never"]);
    yes(&world, "requeue t");
    done("carol");
    yes(&world, "review t --accept --by bob");
    yes(&world, "prune --older 0s");

    yes(&world, "add late --deadline 1h --max-attempts 1");
    world.edit("late", |json| json["task"]["deadline"]["clock"]["at_mono_ms"] = 1.into());
    assert_eq!(world.say("note late tardy --owner dave").exit, 0);
    yes(&world, "add last --max-attempts 1");
    let token = world.take("last --owner erin").token;
    yes(&world, &format!("retry last --token {token} --reason flaky"));
    yes(&world, "add gone --max-attempts 1");
    world.expired("gone");
    yes(&world, "reap --apply");
    yes(&world, "add @s/x --owner lead");
    yes(&world, "scope cancel s --owner ops --reason over");
    let token = world.take("bare --owner frank").token;
    yes(&world, "add bare --owner lead --not-before 1h");
    yes(&world, &format!("complete bare --token {token}"));

    let t = log(&world, "t");
    assert_eq!(
        names(&t),
        [
            "added",
            "joined",
            "joined",
            "detached",
            "claimed",
            "completed",
            "reviewed",
            "claimed",
            "completed",
            "reviewed",
            "failed",
            "requeued",
            "claimed",
            "completed",
            "reviewed",
            "pruned"
        ]
    );
    assert_eq!((t[0].by.as_deref(), t[0].version, t[0].attempt), (Some("lead"), 1, 0));
    assert!(
        t.iter().all(|event| event.queue.as_deref() == Some("q") && event.project.as_deref() == Some("p"))
    );
    let by: Vec<&str> = t[1..4].iter().map(|event| event.by.as_deref().unwrap()).collect();
    assert_eq!(by, ["two", "three", "one"]);
    assert_eq!((t[6].accepted, t[9].accepted, t[14].accepted), (Some(false), Some(false), Some(true)));
    assert_eq!((t[6].by.as_deref(), t[6].reason.as_deref()), (Some("bob"), Some("not yet")));
    assert_eq!((t[6].state.as_str(), t[9].state.as_str(), t[14].state.as_str()), ("ready", "failed", "done"));

    let late = log(&world, "late");
    assert_eq!(names(&late), ["added", "expired", "noted"]);
    assert_eq!((late[1].by.as_deref(), late[2].by.as_deref()), (None, Some("dave")), "time is nobody");
    let shown = yes(&world, "show late").out;
    assert!(shown.starts_with("late expired\n"), "{shown}");
    let shown = yes(&world, "show last").out;
    assert!(shown.contains("generation=1 failed, as it was the last attempt: flaky"), "{shown}");
    let last = log(&world, "last");
    assert_eq!(names(&last), ["added", "claimed", "failed"]);
    assert_eq!((last[2].by.as_deref(), last[2].reason.as_deref()), (Some("erin"), Some("flaky")));
    let gone = log(&world, "gone");
    assert_eq!(names(&gone), ["added", "claimed", "failed"]);
    assert!(gone[2].reason.as_ref().unwrap().contains("used up"), "{gone:?}");
    let scoped = log(&world, "@s/x");
    assert_eq!(names(&scoped), ["added", "cancelled"]);
    assert_eq!(scoped[1].by.as_deref(), Some("ops"));
    let bare = log(&world, "bare");
    assert_eq!(names(&bare), ["claimed", "added", "completed"]);
    assert_eq!((bare[1].by.as_deref(), bare[1].state.as_str()), (Some("lead"), "claimed"));
    assert!(bare[1].not_before.is_some());
}

#[test]
fn a_line_says_what_happened_and_by_whom_harmlessly() {
    let world = World::new();
    let owner = "a\u{1b}[2J\nb\u{202e}";
    let taken = world.run(&["acquire", "n", "--owner", owner, "--json"]).expect::<Claimed>(0);
    world.run(&["block", "n", "--reason", "x"]);
    world.run(&["release", "n", "--token", &taken.token, "--block", "why\n2026 claimed m by mallory"]);
    let said = yes(&world, "log n");
    let lines: Vec<&str> = said.out.lines().collect();
    let at = log(&world, "n").remove(0).at;
    assert_eq!(at.len(), "2026-11-29T13:17:38.123Z".len());
    let who = r"a\u{1b}[2J\nb\u{202e}";
    assert_eq!(lines[0], format!("{at} claimed n by {who} generation=1 attempt=1 lease=1h"));
    assert!(
        lines[1].ends_with(&format!(
            r" blocked n by {who} generation=1 attempt=0: why\n2026 claimed m by mallory"
        ))
    );
    assert_eq!(lines.len(), 2);
    assert_eq!(log(&world, "n")[0].by.as_deref(), Some(owner));
    assert_eq!(yes(&world, "log n --quiet").out, "");
    let silent = world.say("log --follow --quiet");
    assert!(silent.exit == 2 && silent.out.is_empty() && silent.err.contains("--quiet"), "{silent:?}");
}

#[test]
fn what_is_asked_for_is_told_and_nothing_else() {
    let world = World::new();
    for id in ["a", "b", "@s/a", "@s/b"] {
        world.take(id);
    }
    let ids = |line: &str| log(&world, line).into_iter().map(|event| event.id).collect::<Vec<_>>();
    assert_eq!(ids(""), ["a", "b", "@s/a", "@s/b"]);
    assert_eq!(ids("a"), ["a"]);
    assert_eq!(ids("a --scope s"), ["@s/a"]);
    assert_eq!(ids("--scope s"), ["@s/a", "@s/b"]);
    assert_eq!(ids("--limit 2"), ["@s/a", "@s/b"]);
    assert_eq!(ids("--limit 0"), [""; 0]);
    assert_eq!(ids("--since 1h").len(), 4);
    assert_eq!(ids("--since 2000-01-01T00:00:00Z").len(), 4);
    assert_eq!(ids("--since 9000-01-01T00:00:00Z").len(), 0);
    assert_eq!(ids("a --since 9000-01-01T00:00:00Z").len(), 0);
    let second = log(&world, "")[1].clone();
    assert_eq!(ids(&format!("--since {}", second.at))[0], "b");
    world.refused("log c", 1, "NOT_FOUND");
    world.refused("log c --scope s", 1, "NOT_FOUND");
    world.refused("log a//b", 2, "INVALID_ID");
    world.refused("log c --follow", 1, "NOT_FOUND");
    assert_eq!(world.say("log --since soon").exit, 2);
    fs::remove_file(world.record("a")).unwrap();
    assert_eq!(ids("a"), ["a"], "its record is gone, and what happened is still known");
}

#[test]
fn looking_makes_nothing() {
    let world = World::new();
    yes(&world, "init");
    let before = world.snapshot();
    let said = yes(&world, "log");
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    assert_eq!(log(&world, "").len(), 0);
    world.refused("log n", 1, "NOT_FOUND");
    yes(&world, "prune --older 0s");
    assert_eq!(before, world.snapshot());
}

#[test]
fn of_many_at_once_no_line_is_lost_or_torn() {
    let world = World::new();
    let turns = 10;
    let script = r#"for turn in $(seq "$1"); do
        eval "$("$CLAIM" acquire "n$2" --owner "o$2" --export)" && "$CLAIM" release --quiet || exit 1
    done"#;
    let children: Vec<Running> = (0..20)
        .map(|n| {
            let mut command = world.shell(script);
            Running::spawn(command.args([turns.to_string(), n.to_string()]))
        })
        .collect();
    for child in children {
        assert_eq!(child.said().exit, 0);
    }
    let text = text(&world);
    for line in text.lines().filter(|line| !line.is_empty()) {
        let event: Event = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(event.id[1..], event.by.unwrap()[1..]);
    }
    for n in 0..20 {
        let events = log(&world, &format!("n{n}"));
        let versions: Vec<u64> = events.iter().map(|event| event.version).collect();
        assert_eq!(versions, (1..=2 * turns).collect::<Vec<u64>>(), "{events:?}");
    }
    assert_eq!(log(&world, "").len(), 20 * 2 * turns as usize);
}

#[test]
fn of_a_race_one_is_told() {
    let world = World::new();
    let commands: Vec<Vec<String>> = (0..20).map(|n| words(&format!("acquire n --owner o{n}"))).collect();
    let won = race(&world, &commands).iter().position(|said| said.exit == 0).unwrap();
    let events = log(&world, "");
    assert_eq!((events.len(), events[0].by.clone()), (1, Some(format!("o{won}"))));
}

#[test]
fn a_torn_line_spoils_no_other() {
    let world = World::new();
    world.take("a");
    let day = days(&world).pop().unwrap();
    let add = |bytes: &[u8]| OpenOptions::new().append(true).open(&day).unwrap().write_all(bytes).unwrap();
    add(b"\n{\"at\":\"2026-11-29T13:17:38.123Z\",\"event\":\"claimed\",\"id\":\"torn");
    world.take("b");
    add(b"\xff\xfe\0 not ours\n{}\n[1]\n\n");
    add(&vec![b'x'; 300_000]);
    world.take("c");
    let ids: Vec<String> = log(&world, "").into_iter().map(|event| event.id).collect();
    assert_eq!(ids, ["a", "b", "c"]);
}

/// A journal that can't be written is nobody's concern who changes something.
#[test]
fn a_journal_that_is_in_the_way_stops_nobody() {
    let today = |world: &World| {
        world.take("first");
        days(world).pop().unwrap()
    };
    let foreign = World::new();
    let target = foreign.root.join("precious");
    fs::write(&target, "kept").unwrap();
    type Obstacle<'a> = (&'a str, &'a dyn Fn(&World));
    let obstacles: [Obstacle<'_>; 6] = [
        ("a link", &|world| {
            let day = today(world);
            fs::remove_file(&day).unwrap();
            symlink(&target, &day).unwrap();
        }),
        ("a link to nothing", &|world| {
            let day = today(world);
            fs::remove_file(&day).unwrap();
            symlink(foreign.root.join("nothing"), &day).unwrap();
        }),
        ("a folder", &|world| {
            let day = today(world);
            fs::remove_file(&day).unwrap();
            fs::create_dir(&day).unwrap();
        }),
        ("a pipe", &|world| {
            let day = today(world);
            fs::remove_file(&day).unwrap();
            assert!(Command::new("mkfifo").arg(&day).status().unwrap().success());
        }),
        ("a linked folder", &|world| {
            yes(world, "init");
            symlink(&foreign.root, world.dir().join(".store/journal")).unwrap();
        }),
        ("a file for a folder", &|world| {
            yes(world, "init");
            fs::write(world.dir().join(".store/journal"), "").unwrap();
        }),
    ];
    let before = foreign.snapshot();
    for (what, put) in obstacles {
        let world = World::new();
        put(&world);
        let taken = said(world.claim().args(["acquire", "n"]));
        assert_eq!((taken.exit, taken.err.as_str()), (0, ""), "{what}: {taken:?}");
        assert_eq!(world.stored("n")["state"], "claimed");
        assert_eq!(foreign.snapshot(), before, "{what} was followed");
        let doctor: Value = world.json("doctor").expect(6);
        assert_eq!(doctor["faults"], 1, "{what}: {doctor}");
        assert_eq!(world.say("log").exit, 6, "{what}");
        assert_eq!(world.say("prune --older 0s").exit, 0, "{what}");
    }
}

#[test]
fn a_journal_that_may_not_be_written_stops_nobody() {
    let world = World::new();
    world.take("first");
    let day = days(&world).pop().unwrap();
    if support::is_root() {
        // What root may do is not kept from it by a mode.
        if !Command::new("chattr").arg("+i").arg(&day).status().is_ok_and(|status| status.success()) {
            return println!("skipped: root writes to what is read-only");
        }
    } else {
        fs::set_permissions(&day, fs::Permissions::from_mode(0o444)).unwrap();
    }
    let taken = world.say("acquire n");
    let events = names(&log(&world, "")).len();
    if support::is_root() {
        Command::new("chattr").arg("-i").arg(&day).status().unwrap();
    }
    assert_eq!((taken.exit, taken.err.as_str(), events), (0, "", 1), "{taken:?}");
}

#[test]
fn no_secret_is_in_the_journal() {
    let world = World::new();
    let receipt = "a-receipt-that-nobody-may-see";
    let mut secrets = vec![receipt.to_owned()];
    let once = |line: &str| said(world.claim().args(words(line)).arg("--json").env("CLAIM_RECEIPT", receipt));
    let taken: Claimed = once("acquire a --owner alice").expect(0);
    secrets.push(taken.token.clone());
    let with = |line: &str, token: &str| {
        assert_eq!(said(world.claim().args(words(line)).env("CLAIM_TOKEN", token)).exit, 0, "{line}");
    };
    with("renew a --progress 1", &taken.token);
    with("release a", &taken.token);
    yes(&world, "add b --max-attempts 2");
    for end in ["retry b --reason x", "complete b --result 7"] {
        world.edit("b", |json| json["not_before"] = Value::Null);
        let taken = world.take("b");
        with(end, &taken.token);
        secrets.push(taken.token);
    }
    secrets.push(world.expired("c"));
    secrets.push(world.take("c").token);
    for id in ["a", "b", "c"] {
        let record = world.stored(id);
        for hash in [&record["claim"]["token_hash"], &record["outcome"]["token_hash"]] {
            secrets.extend(hash.as_str().map(str::to_owned));
        }
    }
    assert!(secrets.len() > 6, "{secrets:?}");
    let (text, log) = (text(&world), yes(&world, "log").out + &yes(&world, "log --json").out);
    for secret in secrets {
        let hash = blake3(&secret);
        assert!(!text.contains(&secret) && !log.contains(&secret), "{secret}");
        assert!(!text.contains(&hash) && !log.contains(&hash), "the hash of {secret}");
    }
    assert_eq!(names(&crate::log(&world, "a")), ["claimed", "progress", "released"]);
}

fn blake3(text: &str) -> String {
    claimdir::Token::shown(text).hash().hex()
}

/// `claim log --follow` with more arguments; what it says comes line by line. The deadline is only there so that a
/// broken test ends.
fn following(world: &World, line: &str) -> (Running, impl Iterator<Item = String> + use<>) {
    let mut command = world.claim();
    command.args(["log", "--follow"]).args(words(line));
    let mut running = Running::spawn(&mut command);
    let lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let (tell, told) = std::sync::mpsc::sync_channel(0);
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    (running, std::iter::from_fn(move || told.recv_timeout(Duration::from_secs(60)).ok()))
}

/// Waits until it has ended.
#[track_caller]
fn ended(running: &mut Running) -> Option<i32> {
    until("it ends", || running.0.try_wait().unwrap().is_some());
    running.0.wait().unwrap().code()
}

fn signal(running: &Running, signal: Signal) {
    kill_process(Pid::from_child(&running.0), signal).unwrap();
}

#[test]
fn who_follows_is_told_what_others_do() {
    let world = World::new();
    world.take("before");
    let (mut running, mut lines) = following(&world, "--json");
    let mut next = || serde_json::from_str::<Event>(&lines.next().unwrap()).unwrap();
    assert_eq!(next().id, "before");
    for n in 0..50 {
        world.take(&format!("n{n}"));
        assert_eq!(next().id, format!("n{n}"));
    }
    // Over midnight, and what is written to the day before meanwhile.
    let day = days(&world).pop().unwrap();
    let event = |id: &str, at: &str| {
        format!(
            "\n{}\n",
            json!({"at": at, "event": "claimed", "id": id, "state": "claimed", "generation": 1, "attempt": 1, "version": 1})
        )
    };
    let tomorrow = day.with_file_name("9000-01-01.jsonl");
    fs::write(&tomorrow, event("tomorrow", "9000-01-01T00:00:00.001Z")).unwrap();
    assert_eq!(next().id, "tomorrow");
    world.take("late");
    assert_eq!(next().id, "late");
    // A line that comes in two pieces.
    let (start, end) = (
        &event("pieces", "9000-01-01T00:00:00.002Z")[..40],
        &event("pieces", "9000-01-01T00:00:00.002Z")[40..],
    );
    let add =
        |text: &str| OpenOptions::new().append(true).open(&tomorrow).unwrap().write_all(text.as_bytes());
    add(start).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    add(end).unwrap();
    assert_eq!(next().id, "pieces");
    signal(&running, Signal::TERM);
    assert_eq!(ended(&mut running), Some(0));
}

#[test]
fn who_follows_begins_where_it_is_told_to() {
    let world = World::new();
    yes(&world, "init");
    let (mut running, mut lines) = following(&world, "");
    world.take("a"); // the first event of all, and its folder
    assert!(lines.next().unwrap().contains(" claimed a by "));
    world.take("b");
    let (mut newest, mut of_newest) = following(&world, "--limit 1");
    assert!(of_newest.next().unwrap().contains(" claimed b by "));
    let (mut one, mut of_one) = following(&world, "a --limit 0");
    let (mut scope, mut of_scope) = following(&world, "--scope s");
    world.take("c");
    world.take("@s/c");
    assert!(of_scope.next().unwrap().contains(" claimed @s/c by "));
    yes(&world, "note a hello");
    assert!(of_newest.next().unwrap().contains(" claimed c by "));
    assert!(of_one.next().unwrap().contains(" noted a by "));
    for running in [&mut running, &mut newest, &mut one, &mut scope] {
        signal(running, Signal::INT);
        assert_eq!(ended(running), Some(0));
    }
}

#[test]
fn who_follows_ends_when_nobody_reads_it() {
    let world = World::new();
    world.take("a");
    let mut running = Running::spawn(world.claim().args(["log", "--follow"]));
    let mut out = BufReader::new(running.0.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    assert_eq!(ended(&mut running), Some(0), "though nothing more happens");
}

/// A reader that is slow keeps no signal from being heard.
#[test]
fn who_follows_ends_while_its_reader_sleeps() {
    let world = World::new();
    world.take("a");
    let day = days(&world).pop().unwrap();
    let line = fs::read_to_string(&day).unwrap();
    fs::write(&day, line.repeat(20_000)).unwrap();
    let mut running = Running::spawn(world.claim().args(["log", "--follow"]));
    let stuck = || {
        let wchan = fs::read_to_string(format!("/proc/{}/stat", running.id())).unwrap();
        wchan.contains(") S ")
    };
    until("it sleeps on a full pipe", stuck);
    signal(&running, Signal::TERM);
    assert_eq!(ended(&mut running), Some(0));
}

#[test]
fn whole_days_are_pruned() {
    let world = World::new();
    world.take("a");
    let day = days(&world).pop().unwrap();
    let old: Vec<PathBuf> =
        ["2001-01-01", "2001-01-02"].map(|day_| day.with_file_name(format!("{day_}.jsonl"))).to_vec();
    let other = day.with_file_name("notes.txt");
    old.iter().chain([&other]).for_each(|path| fs::write(path, "").unwrap());
    let link = day.with_file_name("2001-01-03.jsonl");
    symlink(&other, &link).unwrap();
    let pruned: Value = world.json("prune --older 7d --dry-run").expect(0);
    assert_eq!((pruned["journal_days"].clone(), days(&world).len()), (json!(2), 5));
    assert_eq!(yes(&world, "prune --older 0s").out, "forgot 0 receipts, 2 days of the journal\n");
    assert!(link.is_symlink(), "what is no file is left alone");
    fs::remove_file(link).unwrap();
    assert_eq!(days(&world), [day, other], "today's is kept, and what is no day");
    assert_eq!(names(&log(&world, "")), ["claimed"]);
    assert_eq!(yes(&world, "doctor").out, "1 records read, 0 faults\n");
}

/// Killed just when it writes down what it did: the change stands, and only its event is missing.
#[test]
fn a_kill_at_the_journal_loses_the_event_alone() {
    if !Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: needs strace");
    }
    let world = World::new();
    world.take("first");
    let trace = world.root.join("trace");
    let traced = |id: &str, options: &[&str]| {
        let mut command = world.clean("strace");
        command.args(["-qqq", "-o"]).arg(&trace).args(options).arg("--").arg(env!("CARGO_BIN_EXE_claim"));
        said(command.args(["acquire", id, "--owner", "alice"]).stderr(Stdio::null()))
    };
    assert_eq!(traced("whole", &[]).exit, 0);
    let calls = fs::read_to_string(&trace).unwrap();
    let calls: Vec<(&str, &str)> =
        calls.lines().filter_map(|line| line.split_once('(')).filter(|(name, _)| *name != "fcntl").collect();
    let open = calls.iter().position(|(_, rest)| rest.contains("O_APPEND")).unwrap();
    assert!(
        calls[open].1.contains(".store/journal/")
            && calls[open + 1].0 == "write"
            && calls[open + 2].0 == "close"
    );
    assert_eq!(
        calls.iter().filter(|(_, rest)| rest.contains(".store/journal")).count(),
        1,
        "one call names it"
    );
    let mut lost = HashSet::new();
    for at in open..=open + 2 {
        let (name, id) = (calls[at].0, format!("n{at}"));
        let count = calls[..=at].iter().filter(|(other, _)| *other == name).count();
        let said = traced(&id, &["-e", &format!("inject={name}:signal=KILL:when={count}")]);
        assert_ne!(said.exit, 0, "not killed at {name}");
        assert_eq!(world.stored(&id)["state"], "claimed", "killed at {name}");
        if world.json(&format!("log {id}")).expect::<Log>(0).events.is_empty() {
            lost.insert(name);
        }
    }
    assert_eq!(lost, HashSet::from([calls[open].0, "write"]));
    world.take("after");
    let mut counts: HashMap<String, usize> = HashMap::new();
    log(&world, "").into_iter().for_each(|event| *counts.entry(event.id).or_default() += 1);
    assert_eq!(counts.len(), 4, "first, whole, one of three, after: {counts:?}");
    assert!(counts.values().all(|count| *count == 1));
}

#[test]
fn a_program_reads_it_as_it_grows() {
    let store = std::sync::Arc::new(Memory::default());
    let directory = Directory::over(store, std::sync::Arc::new(claimdir::host::Os::new()));
    let mut events = directory.events(None).unwrap();
    assert!(events.next().is_none());
    for id in ["a", "b"] {
        let id = NodeId::new(id).unwrap();
        let lease = directory.try_acquire(&id, &Acquire::by("alice")).unwrap().unwrap();
        assert_eq!(events.next().unwrap().unwrap().id, id);
        assert!(events.next().is_none());
        lease.release().unwrap().unwrap();
        assert_eq!(events.next().unwrap().unwrap().what, claimdir::domain::What::Released);
    }
    assert_eq!(directory.events(None).unwrap().count(), 4);
}
