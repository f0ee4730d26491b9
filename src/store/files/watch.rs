//! Being woken by a change: inotify where it is to be had, short naps elsewhere.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use crate::store::Watch;

/// A nap where nothing wakes.
const NAP: Duration = Duration::from_millis(50);
/// A nap where inotify wakes, in case that it does not.
const LONG_NAP: Duration = Duration::from_secs(1);

/// Looks out for changes of some files.
pub(super) struct FileWatch {
    inotify: Option<OwnedFd>,
    /// Their names, without their folders: this is a hint.
    names: HashSet<Vec<u8>>,
}

impl FileWatch {
    pub(super) fn new(paths: &[PathBuf]) -> FileWatch {
        let names = paths.iter().filter_map(|path| path.file_name());
        let names = names.map(|name| name.as_encoded_bytes().to_vec()).collect();
        let folders: HashSet<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
        FileWatch { inotify: watched(&folders).ok(), names }
    }

    /// Takes the events that have come. Is one about the file, or can't that be told?
    fn concerns(&self, inotify: &OwnedFd) -> bool {
        let mut buffer = Vec::with_capacity(4096);
        let mut events = inotify::Reader::new(inotify, buffer.spare_capacity_mut());
        let mut found = false;
        while let Ok(event) = events.next() {
            let other = event.file_name().is_some_and(|name| !self.names.contains(name.to_bytes()));
            found |= !other;
        }
        found
    }
}

fn watched(folders: &HashSet<&Path>) -> rustix::io::Result<OwnedFd> {
    let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
    let changes = inotify::WatchFlags::MOVED_TO
        | inotify::WatchFlags::MODIFY
        | inotify::WatchFlags::CREATE
        | inotify::WatchFlags::DELETE
        | inotify::WatchFlags::DELETE_SELF
        | inotify::WatchFlags::MOVE_SELF;
    for folder in folders {
        inotify::add_watch(&fd, *folder, changes)?;
    }
    Ok(fd)
}

impl Watch for FileWatch {
    fn wait(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) {
        let nap = if self.inotify.is_some() { LONG_NAP } else { NAP };
        let end = Instant::now() + timeout.min(nap);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let inotify = self.inotify.as_ref().map(AsFd::as_fd);
            let mut fds: Vec<PollFd<'_>> =
                inotify.iter().chain(others).map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut fds, Some(&left)) {
                Ok(0) => return,
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                // Waiting goes on without what can't be polled.
                Err(_) => return std::thread::sleep(NAP.min(timeout)),
            }
            let other = fds.iter().skip(inotify.iter().len()).any(|fd| !fd.revents().is_empty());
            if other || self.inotify.as_ref().is_none_or(|fd| self.concerns(fd)) {
                return;
            }
        }
    }
}
