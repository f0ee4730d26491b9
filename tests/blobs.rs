//! Inputs and results that are too large for a record: streamed in and out, one for each record that names one, and
//! nothing left of the others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use claimdir::domain::{Submission, Verdict, natural};
use claimdir::store::{Key, Memory, Prefix, Store};
use claimdir::{Code, Directory, Lease};
use serde_json::{Value, json};
use support::fake::{Fake, by, id};
use support::stops::Stops;
use support::{Said, World, said, words};

/// The most bytes that a value has in its record.
const MOST: usize = 16 << 10;

const MIB: usize = 1 << 20;

/// A JSON string of so many bytes, its quotes included.
fn string(bytes: usize) -> String {
    json!("x".repeat(bytes - 2)).to_string()
}

/// JSON of about so many bytes, with what is not to be printed as it is.
fn mixed(bytes: usize) -> String {
    let item = "{\"a\": 1.50,\r\n\t\"€\\n\": [true, null, \"\u{9b}\u{2028}\"]}";
    let items = vec![item; bytes / item.len()];
    format!("[{}]\n", items.join(",\n"))
}

fn put(world: &World, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = world.root.join(name);
    fs::write(&path, bytes).unwrap();
    format!("@{}", path.display())
}

fn complete(world: &World, id: &str, token: &str, result: &str) -> Said {
    world.run(&["complete", id, "--token", token, "--result", result, "--json"])
}

fn blobs(world: &World) -> Vec<PathBuf> {
    let Ok(folders) = fs::read_dir(world.dir().join(".store/blobs")) else { return Vec::new() };
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

/// All that it writes to standard output, whatever that is.
fn raw(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn what_is_larger_than_16_kib_is_a_blob() {
    let world = World::new();
    for (at, bytes) in [MOST, MOST + 1].into_iter().enumerate() {
        let (task, large) = (format!("t{at}"), bytes > MOST);
        let value = string(bytes);
        let file = put(&world, "value", &value);
        let added: Value = world.run(&["add", &task, "--input", &file, "--json"]).expect(0);
        assert_eq!(added["existing"], false);
        let taken = world.json(&format!("acquire {task}"));
        let taken: Value = taken.expect(0);
        let token = taken["token"].as_str().unwrap();
        complete(&world, &task, token, &file).expect::<Value>(0);
        let stored = world.stored(&task);
        let (input, outcome) = (&stored["task"], &stored["outcome"]);
        assert_eq!(blobs(&world).len(), if large { 2 } else { 0 });
        assert_eq!(input["input_blob"].is_object(), large);
        assert_eq!((input["input"].is_null(), outcome["result"].is_null()), (large, large));
        let told: Value = world.json(&format!("result {task}")).expect(0);
        assert_eq!(told["result"].to_string(), value);
        if large {
            let hash = blake3::hash(value.as_bytes()).to_hex().to_string();
            assert_eq!(outcome["blob"]["bytes"], bytes);
            assert_eq!((&outcome["blob"]["hash"], &outcome["blob"]["json"]), (&json!(hash), &json!(true)));
            let path = taken["input_blob"]["path"].as_str().unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), value);
            let shown = world.say(&format!("show {task}")).out;
            let line = format!("  result of {bytes} bytes, blake3 {hash}\n");
            assert!(shown.contains(&line) && shown.len() < 1000, "{shown}");
        } else {
            assert_eq!((&taken["input"], &taken["input_blob"]), (&json!("x".repeat(MOST - 2)), &Value::Null));
        }
    }
}

#[test]
fn twenty_mebibytes_come_through_a_file_a_pipe_and_a_commands_output() {
    let world = World::new();
    let text = mixed(20 * MIB);
    let file = put(&world, "value", &text);
    let token = world.take("file").token;
    complete(&world, "file", &token, &file).expect::<Value>(0);
    let token = world.take("pipe").token;
    let mut command = world.claim();
    command.args(["complete", "pipe", "--token", &token, "--result", "-"]);
    assert_eq!(said(command.stdin(File::open(&file[1..]).unwrap())).exit, 0);
    let mut run = world.claim();
    run.args(["run", "run", "--result-from-stdout", "--", "cat", &file[1..]]);
    let passed_on = raw(&mut run);
    assert!(passed_on.stdout == text.as_bytes(), "{:?}", String::from_utf8_lossy(&passed_on.stderr));
    let value: Value = serde_json::from_str(&text).unwrap();
    for node in ["file", "pipe", "run"] {
        assert!(raw(world.claim().args(["result", node])).stdout == text.as_bytes(), "{node}");
        let told = world.json(&format!("result {node}")); // harmless, and one line
        let told: Value = told.expect(0);
        assert!(told["result"] == value && told["state"] == "done", "{node}");
    }
    assert_eq!(world.json("doctor").expect::<Value>(0)["findings"], json!([]));
}

#[test]
fn memory_does_not_grow_with_the_value() {
    let world = World::new();
    let file = put(&world, "value", string(60 * MIB));
    let limited = |line: &str| {
        let mut command = world.shell("ulimit -d 16384 && exec \"$CLAIM\" \"$@\""); // KiB
        command.args(words(line));
        let output = raw(&mut command);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout.len()
    };
    let token = world.take("n").token;
    limited(&format!("complete n --token {token} --result {file}"));
    limited(&format!("add t --input {file}"));
    assert_eq!(limited("result n"), 60 * MIB);
    assert!(limited("result n --json") > 60 * MIB);
    limited(&format!("run r --result-from-stdout -- cat {}", &file[1..]));
}

#[test]
fn what_can_not_be_recorded_leaves_nothing_behind() {
    let world = World::new();
    let token = world.take("n").token;
    let before = world.stored("n");
    let too_large = File::create(world.root.join("sparse")).unwrap();
    too_large.set_len((64 << 20) + 1).unwrap();
    let broken = [
        put(&world, "cut", &mixed(MIB)[..MIB / 2]),
        put(&world, "two", format!("{} 1", string(MIB))),
        put(&world, "deep", format!("{}{}", "[".repeat(MIB), "]".repeat(MIB))),
        put(&world, "bytes", [b"\"", &[0xff; MOST][..], b"\""].concat()),
        format!("@{}", world.root.join("sparse").display()),
        "@/".to_owned(),
    ];
    for value in &broken {
        for refused in
            [complete(&world, "n", &token, value), world.run(&["add", "t", "--input", value, "--json"])]
        {
            assert_eq!(refused.expect::<Value>(2)["code"], "USAGE", "{value}");
        }
        assert_eq!(blobs(&world), Vec::<PathBuf>::new(), "{value}");
    }
    assert_eq!(world.stored("n"), before);
    assert_eq!(world.say("show t").exit, 1);
    complete(&world, "n", &token, &put(&world, "good", string(MIB))).expect::<Value>(0);
}

#[test]
fn a_replay_is_told_by_the_hash_also_of_what_was_pruned() {
    let world = World::new();
    let (one, other) = (put(&world, "one", string(MIB)), put(&world, "other", mixed(MIB)));
    world.run(&["add", "t", "--input", &one]);
    let token = world.take("t").token;
    complete(&world, "t", &token, &one).expect::<Value>(0);
    let kept = blobs(&world);
    assert_eq!(kept.len(), 2);
    for pruned in [false, true] {
        if pruned {
            world.edit("t", |json| json["outcome"]["at"] = "2020-01-01T00:00:00Z".into());
            assert_eq!(world.say("prune").line(), "forgot 0 receipts, 1 results");
            assert_eq!(world.json("result t").expect::<Value>(0)["tombstoned"], true);
        }
        assert_eq!(complete(&world, "t", &token, &one).expect::<Value>(0)["replay"], true);
        assert_eq!(complete(&world, "t", &token, &other).expect::<Value>(4)["code"], "IDEMPOTENCY_CONFLICT");
        assert_eq!(complete(&world, "t", &token, "7").expect::<Value>(4)["code"], "IDEMPOTENCY_CONFLICT");
        assert_eq!(complete(&world, "t", "stale", &one).expect::<Value>(3)["code"], "STALE_CLAIM");
        let add = |input| world.run(&["add", "t", "--input", input, "--json"]);
        assert_eq!(add(&one).expect::<Value>(0)["existing"], true);
        assert_eq!(add(&other).expect::<Value>(4)["code"], "IDEMPOTENCY_CONFLICT");
        assert_eq!(blobs(&world), if pruned { Vec::new() } else { kept.clone() });
    }
}

#[test]
fn a_receipt_stands_for_the_bytes() {
    let world = World::new();
    let (one, other) = (put(&world, "one", string(MIB)), put(&world, "other", mixed(MIB)));
    let add = |input: &str| world.run(&["add", "--input", input, "--receipt", "k", "--json"]);
    let first: Value = add(&one).expect(0);
    let again: Value = add(&one).expect(0);
    assert_eq!((&again["replay"], &again["id"]), (&json!(true), &first["id"]));
    assert_eq!(add(&other).expect::<Value>(4)["code"], "RECEIPT_CONFLICT");
    assert_eq!(blobs(&world).len(), 1);
}

#[test]
fn output_that_is_no_json_is_kept_as_text() {
    let world = World::new();
    let text = "a \u{1b}[31m\"€\"\\\u{2028}\n".repeat(MIB / 8);
    put(&world, "text", &text);
    let run = |node: &str, script: &str| {
        raw(world.claim().args(["run", node, "--result-from-stdout", "--", "sh", "-c", script]))
    };
    assert_eq!(run("t", "cat text").status.code(), Some(0));
    assert_eq!(world.stored("t")["outcome"]["blob"]["json"], false);
    assert_eq!(world.json("result t").expect::<Value>(0)["result"], text);
    assert_eq!(raw(world.claim().args(["result", "t"])).stdout, text.as_bytes());
    let mut unkept = world.claim();
    unkept.args(["run", "unkept", "--result-from-stdout", "--", "cat", "text"]).env("TMPDIR", "/nowhere");
    let unkept = raw(&mut unkept);
    assert_eq!((unkept.status.code(), unkept.stdout.len()), (Some(125), text.len()));
    assert!(String::from_utf8_lossy(&unkept.stderr).contains("could not be kept in /nowhere"));
    for (node, script, why) in [
        ("bytes", "cat text; printf '\\377'", "UTF-8"),
        ("long", "head -c 67108865 /dev/zero", "more than 67108864 bytes"),
    ] {
        let output = run(node, script);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{err}");
        assert!(err.contains("no result was recorded") && err.contains(why), "{err}");
        assert_eq!((&world.stored(node)["state"], blobs(&world).len()), (&json!("ready"), 1), "{node}");
    }
}

#[test]
fn a_worker_gets_a_large_input_and_its_large_output_is_the_result() {
    let world = World::new();
    let (value, other) = (mixed(2 * MIB), string(MOST + 1));
    world.run(&["add", "t", "--input", &put(&world, "value", &value)]);
    let work = raw(world.claim().args(["work", "--max", "1", "--", "cat"]));
    assert_eq!(work.status.code(), Some(0), "{}", String::from_utf8_lossy(&work.stderr));
    let result = String::from_utf8(raw(world.claim().args(["result", "t"])).stdout).unwrap();
    assert!(result == format!("{value}\n"));
    world.run(&["add", "u", "--input", &put(&world, "other", &other)]);
    let script = r#"CLAIM_INPUT=old; eval "$("$CLAIM" acquire u --export)"; cat "$CLAIM_INPUT_FILE"; echo "$CLAIM_INPUT"
        "$CLAIM" add v --input 7 --quiet; eval "$("$CLAIM" acquire v --export)"; echo "$CLAIM_INPUT$CLAIM_INPUT_FILE""#;
    assert_eq!(said(&mut world.shell(script)).out, format!("{other}\n7\n"));
}

#[test]
fn a_result_that_is_not_what_was_recorded_is_an_error() {
    let world = World::new();
    let token = world.take("n").token;
    complete(&world, "n", &token, &put(&world, "value", string(MIB))).expect::<Value>(0);
    let blob = blobs(&world).remove(0);
    fs::OpenOptions::new().write(true).open(&blob).unwrap().write_all(b"\"y").unwrap();
    let output = raw(world.claim().args(["result", "n"]));
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not what was recorded"));
    fs::remove_file(&blob).unwrap();
    assert_eq!(world.json("result n").expect::<Value>(6)["code"], "RECORD_UNREADABLE");
    let doctor: Value = world.json("doctor").expect(6);
    assert_eq!(doctor["faults"], 1, "{doctor}");
    world.edit("n", |json| json["outcome"]["blob"]["name"] = "rosters/paths.roster".into());
    assert_eq!(world.json("result n").expect::<Value>(6)["code"], "RECORD_UNREADABLE");
}

#[test]
fn only_what_nobody_can_come_to_name_is_left_over() {
    let world = World::new();
    world.say("add task --input 1");
    world.take("held --owner a");
    world.take("bare");
    let folder = world.dir().join(".store/blobs");
    let path = |name: &str| {
        let (id, file) = name.split_once('/').unwrap();
        folder.join(natural(&crate::id(id))).join(format!("{file}-0"))
    };
    let blob = |name: &str| {
        let path = path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "1").unwrap();
    };
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let fresh = format!("bare/input-{now}");
    let stay = ["held/result-1", &fresh];
    let go = ["held/result-0", "task/result-1", "task/input-1", "bare/input-1", "gone/result-1"];
    stay.iter().chain(&go).for_each(|name| blob(name));
    let before = world.snapshot();
    let doctor: Value = world.json("doctor").expect(0);
    assert_eq!(doctor["findings"].as_array().unwrap().len(), go.len(), "{doctor}");
    assert_eq!(doctor["findings"][0]["gravity"], "leftover");
    assert_eq!(world.say("prune --dry-run").line(), "would forget 0 receipts, 5 blobs left over");
    assert_eq!(world.snapshot(), before);
    assert_eq!(world.json("prune").expect::<Value>(0)["blobs"], 5);
    let mut left: Vec<_> = blobs(&world);
    left.sort();
    assert_eq!(left, [path(&fresh), path("held/result-1")]);
    world.say("acquire held --owner b --force x");
    assert_eq!(world.json("prune").expect::<Value>(0)["blobs"], 1, "its token is stale for good");
}

#[test]
fn who_is_refused_whatever_the_result_writes_nothing() {
    let world = World::new();
    let file = put(&world, "value", string(MIB));
    assert_eq!(complete(&world, "n", "token", &file).expect::<Value>(3)["code"], "STALE_CLAIM");
    assert!(!world.dir().exists());
    world.take("n");
    assert_eq!(complete(&world, "n", "token", &file).expect::<Value>(3)["code"], "STALE_CLAIM");
    assert!(!world.dir().join(".store/blobs").exists());
}

#[test]
fn any_id_has_its_own_blobs() {
    let world = World::new();
    let file = put(&world, "value", string(MOST + 1));
    let long = "x1y".repeat(330);
    let ids = ["a", "a/b", "a+b", "a/b c", "TK-10", "ä/..%", ".", "a.claim/b", long.as_str()];
    for (at, id) in ids.iter().enumerate() {
        let taken: Value = world.run(&["acquire", id, "--json"]).expect(0);
        complete(&world, id, taken["token"].as_str().unwrap(), &file).expect::<Value>(0);
        world.say("prune");
        let told: Value = world.run(&["result", ids[at / 2], "--json"]).expect(0);
        assert_eq!(told["result"].to_string(), string(MOST + 1), "{id}");
    }
    let doctor: Value = world.json("doctor").expect(0);
    assert_eq!(doctor["findings"], json!([]), "{doctor}");
}

/// JSON in whose midst something happens.
struct Meanwhile<'a> {
    rest: std::io::Cursor<String>,
    act: Option<&'a dyn Fn()>,
}

impl Read for Meanwhile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.position() as usize > MIB
            && let Some(act) = self.act.take()
        {
            act();
        }
        self.rest.read(buffer)
    }
}

#[test]
fn a_pruner_in_the_midst_takes_nothing_away() {
    let world = World::new();
    let options = claimdir::store::files::Options { sync: false, ..Default::default() };
    let directory = Directory::open_with(world.dir(), options).unwrap();
    fn value(act: &dyn Fn()) -> Meanwhile<'_> {
        Meanwhile { rest: std::io::Cursor::new(string(2 * MIB)), act: Some(act) }
    }
    let prune = || {
        assert_eq!(blobs(&world).len(), 1, "it is under way");
        assert_eq!(world.json("prune").expect::<Value>(0)["blobs"], 0);
    };
    take(&directory, "n").complete_from(&mut value(&prune)).unwrap().unwrap();
    assert_eq!(read(&directory, "n"), string(2 * MIB));
    world.edit("n", |json| json["outcome"]["at"] = "2020-01-01T00:00:00Z".into());
    world.say("prune");
    directory.submit_from(&id("t"), &Submission::by("s"), &mut value(&prune)).unwrap().unwrap();
    world.say("prune");
    assert_eq!(blobs(&world).len(), 1);
    // Taken over in between: what it wrote was pruned, and it is refused.
    let takeover = || {
        world.take("m --owner other --force x");
        assert_eq!(world.json("prune").expect::<Value>(0)["blobs"], 1);
    };
    let lost = take(&directory, "m").complete_from(&mut value(&takeover));
    assert_eq!(lost.map(|answer| answer.unwrap_err().code()).unwrap(), Code::StaleClaim);
}

/// A directory in memory.
fn directory(store: &Arc<Memory>, host: &Arc<Fake>) -> Directory {
    Directory::over(store.clone(), host.clone())
}

fn names(store: &Memory) -> Vec<Key> {
    store.list(&Prefix::Internal("blobs"), None, usize::MAX).unwrap()
}

fn take(directory: &Directory, node: &str) -> Lease {
    directory.try_acquire(&id(node), &by("w")).unwrap().unwrap()
}

fn read(directory: &Directory, node: &str) -> String {
    let mut text = String::new();
    directory.open_result(&id(node)).unwrap().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn whoever_is_stopped_leaves_the_result_or_nothing() {
    let value = json!("x".repeat(MOST));
    for calls in 0.. {
        let (store, host) = (Arc::new(Memory::default()), Fake::new("b"));
        let whole = directory(&store, &host);
        let (token, _) = take(&whole, "n").leave();
        let stopping = Directory::over(Arc::new(Stops::after(calls, store.clone())), host.clone());
        let done = stopping.complete(&id("n"), &token, &value).is_ok();
        let named = whole.node(&id("n")).unwrap().unwrap().blobs().count();
        assert!(named == 1 || !done, "{calls}");
        whole.prune(std::time::Duration::MAX, false).unwrap();
        assert!(names(&store).len() <= 1, "{calls}");
        let again = whole.complete(&id("n"), &token, &value).unwrap().unwrap();
        assert_eq!((again.replay, read(&whole, "n")), (named == 1, value.to_string()), "{calls}");
        let pruned = whole.prune(std::time::Duration::MAX, false).unwrap();
        assert_eq!((pruned.results, names(&store).len()), (0, 1), "{calls}");
        if done {
            assert!(calls > 3);
            return;
        }
    }
}

#[test]
fn a_result_that_was_sent_back_goes_and_the_input_stays() {
    let (store, host) = (Arc::new(Memory::default()), Fake::new("b"));
    let directory = directory(&store, &host);
    let task = Submission::by("s").review();
    let mut input = std::io::Cursor::new(string(MIB));
    directory.submit_from(&id("t"), &task, &mut input).unwrap().unwrap();
    let lease = take(&directory, "t");
    let mut text = String::new();
    lease.open_input().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, string(MIB));
    lease.complete_from(&mut string(MIB + 1).as_bytes()).unwrap().unwrap();
    assert_eq!(names(&store).len(), 2);
    let (by, note) = ("r".to_owned(), None);
    let verdict = Verdict { accept: false, by, note, allow_self: false, seen: None };
    directory.review(&id("t"), &verdict).unwrap().unwrap();
    let node = directory.node(&id("t")).unwrap().unwrap();
    let left: Vec<_> = node.blobs().map(|blob| Key::internal(blob.name.as_str()).unwrap()).collect();
    assert_eq!((names(&store), left.len()), (left.clone(), 1));
    take(&directory, "t").complete(&json!([1, "x".repeat(MOST)])).unwrap().unwrap();
    assert!(read(&directory, "t").starts_with("[1,"));
}

#[test]
fn text_is_a_result_and_no_input() {
    let (store, host) = (Arc::new(Memory::default()), Fake::new("b"));
    let directory = directory(&store, &host);
    let text = "text ".repeat(MOST);
    let refused = directory.submit_from(&id("t"), &Submission::by("s"), &mut text.as_bytes()).unwrap_err();
    assert_eq!((refused.code(), names(&store).len()), (Code::Usage, 0));
    let unsettled = take(&directory, "n").complete_from(&mut text.as_bytes()).unwrap_err();
    unsettled.lease.complete_from_output(&mut text.as_bytes()).unwrap().unwrap();
    assert_eq!(read(&directory, "n"), text);
}
