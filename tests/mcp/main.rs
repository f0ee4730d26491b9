//! `claim mcp`, asked by the SDK's own client: the real binary in real folders, a process for each agent.

#![allow(unreachable_pub, reason = "modules of one program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod agent;
mod called_off;
mod cost;
mod ends;
mod held;
mod races;
mod twins;
mod wire;
