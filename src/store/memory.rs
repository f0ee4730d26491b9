//! Everything in one process's memory: for tests, and the shortest example of an engine.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Finding, Key, Logged, Prefix, Replaced, Store, Watch};
use crate::error::Result;
use crate::id::NodeId;

/// A store in memory.
#[derive(Default)]
pub struct Memory {
    cells: Mutex<Cells>,
    changed: Condvar,
}

#[derive(Default)]
struct Cells {
    bytes: BTreeMap<Key, Vec<u8>>,
    changes: u64,
}

impl Memory {
    fn cells(&self) -> MutexGuard<'_, Cells> {
        // A thread that panicked elsewhere left the map whole: each change below is a single insertion or removal.
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<Key, Vec<u8>>) -> T) -> T {
        let mut cells = self.cells();
        cells.changes += 1;
        self.changed.notify_all();
        change(&mut cells.bytes)
    }

    fn insert_new(&self, key: &Key, bytes: &[u8]) -> bool {
        self.change(|cells| {
            let free = !cells.contains_key(key);
            if free {
                cells.insert(key.clone(), bytes.to_vec());
            }
            free
        })
    }
}

impl Store for Memory {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        Ok(self.cells().bytes.get(key).cloned())
    }

    fn make(&self, key: &Key) -> Result<bool> {
        Ok(self.insert_new(key, b""))
    }

    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        Ok(self.change(|cells| match cells.get_mut(key) {
            Some(bytes) if bytes.as_slice() == expected => {
                *bytes = new.to_vec();
                Replaced::Done
            }
            other => Replaced::Changed(other.cloned()),
        }))
    }

    fn confirm(&self, _key: &Key) -> Result<()> {
        Ok(())
    }

    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        Ok(self.insert_new(key, bytes))
    }

    fn remove(&self, key: &Key) -> Result<bool> {
        Ok(self.change(|cells| cells.remove(key).is_some()))
    }

    fn log(&self, key: &Key, line: &[u8]) -> Result<()> {
        self.change(|cells| cells.entry(key.clone()).or_default().extend([line, b"\n"].concat()));
        Ok(())
    }

    fn logged(&self, key: &Key, from: u64, limit: usize) -> Result<Logged> {
        let cells = self.cells();
        let log = cells.bytes.get(key).map_or(&[][..], Vec::as_slice);
        let rest = usize::try_from(from).ok().and_then(|from| log.get(from..)).unwrap_or_default();
        let bytes = rest.get(..limit).unwrap_or(rest).to_vec();
        Ok(Logged { next: from + bytes.len() as u64, bytes })
    }

    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        let is_below = |folder: &str, name: &NodeId| {
            name.as_str().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let wanted = |key: &Key| match (prefix, key) {
            (Prefix::Nodes, Key::Node(_)) => true,
            (Prefix::Below(folder), Key::Node(name)) | (Prefix::Internal(folder), Key::Internal(name)) => {
                is_below(folder, name)
            }
            _ => false,
        };
        let cells = self.cells();
        let keys = cells.bytes.keys().filter(|key| wanted(key));
        Ok(keys.filter(|key| after.is_none_or(|after| key.name() > after)).take(limit).cloned().collect())
    }

    fn watch(&self, _key: &Key) -> Box<dyn Watch + '_> {
        Box::new(MemoryWatch { store: self, seen: self.cells().changes })
    }

    fn watch_any(&self, _keys: &[Key]) -> Box<dyn Watch + '_> {
        // Any change wakes.
        Box::new(MemoryWatch { store: self, seen: self.cells().changes })
    }

    fn prepare(&self) -> Result<bool> {
        Ok(false)
    }

    fn place(&self, key: Option<&Key>) -> String {
        key.map_or_else(|| "memory".to_owned(), |key| format!("memory:{key}"))
    }

    fn inspect(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}

struct MemoryWatch<'a> {
    store: &'a Memory,
    seen: u64,
}

impl Watch for MemoryWatch<'_> {
    fn wait(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) {
        // A condition variable can't wait for a descriptor too; a short time-out stands in for that.
        let timeout = if others.is_empty() { timeout } else { timeout.min(Duration::from_millis(20)) };
        let cells = self.store.cells();
        let waited =
            self.store.changed.wait_timeout_while(cells, timeout, |cells| cells.changes == self.seen);
        let (cells, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.seen = cells.changes;
    }
}
