//! What becomes of a task by its command's end, and what is said of it.

use serde_json::{Value, json};

use crate::support::{World, code, stderr, stdout};
use crate::{good, work};

#[test]
fn the_command_gets_the_input_and_its_output_is_the_result() {
    let world = World::new();
    for (id, input) in [("a", "{\"n\":1}"), ("b", "\"two\\nlines\""), ("c", "null")] {
        good(&world, &format!("add {id} --input {input}"));
    }
    good(&world, "add d");
    let script = "echo \"$CLAIM_ID to standard error\" >&2; claim check || exit 9
        case $CLAIM_ID in b) echo two; echo lines;; c) ;; *) cat;; esac";
    let output = work(&world, "--idle-exit", script).output().unwrap();
    assert_eq!(code(&output), Some(0));
    let lines: String = ["a", "b", "c", "d"].map(|id| format!("DONE {id} generation=1 attempt=1\n")).concat();
    // `check` speaks on the command's standard output, which is its result and goes no further.
    assert_eq!(stdout(&output), lines, "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 4, "{}", stderr(&output));
    assert!(stderr(&output).contains("d to standard error\n"));
    let held = |id: &str| world.show(id)["outcome"]["result"].as_str().unwrap().to_owned();
    assert!(held("a").starts_with("HELD a by alice generation=1 ") && held("a").ends_with("\n{\"n\":1}"));
    assert!(held("b").ends_with("\ntwo\nlines"));
    assert!(held("d").ends_with("\nnull"));
}

#[test]
fn output_that_is_json_is_a_json_result() {
    let world = World::new();
    good(&world, "add a --input {\"n\":[1,2]}");
    good(&world, "add b --input 1");
    let script = "read -r line; [ $CLAIM_ID = b ] || echo \"$line\"";
    assert_eq!(code(&work(&world, "--idle-exit --quiet", script).output().unwrap()), Some(0));
    assert_eq!(world.show("a")["outcome"]["result"], json!({"n": [1, 2]}));
    assert_eq!(world.show("b")["outcome"]["result"], "");
}

#[test]
fn the_environment_names_the_claim_and_no_outer_one() {
    let world = World::new();
    good(&world, "add a");
    let script = "echo \"$CLAIM_ID $CLAIM_GENERATION $CLAIM_ATTEMPT ${#CLAIM_TOKEN} $CLAIMS_DIR\"
        ! env | grep CLAIM_RECEIPT";
    let mut command = work(&world, "--idle-exit", script);
    command.env("CLAIM_ID", "outer").env("CLAIM_TOKEN", "outer").env("CLAIM_RECEIPT", "outer");
    assert_eq!(code(&command.output().unwrap()), Some(0));
    let said = format!("a 1 1 32 {}", world.at(".claims").display());
    assert_eq!(world.show("a")["outcome"]["result"], said);
}

#[test]
fn exit_65_rejects() {
    let world = World::new();
    good(&world, "add a");
    let output = work(&world, "--idle-exit", "echo ignored; exit 65").output().unwrap();
    assert_eq!(code(&output), Some(0));
    assert_eq!(stdout(&output), "FAILED a generation=1 attempt=1 (the command exited with 65)\n");
    let node = world.show("a");
    assert_eq!((&node["state"], &node["attempts"][0]["ended"]), (&json!("failed"), &json!("rejected")));
    assert_eq!(node["outcome"]["reason"], "the command exited with 65");
}

#[test]
fn any_other_end_gives_the_task_back_for_later() {
    for (end, why) in [
        ("exit 3", "the command exited with 3"),
        ("kill -KILL $$", "the command died of signal 9"),
        (
            "head -c 1100000 /dev/zero | tr '\\0' x",
            "no result was recorded: the output has more than 1048576 bytes",
        ),
        ("printf '\\377'", "no result was recorded: it is neither JSON nor text in UTF-8"),
    ] {
        let world = World::new();
        good(&world, "add a");
        let output = work(&world, "--idle-exit", end).output().unwrap();
        assert_eq!(code(&output), Some(0), "a task's failure is not the worker's");
        assert_eq!(stdout(&output), format!("RETRY a generation=1 attempt=1 ({why})\n"));
        let node = world.show("a");
        assert_eq!((&node["state"], &node["attempts"][0]["error"]), (&json!("ready"), &json!(why)));
        assert!(node["not_before"].is_object() || node["not_before"].is_string(), "{node}");
    }
}

#[test]
fn a_poison_task_fails_after_its_attempts() {
    let world = World::new();
    good(&world, "add poison --max-attempts 2");
    let output = work(&world, "--max 2", "exit 1").output().unwrap();
    assert_eq!(code(&output), Some(0));
    let lines = "RETRY poison generation=1 attempt=1 (the command exited with 1)\n\
        FAILED poison generation=2 attempt=2 (the command exited with 1)\n";
    assert_eq!(stdout(&output), lines);
    let node = world.show("poison");
    assert_eq!(node["state"], "failed");
    let ends: Vec<&Value> = node["attempts"].as_array().unwrap().iter().map(|it| &it["ended"]).collect();
    assert_eq!(ends, ["retried", "retried"]);
}

#[test]
fn a_task_that_the_command_settled_itself_is_left_at_that() {
    for (how, state) in [
        ("complete --result 1", "done"),
        ("retry --reason later", "ready"),
        ("reject --reason never", "failed"),
        ("release --block question", "blocked"),
    ] {
        for end in [0, 1, 65] {
            let world = World::new();
            good(&world, "add a");
            let script = format!("claim --quiet {how}; exit {end}");
            let output = work(&world, "--max 1", &script).output().unwrap();
            assert_eq!(code(&output), Some(0), "{}", stderr(&output));
            assert_eq!(stdout(&output), "LEFT a generation=1 attempt=1\n", "{how}, {end}");
            assert_eq!(world.show("a")["state"], state, "{how}, {end}");
        }
    }
}

#[test]
fn what_a_command_leaves_running_is_stopped_before_its_task_is_settled() {
    let world = World::new();
    good(&world, "add a");
    let script = "(trap '' TERM; sh -c 'echo $PPID >left'; while :; do sleep .01; done) >&2 &
        while ! [ -s left ]; do sleep .01; done";
    let output = work(&world, "--idle-exit", script).output().unwrap();
    assert_eq!(stdout(&output), "DONE a generation=1 attempt=1\n", "{}", stderr(&output));
    assert_eq!(crate::support::state(world.pid("left")), None);
}

#[test]
fn json_is_one_object_in_the_end() {
    let world = World::new();
    for id in ["a", "b", "c", "d"] {
        good(&world, &format!("add {id}"));
    }
    let script = "case $CLAIM_ID in b) exit 1;; c) exit 65;; d) claim -q complete;; esac";
    let output = work(&world, "--idle-exit --json", script).output().unwrap();
    assert_eq!(code(&output), Some(0));
    assert_eq!(stderr(&output), "");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "ok": true, "schema": 1, "dir": world.at(".claims"),
        "done": 1, "retried": 1, "rejected": 1, "failed": 0, "lost": 0, "left": 1, "released": 0,
    });
    assert_eq!(said, expected);
}

#[test]
fn quiet_is_quiet_but_for_the_command() {
    let world = World::new();
    good(&world, "add a");
    let output = work(&world, "--idle-exit --quiet", "echo out; echo err >&2").output().unwrap();
    assert_eq!((stdout(&output), stderr(&output)), (String::new(), "err\n".to_owned()));
}

#[test]
fn a_command_that_is_not_there_takes_nothing() {
    let world = World::new();
    good(&world, "add a");
    let output = world.claim("work -- no-such-command").output().unwrap();
    assert_eq!((code(&output), stdout(&output)), (Some(127), String::new()));
    assert!(stderr(&output).contains("cannot start no-such-command"), "{}", stderr(&output));
    assert_eq!(world.show("a")["generation"], 0);
}

#[test]
fn a_command_that_can_not_be_started_after_all_ends_the_worker_and_gives_the_task_back() {
    let world = World::new();
    good(&world, "add a");
    std::fs::write(world.at("broken"), "#!/no/such/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(world.at("broken"), mode).unwrap();
    let output = world.claim("work -- ./broken").output().unwrap();
    assert_eq!(code(&output), Some(127), "{}", stderr(&output));
    let node = world.show("a");
    assert_eq!((&node["state"], &node["attempt"]), (&json!("ready"), &json!(0)));
}

#[test]
fn wrong_usage_and_a_missing_directory_end_it_with_their_codes() {
    let world = World::new();
    for (words, expected) in [
        ("work --concurrency 0 -- true", 2),
        ("work --concurrency 257 -- true", 2),
        ("work --max 0 -- true", 2),
        ("work --wait=1s -- true", 2),
        ("work --lease 1ms -- true", 2),
        ("work", 2),
    ] {
        assert_eq!(code(&world.claim(words).output().unwrap()), Some(expected), "{words}");
    }
    let mut nowhere = world.claim("work --json -- true");
    let output = nowhere.env_remove("CLAIMS_DIR").output().unwrap();
    assert_eq!(code(&output), Some(7), "{}", stderr(&output));
    std::fs::create_dir_all(world.at(".claims/.store")).unwrap();
    std::fs::write(world.at(".claims/.store/format"), "{\"format\": 999}").unwrap();
    let output = world.claim("work --json -- true").output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(&output), &said["code"]), (Some(6), &json!("FORMAT_TOO_NEW")), "{said}");
}
