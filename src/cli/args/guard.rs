//! The arguments of `guard`.

use std::ffi::OsString;

use clap::ValueEnum;

/// Catch what is done on paths that another has reserved: for hooks of agents and of git.
///
/// A path is one's own with the claim whose token is shown; where no token is shown, with a claim of the same owner,
/// as `claim where` names it. What can't be decided, or not within a second, is allowed with a note. Where no claim
/// directory is used everything is allowed, silently. CLAIM_GUARD=warn tells what would be refused and allows it,
/// CLAIM_GUARD=off allows all.
#[derive(clap::Args, Debug)]
pub(crate) struct GuardCommand {
    #[command(subcommand)]
    pub(crate) command: Guard,
}

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Guard {
    /// May these files be written? 4 and the holder if another's live claim has one of them
    Path(GuardPath),
    /// Answer the hook of an agent that is about to use a tool, its call being JSON on standard input. A live claim in
    /// $CLAIM_ID and $CLAIM_TOKEN is renewed, once in a third of its lease at most
    Hook(GuardHook),
    /// Answer a git hook: 1 if what is committed or pushed touches others' paths, or is the work of a lost claim
    Git(GuardGit),
}

#[derive(clap::Args, Debug)]
pub(crate) struct GuardPath {
    /// The claim's token. Better in $CLAIM_TOKEN, since arguments show in `ps`
    #[arg(long, env = "CLAIM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// The files, each named exactly
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<OsString>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct GuardHook {
    /// Whose hook
    #[arg(value_enum, value_name = "AGENT")]
    pub(crate) of: Agent,
}

/// An agent that asks before it uses a tool.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    ClaudeCode,
}

#[derive(clap::Args, Debug)]
pub(crate) struct GuardGit {
    /// Which hook
    #[arg(value_enum, value_name = "HOOK")]
    pub(crate) hook: GitHook,
    /// What git gives the hook: for pre-push the remote's name and address
    #[arg(value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) given: Vec<OsString>,
}

/// A hook of git.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GitHook {
    /// What is staged. Of a merge only what differs from all its parents
    PreCommit,
    /// What the remote does not have yet, by the refs on standard input
    PrePush,
}
