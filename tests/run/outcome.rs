//! What the command gets, and what comes of it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Running, World, code, report, stderr, stdout, until};

#[test]
fn exit_codes_are_passed_on_and_the_node_is_free_again() {
    let world = World::new();
    for (script, expected, signal) in [
        ("exit 0", 0, None),
        ("exit 3", 3, None),
        ("exit 255", 255, None),
        ("kill -TERM $$", 143, Some(15)),
        ("kill -KILL $$", 137, Some(9)),
    ] {
        let output = world.run("n --json", script).output().unwrap();
        assert_eq!(code(&output), Some(expected), "{script}");
        let report = report(&output);
        assert_eq!(report["ok"], expected == 0, "{script}");
        assert_eq!(report["signal"], json!(signal), "{script}");
        assert_eq!(report["exit_code"], if signal.is_some() { Value::Null } else { json!(expected) });
        assert_eq!(report["settled"], "released", "{script}");
        assert_eq!(report["attempt"], 1, "the attempt was given back");
    }
    assert_eq!(world.show("n")["generation"], 5);
    assert_eq!(world.show("n")["state"], "ready");
}

#[test]
fn the_command_knows_its_claim_and_nothing_of_an_outer_one() {
    let world = World::new();
    let mut command =
        world.run("n", "claim check --quiet && env | grep -c ^CLAIM_TOKEN= && echo $CLAIM_TOKEN");
    let output = command.env("CLAIM_TOKEN", "outer").output().unwrap();
    let text = stdout(&output);
    let (count, token) = text.trim().split_once('\n').unwrap();
    assert_eq!((count, token.len()), ("1", 32));
    assert!(!stderr(&output).contains(token), "the token is the command's alone");
    let script = "echo $CLAIM_ID $CLAIM_GENERATION $CLAIM_ATTEMPT $CLAIMS_DIR";
    let output = world.run("n", script).output().unwrap();
    assert_eq!(stdout(&output), format!("n 2 1 {}\n", world.at(".claims").display()));
}

#[test]
fn standard_output_and_input_are_the_commands() {
    let world = World::new();
    fs::write(world.at("input"), "a\nb").unwrap();
    for options in ["", "--json", "--quiet", "--result-from-stdout"] {
        let id = format!("n{options}");
        let mut command = world.claim("run");
        command.args([id.as_str()]).args(options.split_whitespace()).args(["--", "cat"]);
        let output = command.stdin(fs::File::open(world.at("input")).unwrap()).output().unwrap();
        assert_eq!((code(&output), stdout(&output).as_str()), (Some(0), "a\nb"), "{options}");
        assert_eq!(stderr(&output).is_empty(), options == "--quiet", "{options}: {}", stderr(&output));
    }
}

#[test]
fn whoever_feeds_or_reads_the_command_sees_it_close_its_end() {
    let world = World::new();
    let script = "exec <&- >&-; echo $$ >pid; while ! [ -e end ]; do sleep .01; done";
    let mut command = world.run("n", script);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let (mut fed, mut read) = (running.stdin.take().unwrap(), running.stdout.take().unwrap());
    assert_eq!(read.read(&mut [0; 1]).unwrap(), 0);
    until("a broken pipe", || fed.write_all(b"x").is_err());
    world.make("end");
    assert_eq!(code(&running.end()), Some(0));
}

#[test]
fn where_sigchld_is_ignored_the_exit_code_is_said_to_be_unknown() {
    let world = World::new();
    let output =
        world.program("bash").args(["-c", "trap '' CHLD; exec claim run n -- true"]).output().unwrap();
    assert_eq!(code(&output), Some(125), "{}", stderr(&output));
    assert_eq!(world.show("n")["state"], "ready");
}

#[test]
fn no_descriptor_leaks_into_the_command() {
    let world = World::new();
    let script = "ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> .*/\\1/p'";
    let plain = world.program("sh").args(["-c", script]).output().unwrap();
    for options in ["n --report r.json", "m --result-from-stdout --report r.json"] {
        let output = world.run(options, script).output().unwrap();
        assert_eq!(stdout(&output), stdout(&plain), "{options}");
    }
}

#[test]
fn a_second_caller_is_told_and_runs_nothing() {
    let world = World::new();
    let first = Running::start(&mut world.run("n", "echo $$ >pid; while ! [ -e end ]; do sleep .01; done"));
    world.pid("pid");
    let second = world.run("n --owner bob", "touch ran").output().unwrap();
    assert_eq!(code(&second), Some(75));
    assert!(
        stderr(&second).starts_with("lost n — already held by alice (generation 1, "),
        "{}",
        stderr(&second)
    );
    assert_eq!(stdout(&second), "");
    for options in ["n --json --owner bob", "n --json --owner bob --wait=1ms"] {
        let second = world.run(options, "touch ran").output().unwrap();
        assert_eq!(code(&second), Some(75));
        let report = report(&second);
        assert_eq!(report["ran"], false);
        assert_eq!((&report["holder"]["owner"], &report["owner"]), (&json!("alice"), &json!("bob")));
        assert_eq!((&report["generation"], &report["attempt"]), (&Value::Null, &Value::Null));
        assert_eq!(report["code"], if options.contains("wait") { "WAIT_TIMEOUT" } else { "CLAIM_HELD" });
    }
    assert!(!world.at("ran").exists());
    world.make("end");
    assert_eq!(code(&first.end()), Some(0));
}

#[test]
fn waiting_gets_the_node_once_the_first_has_ended() {
    let world = World::new();
    let first = Running::start(&mut world.run("n", "echo $$ >pid; while ! [ -e end ]; do sleep .01; done"));
    world.pid("pid");
    let second = Running::start(&mut world.run("n --wait=100s", "echo $CLAIM_GENERATION"));
    world.make("end");
    assert_eq!(code(&first.end()), Some(0));
    assert_eq!(stdout(&second.end()), "2\n");
}

#[test]
fn the_lease_is_renewed_while_the_command_runs() {
    let world = World::new();
    let script = "echo $$ >pid; while ! [ -e end ]; do sleep .01; done";
    let running = Running::start(&mut world.run("n --lease 3s", script));
    world.pid("pid");
    let ends = || world.show("n")["claim"]["expires_at"].as_str().unwrap_or_default().to_owned();
    let mut seen = vec![ends()];
    until("five renewals", || {
        let now = ends();
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        seen.len() > 5
    });
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(world.show("n")["generation"], 1);
    world.make("end");
    assert_eq!(code(&running.end()), Some(0));
}

#[test]
fn what_cant_be_started_claims_nothing() {
    let world = World::new();
    world.make("plain");
    for (program, expected, name) in [
        ("no-such-program", 127, "COMMAND_NOT_FOUND"),
        ("./plain", 126, "COMMAND_NOT_EXECUTABLE"),
        ("/", 126, "COMMAND_NOT_EXECUTABLE"),
    ] {
        let output = world.claim("run n --json --").arg(program).output().unwrap();
        assert_eq!(code(&output), Some(expected), "{program}");
        let report = report(&output);
        assert_eq!((&report["ran"], &report["code"]), (&json!(false), &json!(name)), "{program}");
        assert!(!world.at(".claims").exists(), "{program}");
    }
}

#[test]
fn what_turns_out_not_to_start_gives_the_node_back() {
    let world = World::new();
    fs::write(world.at("script"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(world.at("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let output = world.claim("run n --json -- ./script").output().unwrap();
    assert_eq!(code(&output), Some(127));
    let report = report(&output);
    assert_eq!((&report["ran"], &report["settled"]), (&json!(false), &json!("released")));
    assert_eq!(world.show("n")["state"], "ready");
    assert_eq!(world.show("n")["attempt"], 0);
}

#[test]
fn then_says_what_becomes_of_the_node_after_exit_0() {
    let world = World::new();
    for (options, script, state) in [
        ("a --then complete", "exit 0", "done"),
        ("b --then complete", "exit 1", "ready"),
        ("c --then release", "exit 0", "ready"),
    ] {
        world.run(options, script).output().unwrap();
        assert_eq!(world.show(&options[..1])["state"], state, "{options}");
    }
    let again = world.run("a --then complete", "touch ran").output().unwrap();
    assert_eq!(code(&again), Some(75));
    assert!(stderr(&again).starts_with("lost a — already done by alice"), "{}", stderr(&again));
    assert!(!world.at("ran").exists());
}

#[test]
fn what_the_command_settled_itself_is_left_at_that() {
    let world = World::new();
    for (id, script, state) in [
        ("a", "claim complete --quiet --result 7; exit 3", "done"),
        ("b", "claim release --quiet; exit 3", "ready"),
        ("c", "claim release --quiet --block why; exit 3", "blocked"),
        ("d", "claim release --quiet; claim acquire --owner bob --quiet; exit 3", "claimed"),
    ] {
        let output = world.run(&format!("{id} --json"), script).output().unwrap();
        let report = report(&output);
        assert_eq!(code(&output), Some(3), "{id}: {report}");
        assert_eq!((&report["settled"], &report["lost"]), (&json!("left"), &json!(false)), "{id}");
        assert_eq!(world.show(id)["state"], state);
    }
    let output = world
        .run("e --json --result-from-stdout", "claim complete --quiet --result 7; echo 8")
        .output()
        .unwrap();
    assert_eq!((code(&output), &report(&output)["settled"]), (Some(0), &json!("left")));
    assert_eq!(world.show("e")["outcome"]["result"], 7);
}

#[test]
fn the_output_is_the_result() {
    let world = World::new();
    for (id, script, result) in [
        ("a", "echo '{\"n\": 1}'", json!({"n": 1})),
        ("b", "printf 'two\\nlines\\n'", json!("two\nlines")),
        ("c", "true", json!("")),
    ] {
        let output = world.run(&format!("{id} --result-from-stdout"), script).output().unwrap();
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
        assert_eq!(world.show(id)["outcome"]["result"], result);
    }
    let output = world.run("d --result-from-stdout", "echo 1; exit 4").output().unwrap();
    assert_eq!((code(&output), world.show("d")["state"].as_str()), (Some(4), Some("ready")));
}

#[test]
fn output_that_is_no_result_is_passed_on_all_the_same() {
    let world = World::new();
    for (id, script, bytes) in
        [("long", "head -c 67108865 /dev/zero", 67_108_865), ("raw", "printf '\\377\\376'", 2)]
    {
        let output = world.run(&format!("{id} --result-from-stdout --json"), script).output().unwrap();
        let report = report(&output);
        assert_eq!((code(&output), output.stdout.len()), (Some(125), bytes), "{report}");
        assert_eq!((&report["ran"], &report["settled"]), (&json!(true), &json!("released")), "{report}");
        assert_eq!(world.show(id)["state"], "ready");
    }
}

#[test]
fn output_that_nobody_takes_is_no_result() {
    let world = World::new();
    let mut command = world.run("n --result-from-stdout", "echo 1");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(code(&output), Some(125), "{}", stderr(&output));
    assert_eq!(world.show("n")["state"], "ready");
}

#[test]
fn closed_standard_descriptors_do_no_harm() {
    let world = World::new();
    for closed in [">&-", "2>&-", "<&-", ">&- 2>&- <&-", "2>/dev/full"] {
        for options in ["", "--json"] {
            let script = format!("claim run n {options} -- sh -c 'exit 3' {closed}");
            let output = world.program("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(code(&output), Some(3), "{script}: {}", stderr(&output));
            assert!(!stderr(&output).contains("panicked"), "{script}");
        }
    }
}

#[test]
fn the_report_is_also_a_file() {
    let world = World::new();
    world.run("n --report report.json", "claim run n --report inner.json -- true; exit 3").output().unwrap();
    let read = |name| serde_json::from_str::<Value>(&world.text(name)).unwrap();
    let (outer, inner) = (read("report.json"), read("inner.json"));
    assert_eq!((&outer["exit_code"], &outer["code"]), (&json!(3), &json!("COMMAND_FAILED")));
    assert_eq!((&inner["ran"], &inner["code"]), (&json!(false), &json!("CLAIM_HELD")));
    for report in [outer, inner] {
        for field in [
            "ok",
            "schema",
            "dir",
            "id",
            "owner",
            "generation",
            "attempt",
            "ran",
            "exit_code",
            "signal",
            "lost",
            "settled",
        ] {
            assert!(report.get(field).is_some(), "{field}: {report}");
        }
    }
    let names = fs::read_dir(world.at("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".tmp")));
}

#[test]
fn wrong_usage_claims_nothing_and_is_not_taken_for_the_commands_exit() {
    let world = World::new();
    for words in [
        "run n",
        "run n --nonsense -- true",
        "--dir x run n --lease 0 -- true",
        "run a//b -- true",
        "run n --report no/such/folder -- true",
        "run n --then release --result-from-stdout -- true",
    ] {
        let output = world.claim(words).output().unwrap();
        assert_eq!((code(&output), stdout(&output).as_str()), (Some(125), ""), "{words}");
        assert!(!stderr(&output).is_empty(), "{words}");
        let output = world.claim(&format!("--json {words}")).output().unwrap();
        assert_eq!((&report(&output)["ok"], stdout(&output).as_str()), (&json!(false), ""), "{words}");
    }
    assert!(!world.at(".claims").exists());
    assert_eq!(code(&world.claim("run --help").output().unwrap()), Some(0));
    assert_eq!(code(&world.claim("check --nonsense run").output().unwrap()), Some(2));
}

#[test]
fn what_the_command_leaves_running_is_stopped_before_the_node_is_free() {
    let world = World::new();
    let script = "(trap '' TERM; echo $$ >group; touch there; while :; do sleep .01; done) & while ! [ -e there ]; do :; done";
    let output = world.run("n", script).output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let group = world.pid("group");
    until("an empty group", || rustix::process::test_kill_process_group(group).is_err());
}

#[test]
fn a_process_that_left_the_group_holds_up_no_result() {
    let world = World::new();
    let script = "setsid sh -c 'echo $$ >pid; exec sleep 1000' & while ! [ -s pid ]; do :; done; echo 5";
    let output = world.run("n --result-from-stdout", script).stderr(Stdio::null()).output().unwrap();
    assert_eq!((code(&output), world.show("n")["outcome"]["result"].clone()), (Some(0), json!(5)));
    rustix::process::kill_process(world.pid("pid"), rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_task_is_completed_or_gets_another_attempt() {
    let world = World::new();
    for task in ["good", "bad --max-attempts 1", "again"] {
        assert!(world.claim(&format!("add {task}")).status().unwrap().success());
    }
    assert_eq!(code(&world.run("good", "true").output().unwrap()), Some(0));
    assert_eq!(world.show("good")["state"], "done");
    let output = world.run("bad --report bad.json", "exit 3").output().unwrap();
    assert_eq!(code(&output), Some(3));
    assert!(stderr(&output).contains("\nFAILED bad generation=1 "), "{}", stderr(&output));
    assert!(world.text("bad.json").contains("\"settled\":\"failed\""), "{}", world.text("bad.json"));
    let bad = world.show("bad");
    assert_eq!(
        (&bad["state"], &bad["outcome"]["reason"]),
        (&"failed".into(), &"the command exited with 3".into())
    );
    assert_eq!(code(&world.run("again", "exit 1").output().unwrap()), Some(1));
    let again = world.show("again");
    assert_eq!((&again["state"], &again["attempt"]), (&"ready".into(), &1.into()));
    assert_eq!(again["not_before"]["reason"], "the command exited with 1");
}
