//! What tells of the program itself.

use std::path::PathBuf;

use clap::ValueEnum;

/// `claim completions`.
#[derive(clap::Args, Debug)]
pub(crate) struct Completions {
    /// For which shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// A shell that completes words.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// `claim help`.
#[derive(clap::Args, Debug)]
pub(crate) struct Help {
    /// Of this command, such as `acquire` or `mail send`; else of the program as a whole
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `claim man`.
#[derive(clap::Args, Debug)]
pub(crate) struct Man {
    /// Of this command, such as `acquire` or `mail send`; else of the program as a whole
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder, which must be there
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}
