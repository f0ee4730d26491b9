//! `claim watch` as a person meets it: the binary on a terminal, typed at, resized, hung up on; and without one.
//! What it shows is held to its records in `src/cli/watch/tests.rs`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod emulator;
#[path = "../support/mod.rs"]
mod support;

use std::fs;

use emulator::Board;
use rustix::process::Signal;
use serde_json::Value;
use support::{World, said, until};

/// A directory with something of everything that holds up others.
fn scene() -> World {
    let world = World::new();
    for line in [
        "pool set gpu 1",
        "add design --project parser",
        "add code --after design",
        "add train --pool gpu --queue ml",
        "add eval --pool gpu --queue ml",
        "add page --queue pages",
        "pause pages --reason deploy --owner ops",
        "acquire design --owner alice --lease 10m",
        "acquire train --owner bob --lease 2h",
    ] {
        assert_eq!(world.say(line).exit, 0, "{line}");
    }
    let bad = world.take("bad --owner bob").token;
    assert_eq!(world.say(&format!("reject bad --token {bad} --reason broken")).exit, 0);
    world
}

#[test]
fn it_shows_what_others_do_and_gives_the_terminal_back() {
    let world = World::new();
    fs::create_dir(world.dir()).unwrap();
    let mut board = Board::start(&world, "--interval 250ms", (80, 24));
    board.shows(&["nobody holds a node now"]);
    assert!(board.is_on_alternate_screen());
    world.take("build/parser --owner alice --lease 10m");
    world.take("docs --owner bob --lease 10m");
    board.shows(&["RUNNING 2"]);
    board.shows(&["build/parser", "alice", "m", "1"]);
    board.type_in("/DOC\r");
    board.shows(&["RUNNING 1", "OWNER"]);
    board.shows(&["> docs", "bob"]);
    assert!(!board.text().contains("alice  "), "{}", board.text());
    board.type_in("\r");
    board.shows(&["NODE docs"]);
    board.shows(&["docs claimed by bob, ends in"]);
    board.shows(&["generation=1 attempt=1 version=1"]);
    board.shows(&["claimed docs by bob"]);
    board.type_in("\x1b");
    board.shows(&["RUNNING 1", "OWNER"]);
    board.type_in("?");
    board.shows(&["HELP"]);
    board.type_in("q");
    board.has_given_the_terminal_back();
}

#[test]
fn signals_and_ctrl_c_give_the_terminal_back() {
    let world = scene();
    for signal in [Some(Signal::TERM), Some(Signal::INT), Some(Signal::HUP), Some(Signal::QUIT), None] {
        let mut board = Board::start(&world, "", (80, 24));
        board.shows(&["RUNNING 2"]);
        match signal {
            Some(signal) => board.signal(signal),
            None => board.type_in("\x03"),
        }
        board.has_given_the_terminal_back();
    }
}

#[test]
fn it_follows_the_size_of_its_terminal() {
    let world = scene();
    let mut board = Board::start(&world, "", (80, 24));
    board.shows(&["RUNNING 2"]);
    board.resize((200, 60));
    board.shows(&["RUNNING 2", "FAILED 1"]);
    for size in [(1, 1), (2, 3), (0, 0), (500, 2), (80, 24)] {
        board.resize(size);
    }
    board.shows(&["q quit"]);
    board.type_in("q");
    board.has_given_the_terminal_back();
}

#[test]
fn a_directory_that_goes_away_is_told_and_comes_back() {
    let world = scene();
    let mut board = Board::start(&world, "--interval 250ms", (80, 24));
    board.shows(&["design", "alice"]);
    fs::rename(world.dir(), world.root.join("elsewhere")).unwrap();
    board.shows(&["is gone"]);
    assert!(!world.dir().exists());
    fs::rename(world.root.join("elsewhere"), world.dir()).unwrap();
    board.shows(&["design", "alice"]);
    board.type_in("q");
    board.has_given_the_terminal_back();
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    let world = scene();
    let board = Board::unread(&world, "", (80, 24));
    until("a board that has the terminal", || board.has_other_modes());
    let mut watch = board.hang_up();
    until("the end of the board", || watch.0.try_wait().unwrap().is_some());
}

#[test]
fn a_terminal_that_takes_no_more_keeps_no_signal_from_being_heard() {
    let world = scene();
    // The rules alone are more than a terminal keeps for somebody who reads later.
    let mut board = Board::unread(&world, "", (12_000, 24));
    let call = format!("/proc/{}/syscall", board.id());
    until("a board that waits for the terminal, and for signals", || {
        let call = fs::read_to_string(&call).unwrap_or_default();
        call.split(' ').nth(2) == Some("0x2") && board.has_other_modes()
    });
    board.signal(Signal::TERM);
    assert_eq!(board.exit(), Some(0));
    board.has_the_modes_it_had();
}

#[test]
fn colours_are_for_those_who_want_them() {
    let world = scene();
    for (variable, coloured) in [("", true), ("1", false)] {
        let mut board = Board::with(&world, "", (80, 24), &[("NO_COLOR", variable)]);
        board.shows(&["design", "alice"]);
        board.type_in("q");
        board.has_given_the_terminal_back();
        assert_eq!(board.is_coloured(), coloured, "NO_COLOR={variable}");
    }
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let world = scene();
    let said = world.say("watch");
    assert_eq!((said.exit, said.out.as_str()), (2, ""));
    assert!(said.err.contains("needs a terminal") && said.err.contains("claim list"), "{}", said.err);
    assert!(said.err.contains("--once"), "{}", said.err);
    assert_eq!(
        world.refused("watch", 2, "USAGE").message,
        "--json is for the board as it is now: add --once"
    );
    for interval in ["0s", "249ms", "2h", "soon", "-1s"] {
        assert_eq!(world.say(&format!("watch --once --interval={interval}")).exit, 2, "{interval}");
    }
}

#[test]
fn once_prints_the_board_and_writes_nothing() {
    let world = scene();
    let before = world.snapshot();
    let said = world.say("watch --once");
    assert_eq!((said.exit, said.err.as_str()), (0, ""));
    let has = |parts: &[&str]| {
        let found = said.out.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "{parts:?} is not in\n{}", said.out);
    };
    has(&["6 nodes", "2 claimed", "1 ready", "2 waiting", "1 failed"]);
    has(&["design", "alice", "1/5"]);
    has(&["code", "after design, which is claimed"]);
    has(&["eval", "pool gpu 1/1: train by bob"]);
    has(&["bad", "failed: broken"]);
    has(&["!pages", "PAUSED", "ago by ops: deploy"]);
    has(&["bad", "rejected", "bob"]);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    let wide =
        support::said(world.claim().args(["watch", "--once"]).env("COLUMNS", "160").env("LINES", "50"));
    assert!(
        wide.out.lines().any(|line| line.contains("RUNNING 2") && line.contains("FAILED 1")),
        "{}",
        wide.out
    );
    assert_eq!(world.snapshot(), before);
}

#[test]
fn once_with_json_has_the_data() {
    let world = scene();
    let board: Value = world.json("watch --once").expect(0);
    assert_eq!(board["states"]["claimed"], 2);
    let node =
        |id: &str| board["nodes"].as_array().unwrap().iter().find(|node| node["id"] == id).unwrap().clone();
    assert_eq!(node("train")["owner"], "bob");
    assert!(node("train")["remaining_ms"].as_i64().unwrap() > 7_000_000);
    assert_eq!(node("eval")["state"], "waiting");
    assert_eq!(node("eval")["why"], "pool gpu 1/1: train by bob");
    assert_eq!(node("bad")["why"], "broken");
    let queue = board["queues"].as_array().unwrap().iter().find(|queue| queue["queue"] == "pages").unwrap();
    assert_eq!((&queue["paused"]["by"], &queue["states"]["ready"]), (&"ops".into(), &1.into()));
    assert_eq!(board["pools"][0]["used"][0]["node"], "train");
    assert_eq!(board["events"][0]["event"], "rejected");
    assert!(!board.to_string().contains("token"));
    let ids = |arguments: &str| -> Vec<String> {
        let board: Value = world.json(&format!("watch --once {arguments}")).expect(0);
        let nodes = board["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("--queue ml"), ["eval", "train"]);
    assert_eq!(ids("--project parser"), ["design"]);
    assert_eq!(ids("--owner alice"), ["design"]);
    assert_eq!(ids("--scope nightly"), Vec::<String>::new());
}

#[test]
fn a_record_that_can_not_be_read_is_told_and_the_others_go_on() {
    let world = scene();
    fs::write(world.record("code"), "nonsense").unwrap();
    let said = world.say("watch --once");
    assert_eq!(said.exit, 6);
    assert!(said.out.contains("! 1 can't be read") && said.out.contains("alice"), "{}", said.out);
}

#[test]
fn no_directory_is_made_by_looking() {
    let world = World::new();
    let nowhere = world.root.join("nowhere");
    fs::create_dir(&nowhere).unwrap();
    let mut command = world.claim();
    let said = said(command.args(["watch", "--once"]).env_remove("CLAIMS_DIR").current_dir(&nowhere));
    assert_eq!(said.exit, 7, "{said:?}");
    assert_eq!(world.say("watch --once").exit, 0, "it is where it will be made, as for `list`");
    let mut board = Board::start(&world, "--interval 250ms", (80, 24));
    board.shows(&["there is no", "yet"]);
    assert!(!world.dir().exists());
    world.take("n --owner alice");
    board.shows(&["n", "alice"]);
    board.type_in("q");
    board.has_given_the_terminal_back();
}
