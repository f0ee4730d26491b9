//! The arguments of `setup`.

use clap::ValueEnum;

/// Teach an agent, git or CI about claims, by a marked block of its own in the files they read.
///
/// All else in those files stays as it is, twice is as once, and --remove leaves them as they were. Hooks that are there
/// go on running.
#[derive(clap::Args, Debug)]
pub(crate) struct Setup {
    /// For whom
    #[arg(value_enum, value_name = "TARGET")]
    pub(crate) target: Target,
    /// Write nothing: 1 if the files are not as they would be written
    #[arg(long, conflicts_with_all = ["remove", "print"])]
    pub(crate) check: bool,
    /// Take the block out again
    #[arg(long, conflicts_with = "print")]
    pub(crate) remove: bool,
    /// Write nothing: print the files as they would be
    #[arg(long)]
    pub(crate) print: bool,
}

/// Who is taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Claude Code: hooks in .claude/settings.json
    ClaudeCode,
    /// Codex, and whoever reads AGENTS.md
    Codex,
    /// Cursor: .cursor/rules/claim.mdc
    Cursor,
    /// git: the hooks pre-commit and pre-push, for all worktrees
    Git,
    /// GitHub Actions: .github/workflows/claim.yml, where of 20 racing processes exactly one must win
    GithubActions,
}
