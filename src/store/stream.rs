//! Bytes on their way into an entry.

use std::io::{self, Read};

use crate::error::Error;

/// What went into an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streamed {
    /// How many bytes.
    pub bytes: u64,
    /// Their blake3 hash, in 64 hexadecimal digits.
    pub hash: String,
}

/// A reader that counts and hashes what it gives, and gives no more than so many bytes.
pub struct Measured<'a> {
    from: &'a mut dyn Read,
    limit: u64,
    bytes: u64,
    hasher: blake3::Hasher,
    failed: Option<Error>,
}

impl<'a> Measured<'a> {
    /// What `from` gives to its end; more than `limit` bytes are an error.
    pub fn new(from: &'a mut dyn Read, limit: u64) -> Measured<'a> {
        Measured { from, limit, bytes: 0, hasher: blake3::Hasher::new(), failed: None }
    }

    /// Why reading ended, if not at the end: the fault of what was read, not of where it went.
    pub fn failed(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// What was read so far.
    pub fn streamed(&self) -> Streamed {
        Streamed { bytes: self.bytes, hash: self.hasher.finalize().to_hex().to_string() }
    }

    fn fail(&mut self, error: Error) -> io::Error {
        let told = io::Error::other(error.to_string());
        self.failed = Some(error);
        told
    }
}

impl Read for Measured<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.from.read(buffer) {
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(e) => {
                return Err(self.fail(Error::usage(format!("what is to be recorded can't be read: {e}"))));
            }
        };
        self.bytes += count as u64;
        if self.bytes > self.limit {
            let message = format!("more than {} bytes can't be recorded; nothing was changed", self.limit);
            let hint = "keep what is large in a file, and record where it is";
            return Err(self.fail(Error::usage(message).hint(hint)));
        }
        self.hasher.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}
