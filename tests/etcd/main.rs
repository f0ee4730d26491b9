//! Claims on a real etcd.

#![allow(unreachable_pub, reason = "modules of one program")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod engine;
mod server;
