//! `claim setup`.

use claimdir::{Code, Result, locate};
use clap::ValueEnum;
use serde_json::json;

use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::report::{Report, offer};
use crate::cli::setup::{Planned, Wanted, plan};
use crate::cli::text::harmless;

pub(crate) fn run(args: args::Setup, context: &Context) -> Result<Report> {
    let cwd = Context::cwd()?;
    let root = locate::worktree(&cwd).unwrap_or(cwd);
    let wanted = if args.remove { Wanted::Gone } else { Wanted::There };
    let (planned, remarks) = plan(args.target, &root, wanted)?;
    if args.print {
        return Ok(printed(&planned, context));
    }
    if !args.check {
        planned.iter().try_for_each(Planned::may_be_written)?;
        planned.iter().try_for_each(Planned::write)?;
    }
    let word = |file: &Planned| match &file.after {
        _ if file.stands() => "UNCHANGED",
        _ if args.check => "DRIFT",
        Some(_) => "WROTE",
        None => "REMOVED",
    };
    let name = |file: &Planned| file.path.to_string_lossy().into_owned();
    let lines = planned.iter().map(|file| format!("{} {}", word(file), harmless(&name(file)))).collect();
    let files = |file: &Planned| json!({"path": name(file), "action": word(file).to_lowercase()});
    let report = Report::yes(String::new(), json!({"files": planned.iter().map(files).collect::<Vec<_>>()}));
    let report = remarks.into_iter().fold(report.lines(lines), Report::note);
    if args.check && !planned.iter().all(Planned::stands) {
        let target = args.target.to_possible_value();
        let name = target.as_ref().map_or("TARGET", |target| target.get_name());
        let message = "not as `claim setup` would write it".to_owned();
        return Ok(report.but(Code::NotReady, message).hint(format!("`claim setup {name}` writes it")));
    }
    Ok(report)
}

/// The files as they would be, and nothing else on standard output.
fn printed(planned: &[Planned], context: &Context) -> Report {
    let text = |file: &Planned| file.after.clone().unwrap_or_default();
    if context.global.json {
        let file = |file: &Planned| json!({"path": file.path.to_string_lossy(), "text": file.after});
        return Report::yes(String::new(), json!({"files": planned.iter().map(file).collect::<Vec<_>>()}));
    }
    let names = planned.iter().map(|file| harmless(&file.path.to_string_lossy()).into_owned());
    let report = names.fold(Report::raw(Vec::new()), Report::note);
    match offer(planned.iter().map(text).collect::<String>().as_bytes()) {
        Ok(()) => report,
        Err(_) => report.exiting(Code::StoreUnavailable.exit()),
    }
}
