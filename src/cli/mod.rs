//! The command line: typed arguments, then meaning, then one report, printed once.
//!
//! ```text
//! args  ->  command/*  ->  report
//!              |
//!              +->  context (which directory, which owner)  ->  the library
//! ```

mod args;
mod command;
mod context;
mod json;
mod report;
mod text;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use context::Context;
use report::Report;

/// Parses, runs, prints; the exit code is the answer's.
pub(crate) fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return report::usage(&error),
    };
    let context = Context::new(args.global);
    let report = dispatch(args.command, &context).unwrap_or_else(Report::error);
    ExitCode::from(report.deliver(&context))
}

fn dispatch(command: Command, context: &Context) -> claimdir::Result<Report> {
    match command {
        Command::Acquire(args) => command::acquire::run(args, context),
        Command::Check(args) => command::check::run(args, context),
        Command::Renew(args) => command::settle::renew(args, context),
        Command::Release(args) => command::settle::release(args, context),
        Command::Complete(args) => command::settle::complete(args, context),
        Command::Retry(args) => command::settle::retry(args, context),
        Command::Add(args) => command::task::add(args, context),
        Command::Review(args) => command::task::review(args, context),
        Command::Show(args) => command::look::show(args, context),
        Command::Why(args) => command::look::why(args, context),
        Command::List(args) => command::look::list(args, context),
        Command::Where => command::place::locate(context),
        Command::Init => command::place::init(context),
        Command::Doctor => command::place::doctor(context),
        Command::Prune(args) => command::place::prune(args, context),
    }
}
