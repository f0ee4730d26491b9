//! What the tests of the command line share: a scratch world, the binary in a clean environment, a barrier.

#![allow(unreachable_pub, reason = "one module for many programs")]
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

pub mod fake;
pub mod repo;
pub mod stops;
pub mod turns;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A scratch folder with a claim directory that is made at the first write.
pub struct World {
    pub root: PathBuf,
    _scratch: tempfile::TempDir,
}

/// What a command said, and its exit code.
#[derive(Clone, Debug)]
pub struct Said {
    pub exit: i32,
    pub out: String,
    pub err: String,
}

/// The JSON answer of an `acquire` that took the node. A field that is not listed here is a change of contract.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claimed {
    pub ok: bool,
    pub schema: u64,
    pub dir: String,
    pub id: String,
    pub owner: String,
    pub engine: Option<String>,
    pub generation: u64,
    pub version: u64,
    pub attempt: u64,
    pub token: String,
    pub expires_at: String,
    pub remaining_ms: Option<i64>,
    pub lease_ms: i64,
    pub reclaimed_from: Option<String>,
    pub forced: bool,
    pub progress: Value,
    pub replay: bool,
    pub lost: bool,
    pub paths: Vec<String>,
    pub pools: Vec<String>,
    pub quotas: Value,
    /// Of a task only.
    pub title: Option<String>,
    /// Of a task only.
    #[serde(default)]
    pub input: Value,
    /// Of a task only, whose input is too large for the answer.
    #[serde(default)]
    pub input_blob: Value,
}

/// The JSON answer of a command that did not say yes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    pub did_you_mean: Option<String>,
    pub ok: bool,
    pub schema: u64,
    pub dir: Option<String>,
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
    pub id: Option<String>,
    pub version: Option<u64>,
    pub generation: Option<u64>,
    pub holder: Option<Holder>,
    pub seen: Option<u64>,
    pub path: Option<String>,
    pub reserved: Option<String>,
    pub node: Option<String>,
    pub pool: Option<String>,
    pub slots: Option<u64>,
    pub used: Option<u64>,
    pub quota: Option<String>,
    pub limit: Option<u64>,
    pub period_ms: Option<i64>,
    pub asked: Option<u64>,
    pub remaining_ms: Option<i64>,
    /// Where nothing can be taken now.
    pub due_in_ms: Option<i64>,
    /// Tasks that may be next and can't be read.
    pub unreadable: Option<Value>,
    /// Of a queue that is paused.
    pub paused: Option<Value>,
    /// Where it was cancelled.
    pub scope: Option<String>,
}

/// Who holds a node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    pub owner: String,
    pub generation: u64,
    pub expires_at: String,
    pub remaining_ms: Option<i64>,
    pub engine: Option<String>,
}

impl World {
    pub fn new() -> World {
        let scratch = tempfile::tempdir().unwrap();
        World { root: scratch.path().canonicalize().unwrap(), _scratch: scratch }
    }

    /// The claim directory.
    pub fn dir(&self) -> PathBuf {
        self.root.join(".claims")
    }

    /// The file of a node whose id needs no encoding.
    pub fn record(&self, id: &str) -> PathBuf {
        self.dir().join(format!("{id}.claim"))
    }

    /// The record as JSON.
    pub fn stored(&self, id: &str) -> Value {
        serde_json::from_slice(&fs::read(self.record(id)).unwrap()).unwrap()
    }

    /// Changes the record from outside.
    pub fn edit(&self, id: &str, edit: impl FnOnce(&mut Value)) {
        let mut json = self.stored(id);
        edit(&mut json);
        fs::write(self.record(id), serde_json::to_vec(&json).unwrap()).unwrap();
    }

    /// Takes `id` as the owner `old`, for a lease that is over when this returns; its token. Written from
    /// outside: a short lease may be over before its own command is, on a slow machine.
    pub fn expired(&self, id: &str) -> String {
        let token = self.take(&format!("{id} --owner old --lease 1h")).token;
        self.end_lease(id);
        token
    }

    /// Makes the lease of `id` one that is over.
    pub fn end_lease(&self, id: &str) {
        self.edit(id, |json| {
            json["claim"]["clock"]["ends_mono_ms"] = 1.into();
            json["claim"]["expires_at"] = "2020-01-01T00:00:00Z".into();
        });
    }

    /// The binary with nothing in its environment but what every run needs.
    pub fn claim(&self) -> Command {
        self.clean(env!("CARGO_BIN_EXE_claim"))
    }

    /// Any program in the same environment.
    pub fn clean(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", &self.root);
        command.env("CLAIMS_DIR", self.dir()).env("CLAIM_NO_SYNC", "1").env("TMPDIR", &self.root);
        // A slow machine ends no lease in a test's midst, and no answer before it is given.
        command.env("CLAIM_LEASE", "1h").env("CLAIM_PATIENCE", "60s");
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// A script of `sh` that finds the binary as `$CLAIM`.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = self.clean("sh");
        command.args(["-c", script, "sh"]).env("CLAIM", env!("CARGO_BIN_EXE_claim"));
        command
    }

    /// Runs `claim` with these arguments.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Said {
        said(self.claim().args(arguments))
    }

    /// Runs `claim` with arguments that hold no spaces.
    #[track_caller]
    pub fn say(&self, line: &str) -> Said {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs it with `--json`.
    #[track_caller]
    pub fn json(&self, line: &str) -> Said {
        self.say(&format!("{line} --json"))
    }

    /// Takes a node that can be taken.
    #[track_caller]
    pub fn take(&self, line: &str) -> Claimed {
        self.json(&format!("acquire {line}")).expect(0)
    }

    /// Is refused, with this exit code and this code.
    #[track_caller]
    pub fn refused(&self, line: &str, exit: i32, code: &str) -> Refused {
        let refused: Refused = self.json(line).expect(exit);
        assert_eq!((refused.code.as_str(), refused.ok), (code, false), "{line}: {refused:?}");
        refused
    }

    /// Everything below the scratch folder: path, kind and mode, size, modification time and contents.
    pub fn snapshot(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = fs::symlink_metadata(&path).unwrap();
                let contents = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                let (mode, size, inode) = (metadata.mode(), metadata.size(), metadata.ino());
                let time = (metadata.mtime(), metadata.mtime_nsec());
                found.push(format!("{} {mode:o} {size} {inode} {time:?} {contents:?}", path.display()));
                if metadata.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

impl Said {
    #[track_caller]
    pub fn of(output: Output) -> Said {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let exit = output.status.code().unwrap_or(-1);
        let said = Said { exit, out: text(output.stdout), err: text(output.stderr) };
        said.is_harmless();
        said
    }

    /// No message makes a terminal do something, and none tells anybody to destroy something.
    #[track_caller]
    fn is_harmless(&self) {
        let text = format!("{}\n{}", self.out, self.err);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.contains("panicked"), "{text}");
        for line in text.lines().filter(|line| line.starts_with("hint:") || line.starts_with("note:")) {
            for command in ["rm ", "rmdir", "unlink", "git clean", "git reset", "delete", "--force", "kill"] {
                assert!(!line.contains(command), "{line}");
            }
        }
    }

    /// The one line on standard output.
    #[track_caller]
    pub fn line(&self) -> &str {
        let line = self.out.strip_suffix('\n').unwrap_or_else(|| panic!("no line: {self:?}"));
        assert!(!line.contains('\n'), "more than one line: {self:?}");
        line
    }

    /// The one JSON object on standard output, after this exit code.
    #[track_caller]
    pub fn expect<T: DeserializeOwned>(&self, exit: i32) -> T {
        assert_eq!(self.exit, exit, "{self:?}");
        let value: Value = serde_json::from_str(self.line()).unwrap_or_else(|e| panic!("{e}: {self:?}"));
        assert_eq!(value["ok"], exit == 0, "{self:?}");
        assert_eq!(value["schema"], 1, "{self:?}");
        serde_json::from_value(value).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// Runs a command to its end.
#[track_caller]
pub fn said(command: &mut Command) -> Said {
    Said::of(command.output().unwrap())
}

/// What `command` says to this on its standard input.
pub fn fed(mut command: Command, bytes: &[u8]) -> Said {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(bytes);
    Said::of(child.wait_with_output().unwrap())
}

/// Starts all of `commands` and lets them go at the same moment, once each has come to the barrier.
pub fn race(world: &World, commands: &[Vec<String>]) -> Vec<Said> {
    let (barrier, open) = std::io::pipe().unwrap();
    let mut children: Vec<Child> = Vec::new();
    for arguments in commands {
        let mut command = world.clean("sh");
        command.args(["-c", r#"echo; read -r _; exec "$@""#, "sh", env!("CARGO_BIN_EXE_claim")]);
        command.args(arguments).stdin(barrier.try_clone().unwrap());
        children.push(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    }
    for child in &mut children {
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }
    drop(open);
    children.into_iter().map(|child| Said::of(child.wait_with_output().unwrap())).collect()
}

/// `line` as arguments.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Asks again until `condition` holds. The deadline is only there so that a broken test ends.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A child process that is killed and reaped when the test is done with it.
pub struct Running(pub Child);

impl Running {
    /// A process that does nothing for long, in a process group of its own.
    pub fn idle() -> Running {
        Running(Command::new("sleep").arg("3600").process_group(0).stdin(Stdio::null()).spawn().unwrap())
    }

    pub fn spawn(command: &mut Command) -> Running {
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn end(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }

    /// What it says in the end.
    pub fn said(mut self) -> Said {
        let mut output = Output { status: Default::default(), stdout: Vec::new(), stderr: Vec::new() };
        self.0.stdout.take().unwrap().read_to_end(&mut output.stdout).unwrap();
        self.0.stderr.take().unwrap().read_to_end(&mut output.stderr).unwrap();
        output.status = self.0.wait().unwrap();
        Said::of(output)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs a script of `sh` in a mount namespace of its own, as root of it, with `folder` as `$1`. `None`, with
/// the reason printed: this machine doesn't let us.
pub fn in_mount_namespace(world: &World, script: &str, folder: &Path) -> Option<Said> {
    let options: &[&str] = if is_root() { &["-m"] } else { &["-r", "-m"] };
    let allowed = Command::new("unshare").args(options).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        println!("skipped: no mount namespace is to be had here");
        return None;
    }
    let mut command = world.clean("unshare");
    command.args(options).args(["sh", "-c", script, "sh"]).arg(folder);
    Some(said(command.env("CLAIM", env!("CARGO_BIN_EXE_claim"))))
}
