//! What a walk sees at once, on engines where each request is a journey.
//!
//! Two looks tell all that most walks need: the first names of each priority with what stops the queue; then the tasks
//! that they lead to, with what comes after a list that is longer. What they don't tell is asked for as elsewhere.

use super::timed::BOUND;
use super::walk::Walk;
use crate::directory::gates::Gateway;
use crate::directory::known::Read;
use crate::domain::hint;
use crate::domain::{Name, Task};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Key, Stretch};

/// How many names of a folder are seen at once. A name costs etcd as much as some microseconds of a journey.
const NAMES: usize = 8;
/// The same of the short folder, which is of use as a whole alone.
const MOST_BOUND: usize = 64;
/// How many tasks are read at once where only their records tell whether they are due.
const MOST_READ: usize = 100;
/// How many projects' first tasks are read at once.
const PROJECTS: usize = 8;

impl Walk<'_> {
    /// The first look. It does nothing where the engine answers short questions as soon.
    pub(super) fn look(&mut self) -> Result<()> {
        let (scope, lane) = (self.request.scope.as_ref(), self.lane());
        let mut gates = vec![Gateway::Queue(&self.request.queue, scope).key()?];
        gates.extend(scope.map(|scope| Gateway::Scope(scope).key()).transpose()?);
        let mut lists: Vec<Stretch> =
            priorities().map(|part| Stretch::of(&format!("{lane}/{part}"), NAMES)).collect();
        lists.push(Stretch::of(&format!("{lane}/{BOUND}"), MOST_BOUND));
        self.glimpse = self.directory.store.glimpse(&gates, &lists)?;
        Ok(())
    }

    /// The second one: the tasks that may come first, those bound to processes if `orphans` are looked for, and what
    /// the first look had no room for.
    pub(super) fn look_ahead(&mut self, orphans: bool) -> Result<()> {
        let Some(glimpse) = &self.glimpse else { return Ok(()) };
        let lane = self.lane();
        let names = |part: &str, limit| glimpse.list(&format!("{lane}/{part}"), None, limit);
        let first = priorities().find_map(|part| {
            let (found, ended) = glimpse.page(&format!("{lane}/{part}"), None, NAMES)?;
            (!found.is_empty()).then_some((part, found, ended))
        });
        let mut ids: Vec<NodeId> = Vec::new();
        let mut lists = Vec::new();
        if let Some((priority, found, ended)) = first {
            let folder = format!("{lane}/{priority}");
            if !ended && let Some(list) = found.last().and_then(|key| list_of(&folder, key.name())) {
                lists.push(Stretch::past(&folder, list, NAMES));
                // What is held and not due yet is passed by as a whole.
                if let Some(project) = list.get(folder.len() + 1..).and_then(|rest| rest.split('/').next()) {
                    let held = format!("{folder}/{project}/{}/{}", hint::TIMED, self.clock);
                    lists.extend([Stretch::of(&held, NAMES), Stretch::past(&folder, &held, NAMES)]);
                }
            }
            ids = self.first_of_each(&folder, &found);
        }
        if orphans && let Some(bound) = names(BOUND, MOST_BOUND) {
            ids.extend(bound.iter().filter_map(|key| hint::mark_of(key.name())).map(|mark| mark.id));
        }
        if ids.is_empty() && lists.is_empty() {
            return Ok(());
        }
        let cells: Vec<Key> = ids.into_iter().map(Key::Node).collect();
        let seen = self.directory.store.glimpse(&cells, &lists)?;
        if let (Some(glimpse), Some(seen)) = (&mut self.glimpse, seen) {
            glimpse.extend(seen);
        }
        Ok(())
    }

    /// The tasks that the first hints of a list lead to, in one journey: of those that are held on another machine only
    /// their records tell whether they are due.
    pub(super) fn read_ahead(&mut self, folder: &str) -> Result<()> {
        if self.glimpse.is_none() {
            return Ok(());
        }
        let list = Stretch::of(folder, MOST_READ);
        let (keys, ended) = self.list_page(folder, None, MOST_READ)?;
        let ids = keys.iter().filter_map(|key| hint::mark_of(key.name())).map(|mark| mark.id);
        let cells: Vec<Key> = ids.map(Key::Node).collect();
        let seen = self.directory.store.glimpse(&cells, &[])?;
        if let (Some(glimpse), Some(mut seen)) = (&mut self.glimpse, seen) {
            seen.add_names(&list, keys.iter().map(|key| key.name().to_owned()).collect(), ended);
            glimpse.extend(seen);
        }
        Ok(())
    }

    /// Of each project that is asked for, the first task that is ready.
    fn first_of_each(&self, folder: &str, found: &[Key]) -> Vec<NodeId> {
        let asked: Vec<String> =
            self.request.projects.iter().map(|project: &Name| hint::optional(Some(project))).collect();
        let mut seen: Vec<&str> = Vec::new();
        let mut ids = Vec::new();
        for name in found.iter().map(Key::name) {
            let mut parts = name.strip_prefix(folder).unwrap_or_default().split('/').skip(1);
            let (project, kind) = (parts.next().unwrap_or_default(), parts.next());
            let wanted = asked.is_empty() || asked.iter().any(|asked| asked == project);
            if wanted && kind == Some(hint::UP) && !seen.contains(&project) && seen.len() < PROJECTS {
                seen.push(project);
                ids.extend(hint::mark_of(name).map(|mark| mark.id));
            }
        }
        ids
    }

    /// The priorities that something has.
    pub(super) fn priorities(&self) -> Result<Vec<String>> {
        let lane = self.lane();
        let has_any = |part: &String| {
            let found = self.glimpse.as_ref()?.list(&format!("{lane}/{part}"), None, 1)?;
            Some(!found.is_empty())
        };
        let known: Option<Vec<(String, bool)>> =
            priorities().map(|part| has_any(&part).map(|any| (part, any))).collect();
        match known {
            Some(known) => Ok(known.into_iter().filter(|(_, any)| *any).map(|(part, _)| part).collect()),
            None => {
                let mut parts = self.directory.store.parts(&lane)?;
                parts.retain(|part| part != BOUND);
                Ok(parts)
            }
        }
    }

    /// As [`Directory::read`](crate::directory::Directory), once from what was seen.
    pub(super) fn read(&mut self, id: &NodeId) -> Result<Option<Read>> {
        let key = Key::Node(id.clone());
        match self.glimpse.as_mut().and_then(|glimpse| glimpse.take_cell(&key)) {
            Some(bytes) => self.directory.decode_read(&key, id, bytes),
            None => self.directory.read(id),
        }
    }

    pub(super) fn lane(&self) -> String {
        hint::lane(&self.request.queue, self.request.scope.as_ref())
    }
}

fn priorities() -> impl Iterator<Item = String> {
    (0..=Task::LAST_PRIORITY).map(|priority| priority.to_string())
}

/// The folder of the ordered list that a hint below `folder`, a priority's, stands in.
fn list_of<'a>(folder: &str, name: &'a str) -> Option<&'a str> {
    let rest = name.strip_prefix(folder)?.strip_prefix('/')?;
    let kind = rest.split('/').nth(1)?;
    let depth = if kind == hint::UP { 2 } else { 3 };
    let (at, _) = rest.match_indices('/').nth(depth - 1)?;
    name.get(..name.len() - rest.len() + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_that_a_hint_stands_in() {
        let list = |rest: &str| list_of("l/5", &format!("l/5/{rest}")).map(str::to_owned);
        assert_eq!(list("-/ready/1/x"), Some("l/5/-/ready".into()));
        assert_eq!(list("=p/timed/c/1/x"), Some("l/5/=p/timed/c".into()));
        assert_eq!(list("=p/parked/o/1/x"), Some("l/5/=p/parked/o".into()));
        assert_eq!((list("-"), list_of("l/5", "l/6/-/ready/1/x")), (None, None));
    }
}
