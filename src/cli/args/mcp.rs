//! The arguments of `claim mcp`.

use std::time::Duration;

use claimdir::time::{parse_duration, parse_lease};

/// Serve one agent by the Model Context Protocol, on standard input and output, until the input ends.
///
/// The tools are claim, renew, finish, next, look and mail, and answer as the commands do with --json. The server knows
/// the tokens of the claims that it took, renews them, and says in its next answer if one was lost.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Mcp {
    /// How long a claim lasts without a renewal, unless the agent says so: 50ms to 30d
    #[arg(long, env = "CLAIM_LEASE", default_value = "30s", value_parser = parse_lease)]
    pub(crate) lease: Duration,
    /// The queue that is taken from, unless the agent names one
    #[arg(long, value_name = "NAME", env = "CLAIM_QUEUE", default_value = "default")]
    pub(crate) queue: String,
    /// What drives the owner, such as codex; kept with the claims, for people
    #[arg(long, value_name = "NAME", env = "CLAIM_ENGINE")]
    pub(crate) engine: Option<String>,
    /// For how long after the agent's last call its claims are renewed; 0s: never
    #[arg(long, value_name = "1h", default_value = "1h", value_parser = parse_duration)]
    pub(crate) keep: Duration,
    /// Let claims outlive this server until their lease ends, instead of ending with it
    #[arg(long)]
    pub(crate) unbound: bool,
}
