//! The parts of `claim run` and `claim work`: a command under a claim.
//!
//! ```text
//! stub        a process that waits to become the command, so that the claim can name its group
//! guard       a process that ends the command's group should its worker die
//! supervise   one loop over everything that may happen meanwhile
//!   signals   what is passed on
//!   terminal  whose the terminal is
//!   capture   the command's output, kept, and passed on where that is asked for
//! settle      the claim, as the command's end asks for
//! report      what came of it
//! ```

pub(super) mod capture;
pub(super) mod guard;
pub(super) mod lookup;
pub(super) mod report;
pub(super) mod settle;
pub(super) mod signals;
pub(super) mod stub;
pub(super) mod supervise;
pub(super) mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::report::FAILED;

/// Is this process a part of another `run` or `work`? Then it does its work, and this is how it ended.
///
/// Asked before the arguments are parsed as a person's: there is a stub for each command, and it should cost little.
pub(super) fn as_part() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let part = args.next()?;
    // That it failed is for whoever started it to tell.
    let failed = if part == stub::SUBCOMMAND {
        stub::hold(&args.collect::<Vec<OsString>>()).is_err()
    } else if part == guard::SUBCOMMAND {
        guard::watch().is_err()
    } else {
        return None;
    };
    Some(ExitCode::from(if failed { FAILED } else { 0 }))
}
