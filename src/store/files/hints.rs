//! Hints as files: empty names in folders that come and go with them.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{MutexGuard, PoisonError};

use super::engine::{FileStore, above};
use super::{Files, layout};
use crate::error::Result;

/// How many folders stay.
const WARM: usize = 4;

impl<F: Files> FileStore<F> {
    pub(super) fn put_hint(&self, path: &str) -> Result<()> {
        self.make_hint(path)?;
        if let Some(cold) = self.warm(above(path)) {
            self.remove_empty(&cold);
        }
        Ok(())
    }

    pub(super) fn remove_hint(&self, path: &str) -> Result<()> {
        self.remove_path(path)?;
        let folder = above(path);
        if !self.warm_folders().iter().any(|warm| warm == folder) {
            self.remove_empty(folder);
        }
        Ok(())
    }

    /// The folders that stayed go, as far as they are empty.
    pub(super) fn cool(&self) {
        let warm = std::mem::take(&mut *self.warm_folders());
        warm.iter().for_each(|folder| self.remove_empty(folder));
    }

    /// Makes a hint: one more name of the file that all hints are names of, so it costs no file of its own. Where there
    /// can't be one, since that file is missing or has as many names as it may, a file after all.
    fn make_hint(&self, path: &str) -> Result<()> {
        let mut is_missing = false;
        let made = self.made(path, || {
            let linked = self.files.link(layout::HINT_FILE, path);
            let failed = linked.as_ref().err().map(io::Error::kind);
            is_missing = failed == Some(ErrorKind::NotFound);
            if matches!(failed, None | Some(ErrorKind::AlreadyExists)) {
                linked
            } else {
                self.files.create(path)
            }
        });
        if is_missing && made.is_ok() {
            let _ = self.files.create(layout::HINT_FILE); // for the next one
        }
        made.map(drop)
    }

    fn warm_folders(&self) -> MutexGuard<'_, VecDeque<String>> {
        // Each change leaves a list of folders.
        self.warm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hint was put in `folder`. The folder that need not stay any longer, if there is one.
    fn warm(&self, folder: &str) -> Option<String> {
        let mut warm = self.warm_folders();
        if warm.iter().any(|known| known == folder) {
            return None;
        }
        warm.push_back(folder.to_owned());
        if warm.len() > WARM { warm.pop_front() } else { None }
    }

    /// Removes a folder of hints and those above it, as far as they are empty.
    fn remove_empty(&self, mut folder: &str) {
        // `.store/due` and its like stay.
        while folder.matches('/').count() > 1 {
            match self.files.remove_folder(folder) {
                // Somebody else's names are in it; or it can't be removed, and an empty folder does no harm.
                Err(e) if e.kind() != ErrorKind::NotFound => break,
                _ => folder = above(folder),
            }
        }
    }
}
