//! What a script relies on: exit codes, one JSON object whatever happens, no option without effect, hostile
//! texts shown harmlessly and kept exactly, and that looking leaves no trace.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Claimed, Refused, Said, World, said, until};

/// Texts that terminals, shells and parsers trip over.
const HOSTILE: [&str; 14] = [
    "\u{1b}[2J\u{1b}[31mred",
    "a\nCLAIMED parser by mallory generation=9",
    "a\r\nb",
    "tab\tbell\u{7}back\u{8}",
    "\"quoted\" 'single' `id` \\ \\n",
    "$(touch pwned) ${HOME} ; touch pwned | & > < * ? ! #",
    "'; touch pwned; '",
    "\u{9b}31m C1",
    "\u{061c}\u{202e}desrever\u{2066}\u{200b}\u{feff}",
    "line\u{2028}separator",
    "  spaces at both ends  ",
    "ünïcödé 字 🦀",
    "-leading --dashes",
    "{\"json\":true}\u{7f}",
];

fn first_token(world: &World, id: &str) -> String {
    world.take(id).token
}

#[test]
fn exit_codes() {
    let world = World::new();
    let outside = World::new();
    assert_eq!(world.say("acquire n --owner alice").exit, 0);
    let token = first_token(&world, "m");
    let done = first_token(&world, "done");
    assert_eq!(world.say(&format!("complete done --token {done}")).exit, 0);
    let blocked = first_token(&world, "blocked");
    assert_eq!(world.say(&format!("release blocked --token {blocked} --block why")).exit, 0);
    fs::write(world.record("bad"), "{").unwrap();
    for (line, exit, code) in [
        ("acquire n", 1, "CLAIM_HELD"),
        ("take n", 1, "CLAIM_HELD"),
        ("acquire done", 1, "ALREADY_DONE"),
        ("show nothing", 1, "NOT_FOUND"),
        ("acquire", 2, "USAGE"),
        ("acquire a//b", 2, "INVALID_ID"),
        ("check n --token x", 3, "STALE_CLAIM"),
        ("check n --token=", 2, "USAGE"),
        ("acquire n --seen 0", 3, "STALE_VERSION"),
        ("acquire blocked", 4, "BLOCKED"),
        ("acquire n --wait=1ms", 5, "WAIT_TIMEOUT"),
        ("acquire bad", 6, "RECORD_UNREADABLE"),
        ("acquire n --dir missing/folder/.claims", 7, "NO_STORE"),
        ("acquire n --dir etcd://somewhere", 2, "USAGE"),
    ] {
        let refused = world.refused(line, exit, code);
        assert!(!refused.message.is_empty(), "{line}");
        assert_eq!(world.say(line).exit, exit, "{line}");
    }
    let conflict = format!("done done --token {done} --result 1");
    world.refused(&conflict, 4, "IDEMPOTENCY_CONFLICT");
    assert_eq!(world.say(&format!("check m --token {token}")).exit, 0);
    let mut nowhere = outside.claim();
    nowhere.env_remove("CLAIMS_DIR").args(["list", "--json"]);
    let refused: Refused = said(&mut nowhere).expect(7);
    assert_eq!((refused.code.as_str(), refused.dir), ("NO_STORE", None));
    assert!(refused.hint.unwrap().contains("claim init"));
}

#[test]
fn two_claim_directories_are_ambiguous() {
    let world = World::new();
    let git = world.clean("git").args(["init", "-q"]).status();
    assert!(git.is_ok_and(|status| status.success()), "these tests need git");
    fs::create_dir_all(world.root.join("sub/.claims")).unwrap();
    let mut command = world.claim();
    command.env_remove("CLAIMS_DIR").current_dir(world.root.join("sub")).args(["acquire", "n", "--json"]);
    let refused: Refused = said(&mut command).expect(7);
    assert_eq!(refused.code, "AMBIGUOUS_STORE");
    assert!(!world.dir().exists());
}

#[test]
fn the_lines_of_the_contract_word_for_word() {
    let world = World::new();
    let claimed = world.say("acquire parser --owner alice --lease 1h");
    let words: Vec<_> = claimed.line().split(' ').collect();
    let ["CLAIMED", "parser", "by", "alice", "generation=1", "attempt=1", token, expires] = words[..] else {
        panic!("{claimed:?}")
    };
    let expires = expires.strip_prefix("expires=").unwrap();
    assert!(expires.len() == 20 && expires.ends_with('Z'), "{expires}");
    let token = token.strip_prefix("token=").unwrap();
    let lost = world.say("acquire parser --owner bob");
    assert_eq!(lost.exit, 1);
    let line = lost.line();
    let left = line.strip_prefix("lost parser — already held by alice (generation 1, ends in 59m").unwrap();
    assert!(left.ends_with("s)"), "{line}");
    assert_eq!(world.say(&format!("renew parser --token {token}")).exit, 0);
    let forced = world.say("acquire parser --owner bob --force hangs");
    assert!(forced.err.lines().any(|line| line == "taking parser by force (was alice)"), "{forced:?}");
    let token = forced.line().split("token=").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(world.say(&format!("complete parser --token {token}")).line(), "DONE parser generation=2");
    let done = world.say("acquire parser --owner carol");
    assert_eq!((done.exit, done.line()), (1, "lost parser — already done by bob (generation 2)"));
    world.expired("n");
    let taken = world.say("acquire n --owner bob");
    assert!(taken.err.lines().any(|line| line == "reclaiming expired lease on n (was old)"), "{taken:?}");
}

#[test]
fn json_is_one_object_on_standard_output_whatever_happens() {
    let world = World::new();
    let token = first_token(&world, "n");
    fs::create_dir(world.dir().join("folder.claim")).unwrap();
    let lines = [
        format!("check n --token {token}"),
        format!("renew n --token {token} --lease 1m --progress 1"),
        format!("release n --token {token}"),
        "init".into(),
        "where".into(),
        "list".into(),
        "doctor".into(),
        "show n".into(),
        "why n".into(),
        "why nothing".into(),
        "show nothing".into(),
        "acquire n".into(),
        "acquire n".into(),
        "acquire n --wait=1ms".into(),
        "acquire m --dry-run".into(),
        "acquire n --dry-run".into(),
        "acquire folder".into(),
        "acquire n --force x --quiet".into(),
        // Wrong usage of every kind.
        "".into(),
        "bogus".into(),
        "acquire".into(),
        "acquire n m".into(),
        "acquire n --bogus".into(),
        "acquire n --lease bogus".into(),
        "acquire n --lease".into(),
        "acquire n --wait=bogus".into(),
        "acquire n --seen x".into(),
        "acquire n --while-pid x".into(),
        "list --state bogus".into(),
        "renew n".into(),
        "renew n --token x --progress {".into(),
        "complete n --token x --result @missing".into(),
        "complete n --token x --result -".into(),
        "acquire n --owner=".into(),
        "acquire n --dir=".into(),
        "acquire n --export".into(),
        "where extra".into(),
    ];
    for line in lines {
        for line in [format!("--json {line}"), format!("{line} --json")] {
            let said = world.say(&line);
            let value: Value = said.expect(said.exit);
            assert!(value.is_object(), "{line}");
            assert!(value.as_object().unwrap().contains_key("dir"), "{line}: {value}");
            if said.exit == 0 {
                assert_eq!(value["dir"], world.dir().to_str().unwrap(), "{line}");
            } else {
                assert!(value["code"].is_string() && value["message"].is_string(), "{line}: {value}");
                assert_ne!(value["message"], "", "{line}");
            }
        }
    }
}

#[test]
fn wrong_usage_says_what_is_missing() {
    let world = World::new();
    let missing = world.refused("renew n", 2, "USAGE");
    assert!(missing.message.contains("--token"), "{}", missing.message);
    let unknown = world.refused("list --state bogus", 2, "USAGE");
    assert!(unknown.message.contains("bogus") && unknown.message.contains("ready"), "{}", unknown.message);
    let word = world.refused("aquire n", 2, "USAGE");
    assert!(word.message.contains("aquire"), "{}", word.message);
    let command = world.refused("", 2, "USAGE");
    assert!(command.message.contains("one was not provided"), "{}", command.message);
}

#[test]
fn an_option_without_effect_is_refused_and_nothing_is_written() {
    let world = World::new();
    let token = first_token(&world, "n");
    let before = world.snapshot();
    for lease in [
        "0",
        "0s",
        "-1s",
        "-30s",
        "nan",
        "inf",
        "1e3",
        "30",
        "",
        " ",
        "49ms",
        "49.999ms",
        "31d",
        "30d1s",
        "5y",
        "99999999999999999999s",
        "9223372036854775807h",
        "1h 1x",
        "PT",
        "30s ago",
    ] {
        for command in [&["acquire", "m"][..], &["renew", "n", "--token", &token]] {
            let mut arguments = command.to_vec();
            let lease = format!("--lease={lease}");
            arguments.extend(["--json", &lease]);
            assert_eq!(world.run(&arguments).expect::<Refused>(2).code, "USAGE", "{arguments:?}");
        }
    }
    for more in [
        "--wait=bogus",
        "--wait=-1s",
        "--wait=",
        "--wait 5s",
        "--seen=-1",
        "--seen=",
        "--seen=1.5",
        "--seen=99999999999999999999",
        "--force=",
        "--while-pid=0",
        "--while-pid=-1",
        "--while-pid=4294967296",
        "--while-pid=4194305",
        "--until-exit=0",
        "--until-exit=x",
        "--while-pid=1 --until-exit=1",
        "--dry-run --wait=1s",
        "--dry-run --export",
        "--export",
        "--owner=",
        "--dir=",
        "--lease=1s --lease=2s",
        "--token=x",
        "--state=ready",
        "--result=1",
    ] {
        world.refused(&format!("acquire m {more}"), 2, "USAGE");
    }
    assert_eq!(world.run(&["acquire", "m", "--json", "--force", " \n "]).expect::<Refused>(2).code, "USAGE");
    let long = format!("--owner={}", "x".repeat(10_000));
    assert_eq!(world.run(&["acquire", "m", "--json", &long]).expect::<Refused>(2).code, "USAGE");
    let long = format!("--force={}", "x".repeat(10_000));
    assert_eq!(world.run(&["acquire", "n", "--json", &long]).expect::<Refused>(2).code, "USAGE");
    for line in ["acquire m --export --quiet", "--quiet acquire m --export", "--json acquire m --export"] {
        assert_eq!(world.say(line).exit, 2, "{line}");
    }
    for line in ["release n --block=", "release n --lease=1s", "complete n --lease=1s", "check n --lease=1s"]
    {
        world.refused(&format!("{line} --token={token}"), 2, "USAGE");
    }
    for line in ["show n --lease=1s", "list n", "list --state=", "list --state=READY", "doctor n", "init n"] {
        world.refused(line, 2, "USAGE");
    }
    assert_eq!(world.snapshot(), before);
}

#[test]
fn leases_at_both_ends_of_what_is_allowed_are_taken() {
    let world = World::new();
    assert_eq!(world.take("a --lease 30d").lease_ms, 30 * 24 * 3600 * 1000);
    assert_eq!(world.take("b --lease 1h30m").lease_ms, 5_400_000);
    // So short a lease may be over before its own command is: then it says so.
    let short = world.json("acquire c --lease 50ms");
    assert!(short.exit == 0 || short.expect::<Refused>(3).code == "STALE_CLAIM");
}

#[test]
fn hostile_texts_are_shown_harmlessly_and_kept_exactly() {
    for text in HOSTILE {
        let world = World::new();
        // `Said` itself holds every line printed to be harmless.
        let run = |arguments: &[&str]| world.run(arguments);
        let id = text;
        let claimed: Claimed = run(&["acquire", &format!("--owner={text}"), "--json", "--", id]).expect(0);
        assert_eq!((claimed.id.as_str(), claimed.owner.as_str()), (id, text));
        for command in ["acquire", "show", "why"] {
            assert!(run(&[command, "--", id]).exit < 2);
        }
        let lost: Refused = run(&["acquire", "--json", "--", id]).expect(1);
        assert_eq!((lost.id.as_deref(), lost.holder.unwrap().owner.as_str()), (Some(id), text));
        let why: Value = run(&["why", "--json", "--", id]).expect(0);
        assert!(why["why"].as_str().unwrap().contains(text), "{why}");
        let token = format!("--token={}", claimed.token);
        let progress = format!("--progress={}", json!({"said": text, text: 1}));
        assert_eq!(run(&["renew", &token, &progress, "--", id]).exit, 0);
        let force = format!("--force={text}");
        let forced: Claimed = run(&["acquire", &force, "--json", "--", id]).expect(0);
        assert_eq!(forced.reclaimed_from.as_deref(), Some(text));
        assert_eq!(forced.progress["said"], text);
        for command in [&["show"][..], &["why"], &["acquire"], &["show", "--json"]] {
            assert!(run(&[command, &["--", id]].concat()).exit < 2);
        }
        let show: Value = run(&["show", "--json", "--", id]).expect(0);
        assert_eq!((&show["forced"]["reason"], &show["forced"]["from"]), (&json!(text), &json!(text)));
        let token = format!("--token={}", forced.token);
        assert_eq!(run(&["release", &token, &format!("--block={text}"), "--", id]).exit, 0);
        let blocked: Refused = run(&["acquire", "--json", "--", id]).expect(4);
        assert!(blocked.message.ends_with(text), "{}", blocked.message);
        assert_eq!(run(&["acquire", "--", id]).exit, 4);
        let again: Claimed = run(&["acquire", "--owner=a", &force, "--json", "--", id]).expect(0);
        let result = format!("--result={}", json!([text]));
        assert_eq!(run(&["complete", &format!("--token={}", again.token), &result, "--", id]).exit, 0);
        assert_eq!(run(&["list"]).exit, 0);
        let list: Value = run(&["list", "--json"]).expect(0);
        let node = &list["nodes"][0];
        assert_eq!((&node["id"], &node["outcome"]["result"]), (&json!(id), &json!([text])));
        assert_eq!(node["progress"], json!({"said": text, text: 1}));
    }
}

#[test]
fn hostile_usage_is_shown_harmlessly() {
    let world = World::new();
    for text in HOSTILE {
        for arguments in [
            &["acquire", "n", text][..],
            &[text],
            &["list", "--state", text],
            &["acquire", "n", "--lease", text],
        ] {
            assert_eq!(world.run(arguments).exit, 2, "{arguments:?}");
        }
    }
    let folder = world.root.join("esc\u{1b}[31m");
    fs::create_dir(&folder).unwrap();
    let dir = folder.join(".claims");
    let made = said(world.claim().env("CLAIMS_DIR", &dir).args(["acquire", "n"]));
    assert!(made.exit == 0 && made.err.contains("made the claim directory"), "{made:?}");
    for command in ["where", "doctor", "init"] {
        assert_eq!(said(world.claim().env("CLAIMS_DIR", &dir).arg(command)).exit, 0);
    }
}

#[test]
fn a_hint_is_safe_to_run() {
    let world = World::new();
    for id in ["w; touch pwned", "$(touch pwned)", "it's", "-rf", "`touch pwned`", "a b"] {
        assert_eq!(world.run(&["acquire", "--owner=x", "--", id]).exit, 0);
        let lost: Refused = world.run(&["acquire", "--json", "--", id]).expect(1);
        let hint = lost.hint.unwrap();
        let command = hint.split_once("`claim why ").unwrap().1.rsplit_once("` says more").unwrap().0;
        let script = format!("claim() {{ \"$CLAIM\" --json \"$@\"; }}\nclaim why {command}");
        let why: Value = said(&mut world.shell(&script)).expect(0);
        assert_eq!(why["id"], id, "{hint}");
    }
    assert!(!world.root.join("pwned").exists());
}

#[test]
fn export_is_evaluated_to_exactly_what_was_claimed() {
    for text in HOSTILE {
        let world = World::new();
        let dir = world.root.join("it's a $dir");
        fs::create_dir(&dir).unwrap();
        let script = r#"
            export CLAIMS_DIR="$PWD/it's a \$dir/.claims"
            lines=$("$CLAIM" acquire --export --owner="$1" -- "$1" && echo .) || exit 9
            unset CLAIMS_DIR
            eval "${lines%.}"
            "$CLAIM" check > /dev/null || exit 8
            printf '%s\0' "$CLAIM_ID" "$CLAIM_TOKEN" "$CLAIM_GENERATION" "$CLAIM_ATTEMPT" "$CLAIMS_DIR"
        "#;
        let output = world.shell(script).arg(text).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        let values: Vec<_> = said.split('\0').collect();
        assert_eq!(values[0], text);
        assert_eq!((values[1].len(), values[2], values[3]), (32, "1", "1"));
        assert_eq!(values[4], dir.join(".claims").to_str().unwrap());
        assert!(!world.root.join("pwned").exists());
    }
}

#[test]
fn an_export_that_lost_makes_a_shell_forget_an_earlier_claim() {
    let world = World::new();
    world.take("n --owner alice");
    let lost = world.say("acquire n --export");
    let forget = |exit| {
        format!(
            "unset CLAIM_ID CLAIM_TOKEN CLAIM_GENERATION CLAIM_ATTEMPT CLAIM_INPUT CLAIM_INPUT_FILE; (exit {exit})\n"
        )
    };
    assert_eq!((lost.exit, lost.out), (1, forget(1)));
    assert!(lost.err.starts_with("lost n — already held by alice"), "{}", lost.err);
    let mut command = world.claim();
    let dir = world.root.join(OsStr::from_bytes(b"not\xfftext"));
    let refused = said(command.args(["acquire", "n", "--export", "--dir"]).arg(&dir));
    assert_eq!((refused.exit, refused.out), (2, forget(2)));
    assert!(!dir.exists());
    let wrong = world.say("acquire n --export --bogus");
    assert_eq!((wrong.exit, wrong.out), (2, forget(2)));
    // What the README does, where the second claim is lost: nothing is done to the first node.
    let script = r#"eval "$("$CLAIM" acquire first --owner a --export)"
        eval "$("$CLAIM" acquire n --owner a --export)" && "$CLAIM" complete; echo "$? ${CLAIM_ID-none}""#;
    let said = said(&mut world.shell(script));
    assert_eq!(said.out, "1 none\n", "{said:?}");
    assert_eq!(world.stored("first")["state"], "claimed");
}

#[test]
fn a_claim_that_nobody_can_be_told_of_is_given_back() {
    let world = World::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let outputs: [(&str, Stdio); 3] = [
        ("a full disk", File::create("/dev/full").unwrap().into()),
        ("a pipe that nobody reads", writer.into()),
        ("a file that is open for reading only", File::open("/dev/null").unwrap().into()),
    ];
    for (generation, (what, output)) in (1..).zip(outputs) {
        let mut command = world.claim();
        command
            .args(["acquire", "n"])
            .args(if generation == 1 { &["--json"][..] } else { &[] })
            .stdout(output);
        let ended = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let said = Said::of(ended);
        assert_eq!(said.exit, 6, "{what}: {said:?}");
        assert!(said.err.contains("cannot write the answer to standard output"), "{what}: {said:?}");
        let show: Value = world.json("show n").expect(0);
        assert_eq!((&show["state"], &show["generation"]), (&json!("ready"), &json!(generation)), "{what}");
        assert_eq!(show["attempt"], 0);
    }
}

#[test]
fn a_claim_that_can_not_be_given_back_either_is_not_passed_over_in_silence() {
    let world = World::new();
    assert_eq!(world.say("init").exit, 0);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let size = rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    writer.write_all(&vec![b'x'; size]).unwrap();
    // The answer waits for room in the pipe. Meanwhile something takes the record's place.
    let mut command = world.claim();
    let child = command.args(["acquire", "n"]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    drop(command); // it holds the pipe open
    until("it is taken", || fs::metadata(world.record("n")).is_ok_and(|record| record.len() > 0));
    fs::remove_file(world.record("n")).unwrap();
    fs::create_dir(world.record("n")).unwrap();
    drop(reader);
    let said = Said::of(child.wait_with_output().unwrap());
    assert_eq!(said.exit, 6);
    assert!(said.err.contains("could not be given back and lasts until its lease ends: "), "{said:?}");
}

#[test]
fn an_owner_that_is_no_text_is_refused_and_not_passed_over() {
    let world = World::new();
    let name = OsStr::from_bytes(b"al\xffice");
    let refused = said(world.claim().args(["acquire", "n", "--json"]).env("CLAIM_OWNER", name));
    assert_eq!(refused.expect::<Refused>(2).code, "USAGE");
    let given = said(world.claim().args(["acquire", "n", "--owner=x"]).env("CLAIM_OWNER", name));
    assert_eq!(given.exit, 0);
}

#[test]
fn other_answers_that_nobody_can_be_told_are_failures_too() {
    let world = World::new();
    let token = first_token(&world, "n");
    for line in ["show n", "list", "where", "doctor", "why n", "--help", "--version", "list --json"] {
        let script = format!("\"$CLAIM\" {line} > /dev/full");
        assert_eq!(said(&mut world.shell(&script)).exit, 6, "{line}");
    }
    // What was refused stays refused.
    assert_eq!(said(&mut world.shell("\"$CLAIM\" acquire n > /dev/full")).exit, 1);
    assert_eq!(said(&mut world.shell("\"$CLAIM\" acquire --json > /dev/full")).exit, 2);
    assert_eq!(said(world.shell("\"$CLAIM\" check n --token \"$1\" > /dev/full").arg(&token)).exit, 6);
}

#[test]
fn a_closed_descriptor_is_no_reason_to_panic_or_to_hang() {
    let world = World::new();
    for (n, closed) in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"].into_iter().enumerate() {
        let script = format!("\"$CLAIM\" acquire n{n} {closed}");
        let said = said(&mut world.shell(&script));
        let show: Value = world.json(&format!("show n{n}")).expect(0);
        assert_eq!(said.exit == 0, show["state"] == "claimed", "{closed}: {said:?}");
        // No file of the claim directory took the closed one's number.
        assert_eq!(world.json("doctor").exit, 0);
        assert_eq!(world.say(&format!("acquire n{n}")).exit, i32::from(said.exit == 0));
    }
}

#[test]
fn options_that_go_with_every_command_go_before_and_after_its_name() {
    let world = World::new();
    let dir = world.root.join("other");
    let dir = dir.to_str().unwrap();
    for (n, arguments) in [
        vec!["--dir", dir, "--owner", "me", "--json", "--no-sync", "acquire", "n0"],
        vec!["acquire", "n1", "--dir", dir, "--owner", "me", "--json", "--no-sync"],
        vec!["--json", "--owner=me", "acquire", "--dir", dir, "n2", "--no-sync"],
    ]
    .into_iter()
    .enumerate()
    {
        let claimed: Claimed = world.run(&arguments).expect(0);
        assert_eq!((claimed.dir.as_str(), claimed.owner.as_str()), (dir, "me"));
        assert_eq!(claimed.id, format!("n{n}"));
    }
    assert!(!world.dir().exists());
    let quiet = world.run(&["--quiet", "--dir", dir, "acquire", "n0"]);
    assert_eq!((quiet.exit, quiet.out.as_str(), quiet.err.as_str()), (1, "", ""));
    let quiet = world.run(&["--dir", dir, "acquire", "n9", "--quiet"]);
    assert_eq!((quiet.exit, quiet.out.as_str(), quiet.err.as_str()), (0, "", ""));
    assert!(world.run(&["--quiet", "--dir", dir, "acquire", "a//b"]).err.contains("not a valid id"));
}

#[test]
fn variables_stand_in_for_arguments() {
    let world = World::new();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = world.claim();
        said(command.args(arguments).arg("--json").envs(variables.iter().copied()))
    };
    let claimed: Claimed = run(&["acquire"], &[("CLAIM_ID", "n"), ("CLAIM_LEASE", "1h")]).expect(0);
    assert_eq!((claimed.id.as_str(), claimed.lease_ms), ("n", 3_600_000));
    let held = [("CLAIM_ID", "n"), ("CLAIM_TOKEN", claimed.token.as_str())];
    let renewed: Value = run(&["renew"], &[held[0], held[1], ("CLAIM_LEASE", "7s")]).expect(0);
    assert_eq!(renewed["lease_ms"], 3_600_000, "the variable is for a claim that is taken");
    assert_eq!(run(&["check"], &held).exit, 0);
    assert_eq!(run(&["show"], &held).expect::<Value>(0)["id"], "n");
    assert_eq!(run(&["why"], &held).expect::<Value>(0)["id"], "n");
    assert_eq!(run(&["show", "m"], &held).exit, 1, "an argument goes before the variable");
    assert_eq!(run(&["check", "--token", "x"], &held).exit, 3);
    let claimed: Claimed = run(&["acquire", "m", "--lease", "9s"], &[("CLAIM_LEASE", "1h")]).expect(0);
    assert_eq!(claimed.lease_ms, 9_000);
    assert_eq!(run(&["release"], &held).exit, 0);
    assert_eq!(run(&["acquire", "k"], &[("CLAIM_LEASE", "soon")]).exit, 2);
    assert_eq!(run(&["acquire", "k"], &[("CLAIM_NO_SYNC", "perhaps")]).exit, 2);
    assert_eq!(run(&["check", "m"], &[("CLAIM_TOKEN", "")]).exit, 2);
    for switch in ["", "0", "1", "true", "no"] {
        assert_eq!(run(&["list"], &[("CLAIM_NO_SYNC", switch), ("CLAIMS_DIR", "")]).exit, 0, "{switch:?}");
    }
    let help = said(world.claim().args(["check", "--help"]).env("CLAIM_TOKEN", "secret"));
    assert!(help.exit == 0 && !help.out.contains("secret"), "{help:?}");
}

#[test]
fn arguments_of_json_come_from_the_line_a_file_or_standard_input() {
    let world = World::new();
    let token = first_token(&world, "n");
    let value = json!({"pages": [1, 2.50, "ä\u{1b}"], "big": u64::MAX});
    fs::write(world.root.join("value.json"), value.to_string()).unwrap();
    let progress = |argument: &str| {
        let mut command = world.claim();
        command.args(["renew", "n", "--token", &token, "--progress", argument]);
        let answer = said(command.stdin(File::open(world.root.join("value.json")).unwrap()));
        assert_eq!(answer.exit, 0, "{answer:?}");
        let stored = world.stored("n")["progress"].clone();
        world.edit("n", |json| json["progress"] = Value::Null);
        stored
    };
    assert_eq!(progress(&value.to_string()), value);
    assert_eq!(progress("@value.json"), value);
    assert_eq!(progress("-"), value);
    for bad in ["plain", "@missing", "@.", "{\"a\":1} x", "'single'", "NaN", ""] {
        let refused: Refused =
            world.run(&["complete", "n", "--token", &token, "--json", "--result", bad]).expect(2);
        assert_eq!(refused.code, "USAGE", "{bad}");
    }
}

#[test]
fn looking_makes_no_directory() {
    let world = World::new();
    let git = world.clean("git").args(["init", "-q"]).status();
    assert!(git.is_ok_and(|status| status.success()), "these tests need git");
    let before = world.snapshot();
    for variable in [true, false] {
        for line in LOOKS {
            for json in ["", "--json"] {
                let mut command = world.claim();
                command.args(format!("{line} {json}").split_whitespace());
                if !variable {
                    command.env_remove("CLAIMS_DIR");
                }
                let looked = said(&mut command);
                assert!([0, 1, 3].contains(&looked.exit), "{line}: {looked:?}");
                assert_eq!(world.snapshot(), before, "{line} wrote");
            }
        }
    }
    // What is refused, or settles what is not there, makes none either.
    for line in [
        "acquire n --seen 1",
        "renew n --token x",
        "release n --token x",
        "complete n --token x",
        "acquire a//b",
    ] {
        assert!(world.say(line).exit > 1, "{line}");
        assert_eq!(world.snapshot(), before, "{line} wrote");
    }
}

const LOOKS: [&str; 10] = [
    "list",
    "watch --once",
    "list --state ready",
    "show n",
    "why n",
    "where",
    "check n --token x",
    "doctor",
    "acquire n --dry-run",
    "acquire n --dry-run --force x",
];

#[test]
fn looking_writes_nothing() {
    let world = World::new();
    world.expired("n");
    world.take("held");
    fs::write(world.record("empty"), "").unwrap();
    fs::write(world.record("bad"), "{").unwrap();
    let before = world.snapshot();
    for line in LOOKS {
        for id in ["n", "held", "empty", "bad", "nothing"] {
            world.say(&line.replace(" n", &format!(" {id}")));
            assert_eq!(world.snapshot(), before, "{line} wrote");
        }
    }
}

#[test]
fn an_empty_list_is_no_line() {
    let world = World::new();
    let list = world.say("list");
    assert_eq!((list.exit, list.out.as_str()), (0, ""));
    world.take("n");
    assert_eq!(world.say("list --state done").out, "");
}

#[test]
fn where_says_why_and_init_makes_it_once() {
    let world = World::new();
    let place: Value = world.json("where").expect(0);
    assert_eq!((&place["why"], &place["exists"]), (&json!("named by CLAIMS_DIR"), &json!(false)));
    assert_eq!(place["dir"], world.dir().to_str().unwrap());
    let made: Value = world.json("init").expect(0);
    assert_eq!(made["created"], true);
    let before = world.snapshot();
    assert_eq!(world.json("init").expect::<Value>(0)["created"], false);
    assert_eq!(world.snapshot(), before);
    let line = world.say("where").out;
    assert!(line.starts_with(&format!("{} (named by CLAIMS_DIR)\n", world.dir().display())), "{line}");
}

#[test]
fn a_removed_folder_keeps_nobody_from_giving_back() {
    let world = World::new();
    let token = world.take("n --owner a").token;
    let script = format!(r#"mkdir gone && cd gone && rmdir ../gone && "$CLAIM" release n --token {token}"#);
    let said = said(&mut world.shell(&script));
    assert_eq!(said.exit, 0, "{said:?}");
}

/// Where only claims are kept, nothing else is written, or it would stand in a record's place.
#[test]
fn no_report_is_written_into_the_claim_directory() {
    let world = World::new();
    world.say("add t");
    let before = world.snapshot();
    for to in [world.record("t"), world.dir().join(".store/format"), world.dir().join("new.html")] {
        let to = to.to_str().unwrap().to_owned();
        for line in [format!("report --html {to}"), format!("run k --report {to} -- true")] {
            let said = world.say(&line);
            assert!(
                [2, 125].contains(&said.exit) && said.err.contains("claim directory"),
                "{line}: {said:?}"
            );
        }
    }
    assert!(world.snapshot() == before);
}

/// Whoever reads the answer has seen enough. Only a claim that could not be told of is given back.
#[test]
fn a_reader_that_closes_the_pipe_is_no_failure() {
    let world = World::new();
    for id in ["a", "b"] {
        world.say(&format!("add {id}"));
    }
    for (line, exit) in
        [("list", 0), ("log", 0), ("show a", 0), ("graph", 0), ("complete --help", 0), ("acquire a", 6)]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.claim();
        command.args(line.split(' ')).stdout(writer).stderr(Stdio::piped());
        let said = said(&mut command);
        assert_eq!(said.exit, exit, "{line}: {said:?}");
        assert_eq!(said.err.is_empty(), exit == 0, "{line}: {said:?}");
    }
    assert_eq!(world.stored("a")["state"], "ready");
}

#[test]
fn show_says_why_a_node_ended() {
    let world = World::new();
    world.say("add t");
    world.run(&["cancel", "t", "--reason", "no longer wanted"]);
    assert!(world.say("show t").out.contains("\n  reason no longer wanted\n"));
}

#[test]
fn a_slip_in_an_id_is_told_which_node_may_have_been_meant() {
    let world = World::new();
    for id in ["parser", "build/lexer"] {
        world.say(&format!("add {id}"));
    }
    let refused: Value = world.json("show prser").expect(1);
    assert_eq!((&refused["code"], &refused["did_you_mean"]), (&json!("NOT_FOUND"), &json!("parser")));
    assert!(world.say("result biuld/lexer").err.contains("did you mean build/lexer?"));
    assert!(!world.say("show deploy").err.contains("did you mean"));
    assert!(world.json("show deploy").expect::<Value>(1)["did_you_mean"].is_null());
}
