//! One file a group of commands.

pub(super) mod acquire;
pub(super) mod check;
pub(super) mod control;
pub(super) mod copy;
pub(super) mod doctor;
pub(super) mod graph;
pub(super) mod guard;
pub(super) mod guide;
pub(super) mod list;
pub(super) mod log;
pub(super) mod look;
pub(super) mod mail;
pub(super) mod mcp;
pub(super) mod outcome;
pub(super) mod page;
pub(super) mod place;
pub(super) mod pool;
pub(super) mod prime;
pub(super) mod run;
pub(super) mod scope;
pub(super) mod settle;
pub(super) mod setup;
pub(super) mod task;
pub(super) mod watch;
pub(super) mod work;

pub(super) use look::now;
