//! The arguments of what needs no token.

use std::time::Duration;

use super::Once;
use claimdir::time::{When, parse_duration, parse_when};

#[derive(clap::Args, Debug)]
pub(crate) struct Outcome {
    /// The node
    #[arg(env = "CLAIM_ID")]
    pub(crate) id: String,
    /// Wait until it has ended, 5 minutes at most unless said: --wait=10s. The node goes on all the same
    #[arg(long, value_name = "5m", num_args = 0..=1, require_equals = true, default_missing_value = "5m", value_parser = parse_duration)]
    pub(crate) wait: Option<Duration>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Cancel {
    /// The node
    #[arg(env = "CLAIM_ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Block {
    /// The node
    #[arg(env = "CLAIM_ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Why
    #[arg(long)]
    pub(crate) reason: String,
    /// The block ends by itself then: a duration from now, or an RFC 3339 time
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub(crate) until: Option<When>,
}

/// A node, to write to.
#[derive(clap::Args, Debug)]
pub(crate) struct Named {
    /// The node
    #[arg(env = "CLAIM_ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) once: Once,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Note {
    /// The node
    pub(crate) id: String,
    /// What to note
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) once: Once,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Subscriber {
    /// The task
    pub(crate) id: String,
    /// Who
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) once: Once,
}
