//! Broken ways to replace a cell, each of which somebody has shipped. `scripts/race.sh --pauses` must catch all.

use std::io::ErrorKind;

use serde_json::Value;

use super::super::Files;
use super::super::engine::FileStore;
use super::super::intent;
use crate::error::Result;
use crate::store::Replaced;

impl<F: Files> FileStore<F> {
    /// What the chosen mutant makes of the swap; `None`: nothing is broken.
    pub(in super::super) fn mutant(
        &self,
        path: &str,
        expected: &[u8],
        new: &[u8],
    ) -> Option<Result<Replaced>> {
        Some(match crate::testing::chosen()?.as_str() {
            "unlink-create" => self.unlink_create(path, expected, new),
            "aside-create" => self.aside_create(path, expected, new),
            "aside-verify-drop" => self.aside_verify(path, expected, new, false),
            "aside-verify-link-back" => self.aside_verify(path, expected, new, true),
            "over-reread" => self.over_reread(path, expected, new),
            "renew-by-rename" if same_owner(expected, new) => self.rename_over(path, expected, new),
            _ => return None,
        })
    }

    /// The unlink takes away whatever carries the name now: the record of who was quicker.
    fn unlink_create(&self, path: &str, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        if let Some(changed) = self.changed(path, expected)? {
            return Ok(changed);
        }
        self.withdraw(path);
        self.create_whole(path, new)
    }

    /// Only one can move a file away, but it need not be the file that was read.
    fn aside_create(&self, path: &str, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        if let Some(changed) = self.changed(path, expected)? {
            return Ok(changed);
        }
        let Some(aside) = self.move_aside(path)? else { return Ok(Replaced::Cancelled) };
        self.withdraw(&aside);
        self.create_whole(path, new)
    }

    /// Notices that it moved somebody's fresh record away; but meanwhile the name is free for a third.
    fn aside_verify(&self, path: &str, expected: &[u8], new: &[u8], link_back: bool) -> Result<Replaced> {
        let Some(aside) = self.move_aside(path)? else { return Ok(Replaced::Cancelled) };
        let moved = self.read_path(&aside)?;
        let verified = moved.as_deref() == Some(expected);
        if !verified && link_back {
            let _ = self.files.link(&aside, path);
        }
        self.withdraw(&aside);
        if verified { self.create_whole(path, new) } else { Ok(Replaced::Changed(moved)) }
    }

    /// Whoever looks before the next one writes finds its own record.
    fn over_reread(&self, path: &str, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        match self.rename_over(path, expected, new)? {
            Replaced::Done => Ok(self.changed(path, new)?.unwrap_or(Replaced::Done)),
            lost => Ok(lost),
        }
    }

    /// Read, check, rename: what is renamed over need not be what was checked.
    fn rename_over(&self, path: &str, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        if let Some(changed) = self.changed(path, expected)? {
            return Ok(changed);
        }
        let staged = self.staged(path, new)?;
        self.files.rename(&staged, path).map_err(|e| self.error("publish", path, e))?;
        Ok(Replaced::Done)
    }

    fn staged(&self, path: &str, bytes: &[u8]) -> Result<String> {
        let key = intent::key_hash(path);
        let stamp = intent::Stamp::new(self.host.as_ref())?;
        Ok(self.stage(stamp, &key, bytes)?.staged(&key))
    }

    fn changed(&self, path: &str, expected: &[u8]) -> Result<Option<Replaced>> {
        let now = self.read_path(path)?;
        Ok((now.as_deref() != Some(expected)).then_some(Replaced::Changed(now)))
    }

    /// Moves the file to a name of its own; `None`: another was quicker.
    fn move_aside(&self, path: &str) -> Result<Option<String>> {
        let aside = self.staged(path, b"\n")?;
        match self.files.rename(path, &aside) {
            Ok(()) => Ok(Some(aside)),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                self.withdraw(&aside);
                Ok(None)
            }
            Err(e) => Err(self.error("move aside", path, e)),
        }
    }

    /// Makes the file, whole, if the name is free.
    fn create_whole(&self, path: &str, new: &[u8]) -> Result<Replaced> {
        let staged = self.staged(path, new)?;
        let made = self.publish_staged(&staged, path);
        self.withdraw(&staged);
        if made? { Ok(Replaced::Done) } else { Ok(Replaced::Changed(self.read_path(path)?)) }
    }
}

/// Do both records say the same owner's claim, as before and after a renewal?
fn same_owner(expected: &[u8], new: &[u8]) -> bool {
    let token = |bytes: &[u8]| {
        let record: Value = serde_json::from_slice(bytes).ok()?;
        record["claim"]["token_hash"].as_str().map(str::to_owned)
    };
    token(expected).is_some() && token(expected) == token(new)
}
