//! What the operating system says of real processes: living, ended, unreaped, in groups, out of sight.
//!
//! Nothing here waits for time to pass: a test waits for a child, a line or the end of a pipe, or asks again
//! until a condition holds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use claimdir::Code;
use claimdir::host::{Group, Host, Life, Os, Process, watch_exit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};

/// A child that lives until its standard input closes. When dropped, it is killed with the group it leads.
struct Held(Child);

impl Held {
    fn spawn(command: &mut Command) -> Held {
        Held(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// A shell script in its own process group, once it has said its first line.
    fn script(text: &str) -> (Held, String) {
        let mut held = Held::spawn(Command::new("sh").args(["-c", text]).process_group(0));
        let line = held.line();
        (held, line)
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn say(&mut self, text: &str) {
        self.0.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Lets it end, and leaves it a zombie.
    fn end(&mut self) {
        drop(self.0.stdin.take());
        until_zombie(self.id());
    }

    /// Lets it end, and reaps it.
    fn reap(&mut self) {
        self.end();
        self.0.wait().unwrap();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process_group(pid(self.id()), Signal::KILL);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
}

/// Waits for the end of a child and leaves it a zombie.
fn until_zombie(id: u32) {
    rustix::process::waitid(WaitId::Pid(pid(id)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "still waiting until {what}");
        std::thread::yield_now();
    }
}

fn cat() -> Held {
    Held::spawn(&mut Command::new("cat"))
}

fn refused(id: u32, group: Option<u32>) -> String {
    match Os::new().process(id, group) {
        Ok(process) => panic!("took {process:?}"),
        Err(error) => {
            assert_eq!(error.code(), Code::Usage, "{error}");
            error.to_string()
        }
    }
}

#[test]
fn tells_clocks_place_name_and_randomness() {
    let os = Os::new();
    let (before, now, after) = (os.mono_ns(), os.now(), os.mono_ns());
    let mono_ms = u64::try_from(now.mono_ms).unwrap();
    assert!(before / 1_000_000 <= mono_ms && mono_ms <= after / 1_000_000, "{before} {now:?} {after}");
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(now.wall_ms.abs_diff(i64::try_from(wall.as_millis()).unwrap()) < 60_000, "{now:?}");

    assert!(os.place().same_clock(Os::new().place()));
    assert_eq!(os.place().boot, fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim());
    assert!(!os.place().machine.is_empty());
    assert_eq!(os.name(), fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim());
    assert_ne!(os.random().unwrap(), os.random().unwrap());
}

#[test]
fn a_process_lives_until_it_ends() {
    let os = Os::new();
    let mut child = cat();
    let process = os.process(child.id(), None).unwrap();
    assert_eq!(os.life(&process), Life::Alive);
    child.end();
    assert_eq!(os.life(&process), Life::Gone, "a zombie");
    assert_eq!(refused(child.id(), None), format!("process {} has ended", child.id()));
    child.reap();
    assert_eq!(os.life(&process), Life::Gone, "reaped");
    assert_eq!(refused(child.id(), None), format!("there is no process {}", child.id()));
}

#[test]
fn a_process_with_another_start_is_another() {
    let os = Os::new();
    let me = os.process(std::process::id(), None).unwrap();
    assert_eq!(os.life(&me), Life::Alive);
    for start in [0, me.start - 1, me.start + 1, u64::MAX] {
        assert_eq!(os.life(&Process { start, ..me.clone() }), Life::Gone, "{start}");
    }
}

#[test]
fn elsewhere_nothing_can_be_told() {
    let os = Os::new();
    // Each of these would be gone, were it here.
    let gone = Process { start: 1, ..os.process(std::process::id(), None).unwrap() };
    assert_eq!(os.life(&gone), Life::Gone);
    let other = || "other".to_owned();
    for elsewhere in [
        Process { machine: other(), ..gone.clone() },
        Process { boot: other(), ..gone.clone() },
        Process { boot: String::new(), ..gone.clone() },
        Process { namespace: other(), ..gone.clone() },
        Process { namespace: String::new(), ..gone.clone() },
    ] {
        assert_eq!(os.life(&elsewhere), Life::Unknown, "{elsewhere:?}");
    }
}

#[test]
fn a_number_that_means_many_names_nothing() {
    let os = Os::new();
    let me = os.process(std::process::id(), None).unwrap();
    for id in [0, 1 << 31, u32::MAX] {
        assert_eq!(refused(id, None), format!("no process can have the id {id}"));
        assert_eq!(refused(me.pid, Some(id)), format!("no process can have the id {id}"));
        assert_eq!(os.life(&Process { pid: id, ..me.clone() }), Life::Unknown);
        let group = Some(Group { id, start: me.start });
        assert_eq!(os.life(&Process { start: 1, group, ..me.clone() }), Life::Unknown);
        assert!(watch_exit(id).is_none());
    }
}

#[test]
fn a_group_needs_its_leader_when_named() {
    let child = cat();
    let line = refused(std::process::id(), Some(child.id()));
    assert_eq!(line, format!("process {} leads no process group", child.id()));
}

#[test]
fn a_group_outlives_its_leader() {
    // So that what the script leaves behind becomes a child of this process, a zombie until it says otherwise.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let os = Os::new();
    let (mut leader, member) = Held::script("sleep 1000 >/dev/null & echo $!; read go");
    let member = member.parse().unwrap();
    let process = os.process(leader.id(), Some(leader.id())).unwrap();
    assert_eq!(os.life(&process), Life::Alive, "its leader lives");

    leader.end();
    assert_eq!(os.life(&Process { group: None, ..process.clone() }), Life::Gone);
    assert_eq!(os.life(&process), Life::Alive, "its leader is a zombie");
    leader.reap();
    assert_eq!(os.life(&process), Life::Alive, "its leader is reaped");

    rustix::process::kill_process(pid(member), Signal::KILL).unwrap();
    until_zombie(member);
    assert_eq!(os.life(&process), Life::Gone, "only zombies are left");
    rustix::process::waitpid(Some(pid(member)), WaitOptions::empty()).unwrap();
    assert_eq!(os.life(&process), Life::Gone, "nothing is left");
}

#[test]
fn a_group_counts_only_once_its_process_is_gone() {
    let os = Os::new();
    let (mut leader, _) = Held::script("echo; read go");
    let mut child = cat();
    let process = os.process(child.id(), Some(leader.id())).unwrap();
    child.reap();
    assert_eq!(os.life(&process), Life::Alive, "the group lives");
    let reused = process.group.map(|group| Group { start: group.start + 1, ..group });
    assert_eq!(
        os.life(&Process { group: reused, ..process.clone() }),
        Life::Gone,
        "a later process has its number"
    );
    leader.end();
    assert_eq!(os.life(&process), Life::Gone, "its leader is a zombie and alone");

    let (mut leader, _) = Held::script("echo; read go");
    let child = cat();
    let process = os.process(child.id(), Some(leader.id())).unwrap();
    leader.reap();
    assert_eq!(os.life(&process), Life::Alive, "the group is gone, the process lives");
}

#[test]
fn a_name_deceives_nobody() {
    let os = Os::new();
    let (mut child, _) =
        Held::script(r"echo; read go; printf ') Z 1 1\n\377 (' > /proc/$$/comm; echo named; read go");
    let before = os.process(child.id(), Some(child.id())).unwrap();
    child.say("go\n");
    assert_eq!(child.line(), "named");
    let stat = fs::read(format!("/proc/{}/stat", child.id())).unwrap();
    assert!(stat.windows(11).any(|part| part == b"() Z 1 1\n\xff "), "{}", stat.escape_ascii());
    assert_eq!(os.process(child.id(), Some(child.id())).unwrap(), before);
    assert_eq!(os.life(&before), Life::Alive);
}

#[test]
fn a_process_outlives_its_first_thread() {
    // Python is the one common program that can end its first thread alone; the rule for what `/proc` then
    // says is tested without it too, next to the code.
    let text = "import ctypes, os, sys, threading\n\
                threading.Thread(target=lambda: (sys.stdin.readline(), os._exit(0))).start()\n\
                print('go', flush=True)\n\
                ctypes.CDLL(None).pthread_exit(None)";
    if !can(Command::new("python3").args(["-c", "import ctypes"])) {
        return eprintln!("left out: no python3");
    }
    let mut child = Held::spawn(Command::new("python3").args(["-c", text]));
    assert_eq!(child.line(), "go");
    until("the first thread has ended", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.contains(") Z ")
    });
    let os = Os::new();
    let process = os.process(child.id(), None).unwrap();
    assert_eq!(os.life(&process), Life::Alive);
    child.end();
    assert_eq!(os.life(&process), Life::Gone);
}

#[test]
fn an_exit_can_be_watched() {
    let mut child = cat();
    let Some(watch) = watch_exit(child.id()) else { return eprintln!("left out: no pidfd here") };
    let ended = |wait: Timespec| poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&wait)).unwrap() == 1;
    assert!(!ended(Timespec { tv_sec: 0, tv_nsec: 0 }));
    child.reap();
    assert!(ended(Timespec { tv_sec: 60, tv_nsec: 0 }));
    assert!(watch_exit(child.id()).is_none());
}

/// Not a test of its own: run by the tests below in another namespace, as another user, it says what life this
/// process, given in the environment, has there, and whether it could be named there.
#[test]
fn probe() {
    let Ok(given) = std::env::var("HOST_TEST_PROCESS") else { return };
    let fields: Vec<&str> = given.split('|').collect();
    let [pid, start, group, group_start, machine, boot, namespace] = fields[..] else { panic!("{given}") };
    let number = |text: &str| text.parse::<u32>().unwrap();
    let text = |text: &str| text.to_owned();
    let process = Process {
        pid: number(pid),
        start: start.parse().unwrap(),
        group: (!group.is_empty()).then(|| Group { id: number(group), start: group_start.parse().unwrap() }),
        machine: text(machine),
        boot: text(boot),
        namespace: text(namespace),
    };
    let os = Os::new();
    let named = match os.process(process.pid, None) {
        Ok(named) if named.namespace == process.namespace => "named".to_owned(),
        Ok(_) => "named elsewhere".to_owned(),
        Err(error) => format!("{:?}", error.code()),
    };
    println!("probed: {:?}, {named}", os.life(&process));
}

/// Runs `probe` of `process` through a shell that gets the command as `"$@"`.
fn probed(exe: &Path, shell: &str, process: &Process) -> String {
    let (group, group_start) =
        process.group.map_or_else(Default::default, |group| (group.id.to_string(), group.start.to_string()));
    let Process { pid, start, machine, boot, namespace, .. } = process;
    let given = format!("{pid}|{start}|{group}|{group_start}|{machine}|{boot}|{namespace}");
    let done = Command::new("sh")
        .args(["-c", shell, "sh"])
        .arg(exe)
        .args(["--exact", "probe", "--nocapture", "--test-threads=1"])
        .env("HOST_TEST_PROCESS", given)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    match said.split_once("probed: ").and_then(|(_, rest)| rest.lines().next()) {
        Some(answer) => answer.to_owned(),
        None => panic!("{said}\n{}", String::from_utf8_lossy(&done.stderr)),
    }
}

fn can(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Can this machine make a namespace for us? It takes root, and no container around it that forbids it.
fn can_unshare(options: &[&str]) -> bool {
    let can = can(Command::new("unshare").args(options).arg("true"));
    if !can {
        eprintln!("left out: no right to unshare {options:?}");
    }
    can
}

#[test]
fn what_proc_hides_is_unknown() {
    if !can_unshare(&["--mount"]) {
        return;
    }
    // A copy that anybody may run, wherever the build lies. Not written by this process: a child that another
    // test forks meanwhile would hold it open, and it could not be run.
    let dir = tempfile::tempdir().unwrap();
    let exe = dir.path().join("probe");
    assert!(can(Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&exe)));
    for path in [dir.path(), &exe] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let hidden = |how: &str| {
        format!(
            "exec unshare --mount sh -c 'mount -t proc -o hidepid={how} proc /proc && \
             exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"' sh \"$@\""
        )
    };
    let os = Os::new();

    let child = cat();
    let process = os.process(child.id(), None).unwrap();
    assert_eq!(probed(&exe, "exec \"$@\"", &process), "Alive, named");
    // 1: listed but not to be read; 2: not even listed.
    for how in ["1", "2"] {
        assert_eq!(probed(&exe, &hidden(how), &process), "Unknown, Usage", "hidepid={how}");
    }
    let mut child = child;
    child.reap();
    assert_eq!(probed(&exe, &hidden("2"), &process), "Gone, Usage", "nobody can hide what is not there");

    let (mut leader, _) = Held::script("sleep 1000 & echo; read go");
    let process = os.process(leader.id(), Some(leader.id())).unwrap();
    leader.reap();
    assert_eq!(os.life(&process), Life::Alive);
    for how in ["1", "2"] {
        assert_eq!(probed(&exe, &hidden(how), &process), "Unknown, Usage", "hidepid={how}");
    }

    // A zombie of one's own can be seen; what else is in its group can't.
    let mut zombie = Held::spawn(Command::new("cat").uid(65534).gid(65534).process_group(0));
    let process = os.process(zombie.id(), Some(zombie.id())).unwrap();
    zombie.end();
    assert_eq!(os.life(&process), Life::Gone);
    let mut member = Held::spawn(Command::new("cat").process_group(pid(zombie.id()).as_raw_nonzero().get()));
    assert_eq!(os.life(&process), Life::Alive);
    for how in ["1", "2"] {
        assert_eq!(probed(&exe, &hidden(how), &process), "Unknown, Usage", "hidepid={how}");
    }
    member.reap();
}

#[test]
fn what_cannot_be_read_is_unknown() {
    if !can_unshare(&["--mount"]) {
        return;
    }
    let exe = std::env::current_exe().unwrap();
    let os = Os::new();
    let (mut leader, member) = Held::script("sleep 1000 >/dev/null & echo $!; read go");
    let process = os.process(leader.id(), Some(leader.id())).unwrap();
    // A `/proc` that keeps something to itself without `hidepid`, as a security module may make it.
    let unreadable = format!(
        "exec unshare --mount sh -c 'mount --bind /dev/null /proc/{member}/stat && \"$@\"' sh \"$@\""
    );
    let absent =
        format!("exec unshare --mount sh -c 'mount -t tmpfs none /proc/{member} && \"$@\"' sh \"$@\"");
    leader.end();
    for shell in [&unreadable, &absent] {
        assert_eq!(probed(&exe, shell, &process), "Unknown, Usage", "{shell}");
    }
    leader.reap();
    for shell in [&unreadable, &absent] {
        assert_eq!(probed(&exe, shell, &process), "Unknown, Usage", "{shell}");
    }
    assert_eq!(os.life(&process), Life::Alive);
}

#[test]
fn another_namespace_is_another_place() {
    let exe = std::env::current_exe().unwrap();
    let os = Os::new();
    let child = cat();
    let process = os.process(child.id(), None).unwrap();
    // Here `/proc` still shows the namespace outside: its numbers are not those of the probe.
    if can_unshare(&["--pid", "--fork"]) {
        let inside = probed(&exe, "exec unshare --pid --fork \"$@\"", &process);
        assert_eq!(inside, "Unknown, Usage", "/proc of another namespace");
        let inside = probed(&exe, "exec unshare --pid --fork --mount-proc \"$@\"", &process);
        assert_eq!(inside, "Unknown, Usage", "another namespace");
    }
    // The same process starts at another time there.
    if can_unshare(&["--time", "--boottime", "1000", "--fork"]) {
        let inside = probed(&exe, "exec unshare --time --boottime 1000 --fork \"$@\"", &process);
        assert_eq!(inside, "Unknown, named elsewhere");
    }
}
