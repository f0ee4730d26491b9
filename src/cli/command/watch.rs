//! `claim watch`. It writes nothing and makes no directory.

use claimdir::{Code, Error, Result};
use serde_json::Value;

use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::report::Report;
use crate::cli::text::harmless;
use crate::cli::watch::gather::{Asked, gather};
use crate::cli::watch::past::Past;
use crate::cli::watch::run::{Source, frame, run as show, why_not};

pub(crate) fn run(args: args::Watch, context: &Context) -> Result<Report> {
    args.filter.check()?;
    let asked = Asked { filter: args.filter, scope: context.scope()?, owner: context.global.owner.clone() };
    if !args.once {
        if context.global.json {
            return Err(Error::usage("--json is for the board as it is now: add --once"));
        }
        if let Some(why) = why_not() {
            return Err(Error::usage(format!("`claim watch` needs a terminal, and {why}"))
                .hint("`claim list` lists the nodes, and `claim watch --once` prints the board"));
        }
    }
    let located = context.located()?;
    if !args.once {
        let options = context.options();
        let remote = if located.is_folder() { None } else { Some(context.directory()?) };
        let path = located.path.clone();
        show(Source { path, options, remote, asked, interval: args.interval })?;
        return Ok(Report::yes(String::new(), Value::Null).lines(Vec::new()));
    }
    let directory = context.directory()?;
    let mut board = gather(&directory, &asked)?;
    board.events = Past::of(&directory).newest(&asked);
    let (fields, unreadable) = (board.json(), board.unreadable.clone());
    let report = Report::yes(String::new(), Value::Object(fields)).lines(frame(board));
    let report = unreadable.iter().fold(report, |report, what| report.note(harmless(what).into_owned()));
    Ok(match unreadable.len() {
        0 => report,
        count => report.but(Code::RecordUnreadable, format!("records that can't be read: {count}")),
    })
}
