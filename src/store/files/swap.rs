//! The swap: how one of all who read the same bytes replaces them, with no lock held at any moment.
//!
//! 1. *Stage*: write the new bytes, on disk before anybody can see them.
//! 2. *Announce*: rename them to a unique intent of this key.
//! 3. *Cancel*: list the key's intents and unlink each other one.
//! 4. *Validate*: read the cell; other bytes than expected: withdraw, lost.
//! 5. *Publish*: exchange the own intent with the cell. Gone: another cancelled it; nothing has changed.
//! 6. *Withdraw*: unlink the old bytes, which now have the intent's name.
//!
//! At most one moves on from the same bytes. Let A and B both publish over them, A first. B validated before
//! that, so B had announced and cancelled before it. If A listed after B had announced, A unlinked B's intent,
//! and B's exchange finds nothing. If A listed before, A had announced before B listed, so B unlinked A's intent,
//! and A's exchange finds nothing. An exchange's source is its author's alone, so nobody publishes another's bytes,
//! and unlinking an intent never does harm, also when it has become the old bytes' name. It needs `rename` to be
//! atomic and a listing to have every name that is there throughout it. Bytes never recur: each record holds a
//! random number.
//!
//! Why exchange and not rename over the cell, which is as good: a rename drops the old file while it holds the file
//! system's lock on renames. Where freeing blocks takes long (a disk mounted with `discard`: milliseconds), all others'
//! swaps wait for that; and ext4 writes a file out as soon as it replaces another.
//!
//! Courtesy, on which nothing depends: who finds an older intent that is fresh steps back for a moment, so that
//! of many at once the first comes through.

use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::engine::FileStore;
use super::intent::{self, Stamp};
use super::{Entry, Files, layout};
use crate::error::{Error, Result};
use crate::store::Replaced;
#[cfg(feature = "testing")]
use crate::testing::fault;

/// How long an intent that came first is left alone.
const COURTESY: Duration = Duration::from_millis(10);

impl<F: Files> FileStore<F> {
    /// Replaces the bytes of the cell at `path`. If that `is_taking` it, its intent says so.
    pub(super) fn swap(&self, path: &str, expected: &[u8], new: &[u8], is_taking: bool) -> Result<Replaced> {
        #[cfg(feature = "testing")]
        if let Some(broken) = self.mutant(path, expected, new) {
            return broken;
        }
        let key = intent::key_hash(path);
        let stamp = self.stage(Stamp::of_change(self.host.as_ref(), is_taking)?, &key, new)?;
        let (staged, mine) = (stamp.staged(&key), stamp.announced(&key));
        match self.files.rename(&staged, &mine) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Replaced::Cancelled),
            Err(e) => return Err(self.fail("announce", &mine, e, &staged)),
        }
        let others = self.rivals(&key, &stamp).map_err(|e| self.fail("list", intent::FOLDER, e, &mine))?;
        if let Some(first) = others.iter().find(|other| self.goes_before(other, &stamp)) {
            self.withdraw(&mine);
            return self.step_back(path, expected, first, &stamp, &key);
        }
        #[cfg(feature = "testing")]
        let others = if fault("no cancel") || fault("cancel after validate") { Vec::new() } else { others };
        self.cancel(&others, &key).map_err(|(other, e)| self.fail("cancel", &other, e, &mine))?;
        match self.read_path(path) {
            Ok(Some(bytes)) if is_expected(&bytes, expected) => {}
            Ok(other) => {
                self.withdraw(&mine);
                return Ok(Replaced::Changed(other));
            }
            Err(e) => {
                self.withdraw(&mine);
                return Err(e);
            }
        }
        #[cfg(feature = "testing")]
        if fault("cancel after validate") {
            self.cancel(&self.rivals(&key, &stamp).unwrap_or_default(), &key).ok();
        }
        let published = self.files.exchange(&mine, path);
        self.withdraw(&mine);
        match published {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Replaced::Cancelled),
            Err(e) => return Ok(Replaced::Unknown(self.error("publish", path, e))),
        }
        match self.sync_names(path) {
            Ok(()) => Ok(Replaced::Done),
            Err(e) => Ok(Replaced::Unknown(e)),
        }
    }

    /// Writes `bytes` under a name of its own, which says for which key.
    pub(super) fn stage(&self, stamp: Stamp, key: &str, bytes: &[u8]) -> Result<Stamp> {
        if !self.whole.load(Ordering::Relaxed) {
            layout::make(self)?; // whoever began it may have been stopped
        }
        let staged = stamp.staged(key);
        let written = match self.files.write(&staged, bytes, self.sync) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                layout::make(self)?;
                self.files.write(&staged, bytes, self.sync)
            }
            written => written,
        };
        written.map_err(|e| self.fail("write", &staged, e, &staged))?;
        Ok(stamp)
    }

    /// The other intents of this key. Removes what is left over, of any key.
    fn rivals(&self, key: &str, mine: &Stamp) -> io::Result<Vec<Stamp>> {
        let names = self.files.list(intent::FOLDER)?;
        let now = self.host.mono_ns();
        let mut rivals = Vec::new();
        for Entry { name, .. } in names {
            let Some(stamp) = Stamp::of(&name) else { continue };
            if stamp == *mine {
                continue;
            }
            if intent::announces(&name, key) {
                rivals.push(stamp);
            } else if stamp.is_leftover(mine, now) {
                self.withdraw(&format!("{}/{name}", intent::FOLDER));
            }
        }
        Ok(rivals)
    }

    /// Is another just taking the cell at `path`?
    pub(super) fn is_in_hand(&self, path: &str) -> Result<bool> {
        let names = match self.files.list(intent::FOLDER) {
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            names => names.map_err(|e| self.error("list", intent::FOLDER, e))?,
        };
        if names.is_empty() {
            return Ok(false);
        }
        let (key, mine) = (intent::key_hash(path), Stamp::new(self.host.as_ref())?);
        let now = self.host.mono_ns();
        Ok(names.iter().filter(|entry| intent::is_of(&entry.name, &key)).any(|entry| {
            Stamp::of(&entry.name)
                .is_some_and(|stamp| stamp.is_taking() && stamp.is_fresh(&mine, now, COURTESY))
        }))
    }

    /// Removes the others' intents. One that can't be is an error.
    fn cancel(&self, others: &[Stamp], key: &str) -> Result<(), (String, io::Error)> {
        for other in others {
            let other = other.announced(key);
            match self.files.unlink(&other) {
                #[cfg(feature = "testing")]
                Err(_) if fault("failing cancel ignored") => {}
                Err(e) if e.kind() != ErrorKind::NotFound => return Err((other, e)),
                _ => {}
            }
        }
        Ok(())
    }

    fn goes_before(&self, other: &Stamp, mine: &Stamp) -> bool {
        other.goes_before(mine, self.host.mono_ns(), COURTESY)
    }

    /// Waits until the cell has changed, until `first` is gone, or until it has had its moment.
    fn step_back(
        &self,
        path: &str,
        expected: &[u8],
        first: &Stamp,
        mine: &Stamp,
        key: &str,
    ) -> Result<Replaced> {
        let mut pause = Duration::from_micros(50);
        let theirs = first.announced(key);
        while self.goes_before(first, mine) {
            self.host.pause(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
            let now = self.read_path(path)?;
            if now.as_deref() != Some(expected) {
                return Ok(Replaced::Changed(now));
            }
            let there = self.files.list(intent::FOLDER).unwrap_or_default();
            if !there.iter().any(|entry| theirs.ends_with(entry.name.as_str())) {
                break;
            }
        }
        Ok(Replaced::Cancelled)
    }

    /// Takes an intent or a staged file away. One that can't be is left for others to remove.
    pub(super) fn withdraw(&self, path: &str) {
        let _ = self.files.unlink(path);
    }

    /// An error of this swap, whose own file `mine` is taken away.
    fn fail(&self, action: &str, path: &str, error: io::Error, mine: &str) -> Error {
        self.withdraw(mine);
        self.error(action, path, error)
    }
}

/// Does the cell still hold what was read?
fn is_expected(now: &[u8], expected: &[u8]) -> bool {
    #[cfg(feature = "testing")]
    if fault("no validate") || (fault("compare by version") && crate::testing::same_version(now, expected)) {
        return true;
    }
    now == expected
}
