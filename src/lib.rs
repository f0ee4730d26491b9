//! A claim directory: of all the processes that reach for a node exactly one wins.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod directory;
pub mod domain;
mod error;
pub mod host;
mod id;
pub mod locate;
pub mod store;
pub mod time;

pub use directory::{Checkup, Directory, Lease, Ran, Seen, Unreadable, Unsettled};
pub use domain::{Acquire, Answer, Force, Refusal, Renewal, Token};
pub use error::{Code, Error, Result};
pub use id::NodeId;
