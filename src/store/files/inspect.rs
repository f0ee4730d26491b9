//! What is wrong with the files, and what is left over of writers that died.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::time::Duration;

use super::engine::FileStore;
use super::intent::{self, Stamp};
use super::{Entry, Files, layout, names};
use crate::error::Result;
use crate::store::{Finding, Gravity};

/// How long a writer of which no age can be told has to come to its end.
const MOMENT: Duration = Duration::from_millis(250);

/// The folders of names that come and go, and their folders with them.
const PASSING: [&str; 3] = [".store/due", ".store/dependents", ".store/blobs"];

const MOVE_IT: &str = "look at what it is, and move it elsewhere yourself";

impl<F: Files> FileStore<F> {
    /// What is wrong, or left over.
    pub(super) fn found_wrong(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let mut find = |gravity, path: &str, what: String, next: &str| {
            findings.push(Finding::new(gravity, self.show(path), what, next));
        };
        let here = &self.host.place().machine;
        if let Some(format) = layout::read(self)?.filter(|format| format.machine != *here) {
            let what = format!("made on machine {:?}, and this is {here:?}", format.machine);
            find(
                Gravity::Fault,
                layout::STORE,
                what,
                "one claim directory is for one machine: make another here",
            );
        }
        for path in self.files.walk().map_err(|e| self.error("list", "", e))? {
            if names::node_of(&path).is_none() {
                // Beside the records names are for ids, as they are not in the store's own folder.
                let what = match names::node_of(&format!("{path}/x{}", names::SUFFIX)) {
                    Some(_) => {
                        format!("not a record's file; it stands in the way of all ids below \"{path}/\"")
                    }
                    None => "not a record's file, and no id has that name: nobody reads it".to_owned(),
                };
                find(Gravity::Fault, &path, what, MOVE_IT);
            }
        }
        for path in self.strays() {
            let what = "not one of the store's files; it stands in nobody's way".to_owned();
            find(Gravity::Leftover, &path, what, MOVE_IT);
        }
        findings.extend(self.left_over_intents()?.iter().map(|name| self.left_over(&announced(name))));
        Ok(findings)
    }

    fn left_over(&self, path: &str) -> Finding {
        let next = "later writes remove it, and `claim doctor --repair`";
        Finding::new(Gravity::Leftover, self.show(path), "left over by a process that died", next)
    }

    /// Removes intents of writers that died, and folders of hints that they left empty; of those nothing is told: some
    /// stay for a while in any case. Removing an intent never does harm, and who misses a folder makes it again.
    pub(super) fn cleaned(&self) -> Result<Vec<Finding>> {
        let mut cleaned = Vec::new();
        for name in self.left_over_intents()? {
            let path = announced(&name);
            match self.files.unlink(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => continue, // and it is found again
                _ => cleaned.push(Finding { mended: true, ..self.left_over(&path) }),
            }
        }
        PASSING.iter().for_each(|folder| self.remove_empty_below(folder));
        Ok(cleaned)
    }

    /// The names in `intents/` whose writers have died. One that is counted by another clock is looked at twice.
    fn left_over_intents(&self) -> Result<Vec<String>> {
        let mine = Stamp::new(self.host.as_ref())?;
        let (mut old, mut unknown) = (Vec::new(), BTreeSet::new());
        for name in self.intents()? {
            match Stamp::of(&name).map(|stamp| stamp.is_old(&mine, self.host.mono_ns())) {
                Some(Some(true)) => old.push(name),
                Some(None) => drop(unknown.insert(name)),
                Some(Some(false)) | None => {}
            }
        }
        if !unknown.is_empty() {
            self.host.pause(MOMENT);
            old.extend(self.intents()?.into_iter().filter(|name| unknown.contains(name)));
        }
        old.sort_unstable();
        Ok(old)
    }

    fn intents(&self) -> Result<Vec<String>> {
        match self.files.list(intent::FOLDER) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            listed => {
                let listed = listed.map_err(|e| self.error("list", intent::FOLDER, e))?;
                Ok(listed.into_iter().map(|entry| entry.name).collect())
            }
        }
    }

    /// The files in the store's own folder that no key names. What can't be listed is told of by who needs it.
    fn strays(&self) -> Vec<String> {
        let mut strays = Vec::new();
        let mut folders = vec![layout::STORE.to_owned()];
        while let Some(folder) = folders.pop() {
            for Entry { name, is_folder } in self.files.list(&folder).unwrap_or_default() {
                let path = format!("{folder}/{name}");
                let is_known = match folder == intent::FOLDER {
                    true => Stamp::of(&name).is_some(),
                    false => layout::internal(&path).is_some_and(|path| names::internal_of(path).is_some()),
                };
                if is_folder {
                    folders.push(path);
                } else if !is_known {
                    strays.push(path);
                }
            }
        }
        strays.sort_unstable();
        strays
    }

    /// Removes the empty folders below `folder`. One that can't be removed does no harm.
    fn remove_empty_below(&self, folder: &str) {
        for entry in self.files.list(folder).unwrap_or_default() {
            if entry.is_folder {
                let path = format!("{folder}/{}", entry.name);
                self.remove_empty_below(&path);
                let _ = self.files.remove_folder(&path);
            }
        }
    }
}

fn announced(name: &str) -> String {
    format!("{}/{name}", intent::FOLDER)
}
