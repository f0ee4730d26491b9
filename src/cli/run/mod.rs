//! The parts of `claim run` and `claim work`: a command under a claim.
//!
//! ```text
//! stub        a process that waits to become the command, so that the claim can name its group
//! guard       a process that ends the command's group should its worker die
//! supervise   one loop over everything that may happen meanwhile
//!   signals   what is passed on
//!   terminal  whose the terminal is
//!   capture   the command's output, kept, and passed on where that is asked for
//! settle      the claim, as the command's end asks for
//! report      what came of it
//! ```

pub(super) mod capture;
pub(super) mod guard;
pub(super) mod lookup;
pub(super) mod report;
pub(super) mod settle;
pub(super) mod signals;
pub(super) mod stub;
pub(super) mod supervise;
pub(super) mod terminal;
