//! A scratch claim directory, commands in it, and waiting for what they do.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A scratch folder with a claim directory; commands run in it.
pub(crate) struct World(tempfile::TempDir);

impl World {
    pub(crate) fn new() -> World {
        World(tempfile::tempdir().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Any program, in the folder and with the claim directory set.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let bin = Path::new(env!("CARGO_BIN_EXE_claim")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        for name in ["CLAIM_ID", "CLAIM_TOKEN", "CLAIM_LEASE", "CLAIM_GENERATION", "CLAIM_ATTEMPT"] {
            command.env_remove(name);
        }
        command
            .current_dir(self.0.path())
            .env("CLAIMS_DIR", self.at(".claims"))
            .env("CLAIM_NO_SYNC", "1")
            .env("CLAIM_OWNER", "alice")
            .env("PATH", path)
            .stdin(Stdio::null());
        command
    }

    /// `claim` with these words.
    pub(crate) fn claim(&self, words: &str) -> Command {
        let mut command = self.program("claim");
        command.args(words.split_whitespace());
        command
    }

    /// `claim run` with these words, and a shell script as the command.
    pub(crate) fn run(&self, words: &str, script: &str) -> Command {
        let mut command = self.claim(&format!("run {words}"));
        command.args(["--", "sh", "-c", script]);
        command
    }

    pub(crate) fn show(&self, id: &str) -> Value {
        let output = self.claim("--json show").arg(id).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    /// Waits until a command has made this file.
    pub(crate) fn until_there(&self, name: &str) {
        until(name, || self.at(name).exists());
    }

    /// Waits until a command has written its process id, with a line end, and reads it.
    pub(crate) fn pid(&self, name: &str) -> Pid {
        until(name, || self.text(name).ends_with('\n'));
        Pid::from_raw(self.text(name).trim().parse().unwrap()).unwrap()
    }

    /// The same, once the process has become this program. A shell may lose an interrupt on the way there.
    pub(crate) fn pid_of(&self, name: &str, program: &str) -> Pid {
        let pid = self.pid(name);
        let comm = format!("/proc/{}/comm", pid.as_raw_nonzero());
        until(program, || fs::read_to_string(&comm).is_ok_and(|comm| comm.trim() == program));
        pid
    }

    pub(crate) fn make(&self, name: &str) {
        fs::write(self.at(name), "").unwrap();
    }

    /// Another takes the node as soon as it can be had, and is the new owner.
    pub(crate) fn taken_over(&self, id: &str, options: &str) {
        let words = format!("acquire {id} --owner bob --lease 1h {options}");
        let output = self.claim(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

/// A child that is killed when the test ends.
pub(crate) struct Running(Child);

impl Running {
    /// Starts it, both outputs to be read at the end.
    pub(crate) fn start(command: &mut Command) -> Running {
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    pub(crate) fn of(child: Child) -> Running {
        Running(child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Its end, and what it said.
    pub(crate) fn end(mut self) -> Output {
        let (out, err) = (self.0.stdout.take(), self.0.stderr.take());
        let out = thread::spawn(move || out.map_or(Vec::new(), read));
        let err = thread::spawn(move || err.map_or(Vec::new(), read));
        let mut status = None;
        until("the end of a child", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        Output { status: status.unwrap(), stdout: out.join().unwrap(), stderr: err.join().unwrap() }
    }
}

fn read(mut from: impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks again until it is so. The guard is for a test that would hang.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(120), "in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A process's state as `/proc` has it; `None`: it is gone. A zombie counts as gone.
pub(crate) fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let state = stat[stat.rfind(')')? + 2..].chars().next()?;
    (!matches!(state, 'Z' | 'X')).then_some(state)
}

pub(crate) fn until_gone(pid: Pid) {
    until("the end of a process", || state(pid).is_none());
}

pub(crate) fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The JSON object that ends standard error.
pub(crate) fn report(output: &Output) -> Value {
    let text = stderr(output);
    serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_else(|_| panic!("{text}"))
}
