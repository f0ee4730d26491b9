//! The operating system as a host.
//!
//! Nothing is read before a call needs it, and what can't change while the program runs is read once.

mod life;
mod proc;

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, clock_gettime};

use super::{Host, Life, Now, Place, Process};
use crate::error::{Code, Error, Result};

/// The operating system.
#[derive(Debug, Default)]
pub struct Os {
    place: OnceLock<Place>,
    namespaces: OnceLock<Option<String>>,
    name: OnceLock<String>,
}

impl Os {
    /// The operating system this runs on; nothing is read yet.
    pub fn new() -> Os {
        Os::default()
    }

    /// The namespaces in which process ids and start times are read here, if `/proc` shows our own.
    fn namespaces(&self) -> Option<&str> {
        self.namespaces.get_or_init(proc::namespaces).as_deref()
    }
}

impl Host for Os {
    fn now(&self) -> Now {
        let ms = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
        };
        Now { wall_ms: ms(ClockId::Realtime), mono_ms: ms(ClockId::Monotonic) }
    }

    fn mono_ns(&self) -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        let part = |number| u64::try_from(number).unwrap_or(0);
        part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec))
    }

    fn place(&self) -> &Place {
        self.place.get_or_init(|| Place {
            machine: machine_id(&read_id("/etc/machine-id")).unwrap_or_else(|| self.name()),
            boot: read_id("/proc/sys/kernel/random/boot_id").trim().to_owned(),
            time_namespace: proc::link("/proc/self/ns/time"),
        })
    }

    fn name(&self) -> String {
        self.name.get_or_init(|| rustix::system::uname().nodename().to_string_lossy().into_owned()).clone()
    }

    fn random(&self) -> Result<u128> {
        let mut bytes = [0; 16];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match getrandom(rest, GetRandomFlags::empty()) {
                Ok(count) if count > 0 => filled += count,
                Err(Errno::INTR) => {}
                other => {
                    let why = other.err().unwrap_or(Errno::IO);
                    return Err(Error::new(
                        Code::StoreUnavailable,
                        format!("cannot draw random bits: {why}"),
                    ));
                }
            }
        }
        Ok(u128::from_ne_bytes(bytes))
    }

    fn pause(&self, length: Duration) {
        std::thread::sleep(length);
    }

    fn process(&self, pid: u32, group: Option<u32>) -> Result<Process> {
        let namespaces = self.namespaces().ok_or_else(|| {
            Error::usage(format!("cannot name process {pid}: /proc does not show this pid namespace"))
        })?;
        let start = life::named(pid)?.start;
        let group = group.map(life::named_group).transpose()?;
        let place = self.place();
        Ok(Process {
            pid,
            start,
            group,
            machine: place.machine.clone(),
            boot: place.boot.clone(),
            namespace: namespaces.to_owned(),
        })
    }

    fn life(&self, process: &Process) -> Life {
        let place = self.place();
        let here = !place.boot.is_empty()
            && process.boot == place.boot
            && process.machine == place.machine
            && self.namespaces() == Some(&process.namespace);
        if here { life::of(process) } else { Life::Unknown }
    }
}

/// A file descriptor that polls as readable once the process `pid` has ended, all its threads with it. None
/// where the process or the means for it is missing. It shortens a wait; [`Host::life`] decides.
pub fn watch_exit(pid: u32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(to_pid(pid)?, PidfdFlags::empty()).ok()
}

/// A number that can name one process or group. To `kill`, 0 and negative numbers mean many.
fn to_pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// The machine's id, unless the file is empty or says that the first boot has yet to write it.
fn machine_id(text: &str) -> Option<String> {
    let id = text.trim();
    (!id.is_empty() && id != "uninitialized").then(|| id.to_owned())
}

/// A small file's text, empty where it can't be read.
fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The text of a file that one read gets whole, as those that hold an id; empty where it can't be read.
fn read_id(path: &str) -> String {
    let mut bytes = [0; 128];
    let length = File::open(path).and_then(|mut file| file.read(&mut bytes)).unwrap_or_default();
    bytes.get(..length).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_machine_id_only_if_there_is_one() {
        assert_eq!(machine_id("0123abcd\n").as_deref(), Some("0123abcd"));
        for text in ["", " \n", "uninitialized\n"] {
            assert_eq!(machine_id(text), None, "{text:?}");
        }
    }

    #[test]
    fn names_no_process_by_a_number_that_means_many() {
        for number in [0, 1 << 31, u32::MAX] {
            assert_eq!(to_pid(number), None, "{number}");
        }
    }
}
