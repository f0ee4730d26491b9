//! Signals to `run` are the command's.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Running, World, code, report, state, stderr, until};

#[test]
fn signals_reach_the_command() {
    let world = World::new();
    let script = "for s in TERM INT HUP QUIT USR1 USR2 WINCH; do trap \"touch got-$s\" $s; done
        echo $$ >pid; while ! [ -e end ]; do sleep .01; done; exit 5";
    let running = Running::start(&mut world.run("n", script));
    world.pid("pid");
    for (name, signal) in [
        ("TERM", Signal::TERM),
        ("INT", Signal::INT),
        ("HUP", Signal::HUP),
        ("QUIT", Signal::QUIT),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("WINCH", Signal::WINCH),
    ] {
        running.signal(signal);
        world.until_there(&format!("got-{name}"));
    }
    world.make("end");
    assert_eq!(code(&running.end()), Some(5));
}

#[test]
fn a_signal_that_ends_the_command_shows_in_the_exit_code() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::USR1] {
        let world = World::new();
        let running = Running::start(&mut world.run("n --json", "echo $$ >pid; exec sleep 1000"));
        world.pid_of("pid", "sleep");
        running.signal(signal);
        let output = running.end();
        assert_eq!(code(&output), Some(128 + signal.as_raw()), "{}", stderr(&output));
        assert_eq!(report(&output)["signal"], json!(signal.as_raw()));
        assert_eq!(report(&output)["settled"], "released");
    }
}

#[test]
fn a_stop_and_a_continuation_reach_the_command() {
    let world = World::new();
    let mut command = world.program("setsid");
    command.args(["claim", "run", "n", "--", "sh", "-c", "mkfifo end; echo $$ >pid; read line <end"]);
    let running = Running::start(&mut command);
    let pid = world.pid("pid");
    running.signal(Signal::TSTP);
    until("a stopped command", || state(pid) == Some('T'));
    running.signal(Signal::CONT);
    until("a running command", || state(pid) != Some('T'));
    std::fs::write(world.at("end"), "\n").unwrap();
    assert_eq!(code(&running.end()), Some(0));
}

#[test]
fn a_stopped_command_can_be_ended() {
    for signal in [Signal::TERM, Signal::HUP] {
        let world = World::new();
        let running = Running::start(&mut world.run("n", "echo $$ >pid; kill -STOP $$; touch ran"));
        let pid = world.pid("pid");
        until("a stopped command", || state(pid) == Some('T'));
        running.signal(signal);
        assert_eq!(code(&running.end()), Some(128 + signal.as_raw()));
        assert!(!world.at("ran").exists());
    }
}
