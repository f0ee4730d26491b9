//! The command line: typed arguments, then meaning, then one report, printed once.
//!
//! ```text
//! args  ->  command/*  ->  report
//!              |
//!              +->  context (which directory, which owner)  ->  the library
//! ```

mod args;
mod bounded;
mod command;
mod context;
mod diagram;
mod guard;
mod json;
#[cfg(feature = "mcp")]
mod mcp;
mod page;
mod prime;
mod progress;
mod report;
mod run;
mod setup;
mod stream;
mod suggest;
mod table;
mod text;
mod watch;
mod work;

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use args::Args;
use context::Context;
use report::Report;

/// Parses, runs, prints; the exit code is the answer's.
pub(crate) fn main() -> ExitCode {
    if let Some(exit) = run::as_part() {
        return exit;
    }
    let args = match parse() {
        Ok(args) => args,
        Err(error) => return report::usage(&error, names_run()),
    };
    let context = Context::new(args.global);
    let report = args.command.run(&context).unwrap_or_else(Report::error).suggest(&context);
    ExitCode::from(report.deliver(&context))
}

/// Is the command `run` or `pool run`, as far as arguments that can't be understood say so?
fn names_run() -> bool {
    let lenient = Args::command().ignore_errors(true).try_get_matches();
    lenient.is_ok_and(|matches| match matches.subcommand() {
        Some(("pool", matches)) => matches.subcommand_name() == Some("run"),
        Some((name, _)) => name == "run",
        None => false,
    })
}

/// As `Args::try_parse` does, but sooner.
///
/// First only those commands are described whose names are among the words: describing all of them costs more
/// instructions than most commands do. Whatever can't be understood so is parsed with all, which know what to say.
fn parse() -> Result<Args, clap::Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let is_asked = |name: &str| words.iter().any(|word| word == name);
    parsed(Args::brief(is_asked), &words).or_else(|_| parsed(Args::command(), &words))
}

/// What clap built is left to the end of the process, which is near: taking it apart would be a tenth of the
/// instructions of a whole `acquire`.
fn parsed(command: clap::Command, words: &[OsString]) -> Result<Args, clap::Error> {
    let mut command = ManuallyDrop::new(command);
    let mut matches = ManuallyDrop::new(command.try_get_matches_from_mut(words)?);
    Args::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}
