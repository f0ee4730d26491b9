//! `claim doctor`.

use claimdir::store::{Finding, Gravity};
use claimdir::{Code, Result};
use serde_json::{Value, json};

use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::report::Report;
use crate::cli::text::harmless;

/// How many lines people get of what was found in many places.
const ALIKE: usize = 10;

pub(crate) fn run(args: args::Doctor, context: &Context) -> Result<Report> {
    let directory = context.directory()?;
    let checkup = if args.repair { directory.repair()? } else { directory.doctor()? };
    let faults = checkup.findings.iter().filter(|finding| finding.is_fault()).count();
    let mended = checkup.findings.iter().filter(|finding| finding.mended).count();
    let records = checkup.records;
    let summary = match args.repair {
        true => format!("{records} records read, {mended} mended, {faults} faults left"),
        false => format!("{records} records read, {faults} faults"),
    };
    let fields = json!({
        "records": records,
        "faults": faults,
        "mended": mended,
        "hints_whole": checkup.hints_whole,
        "findings": checkup.findings.iter().map(row).collect::<Vec<_>>(),
    });
    let lines = std::iter::once(summary).chain(lines(&checkup.findings)).collect();
    let report = Report::yes(String::new(), fields).lines(lines);
    Ok(match faults {
        0 => report,
        _ => report.but(Code::RecordUnreadable, format!("faults found: {faults}")),
    })
}

fn row(finding: &Finding) -> Value {
    json!({
        "gravity": gravity(finding),
        "place": finding.place,
        "what": finding.what,
        "next": finding.next,
        "mended": finding.mended,
    })
}

fn gravity(finding: &Finding) -> &'static str {
    match finding.gravity {
        Gravity::Fault => "fault",
        Gravity::Leftover => "leftover",
    }
}

/// A line each; of many alike the first ones, and how many more.
fn lines(findings: &[Finding]) -> Vec<String> {
    let mut kinds: Vec<(&Finding, usize)> = Vec::new();
    let mut lines = Vec::new();
    for finding in findings {
        let alike = |(it, _): &(&Finding, usize)| {
            (it.gravity, it.mended, &it.what) == (finding.gravity, finding.mended, &finding.what)
        };
        // What differs in its words is not looked for for ever.
        let known = kinds.iter().rev().take(ALIKE).position(alike).map(|back| kinds.len() - 1 - back);
        let count = match known.and_then(|at| kinds.get_mut(at)) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                kinds.push((finding, 1));
                1
            }
        };
        if count <= ALIKE {
            lines.push(line(finding));
        }
    }
    let many = kinds.iter().filter(|(_, count)| *count > ALIKE);
    lines.extend(many.map(|(it, count)| format!("{} more: {}", count - ALIKE, harmless(&it.what))));
    lines
}

fn line(finding: &Finding) -> String {
    let word = if finding.mended { "mended" } else { gravity(finding) };
    let (place, what) = (harmless(&finding.place), harmless(&finding.what));
    match finding.mended {
        true => format!("{word}: {place}: {what}"),
        false => format!("{word}: {place}: {what}; {}", harmless(&finding.next)),
    }
}
