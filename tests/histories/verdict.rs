//! What a run held, and what it broke.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use claimdir::Directory;
use claimdir::store::Gravity;
use tempfile::TempDir;

use super::checker::{Violation, check};
use super::log::{Answer, Call, Op, Why, read};
use super::plan::{Fates, Plan};

/// How many calls before a violation are printed.
const AROUND: usize = 30;
/// How much of a report is printed; the rest is in a file.
const MOST_LINES: usize = 60;

/// A run's figures, and what is wrong.
pub(crate) struct Verdict {
    figures: BTreeMap<&'static str, u64>,
    violations: Vec<String>,
}

/// Reads the logs of a run on `directory` and checks each node's history.
pub(crate) fn judge(directory: &Directory, plan: &Plan, fates: &Fates) -> Verdict {
    let ops = read(&plan.folder, |worker, life| fates.gone(worker, life));
    let mut violations = fates.stuck.clone();
    let figures = figures(&ops, fates);
    let mut nodes: BTreeMap<String, Vec<Op>> = BTreeMap::new();
    for op in ops {
        if let Some(Answer::Failed { code, message }) =
            op.answer.as_ref().filter(|answer| is_surprise(answer, fates))
        {
            violations.push(format!("{}: {code}: {message}", op.id));
        }
        nodes.entry(op.node.clone()).or_default().push(op);
    }
    for (node, ops) in &mut nodes {
        ops.sort_by_key(|op| (op.called, op.id));
        if let Err(violation) = check(ops) {
            violations.push(tell(node, ops, &violation));
        }
    }
    let findings = directory.doctor().unwrap().findings;
    violations.extend(
        findings.iter().filter(|f| f.gravity == Gravity::Fault).map(|f| format!("{}: {}", f.place, f.what)),
    );
    Verdict { figures, violations }
}

/// Errors other than that too many were at it.
fn is_surprise(answer: &Answer, fates: &Fates) -> bool {
    let is_away = |code: &str| fates.outages && code == "STORE_UNAVAILABLE";
    matches!(answer, Answer::Failed { code, .. } if code != "CONTENDED" && !is_away(code))
}

fn figures(ops: &[Op], fates: &Fates) -> BTreeMap<&'static str, u64> {
    let count = |what: fn(&Op) -> bool| ops.iter().filter(|op| what(op)).count() as u64;
    let beyond =
        |ms: u64| fates.freezes.iter().filter(|(_, from, to)| to - from > ms * 1_000_000).count() as u64;
    BTreeMap::from([
        ("operations", ops.len() as u64),
        ("unknown", count(|op| op.answer.is_none())),
        ("contended", count(|op| matches!(op.answer, Some(Answer::Failed { .. })))),
        ("taken", count(|op| matches!(op.answer, Some(Answer::Taken { .. })))),
        (
            "takeovers",
            count(|op| matches!(op.answer, Some(Answer::Taken { from: Some(_), forced: false, .. }))),
        ),
        ("forced", count(|op| matches!(op.answer, Some(Answer::Taken { forced: true, .. })))),
        ("renewed", count(|op| matches!(op.answer, Some(Answer::Renewed { .. })))),
        ("released", count(|op| matches!(op.answer, Some(Answer::Released { .. })))),
        ("completed", count(|op| matches!(op.answer, Some(Answer::Completed { replay: false, .. })))),
        ("fenced", count(|op| op.is_fenced())),
        ("too-late", count(|op| matches!(op.answer, Some(Answer::Refused { why: Why::TooLate, .. })))),
        ("kills", fates.kills.len() as u64),
        ("freezes", fates.freezes.len() as u64),
        ("freezes-beyond-leases", beyond(300)),
        ("slowest-us", ops.iter().filter_map(|op| op.took_ns(fates)).max().unwrap_or(0) / 1000),
    ])
}

impl Op {
    fn is_fenced(&self) -> bool {
        matches!(
            self.answer,
            Some(Answer::Refused {
                why: Why::Over | Why::Replaced { .. } | Why::NotHeld { .. } | Why::NoRecord,
                ..
            })
        )
    }

    /// How long the answer took, of a call that was not to wait and whose worker was not frozen meanwhile.
    fn took_ns(&self, fates: &Fates) -> Option<u64> {
        let waits = matches!(self.call, Call::Acquire { wait_ms: 1.., .. });
        let was_frozen = |(worker, from, to): &(u32, u64, u64)| {
            *worker == self.id.worker && *from < self.ended && self.called < *to
        };
        if waits || self.answer.is_none() || fates.freezes.iter().any(was_frozen) {
            return None;
        }
        Some(self.ended - self.called)
    }
}

/// The node's history around a violation.
fn tell(node: &str, ops: &[Op], violation: &Violation) -> String {
    let at = &violation.at;
    let mut text = format!("{node}: no order of its calls explains {} (called, ended in ns):\n", at.id);
    let before = ops.partition_point(|op| op.called <= at.ended);
    let concerned = &ops[before.saturating_sub(AROUND)..before];
    for op in concerned {
        let mark = if op.id == at.id { '>' } else { ' ' };
        let answer = op.answer.as_ref().map_or("unknown".to_owned(), |answer| format!("{answer:?}"));
        text += &format!("{mark} {} {}..{} {:?} -> {answer}\n", op.id, op.called, op.ended, op.call);
    }
    for state in violation.states.iter().take(5) {
        text += &format!("  could be {state:?}\n");
    }
    text
}

impl Verdict {
    #[cfg(feature = "testing")]
    pub(crate) fn is_broken(&self) -> bool {
        !self.violations.is_empty()
    }

    /// Prints the figures and passes, or panics with what was broken. The logs in `scratch` are then kept.
    pub(crate) fn hold(self, name: &str, scratch: TempDir) {
        println!("{name}: {self}");
        if self.violations.is_empty() {
            return;
        }
        let report = self.violations.join("\n");
        let kept = scratch.keep();
        fs::write(kept.join("violations"), &report).unwrap();
        let shown: Vec<&str> = report.lines().take(MOST_LINES).collect();
        panic!("{} violations; all is in {}\n{}", self.violations.len(), kept.display(), shown.join("\n"));
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, figure) in &self.figures {
            write!(f, "{name}={figure} ")?;
        }
        write!(f, "violations={}", self.violations.len())
    }
}
