//! A claim directory: of all the processes that reach for a node exactly one wins.
#![warn(missing_docs)]

mod error;
pub mod host;
mod id;
pub mod locate;
pub mod time;

pub use error::{Code, Error, Result};
pub use id::NodeId;
