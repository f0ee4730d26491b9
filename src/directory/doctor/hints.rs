//! Does something lead to every task that can come up, and does every hint lead to one?
//!
//! A hint may stand aside, under what is in its task's way, with the mark that the record names.
//!
//! A task that waits for others may have lost its own hint to whoever met it before they were done; another one then
//! stands for it, which its record does not name and which is put when the last of them is done. So of such a task any
//! hint will do, none is taken away for another, and what is put again has a new name: somebody frozen may still be
//! about to remove the old one.

use super::{MOMENT, Suspect, Visit};
use crate::directory::Directory;
use crate::domain::hint::{self, Mark};
use crate::domain::{Node, Standing, State, Step, WriteId, standing};
use crate::error::Result;
use crate::store::{Finding, Gravity, Key, Prefix};

/// How many names are listed at once.
const PAGE: usize = 1024;

/// Where all hints are.
const FOLDER: &str = "due";

/// What a hint is good for.
enum Lead {
    /// It leads to its task, or may.
    There,
    /// It may have to stay, and does not lead there by itself.
    Beside,
    /// Its record has come to its version, or never will, and does without it.
    Astray(&'static str),
    /// The next write of its record may name it.
    Ahead(WriteId),
    /// There is no record yet.
    Nowhere,
    /// It is no hint's name.
    Broken,
}

impl Visit<'_> {
    /// Puts what should lead to `node` and is not there.
    pub(super) fn is_led(&mut self, node: &Node) -> Result<()> {
        let Some(task) = node.task.as_ref().filter(|_| hint::when(node).is_some()) else { return Ok(()) };
        self.is_registered(node, &task.after)?;
        let names = hint::names_of(node);
        if !names.iter().all(|name| is_of(node, name)) {
            let what = "its record names a hint that is none of its own".to_owned();
            let next = "put a whole copy of the record there, or have it taken and given back";
            self.hints_whole = false;
            self.report(Finding::new(Gravity::Fault, self.directory.place(Some(&node.id)), what, next));
            return Ok(());
        }
        // Until it is told, its registration leads to it.
        if has_waited(node) && (self.directory.is_waiting(node) || self.is_to_be_told(node)?) {
            return Ok(());
        }
        if names.is_empty() && !has_waited(node) {
            // The record must name one, by a write that says nothing else.
            self.lost(node, |directory| directory.write_again(node));
            return Ok(());
        }
        for name in names.iter().filter(|name| is_bound(name)) {
            let key = Key::internal(name.as_str())?;
            // It is removed only after a write that names another.
            if self.directory.store.read(&key)?.is_none() && self.is_still(node)? {
                self.lost(node, |directory| directory.put_again(node, &key));
            }
        }
        let own = names.iter().find(|name| !is_bound(name));
        let key = own.map(|name| Key::internal(name.as_str())).transpose()?;
        if key.map_or(Ok(None), |key| self.directory.store.read(&key))?.is_none() {
            self.unled.insert(node.id.clone(), node.write);
        }
        Ok(())
    }

    fn lost(&mut self, node: &Node, mend: impl FnOnce(&Directory) -> Result<bool>) {
        let what = "no hint leads to this task, so `claim next` may not find it";
        self.lacking(node, what, mend);
    }

    /// Something that leads to `node` is not there.
    pub(super) fn lacking(&mut self, node: &Node, what: &str, mend: impl FnOnce(&Directory) -> Result<bool>) {
        let (gravity, next) = match self.hinted {
            true => (Gravity::Fault, "`claim doctor --repair` puts it again"),
            // As after a power cut.
            false => (Gravity::Leftover, "the next `claim next` that finds nothing else puts it again"),
        };
        let finding = Finding::new(gravity, self.directory.place(Some(&node.id)), what, next);
        let mended = self.mend(finding, mend);
        self.hints_whole &= mended;
    }

    /// Every hint. What leads to a task that was not found to be led is known after that. One that was put aside
    /// meanwhile may have been missed, and is looked for once more.
    pub(super) fn hints(&mut self) -> Result<()> {
        self.directory.each_hint(|name| self.hint(name))?;
        if !self.unled.is_empty() {
            self.directory.host.pause(MOMENT);
            self.directory.each_hint(|name| self.leads(name))?;
        }
        for (id, write) in std::mem::take(&mut self.unled) {
            if let Ok(Some(node)) = self.directory.node(&id)
                && node.write == write
            {
                self.lost(&node, |directory| directory.lead_again(&node));
            }
        }
        Ok(())
    }

    /// A hint on the second look.
    fn leads(&mut self, name: &str) {
        if let Some(mark) = hint::mark_of(name)
            && self.unled.contains_key(&mark.id)
            && matches!(self.directory.lead(name), Lead::There)
        {
            self.unled.remove(&mark.id);
        }
    }

    fn hint(&mut self, name: &str) {
        match self.directory.lead(name) {
            Lead::There => {
                if let Some(mark) = hint::mark_of(name) {
                    self.unled.remove(&mark.id);
                }
            }
            Lead::Beside => {}
            Lead::Ahead(write) => self.suspect(Suspect::Ahead(name.to_owned(), write)),
            Lead::Astray(_) | Lead::Nowhere | Lead::Broken => self.suspect(Suspect::Hint(name.to_owned())),
        }
    }

    /// `ahead`: it was ahead of its record, which was at this write.
    pub(super) fn hint_again(&mut self, name: &str, ahead: Option<WriteId>) {
        let Ok(key) = Key::internal(name) else { return };
        if !matches!(self.directory.store.read(&key), Ok(Some(_))) {
            return;
        }
        let finding = |what: &str, next: &str| Finding::new(Gravity::Leftover, self.place(&key), what, next);
        match self.directory.lead(name) {
            Lead::There | Lead::Beside => {}
            Lead::Astray(why) => {
                let finding = finding(why, "whoever meets it removes it, and `claim doctor --repair`");
                self.mend(finding, |directory| directory.drop_astray(name));
            }
            Lead::Ahead(write) if ahead == Some(write) => {
                let what = "put for a write that was never made";
                let finding = finding(what, "`claim doctor --repair` removes it");
                self.mend(finding, |directory| directory.drop_ahead(name, write));
            }
            Lead::Ahead(_) => {}
            Lead::Nowhere => {
                let next = "`claim add` of that task takes it up; it stands in nobody's way";
                let finding = finding("left over by a `claim add` that died: there is no such task", next);
                self.report(finding);
            }
            Lead::Broken => self.broken(&key),
        }
    }

    /// A name that no hint or registration has. It says nothing, so nothing is lost with it unless somebody wrote to it.
    pub(super) fn broken(&mut self, key: &Key) {
        let what = "not a hint's name; it stands in nobody's way";
        let empty = matches!(self.directory.store.read(key), Ok(Some(bytes)) if bytes.is_empty());
        let next = match empty {
            true => "`claim doctor --repair` removes it",
            false => "somebody wrote to it: look at what it is, and move it elsewhere yourself",
        };
        let finding = Finding::new(Gravity::Leftover, self.place(key), what, next);
        match empty {
            true => drop(self.mend(finding, |directory| directory.store.unhint(key).map(|()| true))),
            false => self.report(finding),
        }
    }
}

impl Directory {
    /// What the hint is good for, by a record that is read after the hint was.
    fn lead(&self, name: &str) -> Lead {
        let Some(mark) = hint::mark_of(name) else { return Lead::Broken };
        match self.node(&mark.id) {
            Err(_) => Lead::Beside, // whether it leads anywhere can't be known
            // A record that is not there is at version 0.
            Ok(None) if mark.version > 1 => Lead::Astray("its task is gone"),
            Ok(None) => Lead::Nowhere,
            Ok(Some(node)) => self.lead_to(&node, &mark, name),
        }
    }

    fn lead_to(&self, node: &Node, mark: &Mark, name: &str) -> Lead {
        #[cfg(feature = "testing")]
        if node.version < mark.version && crate::testing::fault("repair removes a hint ahead of its record") {
            return Lead::Astray("a fault");
        }
        if node.version < mark.version {
            return match mark.version - node.version {
                1 => Lead::Ahead(node.write),
                // A writer's hint is for the version after the one that it read, and none such will be there again.
                _ => Lead::Astray("its record was set back from outside"),
            };
        }
        if hint::when(node).is_none() {
            return Lead::Astray("its task does not come up any more");
        }
        if !is_of(node, name) {
            return Lead::Astray("it is not where its task's hints are");
        }
        if hint::is_named(node, mark) {
            return match is_bound(name) {
                true => Lead::Beside,
                false if hint::is_parked(name) || node.hint.as_deref() == Some(name) => Lead::There,
                false => Lead::Astray("it is not where its record says"),
            };
        }
        #[cfg(feature = "testing")]
        if crate::testing::fault("repair removes any hint that its record does not name") {
            return Lead::Astray("a fault");
        }
        if has_waited(node) {
            // Whoever makes the last of those done that it waits for puts another.
            return match self.is_waiting(node) {
                true => Lead::Astray("its task waits for another"),
                false if hint::is_parked(name) || hint::when_of(name) == hint::when(node) => Lead::There,
                false => Lead::Beside,
            };
        }
        let there = |name: &String| {
            let found = Key::internal(name.as_str()).and_then(|key| self.store.read(&key));
            matches!(found, Ok(Some(_)))
        };
        let names = hint::names_of(node);
        match !names.is_empty() && names.iter().all(there) {
            true => Lead::Astray("its record has another"),
            false => Lead::Beside, // for want of that one
        }
    }

    fn is_waiting(&self, node: &Node) -> bool {
        self.with_facts(node, |facts| matches!(standing(node, facts), Standing::Waiting(_)))
    }

    /// The names of all hints, in order.
    fn each_hint(&self, mut each: impl FnMut(&str)) -> Result<()> {
        let mut after: Option<String> = None;
        loop {
            let page = self.store.list(&Prefix::Internal(FOLDER), after.as_deref(), PAGE)?;
            let hints = page.iter().map(Key::name).filter(|name| !name.starts_with(hint::BUILT));
            hints.for_each(&mut each);
            match page.last() {
                Some(last) => after = Some(last.name().to_owned()),
                None => return Ok(()),
            }
        }
    }

    /// Puts a hint of `node` that it can be found by.
    fn lead_again(&self, node: &Node) -> Result<bool> {
        let own = hint::names_of(node).into_iter().find(|name| !is_bound(name));
        match own.filter(|_| !has_waited(node)) {
            Some(name) => self.put_again(node, &Key::internal(name)?),
            None => self.hint_anew(node).map(|()| true),
        }
    }

    /// Puts the hint that `node` names again.
    fn put_again(&self, node: &Node, key: &Key) -> Result<bool> {
        self.store.hint(key)?;
        if !self.is_at(&node.id, node.write)? {
            self.drop_hint(key.name()); // its record has moved on, and has another
        }
        Ok(true)
    }

    /// Writes the record as it is, if it is the one that was seen. Was it?
    fn write_again(&self, seen: &Node) -> Result<bool> {
        let answer = self.update(&seen.id, |node, _, write| {
            let next = (node.write == seen.write).then(|| node.next(write, node.state.clone()));
            Step { answer: Ok(next.is_some()), write: next }
        })?;
        Ok(answer.unwrap_or_default())
    }

    fn drop_astray(&self, name: &str) -> Result<bool> {
        let node = hint::mark_of(name).map(|mark| self.node(&mark.id)).transpose()?.flatten();
        if let Some(node) = node.filter(hint::is_met) {
            self.tell_dependents(&node)?;
        }
        self.store.unhint(&Key::internal(name)?).map(|()| true)
    }

    /// Who was to make that write may be frozen: it must first be too late for it.
    fn drop_ahead(&self, name: &str, write: WriteId) -> Result<bool> {
        let node = hint::mark_of(name).map(|mark| self.node(&mark.id)).transpose()?.flatten();
        if let Some(node) = node.filter(|node| node.write == write) {
            self.write_again(&node)?;
        }
        match self.lead(name) {
            Lead::Astray(_) => self.drop_astray(name),
            _ => Ok(false),
        }
    }
}

/// Can `name` be a hint of `node`?
fn is_of(node: &Node, name: &str) -> bool {
    let of = |mark: Mark| mark.id == node.id;
    hint::mark_of(name).is_some_and(of) && node.task.as_ref().is_some_and(|task| hint::is_of(task, name))
}

/// Does it stand in the short folder?
fn is_bound(name: &str) -> bool {
    name.rsplit('/').nth(1) == Some("bound")
}

/// May its own hint have been removed while it waited for others?
fn has_waited(node: &Node) -> bool {
    let is_idle = matches!(node.state, State::Ready | State::Blocked(_));
    is_idle && node.task.as_ref().is_some_and(|task| !task.after.is_empty())
}
