//! A claim directory: of all the processes that reach for a node exactly one wins, holds it under a lease with a
//! fencing token, and if it dies another takes over. Plain files, no server, and no lock is ever held: any
//! process may be killed or frozen between any two system calls, and nobody waits and nothing is lost.
//!
//! ```
//! use claimdir::{Acquire, Directory, NodeId};
//! use std::time::Duration;
//!
//! # let scratch = tempfile::tempdir().unwrap();
//! # let path = scratch.path().join(".claims");
//! let directory = Directory::open(path)?;
//! let parser = NodeId::new("build/parser")?;
//!
//! // One of all who try gets a lease; the others are told whose it is, as a value.
//! let alice = Acquire::by("alice").lease(Duration::from_secs(60));
//! match directory.try_acquire(&parser, &alice)? {
//!     Ok(lease) => {
//!         assert_eq!(lease.generation(), 1);
//!         let refusal = directory.try_acquire(&parser, &Acquire::by("bob"))?.unwrap_err();
//!         assert!(refusal.message().starts_with("already held by alice"));
//!         lease.release().map_err(|unsettled| unsettled.error)?.expect("nobody else came in between");
//!     }
//!     Err(refusal) => println!("lost {parser} — {}", refusal.message()),
//! }
//!
//! // Or in one call: taken, renewed in the background while the work goes on, given back.
//! let ran = directory.run(&parser, |lease| {
//!     for _section in 0..3 {
//!         if lease.is_lost() {
//!             return Err("somebody else has it now");
//!         }
//!     }
//!     Ok("report")
//! })?;
//! assert_eq!(ran.map(|ran| ran.value), Ok(Ok("report")));
//! # Ok::<(), claimdir::Error>(())
//! ```
//!
//! # Limitations
//!
//! - One kernel: on a file system that several machines write, a claim may get two winners; such a directory is
//!   refused unless [`store::files::Options::allow_shared`] is set.
//! - A claim records one result, not one execution: who works on after losing its lease still has its side
//!   effects. Check [`Lease::is_lost`], and refuse lower generations where the work writes.
//! - Removing or emptying a record's file from outside starts its generations anew.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod directory;
pub mod domain;
mod error;
pub mod host;
mod id;
pub mod locate;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;

pub use directory::{
    Available, Checkup, Copied, Delivery, Detail, Directory, Events, Handled, Idle, Lease, MailSeen, Next,
    Nothing, Opened, Over, PoolSeen, Pruned, QuotaSeen, Ran, Reaped, Reserved, Roots, ScopeCancelled,
    ScopeSeen, Seen, Settled, Stop, Surveyed, Trouble, Unreadable, Unsettled, Worked, Worker,
};
pub use domain::{
    Acquire, Answer, Blocking, Cancel, Force, Halt, Letter, MailAnswer, MailName, MailRefusal, Name, Rate,
    ReceiptKey, Refusal, Renewal, RepoPath, Resources, Scope, Text, Token, WorkKey,
};
pub use error::{Code, Error, Result};
pub use id::NodeId;
