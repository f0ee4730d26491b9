//! Logs: files that grow by one write a line, so that none is torn by another.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::disk::part_by_part;

/// A line as it is written: also with a line break before it, so that what a writer left unfinished, or a full disk
/// cut off, spoils no line but its own.
pub(super) fn apart(line: &[u8]) -> Vec<u8> {
    [b"\n", line, b"\n"].concat()
}

/// Adds `bytes` to the file at `path` below `root`, in one write.
pub(super) fn append(root: BorrowedFd<'_>, path: &str, bytes: &[u8]) -> io::Result<()> {
    let file = open(root, path)?;
    match rustix::io::write(&file, bytes)? {
        count if count == bytes.len() => Ok(()),
        _ => Err(Errno::NOSPC.into()),
    }
}

/// Opens it, following no link, or part by part where there is no such call or a sandbox forbids it. Without NONBLOCK,
/// opening a FIFO would wait for a reader.
fn open(root: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666); // less what the umask says
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(root, path, flags, mode, resolve) {
        Err(Errno::NOSYS | Errno::PERM) => {
            let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
            Ok(rustix::fs::openat(part_by_part(root, folder)?.as_fd(), name, flags, mode)?)
        }
        opened => Ok(opened?),
    }
}

/// What `file` has from `from` on, at most `limit` bytes, and where they end.
pub(super) fn read_from(
    file: BorrowedFd<'_>,
    size: u64,
    from: u64,
    limit: usize,
) -> io::Result<(Vec<u8>, u64)> {
    let from = if from > size { 0 } else { from };
    let room = usize::try_from(size - from).unwrap_or(limit).min(limit);
    let mut bytes = vec![0; room];
    let count = loop {
        match rustix::io::pread(file, &mut bytes, from) {
            Err(Errno::INTR) => {}
            read => break read?,
        }
    };
    bytes.truncate(count);
    Ok((bytes, from + count as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn a_piece_ends_where_the_next_one_begins() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log");
        fs::write(&path, "0123456789").unwrap();
        let file = File::open(&path).unwrap();
        let read = |from, limit| {
            let (bytes, at) = read_from(file.as_fd(), 10, from, limit).unwrap();
            (String::from_utf8(bytes).unwrap(), at)
        };
        assert_eq!(read(0, 4), ("0123".to_owned(), 4));
        assert_eq!(read(4, 100), ("456789".to_owned(), 10));
        assert_eq!(read(10, 4), (String::new(), 10));
        assert_eq!(read(11, 4), ("0123".to_owned(), 4), "it has become shorter");
    }
}
