//! A store that stops answering after so many calls, as a process does that is killed there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use claimdir::store::{Finding, Key, Prefix, Replaced, Store, Watch};
use claimdir::{Code, Error, Result};

/// Another store, whose calls end after a number of them.
pub struct Stops {
    pub store: Arc<dyn Store>,
    left: AtomicUsize,
}

impl Stops {
    /// Lets `calls` calls through.
    pub fn after(calls: usize, store: Arc<dyn Store>) -> Stops {
        Stops { store, left: AtomicUsize::new(calls) }
    }

    fn step(&self) -> Result<&dyn Store> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => Ok(self.store.as_ref()),
            Err(_) => Err(Error::new(Code::StoreUnavailable, "stopped here")),
        }
    }
}

impl Store for Stops {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.step()?.read(key)
    }

    fn make(&self, key: &Key) -> Result<bool> {
        self.step()?.make(key)
    }

    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.step()?.replace(key, expected, new)
    }

    fn confirm(&self, key: &Key) -> Result<()> {
        self.step()?.confirm(key)
    }

    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        self.step()?.publish(key, bytes)
    }

    fn remove(&self, key: &Key) -> Result<bool> {
        self.step()?.remove(key)
    }

    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        self.step()?.list(prefix, after, limit)
    }

    fn watch(&self, key: &Key) -> Box<dyn Watch + '_> {
        self.store.watch(key)
    }

    fn prepare(&self) -> Result<bool> {
        self.store.prepare()
    }

    fn place(&self, key: Option<&Key>) -> String {
        self.store.place(key)
    }

    fn inspect(&self) -> Result<Vec<Finding>> {
        self.store.inspect()
    }
}
