//! The parts of `claim run`: a command under a claim.
//!
//! ```text
//! stub        a process that waits to become the command, so that the claim can name its group
//! guard       a process that ends the command's group should `run` die
//! supervise   one loop over everything that may happen meanwhile
//!   signals   what is passed on
//!   terminal  whose the terminal is
//!   capture   the command's output, passed on and kept
//!     spool   how it is kept
//! report      what came of it
//! ```

pub(super) mod capture;
pub(super) mod guard;
pub(super) mod lookup;
pub(super) mod report;
mod signals;
pub(super) mod spool;
pub(super) mod stub;
pub(super) mod supervise;
mod terminal;
