//! A claim directory: of all the processes that reach for a node exactly one wins.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod domain;
mod error;
pub mod host;
mod id;
pub mod locate;
pub mod store;
pub mod time;

pub use error::{Code, Error, Result};
pub use id::NodeId;
