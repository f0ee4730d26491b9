//! One line on a terminal that says how far it is, and is gone in the end.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use claimdir::time::human;

use super::context::Context;
use super::text::harmless;

/// To the line's start, and away with it.
const ERASE: &str = "\r\x1b[K";

/// A line that is being rewritten on standard error.
pub(crate) struct Progress {
    shown: Option<String>,
}

impl Progress {
    /// `None`: no terminal is there, or nobody wants to know.
    pub(crate) fn new(context: &Context) -> Option<Progress> {
        (io::stderr().is_terminal() && !context.global.quiet).then_some(Progress { shown: None })
    }

    /// Says this, and how much time is left.
    pub(crate) fn show(&mut self, says: &str, left: Duration) {
        let left = human(i64::try_from(left.as_secs().saturating_mul(1000)).unwrap_or(i64::MAX));
        let line = format!("{says}, {left} left");
        // A line that goes over the edge could not be erased.
        let width = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let width = if width > 1 { width - 1 } else { 79 };
        let line: String = harmless(&line).chars().take(width).collect();
        if self.shown.as_ref() != Some(&line) {
            tell(&format!("{ERASE}{line}"));
            self.shown = Some(line);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            tell(ERASE);
        }
    }
}

fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
