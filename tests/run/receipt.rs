//! A run with a receipt: its command is started at most once.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Running, World, code, report, stderr, stdout, until_gone};

const ONCE: &str = "echo ran >>runs";

#[test]
fn the_same_run_again_does_not_run_and_says_what_became_of_the_first() {
    let world = World::new();
    let first = world.run("n --json --receipt k", ONCE).output().unwrap();
    assert_eq!((code(&first), &report(&first)["ran"]), (Some(0), &json!(true)));
    let before = world.show("n");
    let again = world.run("n --json --receipt k --report said", ONCE).output().unwrap();
    assert_eq!((code(&again), world.text("runs").as_str()), (Some(75), "ran\n"));
    let said = report(&again);
    let expected = json!([false, "ALREADY_RUN", true, "gone", false, 1, "none", false]);
    let fields = ["ok", "code", "replay", "became", "ran", "generation", "settled", "lost"];
    assert_eq!(json!(fields.map(|field| &said[field])), expected, "{said}");
    assert_eq!(serde_json::from_str::<Value>(&world.text("said")).unwrap(), said, "in the report as well");
    assert_eq!(world.show("n"), before, "nothing was written");
    let line = stderr(&world.run("n --receipt k", ONCE).output().unwrap());
    let expected =
        "lost n — this request has taken it before (generation 1), and its claim is gone: it is ready now";
    assert_eq!(line.lines().next(), Some(expected), "{line}");
}

#[test]
fn a_run_beside_the_one_it_repeats_leaves_it_at_work() {
    let world = World::new();
    let script =
        "[ -e pid ] && exit 9; echo ran >>runs; echo $$ >pid; while ! [ -e end ]; do sleep .01; done";
    let first = Running::start(&mut world.run("n --json --receipt k", script));
    world.pid("pid");
    let again = world.run("n --json --receipt k", script).output().unwrap();
    let said = report(&again);
    assert_eq!((code(&again), &said["became"], &said["ran"]), (Some(75), &json!("held"), &json!(false)));
    assert_eq!(said["holder"]["owner"], "alice");
    world.make("end");
    let first = first.end();
    assert_eq!((code(&first), &report(&first)["settled"]), (Some(0), &json!("released")));
    assert_eq!(world.text("runs"), "ran\n");
}

#[test]
fn a_run_of_a_task_that_is_done_tells_its_result_again() {
    let world = World::new();
    assert_eq!(code(&world.claim("add t --input 1").output().unwrap()), Some(0));
    let run = || world.run("t --json --receipt k --result-from-stdout", "echo ran >>runs; echo 42").output();
    let first = run().unwrap();
    assert_eq!((code(&first), stdout(&first).as_str()), (Some(0), "42\n"));
    let again = run().unwrap();
    let said = report(&again);
    assert_eq!(
        (code(&again), stdout(&again).as_str()),
        (Some(75), ""),
        "the command's output is not made up"
    );
    assert_eq!(json!([said["code"], said["became"], said["result"]]), json!(["ALREADY_RUN", "done", 42]));
    assert_eq!(world.text("runs"), "ran\n");
}

#[test]
fn a_killed_run_is_not_started_again_under_its_key() {
    let world = World::new();
    let script = "echo ran >>runs; echo $$ >pid; exec sleep 600";
    let first = Running::start(&mut world.run("n --receipt k --lease 1h", script));
    let command = world.pid("pid");
    first.signal(Signal::KILL);
    drop(first.end());
    until_gone(command);
    let again = world.run("n --json --receipt k --lease 1h", script).output().unwrap();
    assert_eq!((code(&again), &report(&again)["became"]), (Some(75), &json!("over")));
    assert_eq!(world.text("runs"), "ran\n");
}

#[test]
fn another_run_under_the_key_is_refused_and_not_run() {
    let world = World::new();
    assert_eq!(code(&world.run("n --receipt k", ONCE).output().unwrap()), Some(0));
    for (words, script) in [
        ("n --receipt k", "echo other >>runs"),
        ("n --receipt k --then complete", ONCE),
        ("n --receipt k --owner bob", ONCE),
        ("m --receipt k", ONCE),
    ] {
        let other = world.run(&format!("{words} --json"), script).output().unwrap();
        let said = report(&other);
        assert_eq!((code(&other), &said["code"]), (Some(75), &json!("RECEIPT_CONFLICT")), "{words}");
        assert_eq!(said["ran"], false);
    }
    assert_eq!(code(&world.claim("acquire n --receipt k").output().unwrap()), Some(4));
    assert_eq!(world.text("runs"), "ran\n");
}

#[test]
fn a_refused_run_may_be_tried_again_under_its_key() {
    let world = World::new();
    let output = world.claim("acquire n --owner bob --json").output().unwrap();
    let token =
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["token"].as_str().unwrap().to_owned();
    let refused = world.run("n --json --receipt k", ONCE).output().unwrap();
    assert_eq!((code(&refused), &report(&refused)["code"]), (Some(75), &json!("CLAIM_HELD")));
    assert_eq!(code(&world.claim("release n").env("CLAIM_TOKEN", token).output().unwrap()), Some(0));
    assert_eq!(code(&world.run("n --receipt k", ONCE).output().unwrap()), Some(0));
    assert_eq!(world.text("runs"), "ran\n");
}

#[test]
fn the_key_is_not_the_commands() {
    let world = World::new();
    let script = "env | grep -c RECEIPT >seen; claim renew --progress 1 --quiet && claim complete --quiet";
    let output = world.run("n --json", script).env("CLAIM_RECEIPT", "k").output().unwrap();
    assert_eq!((code(&output), world.text("seen").as_str()), (Some(0), "0\n"), "{}", stderr(&output));
    assert_eq!(report(&output)["settled"], "left");
    let again = world.run("n --json", script).env("CLAIM_RECEIPT", "k").output().unwrap();
    assert_eq!((code(&again), &report(&again)["became"]), (Some(75), &json!("done")));
}

#[test]
fn of_many_at_once_one_runs() {
    let world = World::new();
    let start = || Running::start(&mut world.run("n --json --receipt k", ONCE));
    let all: Vec<Running> = (0..8).map(|_| start()).collect();
    let ran = all.into_iter().map(Running::end).filter(|output| report(output)["ran"] == true).count();
    assert_eq!((ran, world.text("runs").as_str()), (1, "ran\n"));
}
