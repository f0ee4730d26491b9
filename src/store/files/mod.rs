//! The directory engine: plain files, one kernel, no lock.
//!
//! ```text
//! .claims/
//!   <id>.claim       a node's cell
//!   .gitignore       "*": a claim directory is never committed
//!   .store/          all that is no node
//!     format         the layout's version and the machine's id, published whole
//!     hint           an empty file that all hints are names of
//!     intents/       replacements being written or announced; normally empty
//!     blobs/         inputs and results that are too large for a record, a folder for each node
//!     journal/       what happened, a file a day and a line an event; for people, never the truth
//! ```

mod disk;
mod engine;
mod hints;
mod inspect;
mod intent;
mod layout;
mod listing;
mod log;
mod names;
mod swap;
#[cfg(feature = "testing")]
mod testing;
mod watch;

use std::io::{self, Cursor, Read};

pub use disk::Disk;
pub use engine::{FileStore, Options};

/// The few calls that the engine makes, each one a step between which a process may be stopped for ever.
///
/// Paths are relative to the claim directory, `/` between their parts. No symbolic link is followed on the way
/// or at the end. Errors are the system's own; what is not a regular file is an [`Irregular`] inside one.
pub trait Files: Send + Sync {
    /// A regular file's bytes, at most `limit`. `None`: not there.
    fn read(&self, path: &str, limit: usize) -> io::Result<Option<Vec<u8>>>;
    /// Makes an empty file; `AlreadyExists` if the name is taken.
    fn create(&self, path: &str) -> io::Result<()>;
    /// Makes a file with these bytes, on disk if `sync`; `AlreadyExists` if the name is taken.
    fn write(&self, path: &str, bytes: &[u8], sync: bool) -> io::Result<()>;
    /// The same with what `from` gives to its end, piece by piece; no file is left if that fails.
    fn write_from(&self, path: &str, from: &mut dyn Read, sync: bool) -> io::Result<()> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        self.write(path, &bytes, sync)
    }
    /// Opens a regular file of any size to read it piece by piece. `None`: not there.
    fn open(&self, path: &str) -> io::Result<Option<Box<dyn Read + Send>>> {
        let bytes = self.read(path, usize::MAX)?;
        Ok(bytes.map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Read + Send>))
    }
    /// Adds `bytes` to the end of a file, which is made if there is none, in one write. Files of tests keep no logs.
    fn append(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let _ = (path, bytes);
        Ok(())
    }
    /// A regular file's bytes from `from` on, from its start if it has become shorter than that; at most `limit`, and
    /// where they end. `None`: not there.
    fn read_from(&self, path: &str, from: u64, limit: usize) -> io::Result<Option<(Vec<u8>, u64)>> {
        let _ = (path, from, limit);
        Ok(None)
    }
    /// Renames, over whatever carries the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Gives each of two names the other's file, in one step. Where the system can't, renames over `to`.
    fn exchange(&self, from: &str, to: &str) -> io::Result<()>;
    /// Gives a file a second name; `AlreadyExists` if that is taken.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a name.
    fn unlink(&self, path: &str) -> io::Result<()>;
    /// The entries of a folder: all that are there throughout the call, maybe some that are not.
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>>;
    /// Makes a folder; `AlreadyExists` if the name is taken.
    fn make_folder(&self, folder: &str) -> io::Result<()>;
    /// Removes an empty folder; `DirectoryNotEmpty` if it is none.
    fn remove_folder(&self, folder: &str) -> io::Result<()>;
    /// Puts a folder's names on disk.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;
    /// Puts a file's bytes on disk.
    fn sync_file(&self, path: &str) -> io::Result<()>;
    /// Every file that is not hidden, and every folder with a record's name; what can't be read is left out.
    fn walk(&self) -> io::Result<Vec<String>>;
    /// Forgets what was opened, after something was found to have been removed from outside.
    fn reopen(&self);
}

/// What a folder has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Its name; what is no text in it is replaced.
    pub name: String,
    /// Is it a folder? A symbolic link to one is none.
    pub is_folder: bool,
}

/// Something else than a regular file where a record should be.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("{0}")]
pub struct Irregular(pub &'static str);
