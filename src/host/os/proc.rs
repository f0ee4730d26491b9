//! What `/proc` tells, and what it may hide.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use rustix::process::Pid;

use super::read;

/// The part of `/proc/PID/stat` that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    state: u8,
    group: i32,
    threads: u64,
    /// Clock ticks from boot to the process's start.
    pub(super) start: u64,
}

impl Stat {
    /// Looks at a process or zombie.
    pub(super) fn read(pid: u32) -> io::Result<Stat> {
        // Room for the whole line, or it is read in small pieces: the file says that it is empty.
        let mut line = Vec::with_capacity(1024);
        File::open(format!("/proc/{pid}/stat"))?.read_to_end(&mut line)?;
        Stat::parse(&line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its stat is unreadable"))
    }

    /// The second field is the command's name in parentheses, bytes of anybody's choice; nothing after it
    /// holds a parenthesis.
    fn parse(line: &[u8]) -> Option<Stat> {
        let after_name = line.iter().rposition(|&byte| byte == b')')? + 1;
        let fields: Vec<&str> =
            str::from_utf8(line.get(after_name..)?).ok()?.split_ascii_whitespace().collect();
        // Numbered from 1 in proc_pid_stat(5), where the state is the third.
        let field = |number: usize| fields.get(number - 3).copied();
        let &[state] = field(3)?.as_bytes() else { return None };
        // What follows the start proves that it was not cut off: it would read as another process's.
        field(23)?;
        Some(Stat {
            state,
            group: field(5)?.parse().ok()?,
            threads: field(20)?.parse().ok()?,
            start: field(22)?.parse().ok()?,
        })
    }

    /// Has the whole process ended? While other threads run, one whose first thread has exited reads as a
    /// zombie too, but a zombie of more than one thread.
    pub(super) fn ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }

    /// Is it a member of this process group?
    pub(super) fn is_in(&self, group: Pid) -> bool {
        self.group == group.as_raw_nonzero().get()
    }
}

/// Does a listing of `/proc` show every process of its namespace?
///
/// Only the mount's options tell. That `/proc/1` can be read or that we are root is no proof: with `hidepid`
/// one sees what one may trace, which is one's own processes everywhere and, for the root of a user namespace,
/// not all others.
pub(super) fn shows_all() -> bool {
    hides_nothing(&read("/proc/self/mountinfo"))
}

/// Is every file system mounted on `/proc` a whole `proc` without `hidepid`? One of them is on top.
fn hides_nothing(mountinfo: &str) -> bool {
    let mut mounts = mountinfo.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let root = mount.next()?;
        (mount.next()? == "/proc").then_some((root, system))
    });
    let plain = |(root, system): (&str, &str)| {
        let mut system = system.split(' ');
        let kind = system.next();
        let mut options = system.nth(1).unwrap_or_default().split(',');
        root == "/" && kind == Some("proc") && !options.any(|option| option.starts_with("hidepid="))
    };
    mounts.next().is_some_and(plain) && mounts.all(plain)
}

/// The namespaces in which process ids and start times are read here: `pid:[4026531836] time:[4026531834]`,
/// without the second where the kernel has none. None if `/proc` shows another pid namespace than our own, as it
/// does to a process in a new one until `/proc` is mounted anew: `/proc/7` and `kill(7)` then mean two processes.
pub(super) fn namespaces() -> Option<String> {
    let pid = link("/proc/self/ns/pid");
    if pid.is_empty() {
        return None;
    }
    let ours = match level(&read("/proc/self/status")) {
        Some(level) => level == 1,
        None => link("/proc/self") == rustix::process::getpid().to_string(),
    };
    let time = link("/proc/self/ns/time");
    ours.then(|| format!("{pid} {time}").trim_end().to_owned())
}

/// How many pid namespaces know the process, from the one that this `/proc` shows down to the process's own.
fn level(status: &str) -> Option<usize> {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(ids.split_ascii_whitespace().count())
}

/// Where a symbolic link leads, empty where it can't be read.
pub(super) fn link(path: impl AsRef<Path>) -> String {
    fs::read_link(path).map(|target| target.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &[u8], state: &str, threads: u32) -> Vec<u8> {
        let rest = format!(
            ") {state} 1 40 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 {threads} 0 93501 2400 200 1844 1 1\n"
        );
        [b"41 (", name, rest.as_bytes()].concat()
    }

    #[test]
    fn reads_a_process_by_any_name() {
        let wanted = Stat { state: b'S', group: 40, threads: 1, start: 93501 };
        for name in [&b"sleep"[..], b"", b") Z 1 1", b"a) Z 1 2 (b", b"(((", b")\n) X", b"\xff\xfe) Z"] {
            assert_eq!(Stat::parse(&line(name, "S", 1)), Some(wanted), "{name:?}");
        }
    }

    #[test]
    fn refuses_what_is_no_stat() {
        for text in
            [&b""[..], b"41", b"41 (sleep", b"41 (sleep)", b"41 (sleep) S 1 40", b"41 (a) SS 1 40 40 0"]
        {
            assert_eq!(Stat::parse(text), None, "{text:?}");
        }
        let whole = line(b"sleep", "S", 1);
        let start = whole.windows(5).position(|five| five == b"93501").unwrap_or_default();
        for end in [start, start + 1, start + 5] {
            assert_eq!(Stat::parse(&whole[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_zombie_has_ended_unless_threads_are_left() {
        for (state, threads, ended) in [
            ("Z", 1, true),
            ("X", 0, true),
            ("x", 1, true),
            ("Z", 2, false),
            ("S", 1, false),
            ("T", 1, false),
        ] {
            let stat = Stat::parse(&line(b"sleep", state, threads));
            assert_eq!(stat.map(|stat| stat.ended()), Some(ended), "{state} {threads}");
        }
    }

    #[test]
    fn trusts_only_a_plain_proc() {
        let root = "22 1 8:1 / / rw,relatime - ext4 /dev/vda rw";
        let plain = "45 22 0:21 / /proc rw,relatime shared:13 - proc proc rw";
        let hiding = "63 45 0:39 / /proc rw,relatime - proc proc rw,gid=4,hidepid=invisible";
        let other = "64 45 0:40 / /proc/sys/fs/binfmt_misc rw - binfmt_misc none rw";
        let part = "45 22 0:21 /sys /proc rw - proc proc rw";
        let fake = "45 22 0:41 / /proc rw - tmpfs hidepid rw";
        for (mounts, trusted) in [
            (vec![root, plain, other], true),
            (vec![plain, plain], true),
            (vec![root], false),
            (vec![], false),
            (vec![hiding], false),
            (vec![plain, hiding], false),
            (vec![hiding, plain], false),
            (vec![part], false),
            (vec![fake], false),
        ] {
            assert_eq!(hides_nothing(&mounts.join("\n")), trusted, "{mounts:?}");
        }
    }

    #[test]
    fn counts_the_namespaces_that_know_a_process() {
        assert_eq!(level("Name:\tx\nNSpid:\t5716\n"), Some(1));
        assert_eq!(level("Name:\tx\nNSpid:\t5716\t4\nNSpgid:\t1\t1\n"), Some(2));
        assert_eq!(level("Name:\tx\n"), None);
    }
}
