//! The store: bytes under keys, and one act, the swap.
//!
//! A *cell* changes by [`Store::replace`] only; an *entry* is written once, under a name never used before.
//! The store knows bytes and no node; what the bytes mean is decided above it. [`contract::check`] holds every
//! engine to what stands here.

mod along;
pub mod contract;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod files;
mod glimpse;
mod memory;
mod stream;

use std::fmt;
use std::io::{Cursor, Read};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::id::NodeId;
pub use along::Along;
pub use glimpse::{Glimpse, Stretch};
pub use memory::Memory;
pub use stream::{Measured, Streamed};

/// The most bytes a cell may have, and an entry that is read at once. What is larger was not written here, and is not
/// read.
pub const MAX_CELL_BYTES: usize = 4 << 20;

/// A name in the store: a node's, or one of the store's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A node's cell.
    Node(NodeId),
    /// Something that is no node, such as `mail/box/1`.
    Internal(NodeId),
}

impl Key {
    /// The longest name of something that is no node, in bytes.
    pub const MAX_INTERNAL_BYTES: usize = 8 << 10;

    /// The name of something that is no node: parts with `/` between them, as in a node's id.
    pub fn internal(name: impl Into<String>) -> Result<Key> {
        NodeId::within(name.into(), Key::MAX_INTERNAL_BYTES).map(Key::Internal)
    }

    /// The text that orders keys of one kind; `/` separates folders.
    pub fn name(&self) -> &str {
        match self {
            Key::Node(id) | Key::Internal(id) => id.as_str(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which keys to list.
#[derive(Clone, Debug)]
pub enum Prefix<'a> {
    /// All nodes.
    Nodes,
    /// The nodes below this folder: those whose id begins with it and a `/`.
    Below(&'a str),
    /// The internal keys below this folder, such as `mail/box`.
    Internal(&'a str),
}

/// What became of a swap.
#[derive(Debug)]
pub enum Replaced {
    /// It stands, durably unless the store was opened not to sync.
    Done,
    /// Lost: the cell no longer holds what was expected. What it holds now; `None`: it is gone.
    Changed(Option<Vec<u8>>),
    /// Nothing was changed, since others were at it at the same moment. Read again and decide anew.
    Cancelled,
    /// It may stand or not, or stand without being known to be on disk. Read back.
    Unknown(Error),
}

/// A piece of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// What it says; empty: there is no more by now.
    pub bytes: Vec<u8>,
    /// The position to go on from.
    pub next: u64,
}

/// Bytes under keys. Every call may block for as long as the medium takes, never for another process.
pub trait Store: Send + Sync {
    /// A cell's or an entry's bytes; `None` if there is none. An empty cell has been made and nothing more.
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>>;

    /// Makes an empty cell. `false`: there is one already.
    fn make(&self, key: &Key) -> Result<bool>;

    /// Replaces a cell's bytes by `new` if they are `expected`. At most one caller moves on from the same
    /// bytes, provided that no bytes are ever written twice. `new` is not empty.
    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced>;

    /// The same with what goes with it: hints that are there as soon as the swap is, and others that go after it. With
    /// `None` expected there must be no cell, as for [`Store::makes_whole`]. Where it was lost or cancelled, or is an
    /// error, no hint was left; where it is unknown, they may be there. Logs and removals may fail without a word.
    fn replace_along(
        &self,
        key: &Key,
        expected: Option<&[u8]>,
        new: &[u8],
        along: &Along,
    ) -> Result<Replaced> {
        along::one_by_one(self, along, || along::swap(self, key, expected, new))
    }

    /// Do a swap and what goes with it happen in one step, all or nothing?
    fn swaps_along(&self) -> bool {
        false
    }

    /// Is another just replacing this cell and putting hints along, as whoever takes a task does? As far as that can be
    /// told at once: a hint, for who can take something else instead.
    fn is_in_hand(&self, key: &Key) -> Result<bool> {
        let _ = key;
        Ok(false)
    }

    /// Makes sure that what stands at `key` survives a power cut, whoever wrote it.
    fn confirm(&self, key: &Key) -> Result<()>;

    /// Publishes an entry, or a cell's first contents, whole or not at all. `false`: the name is taken.
    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool>;

    /// Is a cell that is made and at once replaced better published with its first contents, in one step?
    fn makes_whole(&self) -> bool {
        false
    }

    /// Makes an entry of what `from` gives, which holds it to a limit; an error leaves none. Until this returns the
    /// entry may be there in part, so nobody is told its name before. `false`: the name is taken.
    fn publish_from(&self, key: &Key, from: &mut Measured<'_>) -> Result<bool> {
        let mut bytes = Vec::new();
        let read = from.read_to_end(&mut bytes);
        read.map_err(|e| {
            from.failed().unwrap_or_else(|| Error::io("read", "what is to be recorded".as_ref(), e))
        })?;
        self.publish(key, &bytes)
    }

    /// Opens an entry of whatever size to read it piece by piece; `None` if there is none. Who has opened it can read
    /// it to its end, also if it is removed meanwhile.
    fn open(&self, key: &Key) -> Result<Option<Box<dyn Read + Send>>> {
        Ok(self.read(key)?.map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Read + Send>))
    }

    /// Removes an entry, whose name must never be used again. `false`: it was not there.
    fn remove(&self, key: &Key) -> Result<bool>;

    /// Leaves an empty entry as a hint: it may be lost in a power cut. There already: that will do.
    fn hint(&self, key: &Key) -> Result<()> {
        self.publish(key, b"").map(drop)
    }

    /// Does a hint last as records do? Else a power cut may take it, and after a reboot all are put again.
    fn keeps_hints(&self) -> bool {
        false
    }

    /// Takes a hint away, whose name must never be used again but for the same hint. Folders that it leaves empty go
    /// too, by [`Store::tidy`] at the latest. Not there: that will do.
    fn unhint(&self, key: &Key) -> Result<()> {
        self.remove(key).map(drop)
    }

    /// No more hints will come from here for a while: removes what was kept for them. It need not be called.
    fn tidy(&self) {}

    /// Adds `line`, which has no line break in it, to the end of the log at `key`, which its first line makes. Of many
    /// who do so at once each has its line whole. Nothing rests on a log: a line may be lost in a power cut, and an
    /// engine that keeps no logs loses all.
    fn log(&self, key: &Key, line: &[u8]) -> Result<()> {
        let _ = (key, line);
        Ok(())
    }

    /// What the log at `key` has from the position `from` on, where 0 is its start: at most `limit` bytes of lines,
    /// each with a line break after it. An unfinished or an empty one may be among them.
    fn logged(&self, key: &Key, from: u64, limit: usize) -> Result<Logged> {
        let _ = (key, limit);
        Ok(Logged { bytes: Vec::new(), next: from })
    }

    /// Keys under `prefix` in order of their names as text, `/` included, from after `after`, at most `limit`.
    /// An engine for many keys lets it cost what it returns, not what there is.
    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>>;

    /// The parts that stand next below `folder` in the names of internal keys, in order. One that has just been left
    /// empty may be among them. An engine that can tell without reading what is below them should.
    fn parts(&self, folder: &str) -> Result<Vec<String>> {
        parts_by_listing(self, folder)
    }

    /// What stands at `cells` and in `lists`, as of one moment: for an engine that answers one long question sooner than
    /// many short ones. `None`: ask for what is needed.
    fn glimpse(&self, cells: &[Key], lists: &[Stretch]) -> Result<Option<Glimpse>> {
        let _ = (cells, lists);
        Ok(None)
    }

    /// All nodes in order of their ids, past the folders that can't be read; each of those is told to `unreadable`.
    fn nodes(&self, unreadable: &mut dyn FnMut(NodeId, Error)) -> Result<Vec<NodeId>> {
        let _ = unreadable; // by default one of them fails the call
        let id_of = |key| match key {
            Key::Node(id) => Some(id),
            Key::Internal(_) => None,
        };
        Ok(self.list(&Prefix::Nodes, None, usize::MAX)?.into_iter().filter_map(id_of).collect())
    }

    /// Begins to look out for changes of `key`.
    fn watch(&self, key: &Key) -> Box<dyn Watch + '_>;

    /// The same for changes of any of `keys`.
    fn watch_any(&self, keys: &[Key]) -> Box<dyn Watch + '_> {
        Box::new(Looking(keys.iter().map(|key| self.watch(key)).collect()))
    }

    /// Makes what the store needs before its first write, which otherwise makes it. `false`: it was there.
    fn prepare(&self) -> Result<bool>;

    /// How long who has found nothing to do leaves the store alone before looking again.
    fn glance(&self) -> Duration {
        Duration::from_millis(20)
    }

    /// How far apart the wall clocks of those who share the store may be. One machine has one clock.
    fn skew(&self) -> Duration {
        Duration::ZERO
    }

    /// Where the store is, for people.
    fn place(&self, key: Option<&Key>) -> String;

    /// What is wrong with the store beside its cells' contents, or left over.
    fn inspect(&self) -> Result<Vec<Finding>>;

    /// Removes what writers that died have left, as far as that can do no harm to one that lives. What it removed.
    fn clean(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}

/// [`Store::parts`] by [`Store::list`]: the first key below each part.
pub(crate) fn parts_by_listing(store: &(impl Store + ?Sized), folder: &str) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let found = store.list(&Prefix::Internal(folder), after.as_deref(), 1)?;
        let Some(rest) = found.first().and_then(|key| key.name().strip_prefix(folder)) else {
            return Ok(parts);
        };
        let part = rest.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
        after = Some(format!("{folder}/{part}/{LAST}"));
        parts.push(part);
    }
}

/// After every key that begins as it does.
const LAST: char = '\u{10FFFF}';

/// Looks out for changes. A hint: it may miss one and it may report one that was none, so every waiter reads
/// again, and never waits longer than it would without.
pub trait Watch {
    /// Returns after a change since the watch began or since the last call, when one of `others` becomes
    /// readable, or after `timeout`.
    fn wait(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]);
}

/// How often who watches for several things looks whether one has changed.
const LOOKS: Duration = Duration::from_millis(20);

/// Several watches by an engine that can wait for one.
struct Looking<'a>(Vec<Box<dyn Watch + 'a>>);

impl Watch for Looking<'_> {
    fn wait(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) {
        let short = if self.0.len() > 1 { timeout.min(LOOKS) } else { timeout };
        if let Some(first) = self.0.first_mut() {
            first.wait(short, others);
        }
    }
}

/// Something that `doctor` reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub gravity: Gravity,
    /// The file or key.
    pub place: String,
    /// What was found.
    pub what: String,
    /// What to do next; of something that could not be mended also why.
    pub next: String,
    /// Is it no longer so?
    pub mended: bool,
}

impl Finding {
    /// One that is as it was found.
    pub fn new(
        gravity: Gravity,
        place: impl Into<String>,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> Finding {
        Finding { gravity, place: place.into(), what: what.into(), next: next.into(), mended: false }
    }

    /// Is it still to be mended, and something to mend?
    pub fn is_fault(&self) -> bool {
        self.gravity == Gravity::Fault && !self.mended
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gravity {
    /// Left over from a process that died. Harmless.
    Leftover,
    /// Something to mend.
    Fault,
}
