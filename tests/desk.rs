//! A desk that hands out tickets to workers on one machine: what such a desk must do, each by real processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

#[path = "desk/engine.rs"]
mod engine;
#[path = "desk/listing.rs"]
mod listing;
#[path = "desk/reaper.rs"]
mod reaper;
#[path = "desk/terminal.rs"]
mod terminal;
#[path = "desk/tickets.rs"]
mod tickets;
