//! Output on its way to becoming a result, whatever its size: the beginning in memory, and from where it is too large for
//! a record all of it in a file without a name, so that nothing is left of it, however this process ends.

use std::env::temp_dir;
use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;

use claimdir::domain::Blob;
use rustix::fs::{Mode, OFlags};

use super::capture::Captured;

/// Output as it comes.
#[derive(Default)]
pub(crate) struct Spool {
    head: Vec<u8>,
    file: Option<File>,
    bytes: u64,
    failed: Option<io::Error>,
}

impl Spool {
    /// Keeps a piece. Where that can't be done the output is still taken, to be passed on.
    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        if self.failed.is_none() && self.bytes <= Blob::MAX_BYTES {
            self.failed = self.keep(piece).err();
        }
    }

    fn keep(&mut self, piece: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            return file.write_all(piece);
        }
        self.head.extend_from_slice(piece);
        if self.head.len() > Blob::MIN_BYTES {
            let mut file = unnamed()?;
            file.write_all(&std::mem::take(&mut self.head))?;
            self.file = Some(file);
        }
        Ok(())
    }

    /// All that has come.
    pub(crate) fn captured(self) -> Captured {
        match (self.failed, self.file) {
            (Some(why), _) => Captured::Unkept(why),
            _ if self.bytes > Blob::MAX_BYTES => Captured::TooLong,
            (None, Some(file)) => Captured::Large(Large { file: Arc::new(file), at: 0 }),
            (None, None) => Captured::Whole(self.head),
        }
    }
}

/// Output that is too large for a record, to be read from its beginning; each copy for itself.
#[derive(Clone, Debug)]
pub(crate) struct Large {
    file: Arc<File>,
    at: u64,
}

impl Read for Large {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A new file for this process alone.
pub(crate) fn unnamed() -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(temp_dir(), flags, Mode::RUSR | Mode::WUSR) {
        return Ok(file.into());
    }
    // Not every file system has such files.
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let path = temp_dir().join(format!("claim-output-{:032x}", u128::from_ne_bytes(random)));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}
