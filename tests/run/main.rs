//! `claim run` on real processes.
//!
//! A test waits for a file, a line, an end; where it waits, it waits for ever but for a generous guard.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod death;
mod lost;
mod outcome;
mod receipt;
mod signals;
mod support;
mod terminal;
