//! The command `claim`: the library, spoken from a shell.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
