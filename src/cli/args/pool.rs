//! The arguments of `claim pool` and `claim quota`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;

use super::number::number;
use super::{OnLost, Once, Run, Taking, Terms};

#[derive(clap::Args, Debug)]
pub(crate) struct PoolCommand {
    #[command(subcommand)]
    pub(crate) command: Pool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Pool {
    /// Say how many slots a pool has, making it if there is none
    Set(PoolSet),
    /// Show the pools, or one: its slots, and who has them until when
    Show(ShowOf),
    /// Run a command in the first free slot, without a node of its own; otherwise as `claim run`
    ///
    /// The slot is one of the bare keys `pool:NAME/slot-1`, `slot-2` and so on.
    ///
    /// Exit codes: the command's own, 128+n for a signal; 75 no slot; 76 lease lost; 126 the command can't be
    /// executed, 127 it was not found; 125 any other failure of `run`, wrong usage included.
    Run(PoolRun),
}

#[derive(clap::Args, Debug)]
pub(crate) struct PoolSet {
    /// The pool
    pub(crate) name: String,
    /// How many slots: 1 to 10000. Fewer than are in use take nothing away, and refuse new ones
    #[arg(value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>(0..=u64::MAX))]
    pub(crate) slots: u64,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ShowOf {
    /// Which; else all
    pub(crate) name: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PoolRun {
    /// The pool
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// What becomes of the command when the lease is lost: SIGTERM and 30 ms later SIGKILL to its whole group,
    /// SIGTERM only, or nothing
    #[arg(long, value_enum, default_value = "kill")]
    pub(crate) on_lost: OnLost,
    /// Write the JSON report to this file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

impl PoolRun {
    /// The pool, and how to run in whichever of its slots.
    pub(crate) fn split(self) -> (String, Run) {
        let PoolRun { name, terms, on_lost, report, command } = self;
        let taking = Taking { terms, seen: None, force: None };
        let once = Once { receipt: None };
        let id = format!("pool:{name}");
        (name, Run { id, taking, once, then: None, result_from_stdout: false, on_lost, report, command })
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct QuotaCommand {
    #[command(subcommand)]
    pub(crate) command: Quota,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Quota {
    /// Say how much of a quota there is per so long, making it if there is none
    Set(QuotaSet),
    /// Show the quotas, or one: how much there is, how much of that is used, when more is free
    Show(ShowOf),
}

#[derive(clap::Args, Debug)]
pub(crate) struct QuotaSet {
    /// The quota
    pub(crate) name: String,
    /// How much per so long, as in 100/1h: 1 to 1000000 per 1s to 30d
    #[arg(value_name = "LIMIT/PERIOD")]
    pub(crate) rate: String,
}
