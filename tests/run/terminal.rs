//! `run` on a terminal: it types, it hangs up.
//!
//! Where a key is typed the command has no child that it could be forking just then: a shell that waits in
//! `vfork` loses an interrupt and can't be stopped.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{Running, World, code, state, stderr, until, until_gone};

/// A shell with job control on a terminal of its own, which runs this script.
fn on_terminal(world: &World, script: &str) -> (File, Running) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = || -> Stdio { rustix::fs::open(&name, flags, Mode::empty()).unwrap().into() };
    let mut command = world.program("setsid");
    command.args(["--ctty", "bash", "--norc", "--noprofile", "-mc", script]);
    let child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
    (File::from(master), Running::of(child))
}

/// Reads what the terminal shows until the last process on it is gone, so that nobody waits for a reader.
fn drained(terminal: &File) {
    let mut terminal = terminal.try_clone().unwrap();
    std::thread::spawn(move || while terminal.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
}

#[test]
fn a_command_that_reads_from_the_terminal_gets_it() {
    let world = World::new();
    let script = "claim run n -- sh -c 'touch there; read line; echo \"$line\" >line; exit 6'; echo $? >code
        read after; echo \"$after\" >after";
    let (mut terminal, shell) = on_terminal(&world, script);
    drained(&terminal);
    world.until_there("there");
    terminal.write_all(b"typed\n").unwrap();
    until("an exit code", || world.text("code").ends_with('\n'));
    assert_eq!((world.text("line").as_str(), world.text("code").as_str()), ("typed\n", "6\n"));
    // And the shell gets it back.
    terminal.write_all(b"again\n").unwrap();
    assert_eq!(code(&shell.end()), Some(0));
    assert_eq!(world.text("after"), "again\n");
}

#[test]
fn an_interrupt_typed_ends_the_command() {
    let world = World::new();
    let script = "claim run n -- sh -c 'echo $$ >pid; exec sleep 1000'; echo $? >code";
    let (mut terminal, _shell) = on_terminal(&world, script);
    drained(&terminal);
    world.pid_of("pid", "sleep");
    terminal.write_all(b"\x03").unwrap();
    until("an exit code", || world.text("code").ends_with('\n'));
    assert_eq!(world.text("code"), "130\n");
}

#[test]
fn a_job_stops_and_goes_on() {
    let world = World::new();
    let script = "claim run n -- sh -c 'mkfifo end; echo $$ >pid; read line <end; exit 6'
        echo stopped >stopped; fg; echo $? >code";
    let (mut terminal, _shell) = on_terminal(&world, script);
    drained(&terminal);
    let command = world.pid("pid");
    terminal.write_all(b"\x1a").unwrap();
    world.until_there("stopped");
    until("a command that goes on", || state(command).is_some_and(|state| state != 'T'));
    std::fs::write(world.at("end"), "\n").unwrap();
    until("an exit code", || world.text("code").ends_with('\n'));
    assert_eq!(world.text("code"), "6\n");
}

#[test]
fn a_hung_up_terminal_ends_the_command_and_frees_the_node() {
    let world = World::new();
    let script = "claim run n --lease 30d -- sh -c 'echo $$ >pid; while :; do sleep .01; done'";
    let (terminal, _shell) = on_terminal(&world, script);
    let command = world.pid("pid");
    drop(terminal);
    until_gone(command);
    let output = world.claim("acquire n --wait=100s").output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
}
