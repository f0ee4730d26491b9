//! What lies in the claim directory and should not; who may not write there; disks that are full. One clear
//! answer, the file named, nothing followed, nothing removed, and the other nodes go on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::{Refused, Said, World, in_mount_namespace, is_root, said};

/// Every command meets the bad record `bad` with this exit code, names `file`, and changes nothing; the node
/// `good` beside it goes on.
#[track_caller]
fn only_that_node_is_refused(world: &World, bad: &str, file: &Path, code: &str) {
    if !world.record("good").exists() {
        world.take("good --lease 1h");
    }
    let before = world.snapshot();
    let shown = file.to_str().unwrap();
    for line in [
        "acquire ID",
        "acquire ID --force now",
        "acquire ID --dry-run",
        "acquire ID --wait=1h",
        "check ID --token x",
        "renew ID --token x",
        "release ID --token x",
        "complete ID --token x",
        "show ID",
        "why ID",
    ] {
        let refused = world.refused(&line.replace("ID", bad), 6, code);
        assert!(refused.message.contains(shown), "{line}: {}", refused.message);
        assert!(refused.hint.is_some(), "{line}");
    }
    let list: Value = world.json("list").expect(6);
    assert!(list["nodes"].as_array().unwrap().iter().any(|node| node["id"] == "good"), "{list}");
    assert_eq!(list["code"], "RECORD_UNREADABLE");
    assert!(list["unreadable"].to_string().contains(shown), "{list}");
    let doctor: Value = world.json("doctor").expect(6);
    assert!(doctor["findings"].to_string().contains(shown), "{doctor}");
    for line in ["list", "doctor", &format!("show {bad}")] {
        let said = world.say(line);
        assert!(format!("{}{}", said.out, said.err).contains(shown), "{line}: {said:?}");
    }
    world.say("show good").line_starts("good claimed by");
    assert_eq!(world.snapshot(), before, "something was changed");
    world.take("good --force again");
}

trait Lines {
    fn line_starts(&self, with: &str);
}

impl Lines for Said {
    #[track_caller]
    fn line_starts(&self, with: &str) {
        assert!(self.exit == 0 && self.out.starts_with(with), "{self:?}");
    }
}

fn with_good() -> World {
    let world = World::new();
    world.take("good --lease 1h");
    world
}

#[test]
fn a_zero_byte_record_stands_in_nobodys_way() {
    let world = with_good();
    fs::write(world.record("n"), "").unwrap();
    let doctor: Value = world.json("doctor").expect(0);
    assert_eq!(doctor["faults"], 0);
    assert_eq!(world.take("n").generation, 1);
}

#[test]
fn half_a_record_is_an_error_that_names_it() {
    for keep in [1, 2, 3, 20] {
        let world = with_good();
        world.take("n");
        let whole = fs::read(world.record("n")).unwrap();
        fs::write(world.record("n"), &whole[..whole.len() * keep / 21]).unwrap();
        only_that_node_is_refused(&world, "n", &world.record("n"), "RECORD_UNREADABLE");
    }
}

#[test]
fn bytes_that_are_no_record_are_an_error_that_names_them() {
    let deep = "[".repeat(200_000);
    for bytes in [&b"\0\0\0\0"[..], b"\n", b"null", b"[]", b"{}", b"\xff\xfe{", b"alice", deep.as_bytes()] {
        let world = with_good();
        fs::write(world.record("n"), bytes).unwrap();
        only_that_node_is_refused(&world, "n", &world.record("n"), "RECORD_UNREADABLE");
    }
}

#[test]
fn a_record_that_is_too_large_is_not_read() {
    let world = with_good();
    let file = fs::File::create(world.record("n")).unwrap();
    file.set_len(5 << 20).unwrap();
    only_that_node_is_refused(&world, "n", &world.record("n"), "RECORD_UNREADABLE");
}

#[test]
fn the_record_of_another_node_is_nobodys_claim() {
    let world = with_good();
    world.take("N");
    fs::copy(world.record("N"), world.record("n")).unwrap();
    only_that_node_is_refused(&world, "n", &world.record("n"), "RECORD_UNREADABLE");
    let refused = world.refused("acquire n", 6, "RECORD_UNREADABLE");
    assert!(refused.message.ends_with("it is the record of another node, \"N\""), "{}", refused.message);
}

#[test]
fn a_newer_record_is_refused_and_left_alone() {
    let world = with_good();
    world.take("n");
    world.edit("n", |json| {
        json["format"] = json!(2);
        json["state"] = json!("leased");
    });
    only_that_node_is_refused(&world, "n", &world.record("n"), "FORMAT_TOO_NEW");
}

#[test]
fn a_newer_directory_is_refused_and_left_alone() {
    let world = with_good();
    let format = world.dir().join(".store/format");
    fs::write(&format, r#"{"format":2,"machine":"m"}"#).unwrap();
    let before = world.snapshot();
    for line in ["acquire n", "show good", "list", "doctor", "check good --token x", "init"] {
        world.refused(line, 6, "FORMAT_TOO_NEW");
    }
    assert_eq!(world.snapshot(), before);
    for broken in ["", "{", "{\"format\":\"1\"}"] {
        fs::write(&format, broken).unwrap();
        world.refused("acquire n", 6, "RECORD_UNREADABLE");
    }
}

#[test]
fn a_symbolic_link_at_a_records_name_is_not_followed() {
    let world = with_good();
    let outside = world.root.join("outside");
    fs::write(&outside, fs::read(world.record("good")).unwrap()).unwrap();
    for target in [outside.as_path(), Path::new("nowhere"), Path::new("/dev/null"), world.root.as_path()] {
        symlink(target, world.record("n")).unwrap();
        only_that_node_is_refused(&world, "n", &world.record("n"), "RECORD_UNREADABLE");
        fs::remove_file(world.record("n")).unwrap();
    }
}

#[test]
fn a_folder_a_pipe_or_a_socket_at_a_records_name_is_an_error() {
    let world = with_good();
    let file = world.record("n");
    fs::create_dir(&file).unwrap();
    only_that_node_is_refused(&world, "n", &file, "RECORD_UNREADABLE");
    fs::remove_dir(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    only_that_node_is_refused(&world, "n", &file, "RECORD_UNREADABLE");
    fs::remove_file(&file).unwrap();
    let socket = UnixListener::bind(&file).unwrap();
    only_that_node_is_refused(&world, "n", &file, "RECORD_UNREADABLE");
    drop(socket);
}

#[test]
fn a_device_at_a_records_name_is_an_error() {
    let world = with_good();
    let file = world.record("n");
    for numbers in [["1", "3"], ["1", "5"], ["240", "77"]] {
        let made = Command::new("mknod").arg(&file).arg("c").args(numbers).status();
        if !made.is_ok_and(|status| status.success()) {
            return println!("skipped: no device can be made here");
        }
        only_that_node_is_refused(&world, "n", &file, "RECORD_UNREADABLE");
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_symbolic_link_as_a_folder_on_the_way_leads_nowhere() {
    let world = with_good();
    let outside = world.root.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("n.claim"), "{}").unwrap();
    symlink(&outside, world.dir().join("sub")).unwrap();
    let before = world.snapshot();
    for line in
        ["acquire sub/n", "acquire sub/fresh", "acquire sub/a/b", "show sub/n", "renew sub/n --token x"]
    {
        let refused = world.refused(line, 6, "RECORD_UNREADABLE");
        assert!(refused.message.contains("sub"), "{}", refused.message);
    }
    // A file where a folder should be.
    fs::write(world.dir().join("plain"), "").unwrap();
    world.refused("acquire plain/n", 6, "RECORD_UNREADABLE");
    fs::remove_file(world.dir().join("plain")).unwrap();
    let doctor: Value = world.json("doctor").expect(6);
    assert!(doctor["findings"].to_string().contains("/sub"), "{doctor}");
    let list: Value = world.json("list").expect(0);
    assert_eq!(list["nodes"].as_array().unwrap().len(), 1);
    let unchanged = |line: &String| !line.starts_with(&format!("{} ", world.dir().display()));
    let [before, after] =
        [before, world.snapshot()].map(|all| all.into_iter().filter(unchanged).collect::<Vec<_>>());
    assert_eq!(after, before);
}

#[test]
fn a_store_folder_that_is_a_link_is_not_used() {
    let world = with_good();
    let outside = world.root.join("outside");
    fs::rename(world.dir().join(".store"), &outside).unwrap();
    symlink(&outside, world.dir().join(".store")).unwrap();
    let before = world.snapshot();
    world.refused("acquire n", 6, "RECORD_UNREADABLE");
    world.refused("list", 6, "RECORD_UNREADABLE");
    assert_eq!(world.snapshot(), before);
}

#[test]
fn unknown_fields_survive_every_rewrite() {
    let world = World::new();
    let mut worker = support::Running::idle();
    let first = world.take(&format!("n --owner a --lease 1h --while-pid {}", worker.id()));
    world.edit("n", |json| {
        json["labels"] = json!({"deep": [1.50, "x"]});
        json["big"] = json!(u64::MAX);
        json["claim"]["hue"] = json!("red");
        json["claim"]["clock"]["since"] = json!(3);
        json["claim"]["process"]["name"] = json!("sleep");
    });
    assert_eq!(world.say(&format!("renew n --token {} --progress 1", first.token)).exit, 0);
    let stored = world.stored("n");
    for (pointer, expected) in [
        ("/labels", json!({"deep": [1.50, "x"]})),
        ("/big", json!(u64::MAX)),
        ("/claim/hue", json!("red")),
        ("/claim/clock/since", json!(3)),
        ("/claim/process/name", json!("sleep")),
    ] {
        assert_eq!(stored.pointer(pointer), Some(&expected), "{pointer}");
    }
    world.take("n --owner b --force hangs");
    world.edit("n", |json| json["forced"]["ticket"] = json!("T-1"));
    let shown: Value = world.json("show n").expect(0);
    assert_eq!((&shown["labels"]["deep"][1], &shown["forced"]["ticket"]), (&json!("x"), &json!("T-1")));
    worker.end();
    let next = world.stored("n")["claim"]["token_hash"].clone();
    assert!(next.is_string());
    let third = world.take("n --owner c --force again").token;
    assert_eq!(world.say(&format!("complete n --token {third} --result 1.50")).exit, 0);
    let text = fs::read_to_string(world.record("n")).unwrap();
    assert!(text.contains("18446744073709551615") && text.contains("\"result\": 1.50"), "{text}");
    assert_eq!(world.stored("n")["labels"], json!({"deep": [1.50, "x"]}));
    assert_eq!(world.stored("n")["progress"], 1);
}

#[test]
fn ids_of_every_kind_stay_apart_and_inside() {
    let world = World::new();
    fs::create_dir(world.root.join("x")).unwrap();
    let dir = world.root.join("x/.claims");
    let beside = world.snapshot();
    let long: Vec<String> =
        [239, 240, 241, 255, 256, 300, 1024].iter().map(|length| "l".repeat(*length)).collect();
    let umlauts = "ä".repeat(512);
    let slashes = vec!["d"; 512].join("/");
    let mut ids = vec![
        "a/b",
        "a-b",
        "a\\b",
        "a_b",
        "a%2Fb",
        "a b",
        "a",
        "A",
        "a.claim",
        "a.claim/b",
        "a.CLAIM/b",
        "a/b.claim",
        ".",
        "..",
        "../x",
        "../../x",
        "a/..",
        "a/../b",
        "a/./b",
        "/..",
        ".store",
        ".store/format",
        ".gitignore",
        "~",
        "*",
        "-",
        "--json",
        "-rf",
        "$HOME",
        "`id`",
        ";",
        "'",
        "\"",
        "\n",
        "a\nb",
        "\u{1b}[2J",
        "\u{7f}",
        "\u{202e}",
        "字",
        "é",
        "e\u{301}",
        "%",
        "%%",
        "con",
        "a:b@c+d=e",
        &slashes,
        &umlauts,
    ];
    ids.extend(long.iter().map(String::as_str));
    ids.retain(|id| *id != "/..");
    let run = |arguments: &[&str]| {
        let mut command = world.claim();
        command.env("CLAIMS_DIR", &dir).args(["--json"]).args(arguments);
        said(&mut command)
    };
    let mut tokens = HashSet::new();
    for (generation, owner) in [(1, "one"), (2, "two")] {
        for id in &ids {
            let arguments = ["acquire", "--owner", owner, "--force", "again", "--", id];
            let claimed: support::Claimed = run(&arguments).expect(0);
            assert_eq!((claimed.id.as_str(), claimed.generation), (*id, generation), "two ids share a file");
            assert!(tokens.insert(claimed.token));
        }
    }
    let list: Value = run(&["list"]).expect(0);
    let listed: HashSet<_> =
        list["nodes"].as_array().unwrap().iter().map(|n| n["id"].as_str().unwrap()).collect();
    assert_eq!(listed, ids.iter().copied().collect());
    assert!(ids.iter().all(|id| run(&["show", "--", id]).exit == 0));
    let doctor: Value = run(&["doctor"]).expect(0);
    assert_eq!(doctor["records"], ids.len());
    fs::remove_dir_all(&dir).unwrap();
    let name = |line: &String| line.split(' ').next().unwrap().to_owned();
    let [before, after] = [beside, world.snapshot()].map(|all| all.iter().map(name).collect::<Vec<_>>());
    assert_eq!(after, before, "something was made outside of the claim directory");
}

#[test]
fn texts_that_are_no_id_are_refused_and_make_nothing() {
    let world = World::new();
    let before = world.snapshot();
    let long = "x".repeat(1025);
    for id in ["", "/", "/a", "a/", "a//b", "/..", &long] {
        for command in ["acquire", "show", "why"] {
            let refused: Refused = world.run(&["--json", command, "--", id]).expect(2);
            assert_eq!(refused.code, "INVALID_ID", "{id:?}");
            assert_eq!(refused.dir.as_deref(), world.dir().to_str());
            assert!(refused.message.starts_with("not a valid id: "), "{}", refused.message);
        }
    }
    let mut command = world.claim();
    let not_text = said(command.args(["acquire", "--json"]).arg(OsStr::from_bytes(b"a\xffb")));
    assert_eq!(not_text.expect::<Refused>(2).code, "USAGE");
    assert_eq!(world.snapshot(), before);
}

/// The binary, run in `world` by somebody who is neither root nor the owner. `None`: can't be had here.
fn as_nobody(world: &World) -> Option<impl Fn(&[&str]) -> Said + '_> {
    let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let binary: PathBuf = world.root.join("claim");
    fs::copy(env!("CARGO_BIN_EXE_claim"), &binary).unwrap();
    chmod(&binary, 0o755);
    chmod(&world.root, 0o755);
    let run = move |arguments: &[&str]| {
        let mut command = world.clean("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&binary);
        said(command.args(arguments))
    };
    if is_root() && run(&["--version"]).exit == 0 {
        return Some(run);
    }
    println!("skipped: needs root and setpriv");
    None
}

#[test]
fn without_permission_nothing_is_written_and_looking_goes_on() {
    let world = with_good();
    let Some(nobody) = as_nobody(&world) else { return };
    let before = world.snapshot();
    for line in ["acquire n --json", "acquire good --force x --json"] {
        let refused: Refused = nobody(&line.split(' ').collect::<Vec<_>>()).expect(6);
        assert_eq!(refused.code, "PERMISSION_DENIED");
        assert!(refused.message.contains(world.dir().to_str().unwrap()), "{}", refused.message);
    }
    assert_eq!(nobody(&["acquire", "good"]).exit, 1);
    assert_eq!(nobody(&["show", "good"]).exit, 0);
    assert_eq!(nobody(&["doctor"]).exit, 0);
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_record_that_may_not_be_read_stops_no_other() {
    let world = with_good();
    let Some(nobody) = as_nobody(&world) else { return };
    world.take("n");
    fs::set_permissions(world.record("n"), fs::Permissions::from_mode(0o600)).unwrap();
    let refused: Refused = nobody(&["show", "n", "--json"]).expect(6);
    assert_eq!(refused.code, "PERMISSION_DENIED");
    let list: Value = nobody(&["list", "--json"]).expect(6);
    assert_eq!((&list["nodes"][0]["id"], &list["unreadable"][0]["id"]), (&json!("good"), &json!("n")));
    assert_eq!(nobody(&["doctor", "--json"]).expect::<Value>(6)["faults"], 1);
}

#[test]
fn a_folder_that_may_not_be_read_stops_no_other() {
    let world = with_good();
    let Some(nobody) = as_nobody(&world) else { return };
    world.take("a/sub/n");
    world.take("z");
    let folder = world.dir().join("a/sub");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let list: Value = nobody(&["list", "--json"]).expect(6);
    assert_eq!((&list["nodes"][0]["id"], &list["nodes"][1]["id"]), (&json!("good"), &json!("z")));
    assert_eq!(list["unreadable"][0]["id"], "a/sub");
    assert!(list["unreadable"][0]["message"].as_str().unwrap().contains(folder.to_str().unwrap()), "{list}");
    let doctor: Value = nobody(&["doctor", "--json"]).expect(6);
    assert_eq!((&doctor["faults"], &doctor["records"]), (&json!(1), &json!(2)), "{doctor}");
}

#[test]
fn where_no_directory_may_be_made_that_is_said() {
    let world = World::new();
    let Some(nobody) = as_nobody(&world) else { return };
    let refused: Refused = nobody(&["acquire", "n", "--json"]).expect(6);
    assert_eq!(refused.code, "PERMISSION_DENIED");
    assert_eq!(nobody(&["list"]).exit, 0);
}

#[test]
fn several_users_share_a_directory_as_umask_and_setgid_say() {
    let world = World::new();
    let Some(nobody) = as_nobody(&world) else { return };
    let made =
        said(&mut world.shell(r#"umask 0 && "$CLAIM" init && "$CLAIM" acquire build/n -q --owner root"#));
    assert_eq!(made.exit, 0, "{made:?}");
    let mode = |path: &str| fs::metadata(world.dir().join(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode(""), mode(".store/intents"), mode("build")), (0o777, 0o777, 0o777));
    assert_eq!(mode("build/n.claim"), 0o666);
    assert_eq!(nobody(&["acquire", "build/n", "--force", "x", "--owner", "nobody"]).exit, 0);
    assert_eq!(world.stored("build/n")["claim"]["owner"], "nobody");
    assert_eq!(world.take("build/n --force back").generation, 3);
}

#[test]
fn modes_follow_umask_and_setgid_folders() {
    for (umask, file, folder) in [(0o002, 0o664, 0o775), (0o022, 0o644, 0o755), (0o077, 0o600, 0o700)] {
        let world = World::new();
        // A folder's setgid bit is handed down by the file system to all that is made in it.
        fs::set_permissions(&world.root, fs::Permissions::from_mode(0o2770)).unwrap();
        let script = format!(r#"umask {umask:03o} && "$CLAIM" acquire build/n -q && "$CLAIM" acquire m -q"#);
        assert_eq!(said(&mut world.shell(&script)).exit, 0);
        let mode = |path: &str| fs::metadata(world.dir().join(path)).unwrap().mode() & 0o7777;
        for path in ["", ".store", ".store/intents", "build"] {
            assert_eq!(mode(path), 0o2000 | folder, "{path:?} under umask {umask:o}");
        }
        for path in ["build/n.claim", "m.claim", ".gitignore", ".store/format"] {
            assert_eq!(mode(path), file, "{path:?} under umask {umask:o}");
        }
    }
}

#[test]
fn a_read_only_directory_can_be_looked_at() {
    let world = with_good();
    let script = r#"
        mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99
        "$CLAIM" show good > /dev/null || exit 11
        "$CLAIM" list > /dev/null || exit 12
        "$CLAIM" doctor > /dev/null || exit 13
        "$CLAIM" acquire good > /dev/null 2>&1; [ $? = 1 ] || exit 14
        "$CLAIM" acquire n --dry-run > /dev/null || exit 15
        "$CLAIM" acquire n > /dev/null 2>&1; [ $? = 6 ] || exit 16
        "$CLAIM" acquire n --json 2>/dev/null
    "#;
    let before = world.snapshot();
    let Some(said) = in_mount_namespace(&world, script, &world.dir()) else { return };
    let refused: Refused = said.expect(6);
    assert_eq!(refused.code, "PERMISSION_DENIED");
    assert!(refused.message.contains("Read-only file system"), "{}", refused.message);
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_full_disk_loses_nothing() {
    let world = World::new();
    fs::create_dir(world.dir()).unwrap();
    // Fill it; then a fresh node, a takeover, a renewal, a release and a completion must all be refused and
    // leave what was there. Then make room, and the token still works.
    let script = r#"
        mount -t tmpfs -o size=128k tmpfs "$1" || exit 99
        eval "$("$CLAIM" acquire held --lease 1h --export)" || exit 10
        before=$(cat "$1/held.claim")
        cat /dev/zero > "$1/filler" 2>/dev/null
        for line in "acquire fresh" "acquire held --force x" "renew held" "release held" "complete held"; do
            said=$("$CLAIM" --json $line 2>/dev/null); code=$?
            [ $code = 6 ] || { echo "$line: exit $code: $said"; exit 11; }
            case $said in *'"code":"NO_SPACE"'*) ;; *) echo "$line: $said"; exit 12;; esac
            [ "$(cat "$1/held.claim")" = "$before" ] || exit 13
            [ -z "$(ls "$1/.store/intents")" ] || exit 14
        done
        "$CLAIM" check held > /dev/null || exit 15
        "$CLAIM" list > /dev/null || exit 16
        : > "$1/filler"
        "$CLAIM" renew held > /dev/null || exit 17
        "$CLAIM" complete held > /dev/null || exit 18
        "$CLAIM" acquire fresh --json
    "#;
    let Some(said) = in_mount_namespace(&world, script, &world.dir()) else { return };
    let claimed: support::Claimed = said.expect(0);
    assert_eq!((claimed.id.as_str(), claimed.generation), ("fresh", 1));
}

#[test]
fn a_disk_without_room_for_another_file_loses_nothing() {
    let world = World::new();
    fs::create_dir(world.dir()).unwrap();
    let script = r#"
        mount -t tmpfs -o size=1m,nr_inodes=12 tmpfs "$1" || exit 99
        "$CLAIM" acquire held --lease 1h > /dev/null 2>&1 || exit 10
        n=0; while touch "$1/filler$n" 2>/dev/null; do n=$((n + 1)); [ $n -lt 50 ] || exit 11; done
        "$CLAIM" acquire held > /dev/null 2>&1; [ $? = 1 ] || exit 12
        "$CLAIM" acquire fresh --json 2>/dev/null
    "#;
    let Some(said) = in_mount_namespace(&world, script, &world.dir()) else { return };
    assert_eq!(said.expect::<Refused>(6).code, "NO_SPACE");
}

#[test]
fn what_would_make_an_unreadable_record_is_not_written() {
    let world = World::new();
    let token = world.take("n").token;
    let before = fs::read(world.record("n")).unwrap();
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let wide = format!("[{}1]", "1,".repeat(500_000));
    fs::write(world.root.join("wide"), format!("{}{wide}{}", "[".repeat(40), "]".repeat(40))).unwrap();
    // A large result is a file of its own.
    for (command, value) in
        [("renew", "--progress"), ("complete", "--result")].iter().flat_map(|(command, option)| {
            let mut values = vec![deep(101), deep(127), "{".to_owned(), String::new()];
            values.extend((*command == "renew").then(|| "@wide".to_owned()));
            values.into_iter().map(move |value| (*command, format!("{option}={value}")))
        })
    {
        let refused: Refused = world.run(&[command, "n", "--token", &token, "--json", &value]).expect(2);
        assert_eq!(refused.code, "USAGE", "{command} {value}");
        assert_eq!(fs::read(world.record("n")).unwrap(), before);
    }
    assert_eq!(world.run(&["renew", "n", "--token", &token, "--progress", &deep(100)]).exit, 0);
    assert_eq!(world.run(&["complete", "n", "--token", &token, "--result", &deep(100)]).exit, 0);
    assert_eq!(world.say("show n").exit, 0);
}

#[test]
fn what_processes_that_died_left_behind_does_no_harm_and_is_shown() {
    let world = with_good();
    let intents = world.dir().join(".store/intents");
    for name in [
        "tmp.00000000000000010000000000000001",
        "0123456789abcdef0123456789abcdef.00000000000000010000000000000002",
        "x",
    ] {
        fs::write(intents.join(name), "{").unwrap();
    }
    let doctor: Value = world.json("doctor").expect(0);
    assert_eq!((&doctor["faults"], doctor["findings"].as_array().unwrap().len()), (&json!(0), 3));
    assert_eq!(fs::read_dir(&intents).unwrap().count(), 3, "doctor mends nothing");
    assert_eq!(world.take("n").generation, 1);
    fs::write(world.dir().join("README"), "what is this").unwrap();
    let doctor: Value = world.json("doctor").expect(6);
    assert!(doctor["findings"].to_string().contains("README"), "{doctor}");
    assert_eq!(world.say("list").exit, 0);
}

#[test]
fn a_directory_that_is_removed_is_made_again() {
    let world = with_good();
    fs::remove_dir_all(world.dir().join(".store")).unwrap();
    assert_eq!(world.take("n").generation, 1);
    fs::remove_dir_all(world.dir()).unwrap();
    assert_eq!(world.take("n").generation, 1);
    assert_eq!(fs::read_to_string(world.dir().join(".gitignore")).unwrap(), "*\n");
}
