//! Is every task that waits for another registered with it, and was everybody told of what is done?

use super::{Suspect, Visit};
use crate::directory::Directory;
use crate::directory::hints::dependent;
use crate::domain::{Need, Node, hint, of_natural};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Finding, Gravity, Key, Prefix};

impl Visit<'_> {
    /// Registers `node` again where it waits and is not. A registration goes only when what it is for is met, and that
    /// stays so.
    pub(super) fn is_registered(&mut self, node: &Node, after: &[NodeId]) -> Result<()> {
        for on in after {
            let key = dependent(on, &node.id)?;
            let is_unmet = |directory: &Directory| is_met(directory, on).map(|met| !met);
            if is_unmet(self.directory)?
                && self.directory.store.read(&key)?.is_none()
                && is_unmet(self.directory)?
                && self.is_still(node)?
            {
                let what = format!("it waits for {:?} and is not registered with it", on.as_str());
                self.lacking(node, &what, |directory| directory.register_again(on, &key));
            }
        }
        Ok(())
    }

    /// Is something met that `node` waits for, and `node` has not been told?
    pub(super) fn is_to_be_told(&self, node: &Node) -> Result<bool> {
        for on in node.task.iter().flat_map(|task| &task.after) {
            if self.directory.store.read(&dependent(on, &node.id)?)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Every registration.
    pub(super) fn registrations(&mut self) -> Result<()> {
        for part in self.directory.store.parts(hint::DEPENDENTS)? {
            let folder = format!("{}/{part}", hint::DEPENDENTS);
            let keys = self.directory.store.list(&Prefix::Internal(&folder), None, usize::MAX)?;
            let on = of_natural(&part);
            for key in &keys {
                match on.as_ref().zip(waiting(key)) {
                    Some((on, waiting)) => self.registration(on, &waiting, key),
                    None => self.broken(key),
                }
            }
            if let Some(on) = on.filter(|_| !keys.is_empty())
                && matches!(is_met(self.directory, &on), Ok(true))
            {
                self.suspect(Suspect::Untold(on));
            }
        }
        Ok(())
    }

    /// What a task waits for is said once, when it is submitted.
    fn registration(&mut self, on: &NodeId, waiting: &NodeId, key: &Key) {
        if let Ok(Some(node)) = self.directory.node(waiting)
            && node.task.as_ref().is_some_and(|task| !task.after.contains(on))
        {
            let what = format!("{:?} does not wait for {:?}", waiting.as_str(), on.as_str());
            let next = "it does no harm; `claim doctor --repair` removes it";
            let finding = Finding::new(Gravity::Leftover, self.place(key), what, next);
            self.mend(finding, |directory| directory.store.unhint(key).map(|()| true));
        }
    }

    pub(super) fn untold_again(&mut self, id: &NodeId) {
        let folder = hint::dependents(id);
        let Ok(Some(done)) = self.directory.node(id) else { return };
        let Ok(keys) = self.directory.store.list(&Prefix::Internal(&folder), None, usize::MAX) else {
            return;
        };
        let Some(first) = keys.first() else { return };
        let is_lost = keys.iter().filter_map(waiting).any(|waiting| self.is_without_hint(&waiting));
        let (gravity, next) = match is_lost && !self.has_hint(&done) && self.hinted {
            true => (Gravity::Fault, "`claim doctor --repair` tells them"),
            false => (Gravity::Leftover, "whoever meets its hint tells them, and `claim doctor --repair`"),
        };
        let what =
            format!("{:?} is done, and of those who wait for it {} were not told", id.as_str(), keys.len());
        let finding = Finding::new(gravity, self.place(first), what, next);
        let told = self.mend(finding, |directory| directory.tell_dependents(&done).map(|()| true));
        self.hints_whole &= told || gravity == Gravity::Leftover;
    }

    fn is_without_hint(&self, id: &NodeId) -> bool {
        let node = self.directory.node(id).ok().flatten();
        node.is_some_and(|node| hint::when(&node).is_some() && !self.has_hint(&node))
    }

    fn has_hint(&self, node: &Node) -> bool {
        let is_there = |name: &String| {
            let found = Key::internal(name.as_str()).and_then(|key| self.directory.store.read(&key));
            matches!(found, Ok(Some(_)))
        };
        hint::names_of(node).iter().any(is_there)
    }
}

impl Directory {
    /// Before the look at what it waits for: who makes that done afterwards finds the registration.
    fn register_again(&self, on: &NodeId, key: &Key) -> Result<bool> {
        self.store.hint(key)?;
        if let Some(done) = self.node(on)?.filter(hint::is_met) {
            self.tell_dependents(&done)?;
        }
        Ok(true)
    }
}

/// Who is registered under this key.
fn waiting(key: &Key) -> Option<NodeId> {
    key.name().rsplit('/').next().and_then(of_natural)
}

/// Is the task `on` met? One that can't be read is not.
fn is_met(directory: &Directory, on: &NodeId) -> Result<bool> {
    Ok(directory.node(on).is_ok_and(|found| Need::of(on, found.as_ref()).is_none()))
}
