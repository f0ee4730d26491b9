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
mod run;
mod text;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use context::Context;
use report::Report;

/// Parses, runs, prints; the exit code is the answer's.
pub(crate) fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return report::usage(&error, names_run()),
    };
    let context = Context::new(args.global);
    let report = dispatch(args.command, &context).unwrap_or_else(Report::error);
    ExitCode::from(report.deliver(&context))
}

/// Is the command `run`, as far as arguments that can't be understood say so?
fn names_run() -> bool {
    let lenient = Args::command().ignore_errors(true).try_get_matches();
    lenient.is_ok_and(|matches| matches.subcommand_name() == Some("run"))
}

fn dispatch(command: Command, context: &Context) -> claimdir::Result<Report> {
    match command {
        Command::Acquire(args) => command::acquire::run(args, context),
        Command::Run(args) => Ok(command::run::run(&args, context)),
        Command::Check(args) => command::settle::check(args, context),
        Command::Renew(args) => command::settle::renew(args, context),
        Command::Release(args) => command::settle::release(args, context),
        Command::Complete(args) => command::settle::complete(args, context),
        Command::Show(args) => command::look::show(args, context),
        Command::Why(args) => command::look::why(args, context),
        Command::List(args) => command::look::list(args, context),
        Command::Where => command::place::locate(context),
        Command::Init => command::place::init(context),
        Command::Doctor => command::place::doctor(context),
        Command::Hold(args) => command::run::hold(&args),
    }
}
