//! The arguments, as types only. The comments are the help texts.

mod commands;
mod control;
mod guard;
mod guide;
mod list;
mod log;
mod mail;
mod mcp;
mod now;
mod number;
mod page;
mod pool;
mod prime;
mod scope;
mod setup;
mod task;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser};

pub(crate) use commands::Command;
pub(crate) use control::{Block, Cancel, Named, Note, Outcome, Subscriber};
pub(crate) use guard::{Agent, GitHook, Guard, GuardCommand, GuardGit, GuardPath};
pub(crate) use guide::{Completions, Help, Man, Shell};
pub(crate) use list::{Filter, Format, Graph, List, Order, StateFilter};
pub(crate) use log::Log;
pub(crate) use mail::{Mail, MailAck, MailCommand, MailList, MailRead, MailSend};
pub(crate) use mcp::Mcp;
pub(crate) use page::Page;
pub(crate) use pool::{Pool, PoolCommand, PoolRun, PoolSet, Quota, QuotaCommand, QuotaSet, ShowOf};
pub(crate) use prime::{Prime, Role};
pub(crate) use scope::{Pause, Resume, Scope, ScopeCancel, ScopeCommand, ScopeShow, ScopeWait};
pub(crate) use setup::{Setup, Target};
pub(crate) use task::{Add, Reject, Retry, Review};
pub(crate) use watch::Watch;

use number::number;

use claimdir::time::{parse_duration, parse_lease};
use claimdir::{Error, Result};

/// Of all who reach for a node exactly one wins, holds it under a lease with a fencing token, and if it dies
/// another takes over. Plain files, no server.
///
/// Exit codes: 0 yes; 1 no, somebody else's or nothing there; 2 wrong usage; 3 fenced, stop working;
/// 4 refused, it contradicts what is recorded; 5 waited in vain; 6 the store; 7 no claim directory, or two.
#[derive(Parser, Debug)]
#[command(name = "claim", version, disable_help_subcommand = true, max_term_width = 100, after_help = now::FIRST)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// For the parser: those commands of whose names `is_asked` says yes, and no more than it takes to understand them.
    pub(crate) fn brief(is_asked: impl Fn(&str) -> bool) -> clap::Command {
        let command = clap::Command::new("claim").disable_help_subcommand(true);
        Command::describe(<Global as clap::Args>::augment_args(command), is_asked)
    }
}

/// What a process's number fits into.
const MAX_PID: u64 = i32::MAX as u64;

/// Where the help has those.
const EVERYWHERE: &str = "Everywhere";

/// What goes with every command, before or after its name.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Global {
    /// The claim directory, or etcd://HOST:PORT/PREFIX; else $CLAIMS_DIR, else the repository's, else the nearest .claims upwards
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Who claims, a name for people; else $CLAIM_OWNER, else an agent's session, else user@host:worktree. For `list`,
    /// `watch` and `graph`: only what this owner holds
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// The scope that ids are in, unless they name one: the node x in it is @NAME/x. `next` takes its tasks only,
    /// `list` lists its nodes; else $CLAIM_SCOPE, else none
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "NAME")]
    pub(crate) scope: Option<String>,
    /// Answer with exactly one JSON object on standard output. Of `run`, whose standard output is its command's, it is on
    /// standard error; `log --follow` has an object a line
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub(crate) json: bool,
    /// No line and no notes; the exit code is the answer. Errors are still told
    #[arg(long, short, global = true, help_heading = EVERYWHERE)]
    pub(crate) quiet: bool,
    /// Don't wait for the disk: for tests and scratch directories
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "CLAIM_NO_SYNC", value_parser = parse_switch, action = ArgAction::SetTrue)]
    pub(crate) no_sync: bool,
    /// Use a directory that other machines may write too, where a claim may get two winners
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "CLAIM_ALLOW_SHARED_FS", value_parser = parse_switch, action = ArgAction::SetTrue)]
    pub(crate) allow_shared_fs: bool,
    /// On etcd: how far apart the clocks of all machines may be, the same on all of them; else $CLAIM_MAX_SKEW, else 2s
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "2s", value_parser = parse_duration)]
    pub(crate) max_skew: Option<Duration>,
}

/// From where to where. Nobody should write there meanwhile.
#[derive(clap::Args, Debug)]
pub(crate) struct Copy {
    /// The claim directory that is copied; it stays as it is
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Where to: a folder or an address, with nothing there yet
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) to: PathBuf,
    /// Copy although claims are live: their holders must go on there
    #[arg(long)]
    pub(crate) live: bool,
}

/// No arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Nothing {}

/// One node.
#[derive(clap::Args, Debug)]
pub(crate) struct Node {
    /// The node
    #[arg(env = "CLAIM_ID")]
    pub(crate) id: String,
}

/// A node and the token that holds it.
#[derive(clap::Args, Debug)]
pub(crate) struct Held {
    /// The node
    #[arg(env = "CLAIM_ID")]
    pub(crate) id: String,
    /// The claim's token. Better in $CLAIM_TOKEN, since arguments show in `ps`
    #[arg(long, env = "CLAIM_TOKEN", hide_env_values = true)]
    pub(crate) token: String,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Check {
    /// The node; else $CLAIM_ID, unless only paths are asked for
    pub(crate) id: Option<String>,
    /// The claim's token. Better in $CLAIM_TOKEN, since arguments show in `ps`
    #[arg(long, env = "CLAIM_TOKEN", hide_env_values = true, required_unless_present = "paths")]
    pub(crate) token: Option<String>,
    /// Is this path free, or reserved by the claim that the token holds? May be given several times
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
}

/// What makes a write safe to retry.
#[derive(clap::Args, Debug)]
pub(crate) struct Once {
    /// A key made up for this request: the same key and request again gets the same answer and writes nothing.
    /// As secret as a token, so better in $CLAIM_RECEIPT
    #[arg(long, value_name = "KEY", env = "CLAIM_RECEIPT", hide_env_values = true)]
    pub(crate) receipt: Option<String>,
}

/// On what terms a node is taken, whichever it is.
#[derive(clap::Args, Debug)]
pub(crate) struct Terms {
    /// How long the claim lasts without a renewal: 50ms to 30d
    #[arg(long, env = "CLAIM_LEASE", default_value = "30s", value_parser = parse_lease)]
    pub(crate) lease: Duration,
    /// Wait until it can be had, 5 minutes at most unless said: --wait=10s
    #[arg(long, value_name = "5m", num_args = 0..=1, require_equals = true, default_missing_value = "5m", value_parser = parse_duration)]
    pub(crate) wait: Option<Duration>,
    /// What drives the owner, such as codex; kept with the claim, for people
    #[arg(long, value_name = "NAME", env = "CLAIM_ENGINE")]
    pub(crate) engine: Option<String>,
    #[command(flatten)]
    pub(crate) with: With,
}

/// How to take a node that is named, for `acquire` and `run` alike.
#[derive(clap::Args, Debug)]
pub(crate) struct Taking {
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Only if the record is at this version; 0 for a node that nobody has owned
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true, value_parser = number::<u64>(0..=u64::MAX))]
    pub(crate) seen: Option<u64>,
    /// Take it from a live holder, or although it is blocked; the reason is recorded
    #[arg(long, value_name = "REASON")]
    pub(crate) force: Option<String>,
}

/// What a claim takes along, all or none. Each may be given several times.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct With {
    /// Only together with this file or folder and all below it; may be given several times. All or none
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    /// Only together with a slot of this pool; may be given several times
    #[arg(long = "pool", value_name = "NAME")]
    pub(crate) pools: Vec<String>,
    /// Only together with so much of this quota, 1 unless said: --quota api=3; may be given several times
    #[arg(long = "quota", value_name = "NAME[=AMOUNT]")]
    pub(crate) quotas: Vec<String>,
}

/// How `acquire` and `next` go about it.
#[derive(clap::Args, Debug)]
pub(crate) struct Manner {
    #[command(flatten)]
    pub(crate) once: Once,
    /// End the claim early when this process ends
    #[arg(long, value_name = "PID", allow_negative_numbers = true, value_parser = number::<u32>(1..=MAX_PID), conflicts_with = "until_exit")]
    pub(crate) while_pid: Option<u32>,
    /// Let the claim live as long as this process does, renewed or not
    #[arg(long, value_name = "PID", allow_negative_numbers = true, value_parser = number::<u32>(1..=MAX_PID))]
    pub(crate) until_exit: Option<u32>,
    /// Say what would happen, and write nothing
    #[arg(long, conflicts_with_all = ["wait", "export"])]
    pub(crate) dry_run: bool,
    /// Print lines for a shell to `eval`
    #[arg(long)]
    pub(crate) export: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Acquire {
    /// The node
    #[arg(env = "CLAIM_ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) taking: Taking,
    #[command(flatten)]
    pub(crate) manner: Manner,
}

/// Which tasks are meant.
#[derive(clap::Args, Debug)]
pub(crate) struct Lane {
    /// Of this queue
    #[arg(long, value_name = "NAME", env = "CLAIM_QUEUE", default_value = "default")]
    pub(crate) queue: String,
    /// Of this project; may be given several times
    #[arg(long = "project", value_name = "NAME")]
    pub(crate) projects: Vec<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Next {
    #[command(flatten)]
    pub(crate) lane: Lane,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) manner: Manner,
}

/// Take a node, run a command, renewing meanwhile, and give the node back.
///
/// The command runs in a process group of its own and gets CLAIM_ID, CLAIM_TOKEN, CLAIM_GENERATION,
/// CLAIM_ATTEMPT and CLAIMS_DIR. Standard output is the command's alone. What it leaves running in its group is
/// stopped before the node is given back. It dies with `run`, and the claim is over when the whole group is gone.
/// With a receipt it is started at most once: again with the same key and request, `run` says what became of the
/// claim, and ends with 75.
///
/// Exit codes: the command's own, 128+n for a signal; 75 not claimed; 76 lease lost; 126 the command can't be
/// executed, 127 it was not found; 125 any other failure of `run`, wrong usage included.
#[derive(clap::Args, Debug)]
pub(crate) struct Run {
    /// The node
    #[arg(env = "CLAIM_ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) taking: Taking,
    #[command(flatten)]
    pub(crate) once: Once,
    /// What becomes of the node after exit 0, unless said: a bare key is released and a task completed. After another
    /// exit a bare key is released and a task given back for another attempt
    #[arg(long, value_enum)]
    pub(crate) then: Option<Then>,
    /// Record the command's output as the node's result, as JSON if it is JSON, else as text, and pass it on
    #[arg(long)]
    pub(crate) result_from_stdout: bool,
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

/// Take tasks as they come up, run a command for each, and settle it by the command's end.
///
/// The command gets the task's input on its standard input, as a line of JSON, and CLAIM_ID, CLAIM_TOKEN,
/// CLAIM_GENERATION, CLAIM_ATTEMPT and CLAIMS_DIR. What it prints is the task's result, as JSON if it is JSON, else as
/// text. Exit 0 completes the task, 65 rejects it, anything else gives it back for another attempt after a backoff; a
/// command that has settled its task itself is left at that. The lease is renewed meanwhile. When it is lost, the
/// command is stopped with all of its group, and so it is when the worker dies.
///
/// SIGTERM or SIGINT: nothing more is taken, and running commands may end. After the shutdown timeout, or at the second
/// signal, they are stopped and their tasks given back. A clean end is exit 0; 126 the command can't be executed, 127 it
/// was not found.
#[derive(clap::Args, Debug)]
// It waits anyway, and says so to who asks for it.
#[command(mut_arg("wait", |wait| wait.hide(true)))]
pub(crate) struct Work {
    #[command(flatten)]
    pub(crate) lane: Lane,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// How many commands at a time: 1 to 256
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = number::<u16>(1..=256))]
    pub(crate) concurrency: u16,
    /// End after so many tasks
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>(1..=u64::MAX))]
    pub(crate) max: Option<u64>,
    /// End when there has been nothing to take for so long, at once unless said: --idle-exit=10s. Else wait for ever
    #[arg(long, value_name = "0s", num_args = 0..=1, require_equals = true, default_missing_value = "0s", value_parser = parse_duration)]
    pub(crate) idle_exit: Option<Duration>,
    /// How long running commands may go on when the worker is told to stop
    #[arg(long, value_name = "30s", default_value = "30s", value_parser = parse_duration)]
    pub(crate) shutdown_timeout: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// What becomes of a node after its command's exit 0.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It is done
    Complete,
    /// It is ready again
    Release,
}

/// What becomes of the command when the lease is lost.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnLost {
    /// SIGTERM, then SIGKILL
    Kill,
    /// SIGTERM
    Term,
    /// Nothing
    Keep,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Renew {
    #[command(flatten)]
    pub(crate) held: Held,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Another length from now on: 50ms to 30d
    #[arg(long, value_parser = parse_lease)]
    pub(crate) lease: Option<Duration>,
    /// What the next owner should find: JSON, @FILE or - for standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) progress: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Release {
    #[command(flatten)]
    pub(crate) held: Held,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Give it back blocked, for a reason
    #[arg(long, value_name = "REASON")]
    pub(crate) block: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Complete {
    #[command(flatten)]
    pub(crate) held: Held,
    #[command(flatten)]
    pub(crate) once: Once,
    /// The result: JSON, @FILE or - for standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) result: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Prune {
    /// How old is old
    #[arg(long, default_value = "7d", value_parser = parse_duration)]
    pub(crate) older: Duration,
    /// Say what would go, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Doctor {
    /// Mend what can be mended without losing a fact; others may work meanwhile
    #[arg(long)]
    pub(crate) repair: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Reap {
    /// Give the nodes back; those whose attempts are used up have failed. Live claims stay as they are
    #[arg(long)]
    pub(crate) apply: bool,
    /// Tell of live claims, too, that have shown no progress for so long: neither a renewal with --progress, nor their
    /// beginning
    #[arg(long, value_name = "6h", default_value = "6h", value_parser = parse_duration)]
    pub(crate) idle: Duration,
}

/// A switch's variable: an empty one counts as unset, like every other.
fn parse_switch(text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "" | "0" | "no" | "false" | "off" | "n" | "f" => Ok(false),
        "1" | "yes" | "true" | "on" | "y" | "t" => Ok(true),
        _ => Err(Error::usage(format!("not a switch: {text:?}; write 1 or 0"))),
    }
}
