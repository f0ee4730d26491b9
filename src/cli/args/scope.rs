//! The arguments of `claim scope`, `claim pause` and `claim resume`.

use std::time::Duration;

use clap::Subcommand;

use super::number::number;
use claimdir::time::parse_duration;

#[derive(clap::Args, Debug)]
pub(crate) struct ScopeCommand {
    #[command(subcommand)]
    pub(crate) command: Scope,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Scope {
    /// Call off all of a scope that has not ended, for good: nothing new starts there
    Cancel(ScopeCancel),
    /// Wait until enough of a scope's tasks are done and, where they ask for that, accepted
    Wait(ScopeWait),
    /// Show a scope: is it open, and how many of its nodes are in which state
    Show(ScopeShow),
}

#[derive(clap::Args, Debug)]
pub(crate) struct ScopeCancel {
    /// The scope; else the one of --scope
    pub(crate) name: Option<String>,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ScopeWait {
    /// The scope; else the one of --scope
    pub(crate) name: Option<String>,
    /// How many tasks
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>(1..=u64::MAX))]
    pub(crate) succeeded: u64,
    /// Then cancel the scope, with whatever has not ended
    #[arg(long)]
    pub(crate) cancel_rest: bool,
    /// For so long at most; the scope goes on all the same
    #[arg(long = "wait", alias = "wait-timeout", value_name = "5m", num_args = 0..=1, require_equals = true, default_missing_value = "5m", default_value = "5m", value_parser = parse_duration)]
    pub(crate) wait: Duration,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ScopeShow {
    /// The scope; else the one of --scope
    pub(crate) name: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Pause {
    /// The queue: of the tasks in no scope, or in the one of --scope
    pub(crate) queue: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Resume {
    /// The queue
    pub(crate) queue: String,
}
