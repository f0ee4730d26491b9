//! Hints are put before a write and removed after it, those who wait for a task are told when it is done, and what
//! was lost is put again.

use super::Directory;
use crate::domain::hint::{self, Plan, When};
use crate::domain::{Need, Node, WriteId, natural, of_natural};
use crate::error::{Code, Error, Result};
use crate::id::NodeId;
use crate::store::{Along, Key, Prefix};

/// How many names are listed at once.
const PAGE: usize = 1024;

impl Directory {
    /// What goes with the write that makes `after` of `before`.
    pub(super) fn along(&self, plan: &Plan, before: &Node, after: &Node, at_ms: i64) -> Result<Along> {
        if plan.put.iter().any(|name| matches!(hint::when_of(name), Some(When::Ready { .. }))) {
            self.queues.forget_listed();
        }
        let keys = |names: &[String]| names.iter().map(|name| Key::internal(name.as_str())).collect();
        let put = keys(&plan.put);
        #[cfg(feature = "testing")]
        let put = if crate::testing::fault("no hint before the write") { Ok(Vec::new()) } else { put };
        // Those that tell of a dependency that is met stay until all are told.
        let remove = if plan.tell { Ok(Vec::new()) } else { keys(&plan.remove) };
        Ok(Along { put: put?, log: self.lines(before, after, at_ms), remove: remove? })
    }

    /// After it, what could not go with it. What can't be done now, whoever meets the hint that is left does.
    pub(super) fn clear_hints(&self, plan: &Plan, now: &Node) {
        if plan.tell && self.tell_dependents(now).is_ok() {
            plan.remove.iter().for_each(|name| self.drop_hint(name));
        }
    }

    /// Instead of it: the names are known to nobody else.
    pub(super) fn withdraw_hints(&self, plan: &Plan) {
        plan.put.iter().for_each(|name| self.drop_hint(name));
    }

    pub(super) fn drop_hint(&self, name: &str) {
        if let Ok(key) = Key::internal(name) {
            let _ = self.store.unhint(&key);
        }
    }

    /// Registers a task to be, which waits for these, with each that is not met yet. Before the task is there: who
    /// makes one of them done after that finds it, and who did so before is seen by whoever looks at the task.
    pub(super) fn register(&self, id: &NodeId, after: &[NodeId]) -> Result<()> {
        for on in after {
            if Need::of(on, self.node(on)?.as_ref()).is_some() {
                self.store.hint(&dependent(on, id)?)?;
            }
        }
        Ok(())
    }

    /// The same of a task that is there: one that can't be read keeps nobody from what else there is to take, and counts
    /// as not met.
    fn register_as_it_is(&self, id: &NodeId, after: &[NodeId]) -> Result<()> {
        for on in after {
            let is_unmet = match self.node(on) {
                Ok(found) => Need::of(on, found.as_ref()).is_some(),
                Err(error) if is_of_its_record(&error) => true,
                Err(error) => return Err(error),
            };
            if is_unmet {
                self.store.hint(&dependent(on, id)?)?;
            }
        }
        Ok(())
    }

    /// Puts a hint of each task that waits for `done`, which is met.
    pub(super) fn tell_dependents(&self, done: &Node) -> Result<()> {
        let folder = hint::dependents(&done.id);
        let mut after: Option<Key> = None;
        loop {
            let page = self.store.list(&Prefix::Internal(&folder), after.as_ref().map(Key::name), PAGE)?;
            for key in &page {
                let id = key.name().rsplit('/').next().and_then(of_natural);
                match id.map_or(Ok(None), |id| self.node(&id)) {
                    // What has been taken meanwhile has been led to.
                    Ok(Some(waiting)) if waiting.claim().is_none() => self.hint_anew(&waiting)?,
                    // One that is not there yet has a hint of its own when it comes.
                    Ok(_) => {}
                    // It keeps nobody else from being told, and stays registered: `doctor` tells it.
                    Err(error) if is_of_its_record(&error) => continue,
                    Err(error) => return Err(error),
                }
                self.store.unhint(key)?;
            }
            match page.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    pub(super) fn hint_anew(&self, node: &Node) -> Result<()> {
        match hint::anew(node, WriteId::of(self.host.random()?).half()) {
            Some(name) => self.store.hint(&Key::internal(name)?),
            None => Ok(()),
        }
    }

    /// Has everything been hinted since this boot? A hint needs no sync, so a power cut may take it.
    pub(super) fn is_hinted(&self) -> Result<bool> {
        #[cfg(feature = "testing")]
        if crate::testing::fault("hints of before the boot relied on") {
            return Ok(true);
        }
        Ok(self.store.keeps_hints() || self.store.read(&self.built()?)?.is_some())
    }

    fn built(&self) -> Result<Key> {
        Key::internal(hint::built(&hint::clock_of(self.host.place())))
    }

    /// Puts the hints of all tasks that can come up, as their records name them, and registers again who waits for
    /// whom. How many tasks there were.
    ///
    /// A hint that its record names may be put again under the same name: it is removed only after a write that
    /// names another, and no later one names it again.
    pub(super) fn hint_all(&self) -> Result<usize> {
        let mut tasks = 0;
        self.each_task(|node| {
            tasks += 1;
            // In this order: what becomes of a task that it waits for is seen by whoever meets the hint.
            if let Some(task) = node.task.as_ref().filter(|_| hint::when(node).is_some()) {
                self.register_as_it_is(&node.id, &task.after)?;
            }
            match hint::names_of(node).as_slice() {
                _ if hint::is_met(node) => self.tell_dependents(node),
                [] => self.hint_anew(node),
                names => names.iter().try_for_each(|name| self.store.hint(&Key::internal(name.as_str())?)),
            }
        })?;
        if tasks > 0 {
            self.say_hinted()?;
        }
        Ok(tasks)
    }

    /// All of them have been hinted.
    pub(super) fn say_hinted(&self) -> Result<()> {
        let built = self.built()?;
        for earlier in self.store.list(&Prefix::Internal(hint::BUILT), None, PAGE)? {
            if earlier != built {
                self.store.unhint(&earlier)?;
            }
        }
        self.store.hint(&built)
    }

    /// All tasks whose records can be read.
    pub(super) fn each_task(&self, mut each: impl FnMut(&Node) -> Result<()>) -> Result<()> {
        let mut unlisted = None;
        for id in self.store.nodes(&mut |_, error| unlisted = Some(error))? {
            if let Ok(Some(node)) = self.node(&id)
                && node.task.is_some()
            {
                each(&node)?;
            }
        }
        unlisted.map_or(Ok(()), Err) // whether there are more is not known
    }
}

/// Is it about one record that can't be read, and not about the store?
fn is_of_its_record(error: &Error) -> bool {
    matches!(error.code(), Code::RecordUnreadable | Code::FormatTooNew)
}

pub(super) fn dependent(on: &NodeId, waiting: &NodeId) -> Result<Key> {
    Key::internal(format!("{}/{}", hint::dependents(on), natural(waiting)))
}
