//! Operations on a claim directory: read, decide, swap.

mod blobs;
mod claims;
mod control;
mod copy;
mod doctor;
mod gates;
mod hints;
mod journal;
mod keeper;
mod known;
mod lease;
mod look;
mod mail;
mod next;
mod outcome;
mod paths;
mod pools;
mod post;
mod prune;
mod quotas;
mod reap;
mod receipts;
mod reserve;
mod roots;
mod roster;
mod scopes;
mod survey;
mod tasks;
mod update;
mod wait;
mod worker;

use std::path::Path;
use std::sync::Arc;

use crate::domain::ReceiptKey;
use crate::error::Result;
use crate::host::{Host, Os};
use crate::store::Store;
use crate::store::files::{FileStore, Options};

pub use blobs::Opened;
pub use copy::Copied;
pub use doctor::Checkup;
pub use journal::Events;
pub use lease::{Lease, Ran, Unsettled};
pub use look::{Seen, Unreadable};
pub use mail::MailSeen;
pub use next::{Next, Nothing};
pub use paths::{Available, Reserved};
pub use pools::PoolSeen;
pub use quotas::QuotaSeen;
pub use reap::{Idle, Over, Reaped};
pub use receipts::Pruned;
pub use roots::Roots;
pub use scopes::{ScopeCancelled, ScopeSeen};
pub use survey::{Detail, Surveyed};
pub use worker::{Delivery, Handled, Settled, Stop, Trouble, Worked, Worker};

/// A claim directory. Cheap to clone; threads may share it.
#[derive(Clone)]
pub struct Directory {
    store: Arc<dyn Store>,
    host: Arc<dyn Host>,
    receipt: Option<ReceiptKey>,
    known: Option<Arc<known::Known>>,
    queues: Arc<next::Shared>,
    /// In whose name, for the journal, where the record doesn't tell.
    actor: Option<Arc<str>>,
}

impl Directory {
    /// Opens the claim directory at `path`, which is made at the first write if its parent folder is there.
    /// Nothing is written before that.
    ///
    /// # Errors
    ///
    /// [`FormatTooNew`](crate::Code::FormatTooNew), [`SharedFileSystem`](crate::Code::SharedFileSystem), or
    /// whatever the file system says.
    pub fn open(path: impl AsRef<Path>) -> Result<Directory> {
        Directory::open_with(path, Options::default())
    }

    /// The same with options.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Directory> {
        let host: Arc<dyn Host> = Arc::new(Os::new());
        let store = FileStore::open(path.as_ref(), options, host.clone())?;
        Ok(Directory::over(Arc::new(store), host))
    }

    /// Opens the claim directory on etcd at `address`. Nothing is sent before the first call.
    ///
    /// # Errors
    ///
    /// [`Usage`](crate::Code::Usage) if its CA file can't be used. What etcd itself says comes with the first call.
    #[cfg(feature = "etcd")]
    pub fn open_etcd(
        address: &crate::store::etcd::Address,
        options: crate::store::etcd::Options,
    ) -> Result<Directory> {
        let host: Arc<dyn Host> = Arc::new(Os::new());
        let store = crate::store::etcd::EtcdStore::open(address, options, host.clone())?;
        Ok(Directory::over(Arc::new(store), host))
    }

    /// Makes the directory now, rather than at the first write. `false`: it was there already.
    pub fn create(&self) -> Result<bool> {
        self.store.prepare()
    }

    /// For a program that is done for a while: removes what the store kept ready for it. It need not be called.
    pub fn tidy(&self) {
        self.store.tidy();
    }

    /// A directory over another engine or another host.
    pub fn over(store: Arc<dyn Store>, host: Arc<dyn Host>) -> Directory {
        Directory { store, host, receipt: None, known: None, queues: Arc::default(), actor: None }
    }

    /// The clocks, randomness and process facts that this directory goes by.
    pub fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }
}
